"""Signals as logs write them: ``SIGKILL``, ``Signals.SIGTERM``, ``9``, ``Segmentation fault``.

The numbers are those of Linux, whatever the machine that reads the log runs.
"""

_NAMES = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGTRAP": 5,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGPIPE": 13,
    "SIGALRM": 14,
    "SIGTERM": 15,
    "SIGCONT": 18,
    "SIGSTOP": 19,
    "SIGXCPU": 24,
    "SIGXFSZ": 25,
}
#: What ``strsignal`` on Linux and the shells print.
SIGNAL_WORDS = {
    "hangup": 1,
    "interrupt": 2,
    "quit": 3,
    "illegal instruction": 4,
    "trace/breakpoint trap": 5,
    "aborted": 6,
    "bus error": 7,
    "floating point exception": 8,
    "killed": 9,
    "user defined signal 1": 10,
    "segmentation fault": 11,
    "user defined signal 2": 12,
    "broken pipe": 13,
    "alarm clock": 14,
    "terminated": 15,
    "cpu time limit exceeded": 24,
    "file size limit exceeded": 25,
    "bad system call": 31,
}
_LARGEST = 64
#: A shell adds this to a signal and calls the sum an exit code.
_SHELL_BASE = 128


def signal_number(text: str | None) -> int | None:
    """The number of a signal by any of its names; None for what is none."""
    if not text:
        return None
    word = text.strip().strip("<>").rpartition(".")[2]
    if word.isascii() and word.isdecimal():
        value = int(word) if len(word) <= 3 else 0
        return value if 0 < value <= _LARGEST else None
    found = _NAMES.get(word.upper())
    return found if found is not None else SIGNAL_WORDS.get(text.strip().lower())


def signal_name(text: str) -> str:
    """``SIGKILL`` for ``9``, ``Signals.SIGKILL`` or itself; what is not known stays as it is."""
    found = signal_number(text)
    return next((name for name, number in _NAMES.items() if number == found), text)


def ended(code: int | None) -> tuple[int | None, int | None]:
    """(exit code, signal) of a code that a launcher prints: -9 and 137 are signal 9."""
    if code is None:
        return None, None
    if -_LARGEST <= code < 0:
        return None, -code
    if _SHELL_BASE < code <= _SHELL_BASE + _LARGEST:
        return None, code - _SHELL_BASE
    return code, None
