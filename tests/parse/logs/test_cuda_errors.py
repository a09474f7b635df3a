"""CUDA errors of many libraries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.torch import CudaError, CudaTrouble
from slurmtop.parse.logs.cuda_errors import CudaReader
from tests.parse.logs.messages import read

T = CudaTrouble


def only(text: str) -> CudaError:
    (event,) = read(CudaReader(), text)
    assert isinstance(event, CudaError)
    return event


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4 GiB.", T.OUT_OF_MEMORY),
        ("torch.cuda.OutOfMemoryError: HIP out of memory. Tried", T.OUT_OF_MEMORY),
        ("RuntimeError: CUDA error: out of memory", T.OUT_OF_MEMORY),
        ("failed to allocate 1G from device: CUDA_ERROR_OUT_OF_MEMORY: out of", T.OUT_OF_MEMORY),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying", T.OUT_OF_MEMORY),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate", T.OUT_OF_MEMORY),
        ("[PG 0 Rank 1] CUDA error: uncorrectable ECC error encountered", T.ECC),
        ("CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error", T.ECC),
        ("CUDA error: uncorrectable NVLink error detected during the execution", T.NVLINK),
        ("Unable to determine the device handle: GPU is lost. Reboot", T.HARDWARE),
        ("CUDA error: hardware stack error", T.HARDWARE),
        (
            "CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
            T.HARDWARE,
        ),
        ("RuntimeError: CUDA error: device-side assert triggered", T.ASSERT),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", T.ILLEGAL),
        ("CUDA error: misaligned address", T.ILLEGAL),
        ("Memory access fault by GPU node-4 on address 0x7f. Reason: Unknown.", T.ILLEGAL),
        ("RuntimeError: CUDA error: unspecified launch failure", T.LAUNCH),
        ("CUDA driver error: no CUDA-capable device is detected", T.DRIVER),
        ("RuntimeError: No CUDA GPUs are available", T.DRIVER),
        ("RuntimeError: CUDA error: invalid device ordinal", T.DRIVER),
        ("CUDA driver version is insufficient for CUDA runtime version", None),
        ("CUDA error: CUDA driver version is insufficient for CUDA runtime version", T.DRIVER),
        ("Failed to initialize NVML: Driver/library version mismatch", T.DRIVER),
        ("n: Test CUDA failure common.cu:732 'no CUDA-capable device is detected'", T.DRIVER),
        ("Cuda failure t.cu:8 'CUDA driver version is insufficient for CUDA runtime'", T.DRIVER),
        ("Cuda failure reduce.cu:41 'out of memory'", T.OUT_OF_MEMORY),
        ('CUDA error at copy.cu:24 code=35(cudaErrorInsufficientDriver) "cuda()"', T.DRIVER),
        ("Check failed: error == cudaSuccess (2 vs. 0)  out of memory", T.OUT_OF_MEMORY),
        (
            "Check failed: error == cudaSuccess (35 vs. 0)  CUDA driver version is insufficient",
            T.DRIVER,
        ),
        ("RuntimeError: Unable to initialize backend 'cuda': No visible GPU devices.", T.DRIVER),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", T.OTHER),
        ("RuntimeError: CUDA error: unknown error", T.OTHER),
    ],
)
def test_the_kind_is_told_from_the_words_of_the_error(text: str, kind: CudaTrouble | None) -> None:
    assert [one.kind for one in read(CudaReader(), text) if isinstance(one, CudaError)] == (
        [] if kind is None else [kind]
    )


def test_advice_behind_an_error_is_no_other_error() -> None:
    text = (
        "RuntimeError: CUDA error: an illegal memory access was encountered\n"
        "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/x for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    )
    assert only(text).kind is T.ILLEGAL


def test_a_check_that_every_thread_failed_is_told_once() -> None:
    lines = [
        f"/x/Indexing.cu:1292: f: block: [{thread},0,0], thread: [{thread},0,0] Assertion "
        "`srcIndex < srcSelectDimSize` failed."
        for thread in range(64)
    ]
    assert [one.kind for one in read(CudaReader(), lines) if isinstance(one, CudaError)] == [
        T.ASSERT
    ]


@pytest.mark.parametrize(
    ("text", "other", "gpu"),
    [
        (
            "CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3 has a total capacity of 63.42 "
            "GiB "
            "of which 1.70 GiB is free. Process 71 has 474.00 MiB memory in use.",
            False,
            3,
        ),
        (
            "CUDA out of memory. GPU 0 has a total capacty of 79.15 GiB of which 1.70 GiB is free. "
            "Process 71 has 60.00 GiB memory in use.",
            True,
            0,
        ),
        (
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 15.78 GiB total capacity; "
            "4.60 GiB "
            "already allocated; 20.75 MiB free; 4.7 GiB reserved in total by PyTorch)",
            True,
            1,
        ),
        (
            "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 15.78 GiB total capacity; 14 "
            "GiB "
            "already allocated; 20.75 MiB free; 14.9 GiB reserved in total by PyTorch)",
            False,
            1,
        ),
    ],
)
def test_memory_that_others_hold_is_told(text: str, other: bool, gpu: int) -> None:
    assert (only(text).other_process, only(text).gpu) == (other, gpu)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 00:00:00 | WARNING | trainer | OOM: CUDA out of memory. Tried to allocate",
        "CUDA out of memory. Retrying with a smaller batch",
        "x.py:3: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount()",
    ],
)
def test_an_error_that_the_program_went_on_after_is_caught(text: str) -> None:
    assert only(text).caught


@pytest.mark.parametrize(
    "text",
    [
        "n:1:2 [0] alloc.h:178 NCCL WARN Cuda failure 'out of memory'",
        "kernel: NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.",
        "Failed to bind NVLink SHARP (NVLS) Multicast memory : CUDA error 401 'x'",
        "CUDA runtime version 12060, driver version 12060",
        "comm 0x5f rank 0 nranks 8 cudaDev 0",
    ],
)
def test_what_others_read_is_left_to_them(text: str) -> None:
    assert read(CudaReader(), text) == []


@given(st.text(max_size=200), st.sampled_from([word.decode() for word in CudaReader.words]))
def test_any_text_is_read_without_an_error(text: str, word: str) -> None:
    read(CudaReader(), f"{text[:90]}{word}: {text[90:]}")
