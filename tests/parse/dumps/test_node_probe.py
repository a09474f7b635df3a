"""What a node told of one job, whatever stands in it."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.gpu import Answer
from slurmtop.model.probe import Activity, Counters, Library, MemoryGroup, NodeProbe, ThreadState
from slurmtop.model.verdict import SOURCES, Fate
from slurmtop.parse.dumps.node_probe import parse_node_probe
from slurmtop.triage.ranks import rank_processes
from tests.fakes import START

REAL = Path(__file__).parents[3] / "fixtures" / "probe" / "waits.out"
GROUP = "/system.slice/slurmstepd.scope/job_77/step_0/user/task_0"
HEAD = (
    "slurmtop-probe 1",
    "slurmtop-processes 1",
    "M self 900",
    "M time 1935748800",
    "M uptime 5000.50 9000.00",
    "M hz 250",
    "M cpus 0-63,128-191",
    "M cs1 500050",
)
#: All that a healthy look has beside its processes.
WHOLE = (
    "F groups 0",
    "M cs2 500091",
    "M arch aarch64",
    "F memory 0",
    "G #slurmtop part query",
    "G #slurmtop pid 31:5",
    "G 0, GPU-00000000-1111-2222-3333-444455550000, 00000000:17:00.0, H100, 550.54, 81559, 70000,"
    " 100, 50, 60, 120.5, 700, 1980, P0, 0, Disabled",
    "G #slurmtop end 0",
    "G #slurmtop done",
    "F kernel 0",
    "I /sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE",
    "F ports 0",
    "X stack-arch aarch64",
    "X stack-tool own /opt/venv/bin/py-spy 0.4.3 -",
    "X stack-end",
)
NAMES = (
    "processes",
    "environment",
    "activity",
    "memory events",
    "gpus",
    "network ports",
    "kernel log",
)


def one(pid: int, *more: str, ppid: int = 1, uid: int = 1000, state: str = "S") -> list[str]:
    return [
        f"S {pid} 63457 {ppid} {state} python",
        f"U {pid} {uid} 0 0 2 {pid}",
        f"C {pid} 0::{GROUP}",
        *(f"{line[0]} {pid}{line[1:]}" for line in more),
        f"T {pid} 63457",
    ]


def told(*lines: str, job: str = "77", without: str = "\0", sudo: bool = False) -> NodeProbe:
    kept = [line for line in (*HEAD, *lines, *WHOLE) if not line.startswith(without)]
    data = "\n".join((*kept, "end", "")).encode()
    return parse_node_probe(data, "gpu01", START, job=job, sudo=sudo)


def fates(probe: NodeProbe) -> dict[str, Fate]:
    return {fate.source: fate.fate for fate in probe.fates}


def test_all_of_one_process() -> None:
    probe = told(
        *one(
            4711,
            "R",
            "E RANK=3",
            "B 1 63457 R 912",
            "J 1 700 90 0 4096",
            "V 1 200 0",
            "B 2 63457 S 940",
            "J 2 701 90 0 8192",
            "V 2 211 4242",
            "W futex_do_wait",
            "Y 0 0x3",
            "L /data/a\x01b -> c",
            "H 4711 S 900 python",
            "H 4712 D 3 pt a) S 1",
            "h 4711 futex_do_wait",
            "h 4712 0",
            f"o /sys/fs/cgroup {GROUP}",
            "Q torch /v/torch/lib/libtorch_cpu.so\x01torch-2.4.0+cu124.dist-info",
            "Q nccl /v/nvidia/nccl/lib/libnccl.so.2\x01nvidia_nccl_cu12-2.21.5.dist-info",
        ),
        f"O /sys/fs/cgroup{GROUP}/memory.events:oom_kill 2",
        f"O /sys/fs/cgroup{GROUP}/memory.current:1048576",
        f"O /sys/fs/cgroup{GROUP}/memory.max:max",
        "O /sys/fs/cgroup/system.slice/slurmstepd.scope/job_77/memory.max:2097152",
        "O /sys/fs/cgroup/system.slice/slurmstepd.scope/job_78/memory.max:2097152",
        "K [Mon May  5 10:00:01 2031] python[4711]: segfault at 0 ip 0",
    )
    assert probe.failure is None
    assert probe.activity == (
        Activity(
            host="gpu01",
            pid=4711,
            start_ticks=63457,
            state="S",
            wchan="futex_do_wait",
            syscall="0",
            open_file="/data/a\nb -> c",
            tracer_pid=4242,
            first=Counters(
                cpu_ticks=912,
                read_bytes=0,
                written_bytes=4096,
                read_chars=700,
                written_chars=90,
                switches=200,
            ),
            second=Counters(
                cpu_ticks=940,
                read_bytes=0,
                written_bytes=8192,
                read_chars=701,
                written_chars=90,
                switches=211,
            ),
            between_s=0.41,
            threads=(
                ThreadState(
                    tid=4711, state="S", name="python", wchan="futex_do_wait", cpu_ticks=900
                ),
                # Where it waits may not be known; that is not "nowhere".
                ThreadState(tid=4712, state="D", name="pt a) S 1", wchan=None, cpu_ticks=3),
            ),
        ),
    )
    assert probe.memory == (
        MemoryGroup(path=GROUP, pids=(4711,), oom_kills=2, used_bytes=1048576),
        MemoryGroup(path="/system.slice/slurmstepd.scope/job_77", limit_bytes=2097152),
    )
    assert probe.libraries == (
        Library(
            pid=4711, name="torch", version="2.4.0+cu124", source="/v/torch/lib/libtorch_cpu.so"
        ),
        Library(pid=4711, name="nccl", version="2.21.5", source="/v/nvidia/nccl/lib/libnccl.so.2"),
    )
    assert probe.kernel_lines == ("[Mon May  5 10:00:01 2031] python[4711]: segfault at 0 ip 0",)
    assert (probe.ticks_per_s, probe.cpus, probe.arch) == (250, 128, "aarch64")
    assert probe.gpus is not None
    assert [gpu.util_percent for gpu in probe.gpus.samples] == [100]
    assert [port.state for port in probe.nics] == ["ACTIVE"]
    assert [tool.path for tool in probe.stack_tools] == ["/opt/venv/bin/py-spy"]
    assert fates(probe) == dict.fromkeys(NAMES, Fate.ANSWERED)
    assert set(NAMES) <= set(SOURCES)


def test_a_real_answer() -> None:
    """Six ranks that each wait in a way of their own, asked by their owner."""
    probe = parse_node_probe(REAL.read_bytes(), "gpu01", START, job="4711")
    assert probe.failure is None
    assert probe.processes is not None
    assert probe.processes.complete
    ranks = {one.rank: one.process for one in rank_processes([probe.processes], "4711")}
    found = {rank: probe.activity_of(process) for rank, process in ranks.items()}
    assert {rank: (a.pid, a.state, a.wchan, a.syscall) for rank, a in found.items() if a} == {
        0: (6, "S", "anon_pipe_read", "0"),
        1: (7, "D", "kernel_clone", "435"),
        2: (8, "S", "hrtimer_nanosleep", "230"),
        3: (9, "R", "", "running"),
        4: (10, "T", "do_signal_stop", "34"),
        5: (11, "S", "hrtimer_nanosleep", "230"),
    }
    reads, stands, runs = found[0], found[4], found[3]
    assert reads is not None
    assert reads.open_file == "/data/run1/schedule-4711"
    assert stands is not None
    assert stands.first == stands.second
    assert runs is not None
    assert (runs.first.cpu_ticks, runs.second.cpu_ticks, runs.between_s) == (229, 266, 0.40)
    assert {one.user for one in ranks.values()} == {"alice"}
    assert all(group.oom_kills == 0 and group.limit_bytes is None for group in probe.memory)
    assert fates(probe) == {
        **dict.fromkeys(NAMES, Fate.ANSWERED),
        "gpus": Fate.ABSENT,
        "kernel log": Fate.REFUSED,
        "stacks": Fate.ABSENT,
    }


def test_only_processes_of_the_job() -> None:
    other = one(5, "R", "B 1 63457 R 9", "B 2 63457 R 9")
    other[2] = "C 5 0::/slurmstepd.scope/job_78/step_0"
    probe = told(*one(4711, "R"), *other)
    assert probe.processes is not None
    assert [process.pid for process in probe.processes.processes] == [4711]
    assert probe.activity == ()


def test_a_pid_that_was_given_away_between_the_readings_is_not_told() -> None:
    probe = told(*one(4711, "R", "B 1 63457 R 912", "B 2 99999 R 1"))
    assert probe.activity == ()


def test_version_one_of_cgroups_and_a_limit_that_is_none() -> None:
    base, path = "/sys/fs/cgroup/memory", "/slurm/uid_1000/job_77/step_0"
    probe = told(
        *one(4711, "R", f"o {base} {path}"),
        f"O {base}{path}/memory.oom_control:oom_kill 1",
        f"O {base}{path}/memory.usage_in_bytes:77",
        f"O {base}{path}/memory.limit_in_bytes:9223372036854771712",
    )
    assert probe.memory == (MemoryGroup(path=path, pids=(4711,), oom_kills=1, used_bytes=77),)


def test_a_process_without_a_cgroup_belongs_to_the_daemon_that_started_it() -> None:
    lines = [
        *("S 10 5 1 S slurmstepd", "U 10 0 0 0 1 10", "A 10 slurmstepd: [77.batch]", "T 10 5"),
        *("S 11 6 10 S sleep", "U 11 1002 0 0 1 11", "T 11 6"),
        # Anybody may write such a title.
        *("S 12 5 1 S slurmstepd", "U 12 1002 0 0 1 12", "A 12 slurmstepd: [77.batch]", "T 12 5"),
        *("S 13 6 12 S sleep", "U 13 1002 0 0 1 13", "T 13 6"),
    ]
    probe = told(*lines)
    assert probe.processes is not None
    assert [(one.pid, one.step) for one in probe.processes.processes] == [
        (10, "batch"),
        (11, "batch"),
    ]
    assert fates(probe)["environment"] is Fate.REFUSED
    (refused,) = [one for one in probe.fates if one.source == "environment"]
    assert refused.command == "slurmtop triage 77 --save DIR"


def test_what_did_not_come_is_told() -> None:
    lines = one(4711, "B 1 63457 S 1")
    late = (
        ("F groups", "memory events", Fate.TIMED_OUT),
        ("M cs2", "activity", Fate.TIMED_OUT),
        ("F memory", "environment", Fate.TIMED_OUT),
        ("F kernel", "kernel log", Fate.TIMED_OUT),
        ("F ports", "network ports", Fate.TIMED_OUT),
        ("I ", "network ports", Fate.ABSENT),
        ("G ", "gpus", Fate.TIMED_OUT),
        ("X stack-end", "stacks", Fate.TIMED_OUT),
    )
    for without, source, fate in late:
        probe = told(*lines, without="X stack" if source == "stacks" else without)
        assert fates(probe)[source] is fate, without
        if without == "M cs2":
            assert probe.activity[0].between_s is None
    probe = told(*lines, "M limits none", without="G ")
    assert fates(probe)["gpus"] is Fate.NOT_ASKED


def test_parts_that_failed() -> None:
    cases = (
        ("F kernel 1", "k dmesg: read kernel buffer failed: Operation not permitted", Fate.REFUSED),
        ("F kernel 124", "", Fate.TIMED_OUT),
        ("F kernel 127", "k sh: dmesg: not found", Fate.ABSENT),
        ("F kernel 1", "k dmesg: klogctl failed", Fate.FAILED),
    )
    for status, said, fate in cases:
        probe = told(status, said)
        assert fates(probe)["kernel log"] is fate
    (log,) = [one for one in probe.fates if one.source == "kernel log"]
    assert log.command == "ssh gpu01 sudo dmesg -T"
    probe = told("F kernel 1", sudo=True)
    (log,) = [one for one in probe.fates if one.source == "kernel log"]
    assert log.command is None
    for end, answer in ((124, Answer.NO_ANSWER), (127, Answer.NO_TOOL)):
        lines = ("G #slurmtop part query", "G #slurmtop pid 31:5", f"G #slurmtop end {end}")
        probe = told(*lines, without="G 0,")
        assert probe.gpus is not None
        assert probe.gpus.answer is answer
    probe = told("G #slurmtop open 4242:889123:D", "G #slurmtop done", without="G #slurmtop p")
    assert fates(probe)["gpus"] is Fate.TIMED_OUT
    assert probe.gpus is not None
    assert probe.gpus.failure is not None
    assert "4242" in probe.gpus.failure.sentence


def test_those_whose_memory_waits_are_told_from_those_of_others() -> None:
    lines = (*one(4711, "R"), *one(4712, state="D"))
    assert fates(told(*lines))["environment"] is Fate.TIMED_OUT
    assert fates(told("F memory held", *lines))["environment"] is Fate.NOT_ASKED
    # Root's own beside the user's is no refusal; some of the user's are told.
    assert fates(told(*one(4711, "R"), *one(4712, uid=0)))["environment"] is Fate.ANSWERED
    assert fates(told(*one(4711, uid=2), *one(4712, uid=2)))["environment"] is Fate.REFUSED


def test_an_answer_that_is_none() -> None:
    for data in (b"", b"Welcome\n", b"slurmtop-probe 1\n", b"slurmtop-processes 1\nend\n"):
        probe = parse_node_probe(data, "gpu01", START, job="77")
        assert probe.failure is not None
        assert probe.processes is None
        assert probe.fates == ()


def test_no_tool_forges_a_process() -> None:
    probe = told(
        "K x\x01S 1 1 1 S python",
        "K S 1 1 1 S python",
        "G S 1 1 1 S python",
        "X E 4711 RANK=3",
        *one(4711, "R"),
    )
    assert probe.processes is not None
    assert [process.pid for process in probe.processes.processes] == [4711]
    assert probe.processes.processes[0].env == ()


_KINDS = st.sampled_from([*"MSUCREATNBJVWYLHhoOQKkGIXF", "end", "slurmtop-probe 1"])
_WORD = st.one_of(
    st.integers(-5, 10**25).map(str),
    st.sampled_from(["77", "4711", "1", "2", "0x3", "-", "S", GROUP, "/sys/fs/cgroup", "cs2"]),
    st.text(max_size=12),
)
_LINE = st.tuples(_KINDS, st.lists(_WORD, max_size=7)).map(lambda t: " ".join((t[0], *t[1])))


@given(st.lists(_LINE, max_size=30))
def test_lines_of_every_kind_never_raise(lines: list[str]) -> None:
    data = "\n".join((*HEAD, *one(4711, "R"), *lines, "end")).encode("utf-8", "replace")
    probe = parse_node_probe(data, "gpu01", START, job="77")
    assert probe.host == "gpu01"


@given(st.binary(max_size=400))
def test_any_bytes_never_raise(data: bytes) -> None:
    parse_node_probe(data, "gpu01", START, job="77")
    parse_node_probe("\n".join(HEAD).encode() + b"\n" + data, "gpu01", START, job="77")
