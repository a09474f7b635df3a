"""What each scenario shows, and that a controller which is away looks like one."""

import asyncio

import pytest

from slurmtop.demo import DEFAULT_SCENARIO, DEMO_CLUSTER, DEMO_UID, DEMO_USER, SCENARIOS
from slurmtop.demo.outage import BEGINS_S, CONNECT_S, LASTS_S, PERIOD_S, SHOW_JOB_S
from slurmtop.model.ports import Command, Completed
from slurmtop.parse.slurm.squeue import parse_squeue, queue_format
from tests.demo.kit import Lab, lab
from tests.fakes import settle

MARK = b"\x1eQwErTy"


def test_the_scenarios_and_who_looks() -> None:
    assert set(SCENARIOS) == {"busy", "quiet", "outage", "huge", "empty"}
    assert DEFAULT_SCENARIO in SCENARIOS
    assert all(text and "\n" not in text for text in SCENARIOS.values())
    assert (DEMO_USER, DEMO_UID, DEMO_CLUSTER) == ("alice", 1001, "aurora")


async def test_quiet_has_two_jobs() -> None:
    demo = lab("quiet")
    assert await demo.ask("squeue", "-h", "-o", "%i %T") == "4911 PENDING\n4811 RUNNING\n"
    assert "idle" in await demo.ask("sinfo", "-h", "-o", "%T %N")


async def test_empty_answers_and_is_no_failure() -> None:
    demo = lab("empty")
    assert await demo.ask("squeue", "-h", "-a") == ""
    assert await demo.ask("sacct", "-n", "-a", "-S", "now-7days") == ""
    assert await demo.ask("scontrol", "show", "job") == "No jobs in the system\n"
    assert "gpu[01-08]" in await demo.ask("sinfo", "-h", "-o", "%T %N")


async def test_huge_has_twenty_thousand_jobs_of_other_people() -> None:
    demo = lab("huge")
    command = Command(("squeue", "-h", "-a", "-O", queue_format(MARK)))
    first = await demo.runner.run(command)
    parsed = parse_squeue(first.stdout, record_mark=MARK)
    assert parsed.bad == 0
    others = [job for job in parsed.rows if job.user != "alice"]
    assert len(others) > 20_000
    assert {job.reason for job in others if job.state.word == "PENDING"} == {"Priority"}
    own = await demo.ask("squeue", "-h", "--me", "-o", "%i")
    assert len(own.split()) < 60
    assert (await demo.runner.run(command)).stdout == first.stdout


async def slowly(demo: Lab, *argv: str, timeout_s: float = 120.0) -> tuple[Completed, float]:
    """The answer, and the real seconds that it took."""
    began = demo.real.monotonic()
    asked = asyncio.create_task(demo.runner.run(Command(argv, timeout_s=timeout_s)))
    await settle()
    while not asked.done():
        assert demo.real.monotonic() - began < 60
        await demo.real.advance(0.5)
    return asked.result(), demo.real.monotonic() - began


async def test_an_outage_takes_long_and_ends_in_the_real_words() -> None:
    demo = lab("outage")
    assert "4817" in await demo.ask("squeue", "-h", "-o", "%i")
    await demo.real.advance(BEGINS_S)
    done, waited = await slowly(demo, "squeue", "-h")
    assert (done.rc, done.stdout) == (1, b"")
    assert done.stderr == (
        b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    )
    assert waited == CONNECT_S == done.took_s
    done, waited = await slowly(demo, "scontrol", "show", "job", "4817")
    assert (done.rc, waited) == (1, SHOW_JOB_S)
    done, _ = await slowly(demo, "scontrol", "ping")
    assert (done.rc, done.stdout) == (1, b"Slurmctld(primary) at login1 is DOWN\n")
    done, _ = await slowly(demo, "scancel", "4817")
    assert done.rc == 8
    assert done.stderr.startswith(b"scancel: error: Kill job error on job id 4817: Unable to")
    done, _ = await slowly(demo, "scontrol", "hold", "4922")
    assert done.stderr.startswith(b"Unexpected message received for job 4922\n")
    assert "4817" in await demo.ask("sacct", "-n", "-X", "-o", "JobID"), "accounting is up"
    assert await demo.log("/shared/alice/moe/logs/moe_4817.log"), "and so are the files"
    await demo.real.advance(LASTS_S)
    assert "4817" in await demo.ask("squeue", "-h", "-o", "%i")
    assert await demo.state("4817") == "RUNNING", "the cancel has never arrived"


async def test_every_second_outage_is_a_busy_controller() -> None:
    demo = lab("outage")
    await demo.real.advance(PERIOD_S + BEGINS_S)
    done, waited = await slowly(demo, "squeue", "-h")
    assert done.stderr == b"slurm_load_jobs error: Socket timed out on send/recv operation\n"
    assert waited > 10
    done, _ = await slowly(demo, "scancel", "4817")
    assert done.rc == 140


async def test_a_shorter_time_limit_ends_the_wait() -> None:
    demo = lab("outage")
    await demo.real.advance(BEGINS_S)
    done, waited = await slowly(demo, "squeue", "-h", timeout_s=4.0)
    assert done.timed_out
    assert waited == done.took_s == 4.0


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
async def test_two_demos_of_one_time_are_alike(scenario: str) -> None:
    one, other = lab(scenario), lab(scenario)
    for demo in (one, other):
        await demo.later(1_234)
    for argv in (("squeue", "-h", "-t", "all", "-j", "4811"), ("sinfo", "-N"), ("sacct", "-P")):
        assert (await one.done(*argv)).stdout == (await other.done(*argv)).stdout
