"""What a signal does to the batch shell, and what becomes of the script then."""

from collections.abc import Iterator

from slurmtop.jobscript.settings import setting_of
from slurmtop.jobscript.signals import Default, default_of
from slurmtop.model.script import Does, Fate, Launcher, Reaction, ScriptReading, Setting, Trap

WHO = "batch shell"


def shell_reaction(reading: ScriptReading, signal: str) -> Iterator[Reaction]:
    """What ``signal`` (a name without SIG) does to the batch shell. Nothing where ``exec``
    has put another program in its place."""
    if not reading.by_shell:
        why = f"it is run by {reading.language}, whose handlers the script's directives do not tell"
        yield Reaction(f"batch script ({reading.language})", Fate.UNKNOWN, why)
        return
    course = reading.course
    if course.replaced:
        return
    setting = setting_of(course.settings, signal)
    if setting.may == {Does.DEFAULT}:
        yield _without_trap(reading, signal)
    elif len(setting.may) > 1:
        yield _open(reading, signal, setting)
    elif course.may_exec is not None:
        why = f"line {course.may_exec} may put another program in its place, and its trap is gone"
        yield Reaction(WHO, Fate.UNKNOWN, why, course.may_exec)
    elif setting.may == {Does.IGNORES}:
        why = f"the script ignores {signal}. Its children inherit that, the tasks of srun do not"
        yield Reaction(WHO, Fate.IGNORES, why, setting.line)
    elif setting.trap is not None:
        yield _with_trap(reading, signal, setting.trap)


def _open(reading: ScriptReading, signal: str, setting: Setting) -> Reaction:
    default = default_of(signal)
    if default is Default.NOTHING:
        return Reaction(WHO, Fate.CONTINUES, f"{signal} does nothing to it")
    why = setting.why
    if not reading.complete:
        why = f"without a trap it dies of {signal}, and the script could not all be read"
    elif why.endswith("in some cases"):
        why = f"{why}; without it the shell may die"
    elif setting.signal == "":
        why = f"without a trap it dies of {signal}, and {why}"
    return Reaction(WHO, Fate.UNKNOWN, why, setting.line)


def _without_trap(reading: ScriptReading, signal: str) -> Reaction:
    default = default_of(signal)
    if default is Default.NOTHING:
        return Reaction(WHO, Fate.CONTINUES, f"{signal} does nothing to it")
    if default is Default.STOPS:
        return Reaction(WHO, Fate.STOPS, f"{signal} stops it; what it started runs on")
    if not reading.complete:
        why = f"without a trap it dies of {signal}, and the script could not all be read"
        return Reaction(WHO, Fate.UNKNOWN, why)
    front = reading.course.front
    if signal == "INT" and front is not None:
        why = "a shell acts on INT only when its foreground command has ended"
        return Reaction(WHO, Fate.UNKNOWN, why, front)
    replaced = reading.course.may_exec
    if any(one.line == replaced and one.outer is not Launcher.OTHER for one in reading.launches):
        why = f"without a trap it dies of {signal}; line {replaced} may put another in its place"
        return Reaction(WHO, Fate.UNKNOWN, why, replaced)
    why = f"the script has no trap for {signal}; the job ends with its batch shell"
    return Reaction(WHO, Fate.DIES, why)


def _with_trap(reading: ScriptReading, signal: str, trap: Trap) -> Reaction:
    asked = reading.signal
    hint = ""
    if asked is not None and asked.to_batch and asked.signal == signal:
        hint = f". The job asks Slurm for {signal} to its batch shell (line {asked.line})"
    course = reading.course
    if course.front is not None:
        why = f"its trap runs only when the foreground command in line {course.front} has ended"
        return Reaction(WHO, Fate.UNKNOWN, why + hint, trap.line)
    if not course.waits:
        why = "its trap runs when the command that runs now has ended: no wait is seen behind"
        why = why + " what it starts" if reading.launches else why.partition(":")[0]
        return Reaction(WHO, Fate.UNKNOWN, why + hint, trap.line)
    then, ends_job = _then(reading, trap)
    why = f"its trap runs at once{then}{hint}"
    return Reaction(WHO, Fate.HANDLES, why, trap.line, ends_job)


def _then(reading: ScriptReading, trap: Trap) -> tuple[str, bool]:
    """What the script does once its trap has run, and whether that ends the job: the ``wait``
    it was in is over by then."""
    course = reading.course
    requeues = any(name.startswith("scontrol requeue") for name in trap.runs)
    if trap.ends:
        if requeues:
            return f", requeues the job and {trap.ends}", True
        with_it = "" if trap.ends.endswith("job") else ", and the job with it"
        return f" and {trap.ends}{with_it}", True
    if requeues:
        return " and requeues the job", False
    if trap.waits:
        return "; the script waits on", False
    if course.errexit is not None:
        return (
            f", but set -e in line {course.errexit} ends the script after the trap, and the job "
            "with it"
        ), True
    if course.waits_on:
        return "; the script waits on", False
    where = f" in line {reading.waits[0].line}" if len(reading.waits) == 1 else " it is in"
    return (
        f", but then the wait{where} is over and the script goes on to its end, and the job with it"
    ), True
