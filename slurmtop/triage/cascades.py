"""Which exceptions only pass on that another process, or the network, has ended. Pure."""

from slurmtop.model.events.program import PyException

#: Names of exceptions that tell only that somebody else has gone or ended this process.
_CASCADE_NAMES = frozenset(
    {
        "BrokenPipeError",
        "ChildFailedError",
        "ConnectionResetError",
        "DistBackendError",
        "DistNetworkError",
        "DistStoreError",
        "EOFError",
        "KeyboardInterrupt",
        "ProcessExitedException",
        "ProcessRaisedException",
        "RendezvousConnectionError",
        "RendezvousClosedError",
        "RendezvousTimeoutError",
        "SignalException",
        "SystemExit",
        "CalledProcessError",
        "MultiprocessingError",
        "RayActorError",
        "RayTaskError",
        "TuneError",
        "TrainingFailedError",
        "ActorDiedError",
        "WorkerCrashedError",
    }
)
#: Words in the message of any exception that say the same.
_CASCADE_WORDS = (
    "nccl",
    "sigterm",
    "sigint",
    "signal 15",
    "broken pipe",
    "connection reset",
    "connection closed by peer",
    "watchdog",
    "collective operation",
    "process group",
    "engine core",
    "gloo",
    "died unexpectedly",
    "worker died",
)


def is_cascade(event: PyException) -> bool:
    """Does an exception only pass on that another process, or the network, has ended?"""
    name = event.name.rpartition(".")[2]
    if event.cut:
        return event.process is None
    if name in _CASCADE_NAMES:
        return True
    message = event.message.lower()
    return any(word in message for word in _CASCADE_WORDS)
