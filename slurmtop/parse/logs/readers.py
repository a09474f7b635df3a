"""Every reader of log lines, in the order in which a message is shown to them.

Each entry makes a fresh reader for one source.
"""

from collections.abc import Callable

from slurmtop.parse.logs.kernel_words import KernelReader
from slurmtop.parse.logs.limits import LimitReader
from slurmtop.parse.logs.line import Reader
from slurmtop.parse.logs.nccl import NcclReader
from slurmtop.parse.logs.slurm_notes import SlurmNoteReader
from slurmtop.parse.logs.slurm_words import SlurmReader

READERS: tuple[Callable[[], Reader], ...] = (
    SlurmReader,
    SlurmNoteReader,
    KernelReader,
    LimitReader,
    NcclReader,
)
