"""What the kernel, the driver and the host's limits say in a log."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.trace import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid(Event):
    """``NVRM: Xid (PCI:0000:83:00): 79, pid=1234, name=python, GPU has fallen off the bus.``

    ``switch`` is true for an SXid of an NVSwitch. ``caused_by`` is the number in ``caused by
    previous Xid 149``: the code itself is then only clean-up.
    """

    code: int
    bus_id: str | None = None
    pid: int | None = None
    text: str = ""
    switch: bool = False
    fatal: bool | None = None
    """Of an SXid."""
    caused_by: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOom(Event):
    """``Out of memory: Killed process 71 (python)``, ``Memory cgroup out of memory: …``."""

    pid: int | None = None
    name: str | None = None
    cgroup: bool = False


class LinkTrouble(StrEnum):
    DOWN = "down"
    UP = "up"
    FATAL = "fatal"
    """The adapter's health check failed, firmware fatal."""
    ERRORS = "errors"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLink(Event):
    """The kernel on a network adapter: ``mlx5_core 0000:0c:00.0 ib0: Link down``."""

    kind: LinkTrouble
    device: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieFatal(Event):
    """``AER: Uncorrected (Fatal) error``, ``Surprise Down Error``, ``device has no AER-aware``."""

    device: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHardware(Event):
    """The kernel on broken hardware of the host itself: an uncorrected machine check, a memory
    failure, a panic. Corrected errors are none."""

    text: str = ""


class Limit(StrEnum):
    SHM = "shm"
    """``No space left on device`` of /dev/shm, ``insufficient shared memory``, bus error."""
    FILES = "files"
    """``Too many open files``."""
    DISK = "disk"
    """``No space left on device``, ``Disk quota exceeded``."""
    MEMORY = "memory"
    """``MemoryError``, ``Cannot allocate memory``, ``std::bad_alloc``, DataLoader killed."""
    THREADS = "threads"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitHit(Event):
    """A limit of the host stopped something. ``path`` where one is named."""

    limit: Limit
    path: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse(Event):
    """A program reports its own host memory: ``rank 0 RSS MEM USE: 212.04G``."""

    bytes: int
