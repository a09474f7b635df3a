"""Lines that made a careless pattern quadratic or worse: each of them ends at once."""

from collections.abc import Callable

import pytest

from slurmtop.parse.gpu.amd import parse_amd
from slurmtop.parse.gpu.compute_apps import parse_compute_apps, parse_pmon
from slurmtop.parse.gpu.dcgm import parse_discovery, parse_dmon
from slurmtop.parse.gpu.exporter import read_exporter
from slurmtop.parse.gpu.nvidia_smi import read_query
from slurmtop.parse.gpu.nvidia_smi_list import parse_list
from slurmtop.parse.gpu.nvlink import parse_nvlink
from slurmtop.parse.gpu.topo import parse_topo
from slurmtop.parse.logs.kernel import parse_kernel

MANY = 100_000
FIELDS = ("index", "uuid", "power.draw")


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (lambda data: read_query("gpu01", FIELDS, 0, data), b"0, GPU-1, x" + b" " * MANY + b"x"),
        (lambda data: read_query("gpu01", FIELDS, 6, data), b"unable to determine" * MANY),
        (lambda data: parse_list("gpu01", 0, data), b" MIG a" + b" " * MANY + b"x"),
        (parse_compute_apps, b"," * MANY),
        (parse_pmon, b"# gpu " + b" a" * MANY + b"\n" + b" 1" * MANY),
        (parse_dmon, b"#" + b" a" * MANY + b"\nGPU 0 " + b" 1" * MANY),
        (parse_discovery, b"| 0 |" + b" " * MANY + b"x"),
        (
            lambda data: read_exporter("gpu01", data),
            b"DCGM_FI_DEV_GPU_UTIL{} x" + b" " * MANY + b"e",
        ),
        (lambda data: read_exporter("gpu01", data), b"x{" + b'a="1",' * MANY),
        (parse_amd, b"\n " * MANY),
        (parse_topo, b"\t" * MANY + b"\x1b[" * MANY),
        (parse_nvlink, b"GPU 0: " + b"(UUID: " * MANY),
        (parse_kernel, b"name=" * MANY + b"NVRM: Xid (PCI:0000:3b:00): 3, " + b"name=" * MANY),
    ],
)
def test_hostile_lines_end_at_once(parse: Callable[[bytes], object], data: bytes) -> None:
    assert parse(data) is not None
