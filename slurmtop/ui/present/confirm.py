"""The confirm dialog as lines: what will run, whom it reaches, what it costs. Pure."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.control.commands import excluded_after
from slurmtop.control.save_first import saving_lines
from slurmtop.model.ids import JobKey
from slurmtop.model.snapshot import SourceHealth
from slurmtop.model.text import fit, visible
from slurmtop.model.units import ago_text, clock_text, plural
from slurmtop.parse.slurm.hostlist import together
from slurmtop.ui.present.action_words import minutes_text, target_name
from slurmtop.ui.present.health import HealthWords
from slurmtop.ui.present.job import DASH
from slurmtop.ui.present.reactions import reaction_lines, sum_text, worst_role
from slurmtop.ui.present.spans import Line, cut_line, join, wrap

SHOWN_TARGETS = 5
SHOWN_COMMAND_LINES = 3
SHOWN_WARNINGS = 3

#: These end, stop or restart nothing that runs now. (A short time limit may.)
_MILD = frozenset({Kind.HOLD, Kind.RELEASE, Kind.EXCLUDE})


def body_lines(
    action: Action,
    now: datetime,
    width: int,
    user: str,
    hidden: Collection[JobKey] = (),
    *,
    keys: bool = False,
    left_out: bool = False,
) -> tuple[Line, ...]:
    """Everything about the action; what matters most comes first, all of it is there.

    ``hidden`` are the jobs that were marked and that a filter hides. ``keys``: the key that leaves
    the saving out is told; ``left_out``: it was pressed.
    """
    commands, cut = _commands(action, width)
    out: list[Line] = _hidden_lines(action, hidden, width)
    out.extend([(("Runs exactly:", "label"),), *commands])
    out.extend(_owner_line(action, user, width))
    targets = action.targets
    shown = targets if len(targets) <= SHOWN_TARGETS + 1 else targets[:SHOWN_TARGETS]
    out.extend(_target_line(target, now, width, len(targets) > 1) for target in shown)
    if len(shown) < len(targets):
        out.append(((f"  … and {plural(len(targets) - len(shown), 'more row')}", "dim"),))
    out.append(_reach_line(action))
    out.extend(_change_line(action, width))
    out.extend(save_lines(action, width, keys=keys, left_out=left_out))
    if action.reactions:
        out.extend(_wrapped(sum_text(action.reactions), width, worst_role(action.reactions)))
    for warning in _ordered(action.warnings)[:SHOWN_WARNINGS]:
        out.extend(_wrapped(f"! {visible(warning)}", width, "warn"))
    out.extend(_rest(action, now, width, cut, len(shown)))
    return tuple(cut_line(line, width) for line in out)


def save_lines(action: Action, width: int, *, keys: bool, left_out: bool) -> list[Line]:
    """What is saved before anything is done, and how that is left out."""
    if left_out:
        text = "! nothing is saved first: what is known is lost with the job (s = save it)"
        return _wrapped(text, width, "warn")
    more = "; s = do not save" if keys else ""
    return [
        line
        for text in saving_lines(action)
        for line in _wrapped(f"First: {text}{more}", width, "")
    ]


def _hidden_lines(action: Action, hidden: Collection[JobKey], width: int) -> list[Line]:
    count = sum(target.covers for target in action.targets if _is_hidden(target, hidden))
    if not count:
        return []
    text = f"{count} of these {'is' if count == 1 else 'are'} marked and hidden by the filter"
    if action.job_count == 1:
        text = "this job is marked and hidden by the filter; the cursor is not on it"
    return _wrapped(f"! {text}", width, "bad")


def _is_hidden(target: Target, hidden: Collection[JobKey]) -> bool:
    # A look at Slurm may have taken the waiting rest of an array apart into its tasks.
    rest = JobKey(target.key.cluster, f"{target.base}_[*]")
    waits = target.tasks and target.started_at is None
    keys = {target.key, *target.parts, *([rest] if waits else [])}
    return not keys.isdisjoint(hidden)


def _ordered(warnings: Collection[str]) -> list[str]:
    """What it costs before what it leaves out and what belongs to it besides."""
    return sorted(warnings, key=lambda text: (text.startswith("left out"), " is a het job" in text))


def _wrapped(text: str, width: int, role: str, first: str = "", rest: str = "  ") -> list[Line]:
    return [((piece, role),) for piece in wrap(text, width, first=first, rest=rest)]


def _command(text: str, width: int) -> list[Line]:
    return _wrapped(visible(text), width, "strong", first="  $ ", rest="    ")


def _commands(action: Action, width: int) -> tuple[list[Line], bool]:
    lines = [line for text in action.command_lines for line in _command(text, width)]
    if len(lines) <= SHOWN_COMMAND_LINES:
        return lines, False
    count = len(action.command_lines)
    note = f"    … {plural(count, 'command')}, in full below (page down)"
    return [*lines[: SHOWN_COMMAND_LINES - 1], ((note, "dim"),)], True


def _owner_line(action: Action, user: str, width: int) -> list[Line]:
    owners = Counter(target.user for target in action.targets)
    if set(owners) == {user}:
        return [(("Whose: ", "label"), (f"yours ({visible(user)})", ""))]
    names = [
        (visible(owner) or "somebody unknown") + (f" {count}" if len(owners) > 1 else "")
        for owner, count in owners.most_common()
    ]
    word = "not yours" if user not in owners else "not all yours"
    return _wrapped(f"Whose: {', '.join(names)} ({word})", width, "bad")


def _target_line(target: Target, now: datetime, width: int, short: bool) -> Line:
    name_width = 18 if short else 30
    tasks = "" if target.covers == 1 else f" ×{target.covers}"
    parts: list[Line] = [
        (
            (f"  {target_name(target)}{tasks}", "strong"),
            ("  " + fit(visible(target.name) or DASH, name_width).rstrip(), ""),
        ),
        ((_target_state(target, now), ""),),
    ]
    if target.nodes:
        parts.append(((visible(target.nodes), ""),))
    elif target.node_count:
        parts.append(((plural(target.node_count, "node"), ""),))
    if target.gpus:
        parts.append(((plural(target.gpus, "GPU"), ""),))
    return cut_line(join(parts), width)


def _target_state(target: Target, now: datetime) -> str:
    word = visible(target.state_word.lower())
    if target.started_at is None:
        return word
    ran = (now - target.started_at).total_seconds()
    return f"{word} for {clock_text(ran)}"


def _change_line(action: Action, width: int) -> list[Line]:
    """What is now and what will be, for the kinds that change a value."""
    if action.kind is Kind.LIMIT:
        limits = {target.limit_s for target in action.targets}
        only = limits.pop() if len(limits) == 1 else None
        was = "several" if limits else "none, or not known" if only is None else clock_text(only)
        text = f"Time limit now {was}, then {minutes_text(action.details.limit_minutes or 0)}"
    elif action.kind is Kind.EXCLUDE:
        lists = {excluded_after(target, action.details.exclude) for target in action.targets}
        several = "what each of them excludes now, and these"
        text = f"Excluded afterwards: {visible(lists.pop()) if len(lists) == 1 else several}"
    else:
        return []
    return _wrapped(text, width, "")


def _reach_line(action: Action) -> Line:
    running = [target for target in action.targets if target.started_at is not None]
    if not running:
        return (("Reaches no node: nothing of it runs now", ""),)
    if action.kind in _MILD:
        return (("Ends nothing: what runs goes on", ""),)
    hosts = together(target.nodes for target in running)
    text = "nodes unknown" if hosts is None else plural(len(hosts), "node")
    if len(action.targets) > 1:
        text += f" of {plural(len(running), 'running row')}"
    gpus = [target.gpus for target in running]
    held = "GPUs unknown" if None in gpus else plural(sum(n or 0 for n in gpus), "GPU")
    parts: list[Line] = [(("Reaches ", "label"), (text, "")), ((held, ""),)]
    if None in [target.gpu_hours_spent for target in running]:
        parts.append((("GPU-hours so far unknown", ""),))
    return join(parts)


def _rest(action: Action, now: datetime, width: int, cut: bool, shown: int) -> list[Line]:
    """What did not fit above, in full, for whoever scrolls down."""
    out = reaction_lines(action.reactions, width)
    for warning in _ordered(action.warnings)[SHOWN_WARNINGS:]:
        out.extend(_wrapped(f"! {visible(warning)}", width, "warn"))
    if cut:
        out.extend([(), (("Commands in full:", "label"),)])
        out.extend(line for text in action.command_lines for line in _command(text, width))
    if shown < len(action.targets):
        out.extend([(), (("All of them:", "label"),)])
        out.extend(_target_line(target, now, width, short=True) for target in action.targets)
    return out


def age_lines(words: HealthWords, health: SourceHealth, now: datetime, width: int) -> list[Line]:
    """How old what is shown is, where it is old; nothing where it is fresh."""
    if not words.old_rows or health.good_at is None:
        return []
    failure = health.failure
    why = visible(failure.sentence).rstrip(". ") if failure is not None else "no newer answer"
    age = ago_text(max(0.0, (now - health.good_at).total_seconds()))
    return _wrapped(f"! as of {age} ago: {why}", width, "bad")
