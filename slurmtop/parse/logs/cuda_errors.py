"""CUDA and HIP errors outside NCCL, as PyTorch, TensorFlow, JAX and kernels print them.

Source: ``cudaGetErrorString`` of CUDA 10 to 13 inside these libraries' messages, for example::

    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3 has a total …
    RuntimeError: CUDA error: uncorrectable ECC error encountered

Advice that stands behind every CUDA error (``Compile with TORCH_USE_CUDA_DSA``) is none itself.
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.torch import CudaError, CudaTrouble
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import level, number, shown

_OUT_OF_MEMORY = re.compile(
    r"(?:CUDA|HIP|XPU) out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|(?:CUDA|HIP)(?: runtime| driver)? [Ee]rror(?: \d{1,4})?:? ?(?:\(\d{1,4}\): ?)?\(?out of "
    r"memory"
    r"|CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: (?:XLA:GPU|Out of "
    r"memory)"
    r"|ResourceExhaustedError|hipErrorOutOfMemory|(?:CUDA|Cuda) failure:? (?:\S{1,200} )?'out of "
    r"memory'|cudaSuccess \(\d{1,4} vs\. 0\) {1,4}out of memory"
)
#: Words of ``cudaGetErrorString`` and names of the codes, the more telling first.
_KINDS: tuple[tuple[CudaTrouble, re.Pattern[str]], ...] = (
    (
        CudaTrouble.NVLINK,
        re.compile(r"(?i)nvlink error|NVLINK_UNCORRECTABLE|NvlinkUncorrectable"),
    ),
    (CudaTrouble.ECC, re.compile(r"(?i)\becc error|ECC_UNCORRECTABLE|ECCUncorrectable")),
    (
        CudaTrouble.HARDWARE,
        re.compile(
            r"(?i)fallen off the bus|gpu is lost|hardware stack error|HARDWARE_STACK_ERROR"
            r"|HardwareStackError|or a hardware error|cudaErrorContained|unknown device state"
        ),
    ),
    (
        CudaTrouble.ASSERT,
        re.compile(r"(?i)device-side assert triggered|cudaErrorAssert|ERROR_ASSERT"),
    ),
    (
        CudaTrouble.ILLEGAL,
        re.compile(
            r"(?i)illegal memory access|illegal instruction|misaligned address|invalid program "
            r"counter"
            r"|invalid address space|operation not supported on global/shared|ILLEGAL_ADDRESS"
            r"|IllegalAddress|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|Memory access fault by GPU"
        ),
    ),
    (
        CudaTrouble.LAUNCH,
        re.compile(
            r"(?i)unspecified launch failure|launch timed out and was terminated|LAUNCH_FAILED"
            r"|LaunchFailure|too many resources requested for launch|LAUNCH_TIMEOUT"
        ),
    ),
    (
        CudaTrouble.DRIVER,
        re.compile(
            r"(?i)driver version is insufficient|no CUDA-capable device|no HIP.capable device"
            r"|invalid device ordinal|no kernel image|device kernel image is invalid"
            r"|system not yet initialized|unsupported display driver|busy or unavailable"
            r"|No CUDA GPUs are available|no HIP GPUs are available|Found no NVIDIA driver"
            r"|NVIDIA driver on your system is too old|forward compatibility was attempted"
            r"|Driver/library version mismatch|unsupported toolchain|NO_DEVICE|INVALID_DEVICE"
            r"|SYSTEM_NOT_READY|NVML.{0,20} (?:Unknown Error|not found)|InsufficientDriver"
            r"|SystemNotReady|SystemDriverMismatch|CompatNotSupported|NoKernelImage"
            r"|DevicesUnavailable|ErrorNoDevice|ErrorInvalidDevice|UnsupportedPtx"
            r"|initialization error|No visible GPU devices|Error loading CUDA libraries"
        ),
    ),
)
#: In front of CUDA's own words.
_ERROR = re.compile(
    r"(?:CUDA|HIP)(?: runtime| driver)? [Ee]rror(?: ?\(?\d{1,4}\)?)?: "
    r"|CUDA(?: runtime)? API .{0,60}returned|CUDA_ERROR_[A-Z_]{3,60}|\bcudaError[A-Z]\w{2,60}"
    r"|hipError[A-Z]\w{2,60}|CU(?:BLAS|DNN|SPARSE|SOLVER|FFT)_STATUS_(?!SUCCESS)[A-Z_]{3,60}"
    r"|cuDNN error:|(?:CUDA|Cuda) failure:? (?:\S{1,200} )?'|CUDA [Ee]rror at \S{1,200} code="
    r"|cudaSuccess \(\d{1,4} vs\. 0\)"
    r"|RuntimeError: Unable to initialize backend '(?:cuda|rocm|gpu)'"
    r"|Unexpected error from (?:cudaGetDeviceCount|hip)"
    r"|No CUDA GPUs are available|No HIP GPUs are available|Found no NVIDIA driver"
    r"|NVIDIA driver on your system is too old|Failed to initialize NVML|GPU is lost"
    r"|GPU has fallen off the bus|Memory access fault by GPU|an illegal memory access was "
    r"encountered"
    r"|device-side assert triggered|uncorrectable (?:ECC|NVLink) error"
)
#: The check inside a kernel, once a thread: ``Indexing.cu:1292: …: Assertion `a < b` failed.``
_KERNEL_CHECK = re.compile(
    r"block: \[\d{1,9},\d{1,9},\d{1,9}\], thread: \[\d{1,9},\d{1,9},\d{1,9}\].{0,40}Assertion"
    r"|\.cuh?:\d{1,6}:.{0,400}Assertion .{0,200} failed"
)
_ADVICE = re.compile(
    r"CUDA kernel errors might|kernel errors might be asynchronously|CUDA_LAUNCH_BLOCKING=1"
    r"|TORCH_USE_CUDA_DSA|Search for [`']?(?:cuda|hip)Error"
)
#: NCCL's own lines are read elsewhere; the kernel's log tells a GPU that is lost by its Xid.
_NOT_OURS = re.compile(r"NCCL (?:WARN|INFO)|NVRM:|NVLink SHARP|MULTICAST|ncclUnhandled")

_GPU = re.compile(
    r"GPU (?P<gpu>\d{1,3})(?: has a total capac|;)|\bdevice (?:ordinal )?(?P<dev>\d{1,3})\b"
)
_SIZE = r"(?P<{}>\d{{1,9}}(?:\.\d{{1,4}})?) (?P<{}u>[KMGT]i?B|bytes)"
_CAPACITY = re.compile(
    r"total capaci?ty of "
    + _SIZE.format("a", "a")
    + r"|; "
    + _SIZE.format("b", "b")
    + r" total capacity"
)
_OTHERS = re.compile(r"Process \d{1,10} has " + _SIZE.format("n", "n") + r" memory in use")
_FREE = re.compile(r"; " + _SIZE.format("n", "n") + r" free")
_RESERVED = re.compile(r"; " + _SIZE.format("n", "n") + r" reserved in total")
_UNITS = {"b": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
#: Of the card's memory, held by others.
_MUCH = 0.25

_CAUGHT = re.compile(
    r"(?i)\bretry|retrying|recover(?:ing|ed)? from|skipp(?:ed|ing)|reducing|reduced batch|trying "
    r"batch"
    r"|falling back|fall back|will try|attempting to|ignoring|smaller batch|Caught OOM"
)
_QUIET = re.compile(r"(?:^|[\s\[|(])(?:INFO|DEBUG|WARN|WARNING)(?:[\s\]|):]|$)|\w{1,40}Warning: ")
#: ``RuntimeError: worker on n9 failed: CUDA out of memory``: somebody else's words.
_EXCEPTION = re.compile(r"\b[A-Za-z]\w{0,60}(?:Error|Exception|Exited)\b[^:\n]{0,60}: ")
_SOMEBODY = re.compile(
    r"(?i)\b(?:rank|worker|peer|node|host|actor|process|task|replica|client|server|job)s?\b"
)
_ON_RANK = re.compile(r"(?i)\b(?:on|of|from|by|at) (?:global )?rank (?P<rank>\d{1,7})\b")

#: A check prints a line for every thread that failed it.
_NUMBERS = re.compile(r"\d+")
_TEXT_CHARS = 400
_MOST_SEEN = 10_000


class CudaReader:
    """Reads CUDA errors; see :class:`~slurmtop.parse.logs.line.Reader`.

    The same words of one writer stand in its traceback, in ``what():`` and in the watchdog's
    line; the first is given.
    """

    words: tuple[bytes, ...] = (
        b"out of memory",
        b"OUT_OF_MEMORY",
        b"Out of memory",
        b"ResourceExhausted",
        b"CUDA error",
        b"CUDA failure",
        b"Cuda failure",
        b"cudaSuccess",
        b"initialize backend",
        b"CUDA Error",
        b"CUDA driver",
        b"CUDA runtime",
        b"CUDA API",
        b"CUDA_ERROR",
        b"CUDA GPU",
        b"CUDA-capable",
        b"cudaError",
        b"cudaGetDeviceCount",
        b"HIP error",
        b"HIP GPU",
        b"hipError",
        b"CUBLAS_STATUS",
        b"CUDNN_STATUS",
        b"cuDNN error",
        b"_STATUS_ALLOC",
        b"Assertion",
        b"NVML",
        b"NVIDIA driver",
        b"GPU is lost",
        b"fallen off the bus",
        b"Memory access fault",
        b"illegal memory access",
        b"device-side assert",
        b"uncorrectable",
    )
    open = False

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def see(self, message: Message) -> Iterable[Event]:
        event = _read(message)
        if event is None:
            return ()
        said = (
            _NUMBERS.sub("", event.text[:160]) if event.kind is CudaTrouble.ASSERT else event.text
        )
        key = (message.at.attempt, message.stream, event.kind, event.caught, said)
        if key in self._seen:
            return ()
        if len(self._seen) < _MOST_SEEN:
            self._seen.add(key)
        return (event,)

    def finish(self) -> Iterable[Event]:
        return ()


def _read(message: Message) -> CudaError | None:
    advice = _ADVICE.search(message.text)
    text = message.text if advice is None else message.text[: advice.start()]
    if _NOT_OURS.search(text) is not None:
        return None
    if _KERNEL_CHECK.search(text) is not None:
        return _event(message, CudaTrouble.ASSERT, 0)
    if (full := _OUT_OF_MEMORY.search(text)) is not None:
        return _event(message, CudaTrouble.OUT_OF_MEMORY, full.start())
    found = _ERROR.search(text)
    if found is None:
        return None
    said = text[found.start() :]
    kind = next((kind for kind, words in _KINDS if words.search(said)), CudaTrouble.OTHER)
    return _event(message, kind, found.start())


def _event(message: Message, kind: CudaTrouble, start: int) -> CudaError:
    text = message.text
    gpu = _GPU.search(text, start)
    caught = (
        _CAUGHT.search(text) is not None
        or _QUIET.search(text[:start]) is not None
        or level(message) in ("W", "I", "D")
    )
    return CudaError(
        at=shown(message, start),
        kind=kind,
        text=text[start : start + _TEXT_CHARS],
        gpu=number(gpu["gpu"] or gpu["dev"]) if gpu is not None else None,
        other_process=kind is CudaTrouble.OUT_OF_MEMORY and _held_by_others(text[start:]),
        caught=caught,
        passed_on=_passed_on(message, start),
    )


def _passed_on(message: Message, start: int) -> bool:
    """Does an exception of this process tell of an error that another process had?"""
    thrown = _EXCEPTION.search(message.text, 0, start)
    if thrown is not None and _SOMEBODY.search(message.text, thrown.end(), start) is not None:
        return True
    told = _ON_RANK.search(message.text, start, start + _TEXT_CHARS)
    return told is not None and message.at.rank is not None and int(told["rank"]) != message.at.rank


def _held_by_others(text: str) -> bool:
    capacity = _CAPACITY.search(text)
    if capacity is None:
        return False
    side = "a" if capacity["a"] is not None else "b"
    total = _bytes(capacity[side], capacity[side + "u"])
    if side == "a":
        others = sum(_bytes(one["n"], one["nu"]) for one in _OTHERS.finditer(text))
    else:
        free, reserved = _FREE.search(text), _RESERVED.search(text)
        if free is None or reserved is None:
            return False
        others = total - _bytes(free["n"], free["nu"]) - _bytes(reserved["n"], reserved["nu"])
    return total > 0 and others > _MUCH * total


def _bytes(value: str, unit: str) -> float:
    return float(value) * _UNITS.get(unit[:1], 1.0)
