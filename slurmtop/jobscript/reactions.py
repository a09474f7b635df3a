"""Who gets a signal, and what it does to each: as far as the batch script tells.

docs/signals.md says where the facts come from. The order is the one in which the processes
start each other: batch shell, srun, agent, ranks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from slurmtop.jobscript.shell_reaction import by_variable, effective, shell_reaction
from slurmtop.jobscript.signals import Default, default_of, signal_word
from slurmtop.model.job import Step
from slurmtop.model.script import (
    SHELLS,
    Fate,
    Launch,
    Launcher,
    Reaction,
    Recipient,
    ScriptReading,
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
    ignored = _ignored(reading, launch, signal)
    if launch.outer is Launcher.MPIRUN:
        yield _mpirun(launch, signal, ignored)
    for name in launch.stays:
        yield _between(launch, name, signal, where, ignored)
    if launch.inner is Launcher.TORCHRUN:
        yield _agent(launch, signal, where, ignored)
    yield _ranks(reading, launch, signal, where, ignored, recipient)


def _ignored(reading: ScriptReading, launch: Launch, signal: str) -> int | None:
    """The line that makes the launch start with the signal ignored. The tasks of an srun are
    started by slurmd and inherit nothing from the batch shell (seen on 22.05)."""
    trap = effective(launch.traps, signal)
    if trap is None and launch.outer is not Launcher.SRUN:
        trap = effective(
            [one for one in reading.traps if one.line < launch.line and not one.maybe], signal
        )
    return trap.line if trap is not None and trap.ignores else None


def _mpirun(launch: Launch, signal: str, ignored: int | None) -> Reaction:
    if default_of(signal) is Default.NOTHING:
        return Reaction("mpirun", Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    if signal in _AGENT_ENDS:
        return Reaction("mpirun", Fate.DIES, f"it ends its ranks on {signal}", launch.line)
    if ignored is not None:
        return Reaction("mpirun", Fate.UNKNOWN, f"it starts with {signal} ignored", ignored)
    why = f"most MPIs pass {signal} on to their ranks; one that does not dies of it"
    return Reaction("mpirun", Fate.UNKNOWN, why, launch.line)


def _between(launch: Launch, name: str, signal: str, where: str, ignored: int | None) -> Reaction:
    """A program that started the work and still stands above it."""
    who = f"{where}{name}"
    if name in SHELLS:
        trap = effective(launch.traps, signal)
        if trap is not None and not trap.ignores and not trap.resets:
            why = "it runs its trap only when what it started has ended"
            return Reaction(who, Fate.UNKNOWN, why, trap.line)
    if ignored is not None:
        return Reaction(who, Fate.IGNORES, f"it starts with {signal} ignored", ignored)
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    unnamed = by_variable(launch.traps) if name in SHELLS else None
    if unnamed is not None:
        why = "a trap of it names its signals by a variable"
        return Reaction(who, Fate.UNKNOWN, why, unnamed.line)
    if name in SHELLS or name == "timeout":
        fate, why = _by_default(signal, f"it does not handle {signal}")
        return Reaction(who, fate, f"{why}; what it started loses its parent", launch.line)
    return Reaction(
        who,
        Fate.UNKNOWN,
        f"it stands above the work; what {signal} does to it is not known",
        launch.line,
    )


def _agent(launch: Launch, signal: str, where: str, ignored: int | None) -> Reaction:
    who = f"{where}torchrun agent"
    if signal in _AGENT_ENDS:
        why = f"it has a handler for {signal} that ends its workers and then itself"
        return Reaction(who, Fate.DIES, why, launch.line)
    if ignored is not None:
        return Reaction(who, Fate.IGNORES, f"it starts with {signal} ignored", ignored)
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} does nothing to it", launch.line)
    fate, why = _by_default(signal, f"it has no handler for {signal}")
    if fate is Fate.DIES:
        why += ", and its workers live on without it"
    return Reaction(who, fate, why, launch.line)


def _ranks_of(reading: ScriptReading, launch: Launch, signal: str) -> Iterator[Reaction]:
    where = "srun step: " if launch.outer is Launcher.SRUN else ""
    ignored = _ignored(reading, launch, signal)
    yield _ranks(reading, launch, signal, where, ignored, Recipient.RANKS)


def _ranks(
    reading: ScriptReading,
    launch: Launch,
    signal: str,
    where: str,
    ignored: int | None,
    recipient: Recipient,
) -> Reaction:
    program = launch.program
    who = f"{where}ranks" + (f" ({program})" if program else "")
    if default_of(signal) is Default.NOTHING:
        return Reaction(who, Fate.CONTINUES, f"{signal} ends nothing", launch.line)
    if ignored is not None:
        why = f"they start with {signal} ignored; a handler that they set themselves still runs"
        return Reaction(who, Fate.IGNORES, why + _hint(reading, signal, recipient), ignored)
    if default_of(signal) is Default.STOPS:
        return Reaction(who, Fate.STOPS, f"{signal} stops what has no handler", launch.line)
    if program in _PLAIN:
        return Reaction(who, Fate.DIES, f"{program} has no handler", launch.line)
    if signal == "INT" and launch.inner in (Launcher.PYTHON, Launcher.TORCHRUN):
        why = "Python ends with KeyboardInterrupt unless the program catches it"
    else:
        why = f"without a handler of their own {signal} kills them; the script cannot tell"
    return Reaction(who, Fate.UNKNOWN, why + _hint(reading, signal, recipient), launch.line)


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
