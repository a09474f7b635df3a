"""What an exit code says once the state is known, in words.

Source: ``code:signal`` of ``sacct -o ExitCode``, ``scontrol show job`` and ``squeue``::

    6100|FAILED|0:53        the output file could not be opened; nothing ran
    6003|COMPLETED|0:0|3:0  the script returned 0, but a step ended with 3

``0:0`` is printed for every job that is not over, so it means success with COMPLETED only.
"""

import re
from dataclasses import replace

from slurmtop.model.job import (
    ENDED_STATES,
    UNKNOWN_LIMIT,
    ExitCode,
    ExitMeaning,
    Job,
    JobState,
    Phase,
    TimeLimit,
)
from slurmtop.model.units import clock_text

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

#: Sentence, who ended it, and the short form.
_STATES: dict[str, tuple[str, str, str]] = {
    "TIMEOUT": ("Ended by Slurm: the time limit was reached", "slurm", "time limit reached"),
    "PREEMPTED": ("Ended by Slurm: preempted by a job of higher priority", "slurm", "preempted"),
    "DEADLINE": ("Ended by Slurm: its deadline could no longer be met", "slurm", "deadline missed"),
    "NODE_FAIL": ("A node of the allocation failed", "fault", "a node failed"),
    "BOOT_FAIL": ("A node of the allocation did not boot", "fault", "a node did not boot"),
    "OUT_OF_MEMORY": (
        "Out of memory: the kernel's OOM killer ended it; ask for more with --mem",
        "fault",
        "out of memory",
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


def _short_code(code: int) -> str:
    """``exit 3``, ``exit 137 (SIGKILL)``."""
    if 128 < code < 128 + _SIGNAL_LIMIT:
        return f"exit {code} ({signal_name(code - 128)})"
    said = {126: ", not executable", 127: ", command not found"}.get(code, "")
    return f"exit {code}{said}"


def _short_trouble(n: int) -> str:
    """The few words for :func:`launch_trouble`."""
    if n == _OUTPUT_FILE:
        return "output file cannot be opened"
    if n == _OUT_OF_MEMORY:
        return _STATES["OUT_OF_MEMORY"][2]
    return f"not started: Slurm error {n}"


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


def _worse_step(code: ExitCode | None, derived: ExitCode | None) -> tuple[str | None, str]:
    """A step that ended worse than the script: the warning, and the same in a few words."""
    if derived is None:
        return None, ""
    own = code.code if code is not None else 0
    if derived.code > own:
        found = explain_code(derived.code)
        short = f"a step: {_short_code(derived.code)}"
        return f"a step ended with {found}, although the script did not", short
    if derived.signal and (code is None or (not code.signal and not code.code)):
        name = signal_name(derived.signal)
        return f"a step died of {name}, although the script did not", f"a step: killed by {name}"
    return None, ""


def explain_exit(
    state: JobState,
    exit_code: ExitCode | None,
    derived: ExitCode | None = None,
    *,
    from_sacct: bool = False,
    stdout_path: str | None = None,
    reason: str | None = None,
    limit: TimeLimit = UNKNOWN_LIMIT,
) -> ExitMeaning:
    """How a job ended, in one sentence, who ended it, and what to be wary of.

    ``exit_code`` is None where it is not known, which is not 0:0. ``from_sacct`` says that the
    code was read from sacct, which up to 24.11 prints codes above 127 too small.
    ``stdout_path`` is named where it could not be opened, ``limit`` where it was reached.
    Never raises.
    """
    base = state.base
    if base not in ENDED_STATES or state.phase in _LIVE:
        return _not_over(state)
    code = exit_code.code if exit_code is not None else 0
    signal = exit_code.signal if exit_code is not None else 0
    raised = raised_signal(reason)
    if not code and not signal and raised is not None:
        signal = raised
    warning, step = _worse_step(exit_code, derived)
    notes: tuple[str, ...] = ()
    if state.flags and state.phase is Phase.ENDING:
        notes = ("Its nodes are still being cleaned up.",)

    if base == "COMPLETED":
        if code or signal:
            found = explain_code(code) if code else signal_name(signal)
            sentence = f"Completed, says Slurm, but with exit code {found}"
            short = _short_code(code) if code else f"killed by {signal_name(signal)}"
            return ExitMeaning(None, sentence, "self", warning, notes, f"{short}, yet completed")
        sentence = "Completed: the script returned 0"
        return ExitMeaning(True, sentence, "self", warning, notes, step or "exit 0")
    if base == "CANCELLED" and (state.by_uid is not None or signal < _SIGNAL_LIMIT):
        return _cancelled(state, code, signal, reason, warning, notes)
    if base in _STATES:
        sentence, ended_by, short = _STATES[base]
        if base == "TIMEOUT" and code:
            notes += (f"The script itself ended with {explain_code(code)}.",)
        if base == "TIMEOUT" and limit.seconds is not None:
            short = f"time limit {clock_text(limit.seconds)} reached"
        return ExitMeaning(False, f"{sentence}.", ended_by, warning, notes, short)
    if signal >= _SIGNAL_LIMIT:
        sentence = launch_trouble(signal, stdout_path)
        notes += _launch_notes(signal)
        short = _short_trouble(signal)
        return ExitMeaning(False, f"{sentence}.", "fault", warning, notes, short)
    if exit_code is None and not signal and (reason or "").startswith("JobLaunchFailure"):
        # Slurm up to 22.05 gives this reason for every signal as well.
        sentence = "Slurm could not start it, or a signal ended it: slurmtop why tells which"
        short = "not started, or a signal"
        return ExitMeaning(False, f"{sentence}.", None, warning, notes, short)
    if exit_code is None and not signal:
        sentence = "Failed; its exit code is not known here: the log or slurmtop why may tell"
        return ExitMeaning(False, f"{sentence}.", None, warning, notes, "exit code not known")
    told = _failed(code, signal, reason, from_sacct, warning, notes)
    return replace(told, short=f"{told.short}, {step}") if step else told


def explain_job_exit(job: Job, *, stdout_path: str | None = None) -> ExitMeaning:
    """:func:`explain_exit` of a record of the queue, by what stands in that alone."""
    return explain_exit(
        job.state,
        job.exit_code,
        job.derived_exit_code,
        stdout_path=stdout_path,
        reason=job.reason,
        limit=job.limit,
    )


def _not_over(state: JobState) -> ExitMeaning:
    phase = state.phase
    if phase is Phase.ELSEWHERE:
        sentence = "A federation sibling runs this job on another cluster; not a failure."
        short = "runs on another cluster"
    elif phase is Phase.ENDING:
        sentence = "Ending: its nodes are being cleaned up, the result is not known."
        short = "ending, result not known"
    elif state.word in ("REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "REQUEUE_FED"):
        sentence = "This run was ended and put back in the queue."
        short = "put back in the queue"
    elif phase is Phase.UNKNOWN:
        sentence = f"State {state.word} is not known here; see sacct."
        short = "state not known"
    else:
        sentence = "Not over yet: its exit code says nothing before the end."
        short = "not over yet"
    return ExitMeaning(None, sentence, short=short)


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
            short = "its dependency cannot be met"
            return ExitMeaning(False, sentence, "slurm", warning, notes, short)
        sentence = f"Cancelled{how}; by whom is not recorded here."
        return ExitMeaning(False, sentence, None, warning, notes, "cancelled")
    who = "root (an administrator)" if state.by_uid == 0 else f"user id {state.by_uid}"
    short = f"cancelled by {who.partition(' (')[0]}"
    return ExitMeaning(False, f"Cancelled{how} by {who}.", "user", warning, notes, short)


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
        sentence, short = f"Died of {died_of(signal)}.", f"killed by {signal_name(signal)}"
        return ExitMeaning(False, sentence, ended_by, warning, notes, short)
    if code:
        short = _short_code(code)
        if from_sacct:
            notes += _sacct_note(code)
            short = f"exit {code} or {code + 128}" if code in _SACCT_LIKELY else short
        if from_sacct and code in _SACCT_LIKELY and code not in _CODES:
            # Few programs end with such a code of their own: who ended it is not known.
            sentence = f"Failed with exit code {code}, or {explain_code(code + 128)}."
            return ExitMeaning(False, sentence, None, warning, notes, short)
        child = code - 128
        ended_by = "self"
        if 0 < child < _SIGNAL_LIMIT:
            ended_by = "fault" if child in _FAULT_SIGNALS else ""
        sentence = f"Failed with exit code {explain_code(code)}."
        return ExitMeaning(False, sentence, ended_by or None, warning, notes, short)
    if (reason or "").startswith("JobLaunchFailure"):
        sentence = "Slurm could not start it: see the slurmd log, and the paths of its output files"
        short = "Slurm could not start it"
        return ExitMeaning(False, f"{sentence}.", "fault", warning, notes, short)
    if from_sacct:
        notes += ("0:0 in sacct may be 128 (sacct up to 24.11 takes 128 off codes above 127)",)
    sentence = "Failed, but no exit code was recorded; see the log."
    return ExitMeaning(False, sentence, None, warning, notes, "failed without an exit code")
