"""Single lines of a node's kernel log: whom they name, and when."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.probe import KernelLine, KernelSays
from slurmtop.parse.dumps.kernel_lines import own_pids, parse_kernel_lines

NOW = datetime(2031, 5, 5, 10, 0, 30, tzinfo=UTC)
OOM = (
    "[Mon May  5 10:00:00 2031] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=task_0,"
    "mems_allowed=0,oom_memcg=/system.slice/slurmstepd.scope/job_77/step_0,task_memcg=/system.slice"
    "/slurmstepd.scope/job_77/step_0/user/task_1,task=python3,pid=4711,uid=1000",
    "[Mon May  5 10:00:01 2031] Memory cgroup out of memory: Killed process 4711 (python3) "
    "total-vm:9kB, anon-rss:8kB, file-rss:1kB, shmem-rss:0kB, UID:1000 pgtables:2kB",
)


def read(*lines: str, **how: object) -> tuple[KernelLine, ...]:
    values: dict[str, object] = {"at": NOW, "node_at": NOW, "uptime_s": 1000.0, **how}
    return parse_kernel_lines(lines, **values)  # type: ignore[arg-type]


def only(line: str, **how: object) -> KernelLine:
    (one,) = read(line, **how)
    return one


@pytest.mark.parametrize(
    ("line", "says", "pid", "name"),
    [
        (
            "[Mon May  5 10:00:01 2031] python3[4711]: segfault at 0 ip 00007f sp 00007f error 4",
            KernelSays.CRASH, 4711, "python3",
        ),
        (
            "[  970.25] traps: pt_autograd_0[4712] trap invalid opcode ip:55 sp:7f error:0 in x",
            KernelSays.CRASH, 4712, "pt_autograd_0",
        ),
        (
            "2031-05-05T10:00:01+0000 gpu05 kernel: traps: python[9] general protection fault ip:5",
            KernelSays.CRASH, 9, "python",
        ),
        (
            "[Mon May  5 10:00:01 2031] NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python",
            KernelSays.XID, 4711, "python",
        ),
        (
            "[Mon May  5 10:00:01 2031] INFO: task python3:4711 blocked for more than 120 seconds.",
            KernelSays.BLOCKED, 4711, "python3",
        ),
        (
            "[Mon May  5 10:00:01 2031] Out of memory: Killed process 71 (py (x) total-vm:1kB",
            KernelSays.MEMORY, 71, "py (x",
        ),
    ],
)  # fmt: skip
def test_whom_a_line_names(line: str, says: KernelSays, pid: int, name: str) -> None:
    one = only(line)
    assert (one.says, one.pid, one.name) == (says, pid, name)
    assert one.text == line


def test_the_cgroup_is_told_with_the_line_of_the_kill() -> None:
    (one,) = read(*OOM)
    assert one.says is KernelSays.MEMORY
    assert one.cgroup.endswith("/job_77/step_0/user/task_1")
    assert (one.pid, one.name, one.text) == (4711, "python3", OOM[1])


def test_two_kills_of_one_pid_at_different_times_are_two() -> None:
    later = OOM[1].replace("10:00:01", "10:00:20")
    assert len(read(OOM[1], later)) == 2


@pytest.mark.parametrize(
    ("line", "subject", "mended"),
    [
        ("[9.1] nfs: server nfs01 not responding, still trying", "nfs01", False),
        ("[9.1] nfs: server nfs01 OK", "nfs01", True),
        ("[9.1] nfs: server fs-2.site not responding, timed out", "fs-2.site", False),
        ("[9.1] mlx5_core 0000:5e:00.0 mlx5_0: Port: 1 Link DOWN", "mlx5_0", False),
        ("[9.1] mlx5_core 0000:0c:00.0 ib0: Link up", "ib0", True),
        (
            "[9.1] Lustre: scratch-OST0003-osc-ff: Connection to scratch-OST0003 (at 10.0.0.1@tcp)"
            " was lost; in progress operations using this service will wait",
            "scratch-OST0003",
            False,
        ),
    ],
)
def test_servers_and_links(line: str, subject: str, mended: bool) -> None:
    one = only(line)
    assert one.subject is not None
    assert (one.subject, one.mended) == (subject, mended)
    assert one.pid is None


@pytest.mark.parametrize(
    ("line", "ago"),
    [
        ("[Mon May  5 10:00:00 2031] python[4711]: segfault at 0 ip 0", 30.0),
        ("[  970.25] python[4711]: segfault at 0 ip 0", 29.75),
        ("2031-05-05T12:00:10+0200 gpu05 kernel: python[4711]: segfault at 0 ip 0", 20.0),
        ("2031-05-05T10:00:10+00:00 gpu05 kernel: python[4711]: segfault at 0 ip 0", 20.0),
        ("kernel: python[4711]: segfault at 0 ip 0", None),
        ("[Mon Foo  5 10:00:00 2031] python[4711]: segfault at 0 ip 0", None),
        ("[Mon May 55 10:00:00 2031] python[4711]: segfault at 0 ip 0", None),
    ],
)
def test_the_time_of_a_line_is_told_by_our_clock(line: str, ago: float | None) -> None:
    at = only(line).at
    assert at == (None if ago is None else NOW - timedelta(seconds=ago))


def test_the_clock_of_a_node_that_is_wrong_is_taken_off() -> None:
    fast = NOW + timedelta(hours=1)
    line = "[Mon May  5 11:00:00 2031] python[4711]: segfault at 0 ip 0"
    assert only(line, node_at=fast).at == NOW - timedelta(seconds=30)
    assert only(line, node_at=None).at is None
    assert only("[970.0] python[4711]: segfault at 0 ip 0", uptime_s=None).at is None


def test_only_in_the_first_namespace_of_pids_the_kernel_names_the_same_ones() -> None:
    assert own_pids("pid:[4026531836]") is True
    assert own_pids("pid:[4026532999]") is False
    assert own_pids("") is None


_WORDS = st.sampled_from(
    [*OOM, "NVRM: Xid (PCI:0000:3b:00): 79", "[99999999999999.1]", "segfault at", "python[1]:",
     "9999-12-31T23:59:59-2359", "[Mon May  5 10:00:00 9999]", "nfs: server ", " OK", "Link down"]
)  # fmt: skip


@given(st.lists(st.one_of(st.text(), _WORDS, st.tuples(_WORDS, _WORDS).map("".join))))
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    for one in parse_kernel_lines(lines, at=NOW, node_at=NOW, uptime_s=1e9):
        assert one.text in lines
