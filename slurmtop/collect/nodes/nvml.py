"""NVML in this process, where slurmtop runs on a GPU node itself: no child, no text.

Every value is asked for by itself and may be missing. A driver that hangs holds the thread that
asked it for ever, so there is one thread at the most, and nobody waits for it at the end.
"""

import asyncio
import contextlib
import importlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from slurmtop.collect.clock import spawn
from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.ports import Clock
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.parse.gpu.values import bus_id, possible_or_none

PROGRAM = "nvidia-smi"
SOURCE = "nvml"
_MIB = 1024 * 1024
_MOST_GPUS = 64
#: NVML's errors as nvidia-smi words them: one table explains both.
_WORDS = {
    "NVMLError_LibraryNotFound": b"NVML Shared Library Not Found",
    "NVMLError_DriverNotLoaded": b"Driver Not Loaded",
    "NVMLError_LibRmVersionMismatch": b"Driver/library version mismatch",
    "NVMLError_GpuIsLost": b"GPU is lost",
    "NVMLError_NoPermission": b"Insufficient Permissions",
}
#: NVML counts the cards that a cgroup hides, too, and refuses each of them.
_HIDDEN = "NVMLError_NoPermission"


def _load() -> Any:
    return importlib.import_module("pynvml")


@dataclass(frozen=True, slots=True)
class _Wish:
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[NodeGpus]


class NvmlReader:
    """``read`` gives one look: NO_TOOL where there is no NVML here, NO_ANSWER while it hangs."""

    def __init__(self, host: str, clock: Clock, load: Callable[[], Any] = _load) -> None:
        self._host = host
        self._clock = clock
        self._load = load
        self._wishes: queue.SimpleQueue[_Wish | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pending: asyncio.Future[NodeGpus] | None = None

    async def read(self, limit_s: float) -> NodeGpus:
        """One look within ``limit_s``; while an earlier one hangs, none is begun."""
        loop = asyncio.get_running_loop()
        began = self._clock.monotonic()
        if self._pending is None:
            self._pending = loop.create_future()
            if self._thread is None:
                # A daemon: one that hangs must not hold the interpreter at the end.
                self._thread = threading.Thread(target=self._work, name="nvml", daemon=True)
                self._thread.start()
            self._wishes.put(_Wish(loop, self._pending))
        pending = self._pending
        timer = spawn(self._clock.sleep(limit_s), name="nvml: time limit")
        try:
            await asyncio.wait((pending, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        took_s = self._clock.monotonic() - began
        if not pending.done():
            answer, failure = explain_gpu_failure(PROGRAM, self._host, None, b"", elapsed_s=took_s)
            return NodeGpus(host=self._host, answer=answer, failure=failure, took_s=took_s)
        self._pending = None
        return pending.result()

    def close(self) -> None:
        """Let the thread end when it can; nobody waits for it."""
        self._wishes.put(None)
        self._thread = None

    def _work(self) -> None:
        wishes, nvml = self._wishes, None
        while (wish := wishes.get()) is not None:
            node, nvml = read_nvml(self._host, nvml, self._load)
            # The loop may be gone by now: then nobody wants the answer.
            with contextlib.suppress(RuntimeError):
                wish.loop.call_soon_threadsafe(_settle, wish.answer, node)
        if nvml is not None:
            with contextlib.suppress(Exception):
                nvml.nvmlShutdown()


def _settle(answer: asyncio.Future[NodeGpus], node: NodeGpus) -> None:
    if not answer.done():
        answer.set_result(node)


def read_nvml(host: str, nvml: Any, load: Callable[[], Any]) -> tuple[NodeGpus, Any]:
    """One look, blocking; the module is given back where it was started. Never raises."""
    try:
        if nvml is None:
            started = load()
            started.nvmlInit()
            nvml = started
        count = min(int(nvml.nvmlDeviceGetCount()), _MOST_GPUS)
    except ImportError:
        answer, failure = explain_gpu_failure(PROGRAM, host, 127, b"")
        return NodeGpus(host=host, answer=answer, failure=failure), None
    except Exception as error:
        return _failed(host, error), None
    samples: list[GpuSample] = []
    processes: list[GpuProcess] | None = []
    lost: list[str] = []
    hidden: Exception | None = None
    trouble: Exception | None = None
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as error:
            # One card that is gone costs the others nothing; one that a cgroup hides is not gone.
            if type(error).__name__ != _HIDDEN:
                lost.append(f"GPU {index}")
                trouble = error
            hidden = error
            continue
        samples.append(_sample(nvml, handle, index))
        found = _processes(nvml, handle, samples[-1].uuid)
        processes = None if found is None or processes is None else [*processes, *found]
    node = NodeGpus(
        host=host,
        samples=tuple(samples),
        processes=None if processes is None or not samples else tuple(processes),
    )
    if trouble is not None:
        text = f"Unable to determine the device handle: {trouble}".encode("utf-8", "replace")
        answer, failure = explain_gpu_failure(PROGRAM, host, 255, text)
        node = replace(node, answer=answer, failure=failure, lost=tuple(lost))
    elif not samples:
        failed = _failed(host, hidden)
        node = replace(node, answer=failed.answer, failure=failed.failure)
    return node, nvml


def _failed(host: str, error: Exception | None) -> NodeGpus:
    if error is None:
        text = b"No devices were found"
    else:
        text = _WORDS.get(type(error).__name__, f"NVML: {error}".encode("utf-8", "replace"))
    answer, failure = explain_gpu_failure(PROGRAM, host, 255, text)
    return NodeGpus(host=host, answer=answer, failure=failure)


@dataclass(slots=True)
class _Asking:
    """One GPU, asked value by value: a word instead of a number costs that value only."""

    nvml: Any
    handle: Any
    got: dict[str, Any]
    words: list[tuple[str, str]]

    def take(self, function: str, *args: Any, **parts: Callable[[Any], Any]) -> None:
        """Call ``function`` and keep what ``parts`` make of its answer."""
        call = getattr(self.nvml, function, None)
        if call is None:
            return
        try:
            value = call(self.handle, *args)
            self.got.update(
                {name: possible_or_none(name, part(value)) for name, part in parts.items()}
            )
        except Exception as error:
            self.words.extend((name, str(error)[:80]) for name in parts)


def _sample(nvml: Any, handle: Any, index: int) -> GpuSample:
    gpu = _Asking(nvml, handle, {}, [])
    gpu.take("nvmlDeviceGetUUID", uuid=_text)
    gpu.take("nvmlDeviceGetPciInfo", bus_id=lambda pci: bus_id(_text(pci.busId)))
    gpu.take("nvmlDeviceGetName", name=_text)
    gpu.take(
        "nvmlDeviceGetUtilizationRates",
        util_percent=lambda rates: float(rates.gpu),
        mem_util_percent=lambda rates: float(rates.memory),
    )
    version = getattr(nvml, "nvmlMemory_v2", None)
    gpu.take(
        "nvmlDeviceGetMemoryInfo",
        *(() if version is None else (version,)),
        mem_used_mib=lambda memory: memory.used / _MIB,
        mem_total_mib=lambda memory: memory.total / _MIB,
    )
    gpu.take("nvmlDeviceGetTemperature", 0, temp_c=float)
    gpu.take("nvmlDeviceGetPowerUsage", power_w=lambda milliwatts: milliwatts / 1000)
    gpu.take("nvmlDeviceGetEnforcedPowerLimit", power_limit_w=lambda limit: limit / 1000)
    gpu.take("nvmlDeviceGetTotalEnergyConsumption", energy_mj=float)
    gpu.take("nvmlDeviceGetClockInfo", 1, sm_clock_mhz=float)
    gpu.take("nvmlDeviceGetPerformanceState", pstate=lambda state: f"P{int(state)}")
    gpu.take("nvmlDeviceGetPersistenceMode", persistence=bool)
    reasons = "nvmlDeviceGetCurrentClocksEventReasons"
    if not hasattr(nvml, reasons):
        reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"
    gpu.take(reasons, events=int)
    gpu.take("nvmlDeviceGetTotalEccErrors", 1, 0, ecc_uncorrected=float)
    gpu.take(
        "nvmlDeviceGetRemappedRows",
        remapped_uncorrectable=lambda rows: float(rows[1]),
        remapped_pending=lambda rows: bool(rows[2]),
        remapped_failure=lambda rows: bool(rows[3]),
    )
    gpu.take("nvmlDeviceGetMigMode", mig=lambda mode: bool(mode[0]))
    with contextlib.suppress(Exception):
        gpu.got["driver"] = _text(nvml.nvmlSystemGetDriverVersion())
    return GpuSample(index=index, **gpu.got, words=tuple(gpu.words))


def _processes(nvml: Any, handle: Any, uuid: str | None) -> list[GpuProcess] | None:
    """None where the driver does not say."""
    try:
        found = list(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except Exception:
        return None
    return [
        GpuProcess(
            pid=int(one.pid),
            gpu_uuid=uuid,
            mem_mib=_used(one.usedGpuMemory),
        )
        for one in found
    ]


def _used(taken: int | None) -> float | None:
    """MiB; NVML may say "not known" by a number that no GPU has."""
    found = None if taken is None else possible_or_none("mem_used_mib", taken / _MIB)
    return None if found is None else float(found)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
