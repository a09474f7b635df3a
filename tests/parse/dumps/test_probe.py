"""The processes of a node as the script prints them: hostile values, pids used again, our own."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.parse.dumps.probe import parse_processes

AT = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)
HEAD = (
    "slurmtop-processes 1",
    "M self 900",
    "M time 1935748800",
    "M uptime 5000.50 9000.00",
    "M hz 100",
    "M boot 81fea3a5-9a15-4ace-a62d-67f46155332c",
)


def told(*lines: str, head: tuple[str, ...] = HEAD, end: str = "end\n") -> NodeProcesses:
    return parse_processes("\n".join((*head, *lines, end)).encode(), "gpu01", AT)


def one(pid: int, ppid: int, name: str = "python", *more: str, ticks: int = 400_000) -> list[str]:
    lines = [f"S {pid} {ticks} {ppid} S {name}"]
    lines += [f"{line[0]} {pid}{line[1:]}" for line in more]
    return [*lines, f"T {pid} {ticks}"]


def by_pid(look: NodeProcesses) -> dict[int, NodeProcess]:
    return {process.pid: process for process in look.processes}


def test_all_of_one_process() -> None:
    look = told(
        *one(
            4711,
            4700,
            "pt main) S 1 (x",
            "U 1000 0000000180004a03 0000000001001000 12 4711,4,1",
            "C 0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0",
            "R",
            "E RANK=3",
            "E RANK=9",
            "E NCCL_DEBUG=a=b\x01c",
            "A /usr/bin/python",
            "A a\x01b c",
        ),
        "N 1000 anna",
    )
    assert look.failure is None
    assert look.complete
    assert look.boot_id == "81fea3a5-9a15-4ace-a62d-67f46155332c"
    assert look.node_at == AT
    assert look.processes == (
        NodeProcess(
            host="gpu01",
            pid=4711,
            start_ticks=400_000,
            ppid=4700,
            uid=1000,
            user="anna",
            state="S",
            name="pt main) S 1 (x",
            argv=("/usr/bin/python", "a\nb c"),
            started_at=AT - timedelta(seconds=1_000.5),
            job="77",
            step="0",
            env=(("NCCL_DEBUG", "a=b\nc"), ("RANK", "3")),
            caught=0x180004A03,
            ignored=0x1001000,
            threads=12,
            inner_pids=(4, 1),
        ),
    )
    process = look.processes[0]
    assert process.catches(10) is True
    assert process.catches(3) is False
    assert process.ignores(13) is True


def test_an_environment_without_a_name_is_not_one_that_cannot_be_read() -> None:
    found = by_pid(told(*one(1, 0, "a", "R"), *one(2, 0, "b")))
    assert found[1].env == ()
    assert found[2].env is None


def test_a_pid_that_was_given_away_meanwhile_is_not_told() -> None:
    look = told("S 7 100 1 S a", "E 7 RANK=1", "T 7 200", "S 8 100 1 S b", *one(9, 1))
    assert list(by_pid(look)) == [9]


def test_the_job_by_cgroup_by_environment_and_by_parent() -> None:
    v1 = "C 4:devices:/slurm_gpu01/uid_1000/job_77/step_batch/task_0"
    found = by_pid(
        told(
            *one(1, 0, "a", v1, "R", "E SLURM_JOB_ID=99"),
            *one(2, 0, "b", "R", "E SLURM_JOB_ID=78", "E SLURM_STEP_ID=3"),
            *one(3, 0, "c", "R", "E SLURM_JOB_ID=78"),
            *one(4, 0, "d", "R", "E SLURM_JOB_ID=78", "E SLURM_STEP_ID=4294967292"),
            *one(5, 6),
            *one(6, 2),
            *one(7, 0, "g", "C 0::/x/job_79/step_extern/user/task_special"),
            *one(8, 8),
            *one(9, 0, "i", "R", "E SLURM_JOB_ID=../7"),
        )
    )
    places = {pid: (process.job, process.step) for pid, process in found.items()}
    assert places == {
        1: ("77", "batch"),
        2: ("78", "3"),
        3: ("78", "batch"),
        4: ("78", "extern"),
        5: ("78", "3"),
        6: ("78", "3"),
        7: ("79", "extern"),
        8: (None, None),
        9: (None, None),
    }


def test_slurmtop_itself_is_left_out_and_nobody_else() -> None:
    script = ("A /bin/sh", "A -c", "A job=$1", "A slurmtop-processes")
    other = ("A /bin/sh", "A -c", "A while :", "A slurmtop-gpus")
    limit = ("A timeout", "A -k", "A 2", "A 40", *script)
    found = by_pid(
        told(
            *one(100, 1, "sshd"),
            *one(101, 100, "sh", "A /bin/sh"),
            *one(102, 101, "timeout", *limit),
            *one(900, 102, "sh", *script),
            *one(901, 900, "awk"),
            *one(902, 101, "sleep"),
            *one(110, 100, "bash", "A bash", "A -l"),
            *one(200, 1, "sh", *other),
            *one(201, 200, "nvidia-smi"),
            *one(300, 1, "bash", "A bash", "A train-slurmtop-like.sh"),
            *one(301, 300, "python"),
        )
    )
    assert sorted(found) == [110, 300, 301]


def test_the_batch_shell_above_a_slurmtop_in_its_job_stays() -> None:
    batch = "C 0::/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0"
    found = by_pid(
        told(
            *one(50, 1, "bash", batch, "A /bin/bash", "A /var/spool/slurmd/job77/slurm_script"),
            *one(900, 50, "sh", batch, "A /bin/sh", "A -c", "A x", "A slurmtop-processes"),
        )
    )
    assert sorted(found) == [50]


def test_inside_of_which_job_we_were() -> None:
    extern = "C 0::/system.slice/slurmstepd.scope/job_77/step_extern/user/task_special"
    assert told(*one(900, 1, "sh", extern)).inside == "77"
    assert told(*one(900, 1, "sh", "R", "E SLURM_JOB_ID=77")).inside is None


def test_secrets_that_came_through_are_masked_here() -> None:
    look = told(*one(1, 0, "a", "R", "E NCCL_X_PASSWORD=hunter2secret", "A --api_key=abcdef123456"))
    assert "hunter2secret" not in repr(look)
    assert "abcdef123456" not in repr(look)


def test_a_look_that_was_cut_or_is_none() -> None:
    assert not told(*one(1, 0), end="").complete
    assert not told("M cut some", *one(1, 0)).complete
    assert told("M hidden 1", "M ptrace 1").hidden
    assert told("M ptrace 1").ptrace_scope == 1
    assert told().ptrace_scope is None
    nothing = parse_processes(b"bash: not found\n", "gpu01", AT)
    assert nothing.failure is not None
    assert not nothing.complete
    banner = told(*one(1, 0), head=("Welcome to gpu01!", *HEAD))
    assert list(by_pid(banner)) == [1]


_LETTERS = st.sampled_from("MSUCREATN")
_WORDS = st.one_of(
    st.sampled_from(["1", "7", "self", "uptime", "hz", "time", "boot", "cut", "RANK=1", "-", "ff"]),
    st.integers(min_value=-1, max_value=10**40).map(str),
    st.text(max_size=8),
)
_LINES = st.builds(lambda kind, words: " ".join((kind, *words)), _LETTERS, st.lists(_WORDS))


@given(st.lists(_LINES, max_size=30))
def test_no_line_raises(lines: list[str]) -> None:
    text = "\n".join(("slurmtop-processes 1", *lines, "end")).encode("utf-8", "replace")
    look = parse_processes(text, "gpu01", AT)
    assert look.failure is None


@given(st.binary(max_size=400))
def test_no_byte_raises(data: bytes) -> None:
    parse_processes(data, "gpu01", AT)
    parse_processes(b"slurmtop-processes 1\n" + data, "gpu01", AT)
