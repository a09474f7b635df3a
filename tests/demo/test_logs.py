"""The shared file system of the demo: logs that grow, stop, end and are closed to others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.demo.logs import Lines, Log, Text, insert, written
from slurmtop.demo.stories import WATCHDOG_S
from slurmtop.parse.logs.errors import find_first_error, find_slurm_line
from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.progress import find_progress
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.collective_table import Mark, collective_tables
from slurmtop.triage.join import join
from slurmtop.triage.judge import judge
from tests.demo.kit import MOE_LOG, PRETRAIN_LOG, lab

VIT_LOG = "/shared/alice/vit/logs/vit_4801.out"
SWEEP_LOGS = "/shared/alice/sweep/logs"


def line(number: int) -> bytes:
    return b"%09d\n" % number


lines = st.builds(
    lambda t, every, count: Lines(t, every, count, 10, line),
    st.integers(0, 50),
    st.integers(1, 7),
    st.integers(1, 30),
)
texts = st.builds(Text, st.integers(0, 200), st.binary(min_size=1, max_size=20))


@given(st.lists(lines | texts, max_size=6), st.integers(-5, 300), st.integers(-5, 300))
def test_any_range_is_a_slice_of_the_whole(
    pieces: list[Lines | Text], offset: int, length: int
) -> None:
    log = Log(pieces, 0)
    whole = log.read(0, log.size)
    assert len(whole) == log.size
    start = max(0, offset)
    assert log.read(offset, length) == whole[start : start + max(0, length)]


@given(lines, st.integers(-10, 300))
def test_time_only_adds_lines(piece: Lines, until: int) -> None:
    earlier = Log(written([piece], until), 0)
    later = Log(written([piece], until + 13), 0)
    assert later.read(0, earlier.size) == earlier.read(0, earlier.size)


@given(lines, st.integers(-10, 300))
def test_a_mark_parts_lines_without_losing_any(piece: Lines, t: int) -> None:
    parts = insert([piece], Text(t, b"mark\n"))
    data = Log(parts, 0).read(0, 10_000)
    assert data.count(b"mark\n") == 1
    assert data.replace(b"mark\n", b"") == Log([piece], 0).read(0, 10_000)


async def test_a_training_log_grows_with_time_and_never_changes_behind() -> None:
    demo = lab()
    before = await demo.log(PRETRAIN_LOG)
    stat = await demo.runner.stat(PRETRAIN_LOG)
    await demo.later(3_600)
    after = await demo.log(PRETRAIN_LOG)
    assert after.startswith(before)
    newer = await demo.runner.stat(PRETRAIN_LOG)
    assert newer.size > stat.size
    assert newer.mtime > stat.mtime
    assert (newer.device, newer.inode) == (stat.device, stat.inode)
    found = find_progress(split_lines(after.encode()))
    assert found is not None
    assert (found.step, found.total) == (14_830, 72_000)
    assert "NCCL INFO ncclCommInitRankConfig comm 0x" in after
    assert find_first_error(split_lines(after.encode())) is None


async def test_reads_in_blocks_give_the_whole() -> None:
    demo = lab()
    whole = (await demo.log(MOE_LOG)).encode()
    blocks = [await demo.runner.read(MOE_LOG, at, 4_096) for at in range(0, len(whole), 4_096)]
    assert b"".join(blocks) == whole
    assert await demo.runner.read(MOE_LOG, len(whole), 100) == b""


async def test_the_hanging_job_went_silent_and_then_the_watchdog_spoke() -> None:
    demo = lab()
    text = await demo.log(MOE_LOG)
    lines = text.splitlines()
    first = next(at for at, one in enumerate(lines) if "Watchdog caught" in one)
    last, spoken = lines[first - 16 : first], lines[first:]
    assert sum("entering all_reduce" in one for one in last) == 15
    assert [one for one in last if "entering" not in one] == [
        "[rank11]: 2031-05-05 11:49:00 step 4431 dataloader worker 2: opening shard-000731.tar"
    ]
    assert f"Timeout(ms)={WATCHDOG_S * 1_000}) ran for" in spoken[0]
    assert sum("WorkNCCL(SeqNum=53165," in one for one in spoken) == 15
    (aside,) = (one for one in spoken if one.startswith("[rank11]"))
    assert "Last enqueued NCCL work: 53164" in aside, "it has no work that could time out"
    await demo.later(3_600)
    assert await demo.log(MOE_LOG) == text, "nothing is taken down"
    assert await demo.state("4817") == "RUNNING"


async def test_the_verdicts_on_the_hung_and_the_failed_job_are_those_of_the_library() -> None:
    demo = lab()
    hung = join(read_bytes(MOE_LOG, (await demo.log(MOE_LOG)).encode()))
    verdict = judge(hung)
    assert verdict.cls == "missing-rank"
    assert [(one.rank, one.host) for one in verdict.culprits] == [(11, "gpu04")]
    (table,) = collective_tables(hung)
    assert (table.rows[0].ranks, table.rows[0].cells[0].mark) == ((11,), Mark.MISSING)
    text = await demo.log(VIT_LOG)
    failed = judge(join(read_bytes(VIT_LOG, text.encode())))
    assert "Connection closed by peer" in text, "what followed on the other rank stands there too"
    assert failed.cls == "python-exception"
    assert "KeyError" in failed.evidence[0].text
    assert {one.rank for one in failed.culprits} <= {1}


async def test_the_error_of_the_failed_job_is_found() -> None:
    demo = lab()
    text = (await demo.log(VIT_LOG)).encode()
    error = find_first_error(split_lines(text))
    assert error is not None
    assert error.text == "[rank1]: KeyError: 'n02085620/n02085620_7292.JPEG'"


async def test_out_of_memory_stands_in_the_error_file() -> None:
    demo = lab()
    out = await demo.log("/shared/alice/data/logs/laion_4803.out")
    err = await demo.log("/shared/alice/data/logs/laion_4803.err")
    assert "oom_kill" not in out
    assert "oom_kill event in StepId=4803.0" in err
    assert "srun: error: gpu06: task 0: Out Of Memory" in err


async def test_the_time_limit_is_slurms_last_word() -> None:
    demo = lab()
    text = (await demo.log("/shared/alice/eval/eval_4805.out")).encode()
    found = find_slurm_line(split_lines(text))
    assert found is not None
    assert "CANCELLED AT 2031-05-05T10:40:00 DUE TO TIME LIMIT ***" in found.text


async def test_a_progress_bar_counts() -> None:
    demo = lab()
    text = (await demo.log("/shared/alice/sft/logs/sft_4822.log")).encode()
    assert b"DUE TO JOB REQUEUE" in text, "appended to: the first run is still there"
    found = find_progress(split_lines(text))
    assert found is not None
    assert (found.step, found.total) == (2_385, 2_400)


async def test_a_strangers_log_is_closed() -> None:
    demo = lab()
    path = "/shared/carol/slurm-4826.out"
    for question in (
        demo.runner.read(path, 0, 10),
        demo.runner.stat(path),
        demo.runner.list("/shared/carol"),
    ):
        with pytest.raises(PermissionError):
            await question
    assert "listening" in await demo.log("/shared/bob/slurm-4824.out")


@pytest.mark.parametrize(
    "path",
    [
        "/shared/alice/pretrain/logs/pretrain_4910.log",
        "/shared/alice/nosuch",
        "/etc/passwd",
        "relative",
        "",
        "/shared/alice/\0",
        "/shared/alice/moe/logs/moe_4817.log/x",
    ],
)
async def test_what_is_not_there_is_not_found(path: str) -> None:
    demo = lab()
    with pytest.raises(FileNotFoundError):
        await demo.runner.read(path, 0, 10)
    with pytest.raises(FileNotFoundError):
        await demo.runner.stat(path)
    with pytest.raises(FileNotFoundError):
        await demo.runner.list(path)


async def test_folders_are_folders_and_their_names_are_listed() -> None:
    demo = lab()
    assert (await demo.runner.stat("/shared/alice")).is_dir
    assert not (await demo.runner.stat(MOE_LOG)).is_dir
    with pytest.raises(IsADirectoryError):
        await demo.runner.read("/shared/alice", 0, 10)
    with pytest.raises(NotADirectoryError):
        await demo.runner.list(MOE_LOG)
    assert "moe" in await demo.runner.list("/shared/alice")
    assert await demo.runner.list("/shared") == ("alice", "bob", "carol", "dave")
    names = await demo.runner.list(f"{SWEEP_LOGS}/../logs")
    assert "4830_75.out" in names
    assert "4830_76.out" not in names
    await demo.later(3_600)
    assert "4830_76.out" in await demo.runner.list(SWEEP_LOGS)


async def test_the_batch_script_lies_beside_the_logs() -> None:
    demo = lab()
    text = await demo.log("/shared/alice/moe/train.sbatch")
    assert text == await demo.ask("scontrol", "write", "batch_script", "4817", "-")


async def test_logs_stay_small_for_two_days() -> None:
    demo = lab()
    await demo.later(2 * 86_400)
    paths = [f"{SWEEP_LOGS}/{name}" for name in await demo.runner.list(SWEEP_LOGS)]
    paths += [MOE_LOG, PRETRAIN_LOG, "/shared/alice/pretrain/logs/pretrain_4910.log"]
    sizes = [(await demo.runner.stat(path)).size for path in paths]
    assert len(sizes) > 300
    assert max(sizes) < 2_000_000
