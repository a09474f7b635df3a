"""Notable lines, and forms of messages that are cut, hidden or written without their marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.launch import WorkersOutOfMemory
from slurmtop.model.events.program import PyException
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.system import Limit, LimitHit, Xid
from slurmtop.model.events.torch import FingerprintMismatch, GlooError, GlooTrouble
from slurmtop.parse.logs.bench import BenchReader
from slurmtop.parse.logs.kernel_words import KernelReader
from slurmtop.parse.logs.launchers import LauncherReader
from slurmtop.parse.logs.limits import LimitReader
from slurmtop.parse.logs.notable import notable_of
from slurmtop.parse.logs.python import PythonReader
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.parse.logs.torch_checks import CheckReader
from slurmtop.parse.logs.torch_errors import NcclErrorReader
from tests.parse.logs.messages import read


def test_errors_and_warnings_are_kept_each_form_once_and_few_of_them() -> None:
    lines = ["step 1 fine", "WARNING: slow disk 7", "WARNING: slow disk 9", "sync timed out"]
    assert notable_of(zip(lines, range(4), strict=True)) == (3, 1)
    many = [f"ERROR {chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(100)]
    assert notable_of(zip(many, range(100), strict=True)) == (0, 1, 2, 97, 98, 99)


@given(st.lists(st.text(max_size=80), max_size=10))
def test_any_text_is_kept_or_not_without_an_error(lines: list[str]) -> None:
    notable_of((line, None) for line in lines)


def test_notable_lines_and_the_last_ones_stand_with_their_source_and_are_no_events() -> None:
    data = b"start\n\nWARNING: no cache\nERROR: disk is odd\nlast words\n"
    (source,) = (traces := read_bytes("a.log", data)).sources
    assert [at.text for at in source.notable] == ["ERROR: disk is odd", "WARNING: no cache"]
    assert [at.text for at in source.tail][-1] == "last words"
    assert traces.events == ()


def test_warnings_far_from_both_ends_of_a_long_log_are_not_kept() -> None:
    far = b"".join(b"line\n" for _ in range(300))
    data = b"WARNING: first\n" + far + b"WARNING: middle\n" + far + b"WARNING: last\n"
    (source,) = read_bytes("a.log", data).sources
    assert [at.text for at in source.notable] == ["WARNING: first", "WARNING: last"]


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (
            "(raylet) node_manager.cc:9: 2 Workers (tasks / actors) killed due to memory pressure "
            "(OOM), 0 Workers crashed due to other reasons at node (ID: ab12, IP: 10.9.8.7) over",
            "10.9.8.7",
        ),
        (
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on "
            "memory.",
            None,
        ),
        (
            "Memory on the node (IP: 10.9.8.7, ID: ab) where the task was running was 60GB / 63GB "
            "(0.95), which exceeds the memory usage threshold of 0.95.",
            "10.9.8.7",
        ),
        ("node_manager.cc:2: System memory low at node with IP 10.9.8.7. Used", "10.9.8.7"),
    ],
)
def test_rays_kill_for_memory_names_the_node(line: str, address: str | None) -> None:
    events = [one for one in read(LauncherReader(), line) if isinstance(one, WorkersOutOfMemory)]
    assert [one.address for one in events] == [address]


def test_rays_count_of_none_is_no_kill() -> None:
    line = "0 Workers (tasks / actors) killed due to memory pressure (OOM), 3 Workers crashed"
    assert not any(isinstance(e, WorkersOutOfMemory) for e in read(LauncherReader(), line))


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("DataLoader worker (pid 71) is killed by signal: Killed.", Limit.MEMORY),
        ("DataLoader worker (pid 71) is killed by signal: Bus error.", Limit.SHM),
        ("DataLoader worker (pid 71) is killed by signal: Terminated.", None),
    ],
)
def test_the_signal_of_a_loader_tells_which_limit(line: str, limit: Limit | None) -> None:
    events = [one.limit for one in read(LimitReader(), line) if isinstance(one, LimitHit)]
    assert events == ([] if limit is None else [limit])


@pytest.mark.parametrize("bus", ["PCI:...", "PCI:xxxx:xx:00", "0000:XX:00", "..."])
def test_an_xid_whose_bus_is_hidden_still_tells_its_code(bus: str) -> None:
    (event,) = read(KernelReader(), f"kernel: NVRM: Xid ({bus}): 149, NETIR_LINK_EVT Fatal")
    assert isinstance(event, Xid)
    assert (event.code, event.bus_id) == (149, None)


def test_the_sums_of_a_test_may_stand_without_their_mark_and_show_the_wrong_ones() -> None:
    text = " Out of bounds values : 3 FAILED\n Avg bus bandwidth    : 12.5"
    (event,) = read(BenchReader(), text)
    assert isinstance(event, BenchRow)
    assert (event.out_of_bounds, event.bus_gb_s, event.at.line) == (3, 12.5, 1)


@pytest.mark.parametrize(
    "line",
    [
        "[E ProcessGroupGloo.cpp:9] Gloo connectFullMesh failed with [pair.cc:144] no error",
        "RuntimeError: Gloo connectFullMesh failed with Connection refused",
    ],
)
def test_a_mesh_that_gloo_could_not_make_is_told(line: str) -> None:
    (event,) = read(NcclErrorReader(), line)
    assert isinstance(event, GlooError)
    assert event.kind is GlooTrouble.MESH


def test_where_two_calls_differ_stands_at_the_end_of_a_long_line() -> None:
    side = "CollectiveFingerPrint(SequenceNumber=3, OpType={}, TensorShape=[4], " + "x" * 300 + ")"
    line = (
        "Detected mismatch between collectives on ranks. Rank 1 is running collective: "
        f"{side.format('ALLREDUCE')}, but Rank 0 is running collective: {side.format('BROADCAST')}."
        "Collectives differ in the following aspects: 	 Op type: ALLREDUCEvs BROADCAST"
    )
    (event,) = [one for one in read(CheckReader(), line) if isinstance(one, FingerprintMismatch)]
    assert event.aspects is not None
    (event,) = [
        one
        for one in read_bytes("a.log", line.encode()).events
        if isinstance(one, FingerprintMismatch)
    ]
    assert event.aspects is not None
    assert "Op type: ALLREDUCEvs BROADCAST" in event.aspects.text


SPAWNED = """\
-- Process 2 terminated with the following error:
Traceback (most recent call last):
  File "/env/torch/multiprocessing/spawn.py", line 90, in _wrap
    fn(i, *args)
  File "/code/train.py", line 50, in step
    loss = model(batch)"""


def test_spawn_tells_which_process_failed_though_its_words_are_cut() -> None:
    (event,) = [one for one in read(PythonReader(), SPAWNED) if isinstance(one, PyException)]
    assert (event.cut, event.process, event.at.line) == (True, 2, 1)
    whole = SPAWNED + "\nValueError: bad shape"
    (event,) = [one for one in read(PythonReader(), whole) if isinstance(one, PyException)]
    assert (event.cut, event.process, event.name) == (False, 2, "ValueError")
