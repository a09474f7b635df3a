"""The confirm dialog as lines: what will run, whom it reaches, what it costs. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.control.actions import Action, ConfirmLevel, Target
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.snapshot import SourceHealth
from slurmtop.model.text import fit, visible
from slurmtop.model.units import ago_text, clock_text, plural
from slurmtop.parse.slurm.hostlist import together
from slurmtop.ui.present.health import HealthWords
from slurmtop.ui.present.job import DASH, state_words
from slurmtop.ui.present.spans import Line, cut_line, join, wrap

SHOWN_TARGETS = 5
SHOWN_COMMAND_LINES = 3
SHOWN_WARNINGS = 3
SHOWN_CHANGES = 3


class ChangeKind(StrEnum):
    ENDED = "ended"
    LEFT = "left"
    ANOTHER_RUN = "another run"
    STARTED = "started"
    STOPPED_RUNNING = "stopped running"


#: After these the action would do nothing, or hit a run that was not shown.
LOST = frozenset({ChangeKind.ENDED, ChangeKind.LEFT, ChangeKind.ANOTHER_RUN})


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a target after the dialog opened."""

    key: JobKey
    kind: ChangeKind
    sentence: str


def changes_since(
    action: Action, job_of: Callable[[JobKey], Job | None], gone: Mapping[JobKey, object]
) -> tuple[Change, ...]:
    """What the queue now says that the dialog did not when it opened.

    A job that the queue never showed is no change: nothing is known of it.
    """
    out: list[Change] = []
    for target in action.targets:
        change = _change(target, job_of(target.key), target.key in gone)
        if change is not None:
            out.append(change)
    return tuple(out)


def _change(target: Target, job: Job | None, gone: bool) -> Change | None:
    key, name = target.key, visible(target.key.id)
    if job is not None and job.state.ended:
        return Change(key, ChangeKind.ENDED, f"{name} has ended meanwhile: {_state(job)}")
    if gone:
        return Change(key, ChangeKind.LEFT, f"{name} has left the queue meanwhile")
    if job is None:
        return None
    if target.submit is not None and job.submit is not None and job.submit != target.submit:
        return Change(key, ChangeKind.ANOTHER_RUN, f"{name} is another run now, not the one shown")
    if target.started_at is None and job.state.phase is Phase.RUNNING:
        where = f" on {visible(job.nodes)}" if job.nodes else ""
        return Change(key, ChangeKind.STARTED, f"{name} has started meanwhile{where}")
    if target.started_at is not None and job.state.phase is Phase.PENDING:
        return Change(key, ChangeKind.STOPPED_RUNNING, f"{name} waits in the queue again")
    return None


def _state(job: Job) -> str:
    return state_words(job.state)


def title_text(action: Action) -> str:
    """``Cancel job 4711``, ``Cancel 200 jobs``."""
    verb = str(action.kind).capitalize()
    count = action.job_count
    if count == 1 and len(action.targets) == 1:
        return f"{verb} job {visible(action.targets[0].key.id)}"
    return f"{verb} {plural(count, 'job')}"


def yes_label(action: Action) -> str:
    return f"Yes, {action.kind}"


def ask_text(action: Action) -> str:
    """What the person is asked to do."""
    if action.confirm is ConfirmLevel.YES:
        return "y = yes, n or esc = no"
    what = "the count" if action.confirm is ConfirmLevel.TYPE_COUNT else "the id"
    return f"Type {what}, {visible(action.expected_text)}, and press enter. esc = no"


def body_lines(action: Action, now: datetime, width: int, user: str) -> tuple[Line, ...]:
    """Everything about the action; what matters most comes first, all of it is there."""
    commands, cut = _commands(action, width)
    out: list[Line] = [(("Runs exactly:", "label"),), *commands]
    out.extend(_owner_line(action, user, width))
    targets = action.targets
    shown = targets if len(targets) <= SHOWN_TARGETS + 1 else targets[:SHOWN_TARGETS]
    out.extend(_target_line(target, now, width, len(targets) > 1) for target in shown)
    if len(shown) < len(targets):
        out.append(((f"  … and {plural(len(targets) - len(shown), 'more row')}", "dim"),))
    out.append(_reach_line(action))
    for warning in action.warnings[:SHOWN_WARNINGS]:
        out.extend(_wrapped(f"! {visible(warning)}", width, "warn"))
    out.extend(_rest(action, now, width, cut, len(shown)))
    return tuple(cut_line(line, width) for line in out)


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
            (f"  {visible(target.key.id)}{tasks}", "strong"),
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


def _reach_line(action: Action) -> Line:
    running = [target for target in action.targets if target.started_at is not None]
    if not running:
        return (("Reaches no node: nothing of it has started yet", ""),)
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
    out: list[Line] = []
    for warning in action.warnings[SHOWN_WARNINGS:]:
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


def change_lines(changes: tuple[Change, ...], targets: int, width: int) -> tuple[Line, ...]:
    """The news while the dialog is open, at most :data:`SHOWN_CHANGES` lines."""
    if not changes:
        return ()
    if len(changes) <= SHOWN_CHANGES:
        return tuple(
            cut_line(((f"! {visible(change.sentence)}", "bad"),), width) for change in changes
        )
    kinds = Counter(change.kind for change in changes)
    words = ", ".join(f"{count} {_KIND_WORDS[kind]}" for kind, count in kinds.most_common())
    return (cut_line(((f"! meanwhile, of {targets}: {words}", "bad"),), width),)


_KIND_WORDS = {
    ChangeKind.ENDED: "have ended",
    ChangeKind.LEFT: "left the queue",
    ChangeKind.ANOTHER_RUN: "are another run now",
    ChangeKind.STARTED: "have started",
    ChangeKind.STOPPED_RUNNING: "wait again",
}


def nothing_left(action: Action, changes: tuple[Change, ...]) -> bool:
    """True when no target is any longer what was shown."""
    lost = {change.key for change in changes if change.kind in LOST}
    return all(target.key in lost for target in action.targets)
