"""The chooser of a signal: which one, to whom, and what it does to them. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from slurmtop.control.actions import Action, Asker, Refusal
from slurmtop.control.prepare import ScriptSeen, StepsSeen
from slurmtop.control.signals import SIGNALS, parse_signal, plan_signal
from slurmtop.jobscript.prepared import prepared_for
from slurmtop.model.job import Job, Step
from slurmtop.model.script import Reaction, Recipient, ScriptReading
from slurmtop.model.text import fit, visible
from slurmtop.model.units import plural
from slurmtop.ui.present.choose import Option, first_open, moved
from slurmtop.ui.present.reactions import reaction_lines, sum_text, worst_role
from slurmtop.ui.present.selection import step_note
from slurmtop.ui.present.spans import Line, cut_line, wrap

#: The first of the table are offered by name, any other is typed.
OFFERED = 7
OTHER = "other …"
ROWS = OFFERED + 1
#: Sent to ask for a checkpoint; a trap for any other signal may as well be a cleanup.
_ASKS_TO_SAVE = ("USR1", "USR2")
_SIGNAL_CELLS = 11
_LOOKS_FIRST = (
    "The nodes are looked at first: the dialog then shows each process that gets it, whether it"
    " has a handler, and the command for each node."
)
_SHOWN_COMMAND_LINES = 2

React = Callable[[ScriptReading, str, Recipient, Step | None], tuple[Reaction, ...]]


@dataclass(frozen=True, slots=True)
class Receiver:
    """One line of the right list."""

    recipient: Recipient
    option: Option
    step: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFacts:
    """What is known when the chooser opens. ``steps`` and ``script`` are None where several
    jobs are meant: they are not looked at one by one."""

    jobs: tuple[Job, ...]
    asker: Asker
    known: tuple[Job, ...]
    steps: StepsSeen | None
    script: ScriptSeen | None
    react: React


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where the two cursors stand; ``to_side`` while the right list has the keys."""

    signals: tuple[str, ...]
    receivers: tuple[Receiver, ...]
    at: int = 0
    to: int = 0
    to_side: bool = False

    @property
    def signal(self) -> str | None:
        """None on the row where another one is typed."""
        name = self.signals[self.at]
        return None if name == OTHER else name

    @property
    def receiver(self) -> Receiver:
        return self.receivers[self.to]


def first_choice(facts: SignalFacts) -> Choice:
    """The signal that the job is prepared for, else USR1 to the steps."""
    signals = (*list(SIGNALS)[:OFFERED], OTHER)
    choice = Choice(signals=signals, receivers=receivers_of(facts))
    options = [one.option for one in choice.receivers]
    choice = replace(choice, to=first_open(options))
    wanted = _prepared_for(facts.script)
    if wanted is None:
        return choice
    signal, recipient = wanted
    to = next(
        (
            at
            for at, one in enumerate(choice.receivers)
            if one.recipient is recipient and not one.option.why_not
        ),
        choice.to,
    )
    return replace(with_signal(choice, signal), to=to)


def _prepared_for(script: ScriptSeen | None) -> tuple[str, Recipient] | None:
    reading = script.reading if script is not None else None
    if reading is None:
        return None
    if reading.signal is not None:
        name = parse_signal(reading.signal.signal)
        if name is not None:
            return name, Recipient.BATCH if reading.signal.to_batch else Recipient.STEPS
    for name in _ASKS_TO_SAVE:
        for trap in reading.traps:
            traps = name in map(parse_signal, trap.signals)
            if traps and not trap.ignores and not trap.resets:
                return name, Recipient.BATCH
    return None


def with_signal(choice: Choice, name: str) -> Choice:
    """The cursor on ``name``, which joins the list where it is not there yet."""
    if name not in choice.signals:
        choice = replace(choice, signals=(*choice.signals[:-1], name, OTHER))
    return replace(choice, at=choice.signals.index(name))


def moved_choice(choice: Choice, by: int) -> Choice:
    """One up or down in the list that has the keys."""
    if choice.to_side:
        options = [one.option for one in choice.receivers]
        return replace(choice, to=moved(options, choice.to, by))
    return replace(choice, at=max(0, min(choice.at + by, len(choice.signals) - 1)))


def other_side(choice: Choice) -> Choice:
    """The keys go to the other list."""
    return replace(choice, to_side=not choice.to_side)


def receivers_of(facts: SignalFacts) -> tuple[Receiver, ...]:
    """Everything that can get a signal, and what cannot yet."""
    steps = facts.steps.steps if facts.steps is not None else ()
    own = sorted((step for step in steps if step.by_srun), key=lambda step: int(step.id))
    note = "all that srun started"
    if facts.steps is not None and facts.steps.failure is not None:
        note += " (not known which)"
    elif facts.steps is not None and not own:
        note = "no step of srun runs now: nobody would get it"
    return (
        Receiver(Recipient.STEPS, Option("steps", "steps", note)),
        *(
            Receiver(
                Recipient.STEP, Option(step.id, f"step {visible(step.id)}", step_note(step)), step
            )
            for step in own
        ),
        Receiver(Recipient.BATCH, Option("batch", "batch shell", "without what it started")),
        Receiver(
            Recipient.EVERYTHING,
            Option("all", "everything", "batch shell, its children and the steps"),
        ),
        Receiver(Recipient.RANKS, _ranks_option(facts)),
    )


def _ranks_option(facts: SignalFacts) -> Option:
    others = [job for job in facts.jobs if job.user != facts.asker.me]
    if others and facts.asker.me != "root":
        return Option("ranks", "rank processes", why_not="only their owner can signal them")
    return Option("ranks", "rank processes", "alone, by pid on their nodes, after a look there")


def reactions_to(facts: SignalFacts, choice: Choice) -> tuple[Reaction, ...]:
    """Who would get it and what it does to them, as far as the script tells."""
    reading = facts.script.reading if facts.script is not None else None
    if reading is None or choice.signal is None:
        return ()
    receiver = choice.receiver
    return facts.react(reading, choice.signal, receiver.recipient, receiver.step)


def plan_of(facts: SignalFacts, choice: Choice) -> Action | Refusal | None:
    """The action as it stands now; None while no signal is chosen."""
    if choice.signal is None:
        return None
    receiver = choice.receiver
    return plan_signal(
        facts.jobs,
        facts.asker,
        signal=choice.signal,
        recipient=receiver.recipient,
        step=receiver.step,
        steps=_steps_if_known(facts.steps),
        reactions=reactions_to(facts, choice),
        known=facts.known,
    )


def _steps_if_known(seen: StepsSeen | None) -> tuple[Step, ...] | None:
    return None if seen is None or seen.failure is not None else seen.steps


def list_lines(choice: Choice, rows: int, width: int) -> tuple[Line, ...]:
    """The two lists side by side; the one that has the keys stands in brackets."""
    left, right = ("Signal", "[To]") if choice.to_side else ("[Signal]", "To")
    out: list[Line] = [((fit(left, _SIGNAL_CELLS), "label"), (right, "label"))]
    first_left = _first(choice.at, rows, len(choice.signals))
    first_right = _first(choice.to, rows, len(choice.receivers))
    options = [one.option for one in choice.receivers]
    label_cells = min(max(len(option.label) for option in options), 20)
    for row in range(rows):
        at, to = first_left + row, first_right + row
        line: list[tuple[str, str]] = [(" " * _SIGNAL_CELLS, "")]
        if at < len(choice.signals):
            sign = ">" if at == choice.at else " "
            text = fit(f"{sign} {visible(choice.signals[at])}", _SIGNAL_CELLS)
            line = [(text, "strong" if at == choice.at else "")]
        if to < len(options):
            option, sign = options[to], ">" if to == choice.to else " "
            role = "dim" if option.why_not else "strong" if to == choice.to else ""
            line.append((f"{sign} {fit(option.label, label_cells)}", role))
            line.append((f"  {option.why_not or option.note}", "dim"))
        out.append(cut_line(tuple(line), width))
    return tuple(out)


def _first(at: int, rows: int, count: int) -> int:
    return max(0, min(at - rows // 2, count - rows))


def effect_lines(facts: SignalFacts, choice: Choice, width: int) -> tuple[Line, ...]:
    """The exact command, and below it who gets the signal and what becomes of them."""
    if choice.signal is None:
        return ((("enter: type a signal by its name or number", ""),),)
    meaning = SIGNALS.get(choice.signal, "")
    out = _text(f"{choice.signal}: {meaning}" if meaning else choice.signal, width, "")
    plan = plan_of(facts, choice)
    if isinstance(plan, Refusal):
        return (*out, *_text(visible(plan.sentence), width, "bad"))
    if choice.receiver.recipient is Recipient.RANKS:
        out.extend(_text(_LOOKS_FIRST, width, ""))
    commands = plan.command_lines if plan is not None else ()
    shown = [line for text in commands for line in _text(visible(text), width, "strong", "  $ ")]
    out.extend(shown[:_SHOWN_COMMAND_LINES])
    if len(shown) > _SHOWN_COMMAND_LINES:
        out.append(((f"    … {plural(len(commands), 'command')}, in full in the dialog", "dim"),))
    out.extend(_text(prepared_text(facts), width, ""))
    reactions = plan.reactions if isinstance(plan, Action) else ()
    if reactions:
        out.extend(_text(sum_text(reactions), width, worst_role(reactions)))
        out.extend(reaction_lines(reactions, width))
    return tuple(out)


def prepared_text(facts: SignalFacts) -> str:
    """What the script says that the job is prepared for, or why that is not known."""
    if facts.script is None:
        return "What the scripts of these jobs say is told in the dialog."
    reading = facts.script.reading
    if reading is None:
        why = visible(facts.script.why).rstrip(". ") or "it could not be read"
        return f"Script not read ({why}): nothing is known about who would save."
    cut = f" ({visible(facts.script.why).rstrip('. ')})" if facts.script.why else ""
    return f"Script: {visible(prepared_for(reading))}{cut}."


def _text(text: str, width: int, role: str, first: str = "") -> list[Line]:
    return [((line, role),) for line in wrap(text, width, first=first, rest=" " * len(first))]
