"""Limits of a host, as programs complain about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.system import Limit, LimitHit
from slurmtop.parse.logs.limits import LimitReader
from tests.parse.logs.messages import read


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        (
            "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
            Limit.SHM,
        ),
        (
            "Error: failed to extend /dev/shm/nccl-a to 3 bytes, error: No space left on device",
            Limit.SHM,
        ),
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by "
            "insufficient shared memory (shm).",
            Limit.SHM,
        ),
        (
            "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is "
            "possible that dataloader's workers are out of shared memory.",
            Limit.SHM,
        ),
        (
            "RuntimeError: unable to mmap 1024 bytes from file </torch_12_34>: Cannot allocate "
            "memory (12)",
            Limit.SHM,
        ),
        ("RuntimeError: unable to write to file </torch_1_2>", Limit.SHM),
        (
            "RuntimeError: unable to open shared memory object </torch_1> in read-write mode: Too "
            "many open files (24)",
            Limit.FILES,
        ),
        ("OSError: [Errno 24] Too many open files: '/data/a.bin'", Limit.FILES),
        ("RuntimeError: received 0 items of ancdata", Limit.FILES),
        ("OSError: [Errno 28] No space left on device: '/scratch/a.pt'", Limit.DISK),
        ("OSError: [Errno 122] Disk quota exceeded", Limit.DISK),
        ("MemoryError", Limit.MEMORY),
        (
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array",
            Limit.MEMORY,
        ),
        ("  what():  std::bad_alloc", Limit.MEMORY),
        ("RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. ", Limit.MEMORY),
        ("OSError: [Errno 12] Cannot allocate memory", Limit.MEMORY),
        (
            "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 9 bytes.",
            Limit.MEMORY,
        ),
        ("RuntimeError: can't start new thread", Limit.THREADS),
        (
            "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Resource "
            "temporarily unavailable",
            Limit.THREADS,
        ),
    ],
)
def test_a_limit_that_was_hit(line: str, limit: Limit) -> None:
    (event,) = read(LimitReader(), line)
    assert isinstance(event, LimitHit)
    assert event.limit is limit


def test_the_path_is_kept_where_one_is_named() -> None:
    (event,) = read(LimitReader(), "OSError: [Errno 28] No space left on device: '/scratch/a.pt'")
    assert isinstance(event, LimitHit)
    assert event.path == "/scratch/a.pt"


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB",
        "NCCL WARN Call to ibv_reg_mr failed: Cannot allocate memory",
        "SHMEM allocation limit is set to the default of 64MB. It may be insufficient.",
        "The object store is using /tmp because /dev/shm has only 67108864 bytes available",
        "If you see 'Too many open files', raise ulimit -n",
        "using shared memory for the dataset cache",
        "memory: 3332  errno: 0",
        "DataLoader will create 8 worker processes",
    ],
)
def test_other_memory_and_advice_are_no_limits(line: str) -> None:
    assert read(LimitReader(), line) == []


def test_a_limit_that_repeats_is_told_a_bounded_number_of_times() -> None:
    assert len(read(LimitReader(), ["MemoryError"] * 1000)) == 64


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read(LimitReader(), ["shared memory " + text, text + "No space left on device"])
