"""NVML in this process, with a library that a test wrote: missing values, a driver that hangs."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

from slurmtop.collect.clock import SystemClock, cancel_and_wait, spawn
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.gpu_watch import GpuWatch
from slurmtop.collect.nodes.nvml import NvmlReader, read_nvml
from slurmtop.model.gpu import Answer
from slurmtop.model.look import HostLook
from tests.collect.nodes.gpu_fakes import FakeNodes
from tests.fakes import FakeClock, settle


class NVMLError(Exception):
    pass


class NVMLError_GpuIsLost(NVMLError):
    pass


class NVMLError_NoPermission(NVMLError):
    pass


class NVMLError_DriverNotLoaded(NVMLError):
    pass


class Library:
    """A few of NVML's calls; ``hang`` holds the utilisation until it is set."""

    def __init__(self, gpus: int = 2, lost: int | None = None) -> None:
        self.gpus = gpus
        self.lost = lost
        self.hang: threading.Event | None = None
        self.inits = 0
        self.reads = 0
        self.asked = threading.Event()
        self.ended = threading.Event()

    def nvmlInit(self) -> None:
        self.inits += 1

    def nvmlShutdown(self) -> None:
        self.ended.set()

    def nvmlDeviceGetCount(self) -> int:
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == self.lost:
            raise NVMLError_GpuIsLost("GPU is lost")
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        self.reads += 1
        self.asked.set()
        if self.hang is not None:
            self.hang.wait(20)
        return SimpleNamespace(gpu=97, memory=12)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=1024 * 1024 * 100, total=1024 * 1024 * 81_559)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 627_400

    def nvmlDeviceGetTotalEccErrors(self, handle: int, *_kinds: int) -> int:
        raise NVMLError("Not Supported")

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=30_001 + handle, usedGpuMemory=None)]


def test_a_number_that_no_gpu_can_have_is_missing() -> None:
    class Odd(Library):
        def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
            return SimpleNamespace(gpu=4_294_967_295, memory=12)

        def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
            return SimpleNamespace(used=2**64 - 1, total=1024 * 1024 * 81_559)

        def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
            return [SimpleNamespace(pid=7, usedGpuMemory=2**64 - 1)]

    node, _ = read_nvml("gpu01", None, lambda: Odd(1))
    (gpu,) = node.samples
    assert (gpu.util_percent, gpu.mem_used_mib, gpu.mem_util_percent) == (None, None, 12)
    assert gpu.word("util_percent") is None
    assert node.processes is not None
    assert node.processes[0].mem_mib is None


def test_every_value_is_optional() -> None:
    library = Library()
    node, kept = read_nvml("gpu01", None, lambda: library)
    assert kept is library
    assert node.answer is Answer.OK
    first = node.samples[0]
    assert (first.uuid, first.util_percent, first.power_w) == ("GPU-0", 97.0, 627.4)
    assert (first.mem_used_mib, first.mem_total_mib) == (100, 81_559)
    # Not there in this library, and refused by it: both are no number.
    assert (first.temp_c, first.ecc_uncorrected) == (None, None)
    assert first.word("ecc_uncorrected") == "Not Supported"
    assert node.processes is not None
    assert [(one.pid, one.gpu_uuid) for one in node.processes] == [
        (30_001, "GPU-0"),
        (30_002, "GPU-1"),
    ]


def test_a_lost_card_costs_the_others_nothing() -> None:
    node, _ = read_nvml("gpu01", None, lambda: Library(3, lost=1))
    assert [one.index for one in node.samples] == [0, 2]
    assert node.answer is Answer.GPU_LOST
    assert node.lost == ("GPU 1",)
    assert [one.gpu_uuid for one in node.processes or ()] == ["GPU-0", "GPU-2"]


def test_a_card_that_fails_in_any_way_is_lost_and_one_that_a_cgroup_hides_is_not() -> None:
    class Fails(Library):
        def __init__(self, error: Exception, *failing: int) -> None:
            super().__init__(3)
            self.error, self.failing = error, failing

        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            if index in self.failing:
                raise self.error
            return index

    broken, _ = read_nvml("gpu01", None, lambda: Fails(NVMLError("Unknown Error"), 2))
    assert (broken.answer, broken.lost) == (Answer.GPU_LOST, ("GPU 2",))
    hidden, _ = read_nvml("gpu01", None, lambda: Fails(NVMLError_NoPermission("no"), 0, 1))
    assert (hidden.answer, hidden.lost, hidden.failure) == (Answer.OK, (), None)
    assert [one.index for one in hidden.samples] == [2]
    closed, _ = read_nvml("gpu01", None, lambda: Fails(NVMLError_NoPermission("no"), 0, 1, 2))
    assert closed.failure is not None
    assert closed.lost == ()


async def test_the_good_cards_beside_a_lost_one_are_read_on_and_their_node_answers(
    monkeypatch: Any,
) -> None:
    library = Library(3, lost=1)
    monkeypatch.setattr("slurmtop.collect.nodes.nvml.importlib.import_module", lambda _: library)
    clock = FakeClock()
    looks: list[HostLook] = []
    watch = GpuWatch(
        FakeNodes(clock), clock, ("gpu01",), looks.append, here="gpu01", dcgm=DcgmMode.OFF
    )
    running = spawn(watch.run(), name="watch")
    for _ in range(5):
        await asyncio.to_thread(library.asked.wait, 20)
        await settle()
        await clock.advance(2.0)
        await settle()
    assert len({look.gpus_at for look in looks}) >= 3, "every 2 s"
    assert looks[-1].failure is None
    assert looks[-1].gpus is not None
    assert looks[-1].gpus.lost == ("GPU 1",)
    assert looks[-1].gpus.failure is not None
    await cancel_and_wait(running)


def test_no_library_no_driver_no_gpu() -> None:
    def missing() -> Any:
        raise ImportError("no pynvml")

    class NoDriver(Library):
        def nvmlInit(self) -> None:
            raise NVMLError_DriverNotLoaded("Driver Not Loaded")

    assert read_nvml("gpu01", None, missing)[0].answer is Answer.NO_TOOL
    assert read_nvml("gpu01", None, NoDriver)[0].answer is Answer.NOT_LOADED
    assert read_nvml("gpu01", None, lambda: Library(0))[0].answer is Answer.NO_DEVICES


async def test_a_driver_that_hangs_holds_one_thread_and_nobody_else() -> None:
    clock, library = FakeClock(), Library()
    library.hang = threading.Event()
    reader = NvmlReader("gpu01", clock, lambda: library)
    for _ in range(3):
        reading = spawn(reader.read(30), name="read")
        assert await asyncio.to_thread(library.asked.wait, 20)
        await settle()
        await clock.advance(31)
        node = await reading
        assert node.answer is Answer.NO_ANSWER
    # Three looks, one question to the driver, one thread.
    assert library.reads == 1
    assert [one.name for one in threading.enumerate()].count("nvml") == 1
    library.hang.set()
    reader_back = await NvmlReader.read(reader, 30)
    assert reader_back.answer is Answer.OK
    reader.close()
    assert await asyncio.to_thread(library.ended.wait, 20)


async def test_the_watch_asks_in_this_process_on_its_own_node(monkeypatch: Any) -> None:
    library = Library()
    monkeypatch.setattr("slurmtop.collect.nodes.nvml.importlib.import_module", lambda _: library)
    clock = SystemClock()
    nodes, looks = FakeNodes(FakeClock()), list[HostLook]()
    watch = GpuWatch(nodes, clock, ("gpu01",), looks.append, dcgm=DcgmMode.OFF, here="gpu01")
    task = spawn(watch.run(), name="watch")
    limit = time.monotonic() + 20
    while not looks:
        assert time.monotonic() < limit
        await asyncio.sleep(0.001)
    await cancel_and_wait(task)
    assert looks[0].sources == ("nvml",)
    assert looks[0].gpus is not None
    assert looks[0].gpus.samples[0].util_percent == 97
    assert nodes.started("gpu01") == 0
    assert await asyncio.to_thread(library.ended.wait, 20)
