"""What an exit code says once the state is known, in words.

Source: ``code:signal`` of ``sacct -o ExitCode``, ``scontrol show job`` and ``squeue``::

    6100|FAILED|0:53        the output file could not be opened; nothing ran
    6003|COMPLETED|0:0|3:0  the script returned 0, but a step ended with 3

``0:0`` is printed for every job that is not over, so it means success with COMPLETED only.
"""

import re

from slurmtop.model.job import ENDED_STATES, ExitCode, ExitMeaning, JobState, Phase

_SIGNALS = {
    1: ("SIGHUP", "hung up: its terminal or parent went away"),
    2: ("SIGINT", "interrupted, as by ctrl+c"),
    3: ("SIGQUIT", "told to quit"),
    4: ("SIGILL", "an illegal instruction: built for another CPU"),
    5: ("SIGTRAP", "a debugger trap"),
    6: ("SIGABRT", "it aborted itself (assert, glibc, an uncaught C++ exception)"),
    7: ("SIGBUS", "a bus error: often /dev/shm is full or a mapped file was truncated"),
    8: ("SIGFPE", "an arithmetic error such as a division by zero"),
    9: ("SIGKILL", "killed: scancel after KillWait, the OOM killer, the time limit, or an admin"),
    10: ("SIGUSR1", "SIGUSR1 was not trapped (e.g. --signal)"),
    11: ("SIGSEGV", "a segmentation fault"),
    12: ("SIGUSR2", "SIGUSR2 was not trapped (e.g. --signal)"),
    13: ("SIGPIPE", "it wrote to a pipe that nobody reads"),
    14: ("SIGALRM", "an alarm ran out"),
    15: ("SIGTERM", "told to end: scancel, the time limit, or preemption"),
    16: ("SIGSTKFLT", "a stack fault"),
    17: ("SIGCHLD", "SIGCHLD"),
    18: ("SIGCONT", "SIGCONT"),
    19: ("SIGSTOP", "stopped"),
    20: ("SIGTSTP", "stopped from the terminal"),
    21: ("SIGTTIN", "read from the terminal in the background"),
    22: ("SIGTTOU", "wrote to the terminal in the background"),
    23: ("SIGURG", "SIGURG"),
    24: ("SIGXCPU", "the CPU time limit (ulimit -t) was reached"),
    25: ("SIGXFSZ", "a file grew over the size limit (ulimit -f)"),
    26: ("SIGVTALRM", "a virtual alarm ran out"),
    27: ("SIGPROF", "a profiling timer ran out"),
    28: ("SIGWINCH", "SIGWINCH"),
    29: ("SIGIO", "SIGIO"),
    30: ("SIGPWR", "power failure"),
    31: ("SIGSYS", "a forbidden system call"),
}
#: Signals by which a program shows a fault of its own and not somebody's wish.
_FAULT_SIGNALS = frozenset({4, 6, 7, 8, 11, 31})

#: Slurm stores errors of its own (4000 and up) modulo 128 where a signal would stand.
_LAUNCH_ERRORS = {
    42: "its batch directory could not be made on the node",
    46: "its environment could not be set up on the node",
    48: "slurmd could not become the user on the node",
    52: "the program could not be executed",
    54: "the prolog failed on the node",
    55: "the epilog failed on the node",
}
_OUTPUT_FILE = 53
_OUT_OF_MEMORY = 125
_SIGNAL_LIMIT = 32

#: Codes that sacct up to 24.11 may have made of a greater one: those worth a word.
_SACCT_LIKELY = frozenset({2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 127})

#: Phases in which an ended base state is overruled by a flag (requeued, started elsewhere).
_LIVE = frozenset({Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED, Phase.ELSEWHERE})

_RAISED = re.compile(r"RaisedSignal:(\d{1,9})")

_CODES = {
    1: "a general error; the log says which",
    2: "wrong usage of a shell command or of the program's options, or a missing interpreter in "
    "the script's first line",
    126: "a program is not executable",
    127: "a command was not found",
    255: "exit -1; also what a failed ssh or mpirun gives",
}

_STATES: dict[str, tuple[str, str]] = {
    "TIMEOUT": ("Ended by Slurm: the time limit was reached", "slurm"),
    "PREEMPTED": ("Ended by Slurm: preempted by a job of higher priority", "slurm"),
    "DEADLINE": ("Ended by Slurm: its deadline could no longer be met", "slurm"),
    "NODE_FAIL": ("A node of the allocation failed", "fault"),
    "BOOT_FAIL": ("A node of the allocation did not boot", "fault"),
    "OUT_OF_MEMORY": (
        "Out of memory: the kernel's OOM killer ended it; ask for more with --mem",
        "fault",
    ),
}


def signal_name(n: int) -> str:
    """``SIGKILL`` for 9. Numbers that are no Linux signal but an error of Slurm's say so."""
    if n in _SIGNALS:
        return _SIGNALS[n][0]
    return f"Slurm error (0:{n})"


def launch_trouble(n: int, stdout_path: str | None = None) -> str:
    """The sentence for a number that stands where a signal would, but is none."""
    if n == _OUTPUT_FILE:
        where = f" ({stdout_path})" if stdout_path else ""
        return (
            "Slurm could not start it: the output file or its directory could not be created "
            f"or opened{where}"
        )
    if n == _OUT_OF_MEMORY:
        return _STATES["OUT_OF_MEMORY"][0]
    if n in _LAUNCH_ERRORS:
        return f"Slurm could not start it: {_LAUNCH_ERRORS[n]} (0:{n}); see the slurmd log"
    return f"Slurm launch error (0:{n}), see slurmd log"


def _launch_notes(n: int) -> tuple[str, ...]:
    if n != _OUTPUT_FILE:
        return ()
    return (
        "Nothing ran and there is no log. Look for a missing directory, missing rights or a full "
        "quota; a missing --input file or work directory gives the same code.",
    )


def died_of(n: int) -> str:
    """A signal's name with what it means: ``SIGSEGV: a segmentation fault``."""
    name, words = _SIGNALS.get(n, (f"SIG{n}", ""))
    return f"{name}: {words}" if words and words != name else name


def explain_code(code: int) -> str:
    """One exit code of a program, without a state: ``139 (a child died of SIGSEGV: …)``."""
    if code in _CODES:
        return f"{code}: {_CODES[code]}"
    if 128 < code < 128 + _SIGNAL_LIMIT:
        return f"{code}: a child of the script died of {died_of(code - 128)}"
    return str(code)


def _sacct_note(code: int) -> tuple[str, ...]:
    """sacct up to 24.11 takes 128 off a code above 127; newer ones do not."""
    if code in _SACCT_LIKELY:
        real = code + 128
        return (
            f"{code}:0 in sacct may be {explain_code(real)} "
            "(sacct up to 24.11 takes 128 off codes above 127)",
        )
    return ()


def raised_signal(reason: str | None) -> int | None:
    """The number in a reason such as ``RaisedSignal:53(Real-time_signal_19)``."""
    match = _RAISED.search(reason or "")
    return int(match[1]) if match else None


def _derived_warning(code: ExitCode | None, derived: ExitCode | None) -> str | None:
    """A step that ended worse than the script."""
    if derived is None:
        return None
    own = code.code if code is not None else 0
    if derived.code > own:
        return f"a step ended with {explain_code(derived.code)}, although the script did not"
    if derived.signal and (code is None or (not code.signal and not code.code)):
        return f"a step died of {signal_name(derived.signal)}, although the script did not"
    return None


def explain_exit(
    state: JobState,
    exit_code: ExitCode | None,
    derived: ExitCode | None = None,
    *,
    from_sacct: bool = False,
    stdout_path: str | None = None,
    reason: str | None = None,
) -> ExitMeaning:
    """How a job ended, in one sentence, who ended it, and what to be wary of.

    ``from_sacct`` says that the code was read from sacct, which up to 24.11 prints codes above
    127 too small. ``stdout_path`` is named where it could not be opened. Never raises.
    """
    base = state.base
    if base not in ENDED_STATES or state.phase in _LIVE:
        return _not_over(state)
    code = exit_code.code if exit_code is not None else 0
    signal = exit_code.signal if exit_code is not None else 0
    raised = raised_signal(reason)
    if not code and not signal and raised is not None:
        signal = raised
    warning = _derived_warning(exit_code, derived)
    notes: tuple[str, ...] = ()
    if state.flags and state.phase is Phase.ENDING:
        notes = ("Its nodes are still being cleaned up.",)

    if base == "COMPLETED":
        if code or signal:
            found = explain_code(code) if code else signal_name(signal)
            return ExitMeaning(
                None, f"Completed, says Slurm, but with exit code {found}", "self", warning, notes
            )
        return ExitMeaning(True, "Completed: the script returned 0", "self", warning, notes)
    if base == "CANCELLED" and (state.by_uid is not None or signal < _SIGNAL_LIMIT):
        return _cancelled(state, code, signal, reason, warning, notes)
    if base in _STATES:
        sentence, ended_by = _STATES[base]
        if base == "TIMEOUT" and code:
            notes += (f"The script itself ended with {explain_code(code)}.",)
        return ExitMeaning(False, f"{sentence}.", ended_by, warning, notes)
    if signal >= _SIGNAL_LIMIT:
        sentence = launch_trouble(signal, stdout_path)
        return ExitMeaning(False, f"{sentence}.", "fault", warning, notes + _launch_notes(signal))
    if exit_code is None and not signal and (reason or "").startswith("JobLaunchFailure"):
        # Slurm up to 22.05 gives this reason for every signal as well.
        sentence = "Slurm could not start it, or a signal ended it: slurmtop why tells which"
        return ExitMeaning(False, f"{sentence}.", None, warning, notes)
    return _failed(code, signal, reason, from_sacct, warning, notes)


def _not_over(state: JobState) -> ExitMeaning:
    phase = state.phase
    if phase is Phase.ELSEWHERE:
        return ExitMeaning(
            None, "A federation sibling runs this job on another cluster; not a failure."
        )
    if phase is Phase.ENDING:
        return ExitMeaning(None, "Ending: its nodes are being cleaned up, the result is not known.")
    if state.word in ("REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "REQUEUE_FED"):
        return ExitMeaning(None, "This run was ended and put back in the queue.")
    if phase is Phase.UNKNOWN:
        return ExitMeaning(None, f"State {state.word} is not known here; see sacct.")
    return ExitMeaning(None, "Not over yet: its exit code says nothing before the end.")


def _cancelled(
    state: JobState,
    code: int,
    signal: int,
    reason: str | None,
    warning: str | None,
    notes: tuple[str, ...],
) -> ExitMeaning:
    how = f" ({signal_name(signal)})" if 0 < signal < _SIGNAL_LIMIT else ""
    if code:
        notes += (f"The script itself ended with {explain_code(code)}.",)
    if state.by_uid is None:
        if (reason or "").startswith("DependencyNeverSatisfied"):
            sentence = "Cancelled by Slurm: its dependency could never be met."
            return ExitMeaning(False, sentence, "slurm", warning, notes)
        return ExitMeaning(
            False, f"Cancelled{how}; by whom is not recorded here.", None, warning, notes
        )
    who = "root (an administrator)" if state.by_uid == 0 else f"user id {state.by_uid}"
    return ExitMeaning(False, f"Cancelled{how} by {who}.", "user", warning, notes)


def _failed(
    code: int,
    signal: int,
    reason: str | None,
    from_sacct: bool,
    warning: str | None,
    notes: tuple[str, ...],
) -> ExitMeaning:
    if signal:
        ended_by = "fault" if signal in _FAULT_SIGNALS else None
        return ExitMeaning(False, f"Died of {died_of(signal)}.", ended_by, warning, notes)
    if code:
        if from_sacct:
            notes += _sacct_note(code)
        child = code - 128
        ended_by = "self"
        if 0 < child < _SIGNAL_LIMIT:
            ended_by = "fault" if child in _FAULT_SIGNALS else ""
        return ExitMeaning(
            False, f"Failed with exit code {explain_code(code)}.", ended_by or None, warning, notes
        )
    if (reason or "").startswith("JobLaunchFailure"):
        sentence = "Slurm could not start it: see the slurmd log, and the paths of its output files"
        return ExitMeaning(False, f"{sentence}.", "fault", warning, notes)
    if from_sacct:
        notes += ("0:0 in sacct may be 128 (sacct up to 24.11 takes 128 off codes above 127)",)
    return ExitMeaning(
        False, "Failed, but no exit code was recorded; see the log.", None, warning, notes
    )
