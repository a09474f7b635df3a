"""slurmtop over the real cluster: its own wiring, driven key by key, and its command line.

Nothing of the product is replaced but the interval of the queue, and for single tests the
clock of the executor: the runner, Slurm's clients and the controller are the real ones.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from slurmtop.cli.options import Options
from slurmtop.cli.tui import make_services
from slurmtop.cli.wiring import LOG_NAME, Wiring, make_executor, open_wiring, state_folder
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.cluster_info import ClusterInfo
from slurmtop.collect.metered import MeteredRunner
from slurmtop.config import Config, NodeAccess
from slurmtop.control.outcome import Outcome
from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.job import TABS, JobScreen
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from tests.cluster.layout import ClusterError
from tests.ui.golden import screen_text

#: Wide enough that no word of a reason is cut.
SIZE = (200, 100)
#: A person waits 20 s for the next queue; a test need not.
INTERVAL_S = 1.0


class Wire:
    """The real runner, and what went over it: (argv, answer) in the order of the answers."""

    def __init__(self, inner: Runner) -> None:
        self._inner = inner
        self.answers: list[tuple[tuple[str, ...], Completed]] = []
        self.asked: list[tuple[str, ...]] = []

    async def run(self, command: Command) -> Completed:
        self.asked.append(command.argv)
        done = await self._inner.run(command)
        self.answers.append((command.argv, done))
        return done

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        self.asked.append(command.argv)
        async for chunk in self._inner.stream(command):
            yield chunk

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)

    def asked_of(self, program: str) -> list[tuple[str, ...]]:
        """The command lines of one program."""
        return [argv for argv in self.asked if argv[0] == program]

    def answers_of(self, program: str) -> list[Completed]:
        return [done for argv, done in self.answers if argv[0] == program]

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)


class HurriedClock(SystemClock):
    """Ten seconds pass in one: for waits that are slurmtop's own and not Slurm's."""

    RATE = 10.0

    def monotonic(self) -> float:
        return super().monotonic() * self.RATE

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self.RATE)


@dataclass(kw_only=True)
class Desk:
    """The open app of one person, and what to look at while it runs."""

    app: SlurmtopApp
    pilot: Pilot[None]
    wire: Wire
    wiring: Wiring
    action_log: Path

    @property
    def text(self) -> str:
        """The whole screen as text."""
        return screen_text(self.app)

    @property
    def head(self) -> str:
        """The lines above the table of jobs."""
        return self.text.partition("JOB ")[0]

    @property
    def jobs(self) -> JobsScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, JobsScreen)
        return screen

    @property
    def job(self) -> JobScreen:
        assert isinstance(self.app.screen, JobScreen), type(self.app.screen)
        return self.app.screen

    @property
    def confirm(self) -> ConfirmScreen:
        assert isinstance(self.app.screen, ConfirmScreen), self.text
        return self.app.screen

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Letters and digits, as keys."""
        names = {
            "-": "minus",
            " ": "space",
            ":": "colon",
            "_": "underscore",
            "/": "slash",
            ",": "comma",
            ".": "full_stop",
            "[": "left_square_bracket",
            "]": "right_square_bracket",
        }
        await self.press(*(names.get(char, char) for char in text))

    async def until(self, what: str, check: Callable[[], bool], deadline_s: float = 30) -> None:
        """Let the app run until ``check`` holds; the error shows the screen."""
        end = time.monotonic() + deadline_s
        while not check():
            if time.monotonic() >= end:
                raise ClusterError(f"{what}: not within {deadline_s:g} s\n{self.text}")
            await self.pilot.pause(0.05)

    async def shows(self, *words: str, deadline_s: float = 30) -> None:
        """Until all of ``words`` stand on the screen."""
        await self.until(
            f"{words} on the screen",
            lambda: all(word in self.text for word in words),
            deadline_s,
        )

    # The Jobs screen

    def row(self, job: str) -> str:
        """The line of a job (or group) on the Jobs screen; empty where there is none."""
        found = re.search(rf"(?m)^[> ][* ][▸▾ ] *{re.escape(job)}(?=[ +_]|$).*$", self.text)
        return found.group() if found else ""

    def ids(self) -> list[str]:
        """The first column of the table, from top to bottom."""
        return re.findall(r"(?m)^[> ][* ][▸▾ ] *(\d\S*)", self.text)

    def cursor(self) -> str:
        """The id under the cursor."""
        found = re.search(r"(?m)^>[* ][▸▾ ] *(\d\S*)", self.text)
        return found.group(1) if found else ""

    async def filter(self, words: str) -> None:
        await self.press("slash")
        await self.type(words)
        await self.press("enter")

    async def go_to(self, job: str) -> None:
        """Move the cursor with its keys until it is on ``job``."""
        await self.until(f"a row of {job}", lambda: bool(self.row(job)))

        def plain(text: str) -> str:
            return text.partition("_[")[0]

        for _ in range(5):
            # The rows may move on the way.
            ids = [plain(text) for text in self.ids()]
            steps = ids.index(job) - ids.index(plain(self.cursor()))
            await self.press(*["j" if steps > 0 else "k"] * abs(steps))
            if plain(self.cursor()) == job:
                return
        raise ClusterError(f"the cursor does not come to {job}\n{self.text}")

    async def open_job(self, job: str) -> None:
        """From the queue to the Job screen, and until the facts are there."""
        await self.go_to(job)
        await self.press("enter")
        await self.until(f"the facts of {job}", lambda: self.job.facts is not None)
        await self.pilot.pause()

    async def show_tab(self, name: str) -> None:
        """On the Job screen, press tab until the tab of that name is there."""
        while TABS[self.job.tab] != name:
            await self.press("tab")

    # Acting

    async def ask_to_cancel(self, *jobs: str) -> ConfirmScreen:
        """Press K on one job, or mark several and press it then."""
        for job in jobs:
            await self.go_to(job)
            if len(jobs) > 1:
                await self.press("space")
        await self.press("K")
        return self.confirm

    async def say_yes(self) -> None:
        """Confirm as the dialog wants it: one key, or the text it names."""
        action = self.confirm.action
        if action.expected_text:
            await self.type(action.expected_text)
            await self.press("enter")
        else:
            await self.press("y")

    async def outcome(self, deadline_s: float = 60) -> Outcome:
        """What became of it, once it is on the screen."""

        def over() -> bool:
            screen = self.app.screen
            return isinstance(screen, OutcomeScreen) and screen.progress.over

        await self.until("an outcome", over, deadline_s)
        await self.pilot.pause()
        assert isinstance(self.app.screen, OutcomeScreen)
        outcome = self.app.screen.progress.outcome
        assert outcome is not None, self.text
        return outcome

    @property
    def sent(self) -> list[tuple[str, ...]]:
        """The command lines of scancel that were run."""
        return self.wire.asked_of("scancel")

    def acted(self) -> list[tuple[str, ...]]:
        """The command lines that change something."""
        reading = ("show", "write", "ping")
        return [
            argv
            for argv in self.wire.asked
            if argv[0] == "scancel"
            or (argv[0] == "scontrol" and not any(word in reading for word in argv))
        ]

    def logged(self) -> list[dict[str, Any]]:
        """The outcomes in the log of actions, line by line."""
        if not self.action_log.exists():
            return []
        lines = [json.loads(line) for line in self.action_log.read_text().splitlines()]
        return [line for line in lines if line["event"] == "outcome"]


@asynccontextmanager
async def open_desk(
    state: Path,
    *,
    environ: Mapping[str, str] | None = None,
    interval_s: float = INTERVAL_S,
    read_only: bool = False,
    dry_run: bool = False,
    all_users: bool = False,
    query: str = "",
    executor_clock: Clock | None = None,
    answered: bool = True,
    size: tuple[int, int] = SIZE,
    node_access: str = "auto",
) -> AsyncIterator[Desk]:
    """The app as ``cli/tui.py`` wires it. ``state`` is where its log of actions goes.

    It is handed over once the queue has answered, or at once where ``answered`` is false;
    ``query`` is typed as the filter then.
    """
    full = {**os.environ, "XDG_STATE_HOME": str(state), **(environ or {})}
    config = Config(
        queue_interval_s=interval_s, all_users=all_users, node_access=NodeAccess(node_access)
    )
    wiring = open_wiring(Options(), full, config=config)
    wire = Wire(wiring.runner)
    wiring.runner = MeteredRunner(wire, wiring.clock)
    clock, wiring.clock = wiring.clock, executor_clock or wiring.clock
    executor = make_executor(wiring, full, config=config, read_only=read_only, dry_run=dry_run)
    wiring.clock = clock
    services = make_services(wiring, config, executor, ClusterInfo(), read_only=read_only, demo="")
    # What is saved before a suspect is ended has tests of its own: here it would only take time.
    app = SlurmtopApp(replace(services, save_folder=""))
    try:
        async with app.run_test(size=size) as pilot:
            log = state_folder(full) / LOG_NAME
            desk = Desk(app=app, pilot=pilot, wire=wire, wiring=wiring, action_log=log)
            if answered:
                await desk.until("a first answer", lambda: app.book.sampled_at is not None)
            await pilot.pause()
            if query:
                await desk.filter(query)
            yield desk
    finally:
        await wiring.aclose()


async def meanwhile(work: Callable[..., Any], *arguments: Any) -> Any:
    """Something that blocks, while the app goes on."""
    return await asyncio.to_thread(work, *arguments)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a run of the command said."""

    rc: int
    out: str
    err: str
    took_s: float

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def data(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def slurmtop(*arguments: str, environ: Mapping[str, str] | None = None) -> Said:
    """Run the command as a person does, in a pipe."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "slurmtop", *arguments],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "SLURMTOP_TRACEBACK": "1", **(environ or {})},
    )
    return Said(
        rc=done.returncode,
        out=done.stdout.decode(),
        err=done.stderr.decode(),
        took_s=time.monotonic() - begun,
    )
