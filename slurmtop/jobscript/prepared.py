"""One line that says what a batch script is prepared for."""

from slurmtop.jobscript.settings import setting_of
from slurmtop.jobscript.signals import signal_word
from slurmtop.model.script import Does, ScriptReading, Trap

#: Signals that nobody traps to save something.
_CLEANING = frozenset({"EXIT", "ERR", "DEBUG", "RETURN"})
_OPEN = " (not in all cases)"


def prepared_for(reading: ScriptReading) -> str:
    """``prepared for USR1: trap in line 7, and --signal=B:USR1@120 in line 3``. Where it is not
    known that there is nothing, that is what it says."""
    grounds: dict[str, list[str]] = {}
    for trap in _in_force(reading):
        verb = "ignored" if trap.ignores else "trap"
        for signal in _named(trap):
            certain = len(setting_of(reading.course.settings, signal).may) == 1
            where = f"{verb} in line {trap.line}" + ("" if certain else _OPEN)
            grounds.setdefault(signal, []).append(where)
    for launch in reading.launches:
        for trap in launch.traps:
            for signal in _named(trap):
                may = setting_of(launch.settings, signal).may
                if trap.ignores and Does.IGNORES in may:
                    where = f"ignored by what line {launch.line} starts"
                    grounds.setdefault(signal, []).append(where + ("" if len(may) == 1 else _OPEN))
    asked = reading.signal
    if asked is not None:
        flag = "B:" if asked.to_batch else ""
        words = f"--signal={flag}{asked.signal}@{asked.before_s} in line {asked.line}"
        grounds.setdefault(asked.signal, []).append(words)
    if grounds:
        parts = [
            f"{signal}: {', and '.join(dict.fromkeys(why))}" for signal, why in grounds.items()
        ]
        return f"prepared for {'; '.join(parts)}"
    doubts = [trap.doubt for trap in reading.traps if trap.doubt]
    doubts += [sentence for sentence in reading.unsure if "trap" in sentence]
    maybe = next(iter(doubts), None)
    if reading.complete and maybe is None:
        return "nothing in the script is prepared for a signal"
    if reading.complete:
        return f"nothing in the script is seen to be prepared for a signal, but {maybe}"
    return "not known whether the script is prepared for a signal: it could not all be read"


def _named(trap: Trap) -> list[str]:
    """The signals that a trap names itself, and that are there to save something."""
    return [signal for signal in trap.signals if signal not in _CLEANING and signal_word(signal)]


def _in_force(reading: ScriptReading) -> list[Trap]:
    """The traps that are not taken back further down."""
    kept: list[Trap] = []
    for trap in reading.traps:
        if trap.resets:
            certain = not trap.maybe and not trap.doubt
            kept = [one for one in kept if not (certain and set(one.signals) <= set(trap.signals))]
        else:
            kept.append(trap)
    return kept
