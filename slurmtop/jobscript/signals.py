"""Names of signals as scripts write them, and what they do to a program without a handler."""

from enum import StrEnum

_NUMBERS = {
    1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE",
    9: "KILL", 10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM",
    16: "STKFLT", 17: "CHLD", 18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU",
    23: "URG", 24: "XCPU", 25: "XFSZ", 26: "VTALRM", 27: "PROF", 28: "WINCH", 29: "IO",
    30: "PWR", 31: "SYS",
}  # fmt: skip
_NAMES = frozenset(_NUMBERS.values())
_OTHER_NAMES = {"CLD": "CHLD", "POLL": "IO", "IOT": "ABRT"}
_HARMLESS = frozenset({"CHLD", "CONT", "URG", "WINCH"})
_STOPPING = frozenset({"STOP", "TSTP", "TTIN", "TTOU"})
#: What ``trap`` takes besides signals.
SHELL_EVENTS = frozenset({"EXIT", "ERR", "DEBUG", "RETURN"})


class Default(StrEnum):
    """What the kernel does where a program has no handler for a signal."""

    ENDS = "ends"
    STOPS = "stops"
    NOTHING = "nothing"


def default_of(signal: str) -> Default:
    """The default action of ``signal``, a name without SIG."""
    if signal in _HARMLESS:
        return Default.NOTHING
    return Default.STOPS if signal in _STOPPING else Default.ENDS


def signal_word(word: str) -> str | None:
    """``USR1`` for ``usr1``, ``SIGUSR1`` and ``10``; None for what names no signal.

    Real-time signals stay as they are written: ``RTMIN+1``, ``40``.
    """
    text = word.strip().upper()
    if text.isascii() and text.isdigit():
        number = int(text[:4])
        return _NUMBERS.get(number) or (str(number) if 32 <= number <= 64 else None)
    text = text.removeprefix("SIG")
    text = _OTHER_NAMES.get(text, text)
    if text in _NAMES:
        return text
    return text if text.startswith(("RTMIN", "RTMAX")) and text.isascii() else None
