"""The words of slurmtop's own verdicts, and what people call them: for ``slurmtop explain``."""

from slurmtop.triage.state_words import StateWord

VERDICT_WORDS: dict[str, StateWord] = {
    "hung": StateWord(
        "It still runs, and somebody in it waits for something that does not come.",
        "slow: a step counter that moves, however late, is no hang.",
        "see the stacks of its ranks (py-spy dump --pid PID) before it is ended",
    ),
    "slow": StateWord(
        "It moves, and takes longer for a step than it did or than it should.",
        "hung: look twice, a minute apart.",
        "slurmtop explain slow-run",
    ),
    "recovering": StateWord(
        "Its workers failed and are being started again; nothing has moved since.",
        "failed: attempts are left.",
        "read why the last attempt failed: slurmtop triage JOB",
    ),
    "failed": StateWord(
        "It ended before its work was done.",
        "the fault of the rank that says so last: the first error counts.",
        "read the first error in its log: slurmtop triage JOB",
    ),
    "idle": StateWord(
        "It holds its nodes, and no program of it is at work: a shell, a notebook or a sleep; or it"
        " is suspended or stopped.",
        "hung: nobody in it waits for another.",
        "end it (scancel JOB) where nobody needs it any more; a suspended one: ask who did it",
    ),
    "unknown": StateWord(
        "What could be read does not show how it goes.",
        "a failure: something that would tell was not read, or is not there.",
        "read what is listed under 'not read'; run slurmtop doctor",
    ),
}
#: What logs are full of.
LOG_WORDS: dict[str, StateWord] = {
    "nccl": StateWord(
        "NVIDIA's library by which the ranks exchange data; every rank has to make the same calls "
        "in the same order.",
        "the cause: its errors are mostly how the other ranks notice that one has gone or waits.",
        "find the first error that is not NCCL's: slurmtop triage PATH",
    ),
    "nan": StateWord(
        "Not a number: the loss, or a gradient, has become undefined.",
        "a broken GPU: a learning rate that is too high, or bad data, is far likelier.",
        "go back to the last checkpoint before it, with a lower learning rate",
    ),
}
#: What people say, in the words of the verdicts (states, classes and families of faults).
ALSO_CALLED: dict[str, tuple[str, ...]] = {
    "hang": ("hung",),
    "hangs": ("hung",),
    "stuck": ("hung",),
    "deadlock": ("hung",),
    "straggler": ("slow",),
    "nccl timeout": ("watchdog-timeout-unattributed", "missing-rank"),
    "cuda error": ("cuda-assert", "cuda-driver-error", "gpu-oom", "gpu-hw-fault"),
    "cuda out of memory": ("gpu-oom",),
}
