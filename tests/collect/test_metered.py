"""What a command costs the controller."""

import pytest

from slurmtop.collect.metered import MeteredRunner, controller_calls
from slurmtop.model.ports import Command, RunnerError
from tests.fakes import FakeClock, FakeRunner


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("squeue -h --local --me", 2),
        ("squeue -h --me", 3),
        ("squeue -h -u anna", 3),
        ("squeue -h -j 7", 3),
        ("squeue -h -a", 2),
        ("/opt/slurm/bin/squeue -h", 2),
        ("squeue --version", 0),
        ("sinfo -N", 2),
        ("scontrol --local show job 7", 1),
        ("scontrol show job 7", 2),
        ("scontrol show config", 2),
        ("scontrol show node", 2),
        ("scontrol show partition", 1),
        ("scontrol ping", 1),
        ("scontrol hold 7", 1),
        ("scontrol show hostnames gpu[1-3]", 0),
        ("scontrol write batch_script 7 -", 1),
        ("scancel 7", 1),
        ("scancel --signal=USR1 7", 2),
        ("scancel -u anna", 2),
        ("scancel 7 8 9", 3),
        ("scancel -M beta 7 8_[1-3]", 2),
        ("scancel --ctld --signal=USR1 7", 1),
        ("scancel --ctld 7.0 8.0", 2),
        ("scancel --version", 0),
        ("scontrol hold 7,8,9", 3),
        ("scontrol requeue 7_[1,3-5]", 1),
        ("scontrol -M beta update JobId=7,8_[1,2] TimeLimit=5", 2),
        ("squeue -h -s --local -j 7,8 -O StepID", 1),
        ("srun --overlap --jobid=7 --nodes=4 --ntasks=4 /bin/sh", 6),
        ("srun --overlap --jobid=7 /bin/sh", 3),
        ("sacct -j 7", 0),
        ("nvidia-smi", 0),
    ],
)
def test_calls_of_one_command(line: str, calls: int) -> None:
    assert controller_calls(tuple(line.split())) == calls
    assert controller_calls(()) == 0


async def test_the_minute_slides_and_the_total_stays() -> None:
    clock = FakeClock()
    inner = FakeRunner(clock)
    inner.on("*", "out")
    metered = MeteredRunner(inner, clock)
    await metered.run(Command(("squeue",)))
    await clock.advance(30)
    await metered.run(Command(("scontrol", "--local", "show", "job", "1")))
    await metered.run(Command(("sacct", "-j", "1")))
    assert metered.calls_last_minute() == 3
    await clock.advance(30)
    assert metered.calls_last_minute() == 1
    await clock.advance(30)
    assert metered.calls_last_minute() == 0
    assert (metered.total, metered.database_total) == (3, 1)
    assert metered.by_program == {"squeue": 1, "scontrol": 1, "sacct": 1}


async def test_failing_calls_and_streams_are_counted_and_files_are_free() -> None:
    clock = FakeClock()
    inner = FakeRunner(clock)
    inner.on_call("squeue", RunnerError("full"))
    inner.on("sinfo*", "out")
    inner.files["/log"] = b"abc"
    metered = MeteredRunner(inner, clock)
    with pytest.raises(RunnerError):
        await metered.run(Command(("squeue",)))
    assert [chunk async for chunk in metered.stream(Command(("sinfo",)))] == [b"out"]
    assert metered.calls_last_minute() == 4
    assert await metered.read("/log", 1, 1) == b"b"
    assert (await metered.stat("/log")).size == 3
    assert await metered.list("/") == ("log",)
    assert metered.total == 4


async def test_what_runs_beside_is_counted_and_kept_until_it_ends() -> None:
    clock = FakeClock()
    metered = MeteredRunner(FakeRunner(clock), clock)
    ended = metered.beside(("srun", "--nodes=2"))
    assert metered.calls_last_minute() == metered.total == 4
    assert metered.by_program == {"srun": 1}
    (ran,) = metered.recent()
    assert ran.took_s is None
    await clock.advance(3)
    ended(1, "exit 1")
    (ran,) = metered.recent()
    assert (ran.argv[0], ran.took_s, ran.rc, ran.trouble) == ("srun", 3.0, 1, "exit 1")
