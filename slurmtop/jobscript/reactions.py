"""Who gets a signal, and what it does to each: as far as the batch script tells.

docs/signals.md says where the facts come from. The order is the one in which the processes
start each other: batch shell, srun, agent, ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from slurmtop.jobscript.settings import setting_of
from slurmtop.jobscript.shell_reaction import shell_reaction
from slurmtop.jobscript.signals import Default, default_of, signal_word
from slurmtop.model.job import Step
from slurmtop.model.script import (
    SHELLS,
    Does,
    Fate,
    Launch,
    Launcher,
    Reaction,
    Recipient,
    ScriptReading,
    Setting,
)

#: srun passes these on to its tasks and stays (seen on 22.05).
_SRUN_PASSES: Final = frozenset({"USR1", "USR2", "ALRM"})
#: torchrun, accelerate and deepspeed end their workers and then themselves.
_AGENT_ENDS: Final = frozenset({"TERM", "INT", "HUP", "QUIT"})
#: Programs that are known to have no handler for anything.
_PLAIN: Final = frozenset({"sleep", "cat", "hostname", "tee", "tail", "true", "yes", "ts", "grep"})
_MOST_ROWS: Final = 12


def reactions(
    reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None = None
) -> tuple[Reaction, ...]:
    """What ``signal`` (a name with or without SIG, or a number) does to all that ``recipient``
    reaches. Empty where the script starts nothing that would get it."""
    name = signal_word(signal) or signal
    batch, local, remote = _reached(recipient, step)
    rows: list[Reaction] = []
    if batch:
        rows += shell_reaction(reading, name)
    for launch in _chosen(reading.launches, step):
        if launch.outer is Launcher.SRUN:
            if local:
                rows += [_around(launch, name_above, name) for name_above in launch.around]
            if local or (batch and launch.execs):
                rows.append(_client(launch, name))
            if remote or (batch and launch.execs and name in _SRUN_PASSES):
                rows += _started(reading, launch, name, "srun step: ", recipient)
        elif local or (batch and launch.execs):
            rows += _started(reading, launch, name, "", recipient)
        if local:
            rows += [_piped(launch, other, name) for other in launch.piped]
    if recipient is Recipient.RANKS:
        rows = [row for launch in reading.launches for row in _ranks_of(reading, launch, name)]
    elif remote and not reading.complete and not any("step" in row.who for row in rows):
        rows.append(
            Reaction("srun steps", Fate.UNKNOWN, "what the script starts could not all be read")
        )
    return tuple(_folded(rows, name))


def _reached(recipient: Recipient, step: Step | None) -> tuple[bool, bool, bool]:
    """Are the batch shell, its own children, and the steps of srun reached?"""
    if recipient is Recipient.EVERYTHING:
        return True, True, True
    if recipient is Recipient.BATCH:
        return True, False, False
    if recipient is Recipient.STEP and step is not None and not step.by_srun:
        return step.id == "batch", False, False
    return False, False, recipient in (Recipient.STEPS, Recipient.STEP)


def _chosen(launches: Sequence[Launch], step: Step | None) -> Sequence[Launch]:
    """Those that may have become ``step``: a step bears the name of its program."""
    if step is None or not step.by_srun or not step.name:
        return launches
    fits = [
        launch
        for launch in launches
        if step.name in {word.rsplit("/", 1)[-1] for word in launch.text.split()}
    ]
    return fits or launches


def _folded(rows: Iterable[Reaction], signal: str) -> Iterator[Reaction]:
    """Each told once, at its first line; KILL and STOP reach all alike."""
    seen: set[tuple[str, Fate, str]] = set()
    for row in rows:
        one = _forced(row, signal)
        key = (one.who, one.fate, one.why)
        if key not in seen:
            seen.add(key)
            if len(seen) > _MOST_ROWS:
                yield Reaction("others", Fate.UNKNOWN, "the script starts more than is shown here")
                return
            yield one


def _forced(row: Reaction, signal: str) -> Reaction:
    if signal == "KILL":
        return Reaction(row.who, Fate.DIES, "nothing can handle or ignore KILL", row.line)
    if signal == "STOP":
        return Reaction(row.who, Fate.STOPS, "nothing can handle or ignore STOP", row.line)
    return row


def _client(launch: Launch, signal: str) -> Reaction:
    """The srun process on the batch node. It blocks what it knows and answers it itself, so
    that an ignored signal reaches it too."""
    if signal in _SRUN_PASSES:
        fate, why = Fate.CONTINUES, f"it passes {signal} on to its tasks"
    elif signal == "INT":
        fate, why = Fate.CONTINUES, "it reports its tasks; a second INT within a second ends them"
    elif signal in ("HUP", "TERM", "QUIT"):
        fate, why = Fate.DIES, f"srun ends its step on {signal}"
    elif signal == "PIPE" or default_of(signal) is Default.NOTHING:
        fate, why = Fate.CONTINUES, f"{signal} does nothing to it"
    else:
        fate, why = _by_default(signal, "srun has no handler for it")
    return Reaction("srun itself", fate, why, launch.line)


def _around(launch: Launch, name: str, signal: str) -> Reaction:
    """A program on the batch node that stands above an srun."""
    if default_of(signal) is Default.NOTHING:
        return Reaction(name, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    why = f"it stands above srun; what {signal} does to it is not known"
    return Reaction(name, Fate.UNKNOWN, why, launch.line)


def _piped(launch: Launch, other: str, signal: str) -> Reaction:
    if default_of(signal) is Default.NOTHING:
        return Reaction(other, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    if other in _PLAIN:
        fate, why = _by_default(signal, "it has no handler, and the output of the line is lost")
        return Reaction(other, fate, why, launch.line)
    return Reaction(other, Fate.UNKNOWN, "whether it has a handler is not known", launch.line)


def _started(
    reading: ScriptReading, launch: Launch, signal: str, where: str, recipient: Recipient
) -> Iterator[Reaction]:
    """What a launch has running in the end, parents first."""
    begins = setting_of(launch.settings, signal)
    if launch.outer is Launcher.MPIRUN:
        yield _mpirun(launch, signal, begins)
    for name in launch.stays:
        yield _between(launch, name, signal, where, begins)
    if launch.inner is Launcher.TORCHRUN:
        yield _agent(launch, signal, where, begins)
    yield _ranks(reading, launch, signal, where, recipient)


def _mpirun(launch: Launch, signal: str, begins: Setting) -> Reaction:
    if default_of(signal) is Default.NOTHING:
        return Reaction("mpirun", Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    if signal in _AGENT_ENDS:
        return Reaction("mpirun", Fate.DIES, f"it ends its ranks on {signal}", launch.line)
    if Does.IGNORES in begins.may:
        why = f"it may start with {signal} ignored, and set a handler of its own"
        return Reaction("mpirun", Fate.UNKNOWN, why, begins.line)
    why = f"most MPIs pass {signal} on to their ranks; one that does not dies of it"
    return Reaction("mpirun", Fate.UNKNOWN, why, launch.line)


def _ignored(who: str, signal: str, begins: Setting, why: str = "") -> Reaction | None:
    """For what starts with ``signal`` ignored, or may do so; None for what does not."""
    if begins.may == {Does.IGNORES}:
        why = why or f"it starts with {signal} ignored"
        return Reaction(who, Fate.IGNORES, why, begins.line)
    if Does.IGNORES in begins.may:
        why = f"whether it starts with {signal} ignored is not certain: {begins.why}"
        return Reaction(who, Fate.UNKNOWN, why, begins.line)
    return None


def _between(launch: Launch, name: str, signal: str, where: str, begins: Setting) -> Reaction:
    """A program that started the work and still stands above it."""
    who = f"{where}{name}"
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    if name in SHELLS:
        own = setting_of(launch.between, signal)
        if own.may == {Does.HANDLES}:
            why = "it runs its trap only when what it started has ended"
            return Reaction(who, Fate.UNKNOWN, why, own.line)
        if len(own.may) > 1:
            return Reaction(who, Fate.UNKNOWN, own.why, own.line)
        ignored = _ignored(who, signal, own if launch.between else begins)
        if ignored is not None:
            return ignored
    elif Does.IGNORES in begins.may:
        why = f"it may start with {signal} ignored, and set a handler of its own"
        return Reaction(who, Fate.UNKNOWN, why, begins.line)
    if name in SHELLS or name == "timeout":
        fate, why = _by_default(signal, f"it does not handle {signal}")
        return Reaction(who, fate, f"{why}; what it started loses its parent", launch.line)
    return Reaction(
        who,
        Fate.UNKNOWN,
        f"it stands above the work; what {signal} does to it is not known",
        launch.line,
    )


def _agent(launch: Launch, signal: str, where: str, begins: Setting) -> Reaction:
    who = f"{where}torchrun agent"
    if signal in _AGENT_ENDS:
        why = f"it has a handler for {signal} that ends its workers and then itself"
        return Reaction(who, Fate.DIES, why, launch.line)
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    ignored = _ignored(who, signal, begins)
    if ignored is not None:
        return ignored
    fate, why = _by_default(signal, f"it has no handler for {signal}")
    if fate is Fate.DIES:
        why += ", and its workers live on without it"
    return Reaction(who, fate, why, launch.line)


def _ranks_of(reading: ScriptReading, launch: Launch, signal: str) -> Iterator[Reaction]:
    where = "srun step: " if launch.outer is Launcher.SRUN else ""
    yield _ranks(reading, launch, signal, where, Recipient.RANKS)


def _ranks(
    reading: ScriptReading, launch: Launch, signal: str, where: str, recipient: Recipient
) -> Reaction:
    program = launch.program
    who = f"{where}ranks" + (f" ({program})" if program else "")
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} ends nothing", launch.line)
    why = f"they start with {signal} ignored; a handler that they set themselves still runs"
    hint = _hint(reading, signal, recipient)
    begins = setting_of(launch.settings, signal)
    ignored = _ignored(who, signal, begins, why + hint)
    if ignored is not None and (begins.signal or program in _PLAIN):
        return ignored
    if default_of(signal) is Default.STOPS:
        return Reaction(who, Fate.STOPS, f"{signal} stops what has no handler", launch.line)
    if program in _PLAIN:
        return Reaction(who, Fate.DIES, f"{program} has no handler", launch.line)
    if signal == "INT" and launch.inner in (Launcher.PYTHON, Launcher.TORCHRUN):
        why = "Python ends with KeyboardInterrupt unless the program catches it"
    else:
        why = f"without a handler of their own {signal} kills them; the script cannot tell"
    return Reaction(who, Fate.UNKNOWN, why + hint, launch.line)


def _hint(reading: ScriptReading, signal: str, recipient: Recipient) -> str:
    """The job itself asks Slurm for this very signal, to the same: a program that would not
    stand it would die before each time limit."""
    asked = reading.signal
    if asked is None or asked.to_batch or asked.signal != signal or recipient is Recipient.BATCH:
        return ""
    return f". The job asks Slurm for {signal} to its steps (line {asked.line})"


def _by_default(signal: str, why: str) -> tuple[Fate, str]:
    if default_of(signal) is Default.STOPS:
        return Fate.STOPS, f"{signal} stops what does not handle it"
    return Fate.DIES, why
