"""What a signal does to the batch shell, and what becomes of the script then."""

from collections.abc import Iterable, Iterator

from slurmtop.jobscript.signals import Default, default_of
from slurmtop.model.script import Fate, Launch, Reaction, ScriptReading, Trap

WHO = "batch shell"


def effective(traps: Iterable[Trap], signal: str) -> Trap | None:
    """The trap that holds in the end; None where there is none or it was taken back."""
    last = None
    for trap in traps:
        if signal in trap.signals:
            last = None if trap.resets else trap
    return last


def by_variable(traps: Iterable[Trap]) -> Trap | None:
    """A trap that names its signals by a variable: it may be for any of them."""
    named = (trap for trap in traps if any("$" in signal for signal in trap.signals))
    return next(named, None)


def shell_reaction(reading: ScriptReading, signal: str) -> Iterator[Reaction]:
    """What ``signal`` (a name without SIG) does to the batch shell. Nothing where ``exec``
    has put another program in its place."""
    if not reading.by_shell:
        why = f"it is run by {reading.language}, whose handlers the script's directives do not tell"
        yield Reaction(f"batch script ({reading.language})", Fate.UNKNOWN, why)
        return
    if any(launch.execs and not launch.background for launch in reading.launches):
        return
    trap = effective(reading.traps, signal)
    if trap is None:
        yield _without_trap(reading, signal)
    elif trap.maybe:
        why = f"its trap for {signal} is set only in some cases; without it the shell dies"
        yield Reaction(WHO, Fate.UNKNOWN, why, trap.line)
    elif trap.ignores:
        why = f"the script ignores {signal}. Its children inherit that, the tasks of srun do not"
        yield Reaction(WHO, Fate.IGNORES, why, trap.line)
    else:
        yield _with_trap(reading, signal, trap)


def _without_trap(reading: ScriptReading, signal: str) -> Reaction:
    default = default_of(signal)
    if default is Default.NOTHING:
        return Reaction(WHO, Fate.CONTINUES, f"{signal} does nothing to it")
    if default is Default.STOPS:
        return Reaction(WHO, Fate.STOPS, f"{signal} stops it; what it started runs on")
    if not reading.complete:
        why = f"without a trap it dies of {signal}, and the script could not all be read"
        return Reaction(WHO, Fate.UNKNOWN, why)
    unnamed = by_variable(reading.traps)
    if unnamed is not None:
        why = f"without a trap it dies of {signal}, and a trap names its signals by a variable"
        return Reaction(WHO, Fate.UNKNOWN, why, unnamed.line)
    front = _in_front(reading)
    if signal == "INT" and front is not None:
        why = "a shell acts on INT only when its foreground command has ended"
        return Reaction(WHO, Fate.UNKNOWN, why, front.line)
    why = f"the script has no trap for {signal}; the job ends with its batch shell"
    return Reaction(WHO, Fate.DIES, why)


def _with_trap(reading: ScriptReading, signal: str, trap: Trap) -> Reaction:
    asked = reading.signal
    hint = ""
    if asked is not None and asked.to_batch and asked.signal == signal:
        hint = f". The job asks Slurm for {signal} to its batch shell (line {asked.line})"
    front = _in_front(reading)
    if front is not None:
        why = f"its trap runs only when the foreground command in line {front.line} has ended"
        return Reaction(WHO, Fate.UNKNOWN, why + hint, trap.line)
    if not reading.launches:
        why = "its trap runs when the command that runs now has ended"
        return Reaction(WHO, Fate.UNKNOWN, why + hint, trap.line)
    then, ends_job = _then(reading, trap)
    why = f"its trap runs at once{then}{hint}"
    return Reaction(WHO, Fate.HANDLES, why, trap.line, ends_job)


def _in_front(reading: ScriptReading) -> Launch | None:
    """The first thing that the shell starts and does nothing else until it has ended."""
    return next((launch for launch in reading.launches if not launch.background), None)


def _then(reading: ScriptReading, trap: Trap) -> tuple[str, bool]:
    """What the script does once its trap has run, and whether that ends the job: the ``wait``
    it was in is over by then."""
    if any(name.startswith("scontrol requeue") for name in trap.runs):
        return " and requeues the job", False
    if "exit" in trap.runs:
        return " and ends the script, and the job with it", True
    if "wait" in trap.runs or any(wait.loops for wait in reading.waits):
        return "; the script waits on", False
    if len(reading.waits) == 1:
        return (
            f", but then the wait in line {reading.waits[0].line} is over and the script goes on "
            "to its end, and the job with it"
        ), True
    return "", False
