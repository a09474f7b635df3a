"""Every reader of log lines, in the order in which a message is shown to them.

Each entry makes a fresh reader for one source.
"""

from collections.abc import Callable

from slurmtop.parse.logs.bench import BenchReader
from slurmtop.parse.logs.calls_apart import CallsApartReader
from slurmtop.parse.logs.crashes import CrashReader
from slurmtop.parse.logs.cuda_errors import CudaReader
from slurmtop.parse.logs.elastic import ElasticReader
from slurmtop.parse.logs.flight_text import FlightTextReader
from slurmtop.parse.logs.horovod import HorovodReader
from slurmtop.parse.logs.kernel_words import KernelReader
from slurmtop.parse.logs.launchers import LauncherReader
from slurmtop.parse.logs.limits import LimitReader
from slurmtop.parse.logs.line import Reader
from slurmtop.parse.logs.nccl import NcclReader
from slurmtop.parse.logs.program import ProgramReader
from slurmtop.parse.logs.python import PythonReader
from slurmtop.parse.logs.ras_json import RasJsonReader
from slurmtop.parse.logs.ras_text import RasTextReader
from slurmtop.parse.logs.slurm_notes import SlurmNoteReader
from slurmtop.parse.logs.slurm_words import SlurmReader
from slurmtop.parse.logs.stacks import StackReader
from slurmtop.parse.logs.suites import SuiteReader
from slurmtop.parse.logs.torch_checks import CheckReader
from slurmtop.parse.logs.torch_errors import NcclErrorReader
from slurmtop.parse.logs.torch_store import StoreReader
from slurmtop.parse.logs.torch_watchdog import WatchdogReader
from slurmtop.parse.logs.ucx import UcxReader

READERS: tuple[Callable[[], Reader], ...] = (
    SlurmReader,
    SlurmNoteReader,
    KernelReader,
    LimitReader,
    RasTextReader,
    RasJsonReader,
    HorovodReader,
    CallsApartReader,
    FlightTextReader,
    BenchReader,
    NcclReader,
    UcxReader,
    WatchdogReader,
    NcclErrorReader,
    StoreReader,
    CheckReader,
    CudaReader,
    ElasticReader,
    LauncherReader,
    CrashReader,
    StackReader,
    PythonReader,
    ProgramReader,
    SuiteReader,
)
