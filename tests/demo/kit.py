"""A demo on a fake clock, and small readers of what its programs print."""

import re
from dataclasses import dataclass
from pathlib import Path

from slurmtop.collect.clock import spawn
from slurmtop.demo import make_demo
from slurmtop.demo.clock import DemoClock
from slurmtop.demo.runner import DemoRunner
from slurmtop.demo.world import World
from slurmtop.model.ports import Command, Completed
from tests.fakes import FakeClock, settle

CAPTURES = Path(__file__).parents[2] / "fixtures" / "slurm" / "24.11.5"
SPEED = 60.0
MOE_LOG = "/shared/alice/moe/logs/moe_4817.log"
PRETRAIN_LOG = "/shared/alice/pretrain/logs/pretrain_4811.log"


@dataclass
class Lab:
    real: FakeClock
    runner: DemoRunner
    clock: DemoClock

    @property
    def world(self) -> World:
        self.runner._view()
        return self.runner._world

    async def ask(self, *argv: str, rc: int = 0) -> str:
        """The output of a command that must end with ``rc``."""
        done = await self.done(*argv)
        assert done.rc == rc, (argv, done)
        return done.stdout.decode("utf-8")

    async def refused(self, *argv: str) -> tuple[int | None, str]:
        """Exit status and complaint of a command that must print nothing else."""
        done = await self.done(*argv)
        assert done.stdout == b"", (argv, done)
        return done.rc, done.stderr.decode("utf-8")

    async def done(self, *argv: str) -> Completed:
        return await self.runner.run(Command(argv))

    async def patient(self, *argv: str) -> Completed:
        """As ``done``, for what may wait by the clock of the cluster."""
        task = spawn(self.done(*argv), name=" ".join(argv))
        await settle()
        while not task.done():
            await self.later(60)
        return await task

    async def later(self, seconds: float) -> None:
        """Let simulated seconds pass."""
        await self.real.advance(seconds / self.clock.speed)

    async def state(self, job: str) -> str:
        return (await self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")).strip()

    async def log(self, path: str) -> str:
        size = (await self.runner.stat(path)).size
        return (await self.runner.read(path, 0, size)).decode("utf-8")


def lab(scenario: str = "busy", speed: float = SPEED) -> Lab:
    real = FakeClock()
    runner, clock = make_demo(scenario, real, speed)
    assert isinstance(runner, DemoRunner)
    assert isinstance(clock, DemoClock)
    return Lab(real, runner, clock)


def capture(name: str) -> str:
    return (CAPTURES / name).read_text(encoding="utf-8")


def keys_of(block: str) -> list[str]:
    """The field names of a block of ``scontrol show``, in order."""
    return re.findall(r"(?:^|(?<=\s))([A-Za-z][\w/:]*)=", block)


def blocks_of(text: str) -> list[str]:
    return [block for block in text.split("\n\n") if block.strip()]
