"""Limits of the host that stopped something: shared memory, files, disk, memory, threads.

Source: strerror(3) words in whatever a program prints, PyTorch's DataLoader, glibc, numpy::

    RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that …
    OSError: [Errno 122] Disk quota exceeded: '/scratch/run/ckpt.pt'

The device's memory is none of these, nor memory that an adapter could not register.
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.system import Limit, LimitHit
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import MOST_REPEATS, PlainReader

_SHM_PLACE = re.compile(
    r"/shm/|/shm\b|\bshm\b|\bshm\.h\b|shared memory|posix_fallocate|</?torch_\w|\bshmem\b"
)
_NO_SPACE = re.compile(r"No space left on device|\[Errno 28\]|errno[:=]? ?28\b")
_SHM = re.compile(
    r"insufficient shared memory|out of shared memory|killed by signal: Bus error"
    r"|unable to (?:mmap|resize|open|write to|allocate)[^:\n]{0,80}"
    r"(?:</?torch_|\(shm\)|shared memory)"
    r"|failed to (?:extend|open|create|attach|allocate) (?:to )?(?:/\w{1,20}/shm|shared memory)"
    r"|creating shared memory segment"
)
_FILES = re.compile(
    r"Too many open files|\[Errno 24\]|errno[:=]? ?24\b|received 0 items of ancdata"
)
_QUOTA = re.compile(r"Disk quota exceeded|\[Errno 122\]")
_MEMORY = re.compile(
    r"(?:^|[\s.:])(?:_Array)?MemoryError(?::|\s*$)|Cannot allocate memory|\[Errno 12\]"
    r"|std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)"
    r"|DataLoader worker \([^)]{1,200}\)\)? is killed by signal: Killed"
)
_THREADS = re.compile(
    r"can't start new thread|(?:pthread_create|[Tt]hread creation|fork).{0,60}"
    r"(?:failed|retry).{0,60}Resource temporarily unavailable"
)
#: These speak of what the adapter may pin (memlock), of another process, or give advice.
_OTHER_MEMORY = re.compile(
    r"ibv_|reg_mr|NET/|memlock|fi_mr|[Ll]ibfabric|EFA\b|CUDA|\bcu[A-Z]\w|HIP"
)
_ADVICE = re.compile(
    r"(?i)\b(?:if you (?:see|get|run into)|to (?:avoid|prevent)|may lead to|might)\b"
)
_PATH = re.compile(r"""['"<](?P<quoted>/[^'">\n]{1,300})['">]|\s(?P<bare>/[\w./@+-]{2,300})""")


class LimitReader(PlainReader):
    """:class:`LimitHit`, each limit of one writer at most MOST_REPEATS times."""

    words: tuple[bytes, ...] = (
        b"No space left",
        b"Errno ",
        b"errno",
        b"shared memory",
        b"Bus error",
        b"unable to mmap",
        b"torch_",
        b"Too many open",
        b"ancdata",
        b"quota exceeded",
        b"MemoryError",
        b"allocate memory",
        b"bad_alloc",
        b"CPUAllocator",
        b"by signal: Killed",
        b"start new thread",
        b"temporarily unavailable",
        b"failed to extend",
    )

    def __init__(self) -> None:
        self._told: dict[Limit, int] = {}

    def read(self, message: Message) -> Iterable[Event]:
        text = message.text
        limit = _limit(text)
        if limit is None:
            return
        self._told[limit] = self._told.get(limit, 0) + 1
        if self._told[limit] <= MOST_REPEATS:
            yield LimitHit(at=message.at, limit=limit, path=_path(text), text=text.strip()[:400])


def _limit(text: str) -> Limit | None:
    if _FILES.search(text) and not _advice(text, _FILES):
        return Limit.FILES
    if _NO_SPACE.search(text):
        return Limit.SHM if _SHM_PLACE.search(text) else Limit.DISK
    if _SHM.search(text) and "Permission denied" not in text:
        return Limit.SHM
    if _QUOTA.search(text):
        return Limit.DISK
    if _THREADS.search(text):
        return Limit.THREADS
    if _MEMORY.search(text) and not _OTHER_MEMORY.search(text) and not _advice(text, _MEMORY):
        return Limit.MEMORY
    return None


def _advice(text: str, pattern: re.Pattern[str]) -> bool:
    found = pattern.search(text)
    return found is not None and _ADVICE.search(text[: found.start()]) is not None


def _path(text: str) -> str | None:
    found = _PATH.search(text)
    return (found["quoted"] or found["bare"]) if found else None
