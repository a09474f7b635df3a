"""Signals: their numbers, and what srun says of a task that died of one."""

NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "ALRM": 14, "TERM": 15,
    "USR2": 12, "URG": 23, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "XCPU": 24,
}  # fmt: skip
NAMES = {number: name for name, number in NUMBERS.items()}
_WORDS = {
    1: "Hangup", 2: "Interrupt", 3: "Quit", 6: "Aborted", 9: "Killed",
    10: "User defined signal 1", 12: "User defined signal 2", 14: "Alarm clock",
    15: "Terminated", 24: "CPU time limit exceeded",
}  # fmt: skip


def death_word(number: int) -> str:
    """``User defined signal 1``; the number for one that nobody gave a word."""
    return _WORDS.get(number, f"Signal {number}")
