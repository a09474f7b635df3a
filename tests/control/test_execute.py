"""An action from the first command to the outcome, on a clock that only tests move."""

import asyncio
import dataclasses
import json

import pytest

from slurmtop.control.action_log import ActionLog, Entry, entry_line
from slurmtop.control.execute import CALL_TIMEOUT_S, READ_BACK_S, Executor, Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ports import Command, Completed, RunnerError
from tests.control.bench import DOWN, Bench, Lines
from tests.control.builders import NOW, job, plan
from tests.fakes import FakeRunner


async def test_cancelled_only_once_the_queue_says_so() -> None:
    bench = Bench()
    bench.queue = [{"4711": "COMPLETING"}, {"4711": "COMPLETING"}, {"4711": "CANCELLED"}]
    outcome = await bench.run(plan(job("4711")))
    assert bench.sent == [("scancel", "4711")]
    assert [call.argv[0] for call in bench.runner.calls[:2]] == ["squeue", "scancel"]
    assert bench.runner.calls[1].timeout_s == CALL_TIMEOUT_S
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.ok
    assert outcome.sentence == "job 4711: cancelled"
    assert bench.looks == 3
    assert outcome.took_s == pytest.approx(7.0, abs=1.0)


async def test_exit_0_alone_proves_nothing() -> None:
    bench = Bench()
    bench.queue = [{}]
    outcome = await bench.run(plan(job("99999999")))
    assert outcome.jobs[0].result is Result.NO_SUCH_JOB
    assert not outcome.ok
    assert "cancelled" not in outcome.sentence


async def test_denied() -> None:
    bench = Bench()
    bench.runner.on(
        "scancel *",
        rc=210,
        stderr="scancel: error: Kill job error on job id 8601: Access/permission denied\n",
    )
    bench.queue = [{"8601": "RUNNING", "8602": "CANCELLED"}]
    outcome = await bench.run(plan(job("8601", user="bob"), job("8602")))
    assert [item.result for item in outcome.jobs] == [Result.DENIED, Result.DONE]
    assert "belongs to somebody else" in outcome.jobs[0].sentence
    assert outcome.sentence == "1 cancelled, 1 denied"


async def test_a_waiting_part_of_a_het_job_is_refused() -> None:
    bench = Bench()
    bench.runner.on(
        "scancel *",
        rc=60,
        stderr="scancel: error: Kill job error on job id 9303: Operation not permitted on"
        " individual component of heterogeneous job\n",
    )
    bench.queue = [{"9303": "PENDING"}]
    outcome = await bench.run(plan(job("9303", "PENDING")))
    assert outcome.jobs[0].result is Result.REFUSED
    assert "leader" in outcome.jobs[0].sentence


async def test_a_status_without_a_line_means_the_only_job() -> None:
    bench = Bench()
    bench.runner.on("scancel *", rc=210)
    bench.queue = [{"8601": "RUNNING", "8602": "RUNNING"}]
    alone = await bench.run(plan(job("8601")))
    assert alone.jobs[0].result is Result.DENIED
    bench.looks = 0
    both = await bench.run(plan(job("8601"), job("8602")))
    assert {item.result for item in both.jobs} == {Result.SENT}


async def test_still_completing_after_the_time_is_up() -> None:
    bench = Bench()
    bench.queue = [{"4711": "COMPLETING"}]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.SENT
    assert outcome.sentence == (
        "job 4711: cancel sent, still completing on 2 nodes (epilog or a stuck process)"
    )
    assert outcome.took_s == pytest.approx(READ_BACK_S, abs=1.0)
    assert bench.looks < 12


async def test_a_silent_controller_is_not_known() -> None:
    bench = Bench()
    bench.runner.on("scancel *", rc=8, stderr=DOWN.replace("slurm_load_jobs", "scancel:"))
    bench.queue = [bench.refuse(DOWN)]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.NOT_KNOWN
    assert "cancelled" not in outcome.sentence


async def test_it_asks_again_until_the_controller_is_back() -> None:
    bench = Bench()
    bench.queue = [bench.refuse(DOWN), bench.refuse(DOWN), {"4711": "CANCELLED"}]
    assert (await bench.run(plan(job("4711")))).jobs[0].result is Result.DONE


async def test_scancel_that_does_not_end() -> None:
    bench = Bench()
    bench.runner.on("scancel *", rc=None)
    bench.queue = [{"4711": "RUNNING"}]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.NOT_KNOWN
    assert "did not end in time" in outcome.sentence
    assert "RUNNING" in outcome.sentence


async def test_scancel_that_cannot_start() -> None:
    bench = Bench()
    bench.runner.on_call("scancel *", RunnerError("scancel was not found on this machine."))
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.NOT_SENT
    assert "was not found" in outcome.sentence
    assert bench.looks == 0


async def test_a_job_that_ended_by_itself_was_not_cancelled() -> None:
    bench = Bench()
    bench.queue = [{"4711": "COMPLETED"}]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.OVER
    assert "before the cancel reached it (COMPLETED)" in outcome.sentence


async def test_many_jobs_are_sent_in_groups_with_a_pause() -> None:
    bench = Bench()
    ids = [str(1000 + n) for n in range(120)]
    bench.queue = [dict.fromkeys(ids, "CANCELLED")]
    outcome = await bench.run(plan(*(job(id) for id in ids)))
    assert [len(argv) - 1 for argv in bench.sent] == [50, 50, 20]
    assert bench.looks == 1
    assert outcome.sentence == "120 cancelled"


async def test_it_tells_how_many_commands_went_out() -> None:
    bench = Bench()
    ids = [str(1000 + n) for n in range(120)]
    bench.queue = [dict.fromkeys(ids, "CANCELLED")]
    told: list[tuple[int, int]] = []
    task = bench.begin(
        plan(*(job(id) for id in ids)), sent=lambda done, of: told.append((done, of))
    )
    await bench.clock.advance(0)
    assert told == [(0, 3), (1, 3)]
    assert len(bench.sent) == 1
    for _ in range(20):
        await bench.clock.advance(0.5)
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    await task


async def test_one_group_that_fails_does_not_stop_the_rest() -> None:
    bench = Bench()
    ids = [str(1000 + n) for n in range(60)]
    gone = "scancel: error: Kill job error on job id 1000: Access/permission denied\n"
    bench.runner.on("scancel 1000 *", rc=210, stderr=gone)
    bench.queue = [{id: "RUNNING" if id == "1000" else "CANCELLED" for id in ids}]
    outcome = await bench.run(plan(*(job(id) for id in ids)))
    assert outcome.sentence == "59 cancelled, 1 denied"


async def test_tasks_of_an_array() -> None:
    bench = Bench()
    bench.queue = [{"4711_1": "CANCELLED", "4711_2": "COMPLETED", "4711_[3-9]": "CANCELLED"}]
    outcome = await bench.run(
        plan(job("4711_1"), job("4711_2"), job("4711_[3-9]", "PENDING"), job("4711_10"))
    )
    assert bench.sent == [("scancel", "4711_[1-10]")]
    assert [item.result for item in outcome.jobs] == [
        Result.DONE,
        Result.OVER,
        Result.DONE,
        Result.NO_SUCH_JOB,
    ]


async def test_a_job_that_is_no_longer_the_same_is_left_out() -> None:
    bench = Bench()
    bench.queue = [{"4712": "CANCELLED"}]
    outcome = await bench.run(
        plan(job("4711"), job("4712")), still_same=lambda target: target.key.id == "4712"
    )
    assert bench.sent == [("scancel", "4712")]
    assert [item.result for item in outcome.jobs] == [Result.NOT_SENT, Result.DONE]
    none = await bench.run(plan(job("4711")), still_same=lambda target: False)
    assert none.jobs[0].result is Result.NOT_SENT
    assert len(bench.sent) == 1


async def test_read_only_and_tampered_actions_run_nothing() -> None:
    closed = Bench(read_only=True)
    assert "read-only" in (await closed.run(plan(job("4711")))).sentence
    bench = Bench()
    action = plan(job("4711"))
    bad = [
        dataclasses.replace(action, argvs=(("scancel", "-u", "anna"),)),
        dataclasses.replace(action, argvs=(("scancel", "4712"),)),
        dataclasses.replace(action, argvs=()),
        dataclasses.replace(action, targets=()),
        dataclasses.replace(
            action, targets=(dataclasses.replace(action.targets[0], ids=("-u anna",)),)
        ),
        dataclasses.replace(action, cluster="a,b"),
    ]
    for one in bad:
        outcome = await bench.run(one)
        assert outcome.refused is not None
        assert outcome.jobs == ()
        assert not outcome.ok
    assert bench.runner.calls == []
    assert bench.lines.lines == []
    assert closed.runner.calls == []


async def test_the_cluster_goes_with_every_command() -> None:
    bench = Bench()
    bench.queue = [{"4711": "CANCELLED"}]
    await bench.run(plan(job("4711", cluster="beta"), cluster="beta"))
    assert bench.sent == [("scancel", "-M", "beta", "4711")]
    assert bench.runner.calls[-1].argv[:3] == ("squeue", "-M", "beta")
    assert "--local" not in bench.runner.calls[-1].argv


async def test_what_was_done_is_written_down() -> None:
    bench = Bench()
    bench.queue = [{"4711": "CANCELLED"}]
    action = dataclasses.replace(plan(job("4711")), verdict="failed: HF_TOKEN=hf_" + "a" * 34)
    await bench.run(action)
    asked, line = bench.logged
    assert (asked["event"], line["event"]) == ("asked", "outcome")
    assert asked["id"] == line["id"] != ""
    assert asked["commands"] == line["commands"]
    assert asked["jobs"] == [{"job": "4711", "outcome": "asked", "says": ""}]
    assert asked["when"] == "2031-05-05T12:00:00+00:00"
    assert line["who"] == "anna"
    assert line["uid"] == 20011
    assert str(line["when"]) > str(asked["when"])
    assert line["commands"] == [["scancel", "4711"]]
    assert line["jobs"] == [{"job": "4711", "outcome": "cancelled", "says": "job 4711: cancelled"}]
    assert "aaaa" not in str(line["verdict"])
    assert "failed" in str(line["verdict"])


async def test_without_a_log_nothing_is_done_until_it_is_asked_again() -> None:
    bench = Bench(log=Lines(OSError(28, "No space left on device")))
    bench.queue = [{"4711": "CANCELLED"}]
    first = await bench.run(plan(job("4711")))
    assert first.unlogged is not None
    assert "No space left" in first.unlogged
    assert "nothing was done" in first.sentence
    assert not first.ok
    assert first.jobs == ()
    assert bench.sent == []
    outcome = await bench.run(plan(job("4711")), without_log=True)
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.unlogged is None
    assert outcome.trouble is not None
    assert "No space left" in outcome.trouble


async def test_what_is_asked_is_written_down_before_it_is_done() -> None:
    bench = Bench()
    seen: list[list[str]] = []

    def scancel(command: Command) -> Completed:
        seen.append([str(line["event"]) for line in bench.logged])
        return Completed(0, b"", b"", bench.clock.now(), 0.1)

    bench.runner = FakeRunner(bench.clock)
    bench.runner.on_call("scancel *", scancel)
    bench.runner.on_call("squeue *", bench.squeue)
    bench.queue = [{"4711": "CANCELLED"}]
    log = ActionLog(lambda: bench.lines, who="anna", uid=20011)
    read_back = QueueReadBack(bench.runner)
    bench.executor = Executor(bench.runner, bench.clock, log, read_only=False, read_back=read_back)
    await bench.run(plan(job("4711")))
    assert seen == [["asked"]]
    assert [line["event"] for line in bench.logged] == ["asked", "outcome"]


async def test_leaving_meanwhile_still_leaves_a_line() -> None:
    bench = Bench()
    bench.queue = [{"4711": "COMPLETING"}]
    task = bench.begin(plan(job("4711")))
    await bench.clock.advance(0)
    await bench.clock.advance(1.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    _, line = bench.logged
    assert line["commands"] == [["scancel", "4711"]]
    assert "still completing" in str(line["jobs"])


async def test_what_was_cut_short_was_not_sent() -> None:
    bench = Bench()
    ids = [str(1000 + n) for n in range(120)]
    bench.queue = [dict.fromkeys(ids, "RUNNING")]
    task = bench.begin(plan(*(job(id) for id in ids)))
    await bench.clock.advance(0)
    assert len(bench.sent) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    _, line = bench.logged
    assert isinstance(line["jobs"], list)
    told = {item["job"]: (item["outcome"], item["says"]) for item in line["jobs"]}
    assert len(told) == 120
    named = set(bench.sent[0][1:])
    assert {id for id in ids if told[id][0] == "not known"} == named
    assert {told[id] for id in ids if id not in named} == {
        ("not sent", f"job {id}: not sent: slurmtop was ended before its turn")
        for id in ids
        if id not in named
    }


async def test_ended_at_the_first_look_nothing_was_done() -> None:
    bench = Bench()
    bench.runner.gate = asyncio.Event()
    task = bench.begin(plan(job("4711")))
    await bench.clock.advance(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.sent == []
    assert bench.lines.lines == []


def test_a_log_line_is_one_line() -> None:
    entry = Entry(
        id="1f",
        event="outcome",
        when=NOW,
        kind="cancel",
        cluster="",
        argvs=(("scancel", "4711"),),
        outcomes={"4711": ("cancelled", "a\nb\x1b[2J\u2028")},
        verdict="x\ny",
    )
    line = entry_line(entry, who="a\nb", uid=1)
    assert b"\n" not in line
    assert b"\x1b" not in line
    assert json.loads(line)["jobs"][0]["says"] == "a\nb\x1b[2J\u2028"


@pytest.mark.parametrize("truncated", [False, True])
async def test_an_answer_that_is_no_answer(truncated: bool) -> None:
    bench = Bench()
    odd = b"" if not truncated else b"4711\x1f4711\x1fCANCELLED\x1e\n"
    words = b"squeue: error: Invalid job format specification: Foo\n"
    bench.queue = [Completed(0, odd, b"" if truncated else words, NOW, 0.1, truncated=truncated)]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.NOT_KNOWN


async def test_a_record_that_cannot_be_read_is_a_failure_of_the_read_back() -> None:
    bench = Bench()
    bench.queue = [Completed(0, b"nonsense\x1e\n", b"", NOW, 0.1)]
    outcome = await bench.run(plan(job("4711")))
    assert outcome.jobs[0].result is Result.NOT_KNOWN


async def test_the_read_back_asks_for_plain_values_only() -> None:
    runner = FakeRunner()
    runner.on("squeue *")
    await QueueReadBack(runner).read(["4711", "4712"], "beta")
    (call,) = runner.calls
    assert call.argv[:9] == ("squeue", "-M", "beta", "-h", "-a", "-t", "all", "-j", "4711,4712")
    names = [piece.partition(":")[0] for piece in call.argv[-1].split(",")]
    assert not {"Name", "Comment", "WorkDir", "Command", "STDOUT", "STDERR"} & set(names)
