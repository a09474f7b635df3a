"""The two ways in which a person acts: keys on the screen, and the command line.

A test says what is wished; either way tells what became of it in the same shape.
"""

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from slurmtop.control.actions import Kind
from slurmtop.control.outcome import Outcome, Result, result_word
from slurmtop.model.script import Recipient
from slurmtop.ui.screens.ask_line import AskLineScreen
from slurmtop.ui.screens.asking import AskingScreen
from slurmtop.ui.screens.choose import ChooseScreen
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.screens.signal import SignalScreen
from tests.cluster.desk import INTERVAL_S, Desk, HurriedClock, open_desk, slurmtop

Meanwhile = Callable[[], object] | None
WAYS = ("keys", pytest.param("command", marks=pytest.mark.long))
_KEYS = {
    "cancel": "K",
    "signal": "S",
    "requeue": "R",
    "hold": "H",
    "release": "U",
    "limit": "T",
    "exclude": "D",
}
#: Enough for the rows of one test; a person's screen is smaller, a test's need not be slow.
SIZE = (200, 50)
_KINDS = {"limit": Kind.LIMIT, "exclude": Kind.EXCLUDE, "signal": Kind.SIGNAL}
_RECIPIENTS = {
    "steps": Recipient.STEPS,
    "batch": Recipient.BATCH,
    "everything": Recipient.EVERYTHING,
    "ranks": Recipient.RANKS,
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a person was told.

    ``results`` are words by job (``held``, ``denied``), ``says`` the sentences, ``shown`` what
    stood there before the yes, ``words`` all that was said after it, or instead of it.
    """

    results: dict[str, str] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)
    covers: dict[str, int] = field(default_factory=dict)
    shown: str = ""
    words: str = ""
    done: bool = False
    took_s: float = 0.0

    def count(self, word: str) -> int:
        """How many jobs came to ``word``, each array task counted."""
        return sum(self.covers[job] for job, result in self.results.items() if result == word)


class Way(Protocol):
    """``act`` does it with an explicit yes; ``look`` only looks, and answers with ``answer``,
    but not before ``meanwhile`` was done. What stood there in the end is what it returns."""

    async def act(self, verb: str, *jobs: str, **more: Any) -> Told: ...

    async def look(
        self, verb: str, *jobs: str, answer: str = "n", meanwhile: Meanwhile = None, **more: Any
    ) -> str: ...

    def commands_run(self) -> list[tuple[str, ...]]:
        """The command lines that change something, as far as they were run."""
        ...


@asynccontextmanager
async def open_way(
    name: str,
    state: Path,
    query: str,
    *,
    all_users: bool = False,
    dry_run: bool = False,
    interval_s: float = INTERVAL_S,
    hurried: bool = False,
    access: str = "auto",
) -> AsyncIterator[Way]:
    """One of :data:`WAYS`, with its log of actions below ``state``.

    The screen is narrowed to ``query``, so that a row is never below its end. ``hurried``
    shortens slurmtop's own waits there, where a test does not need them to be right. ``access`` is
    how nodes are reached, as the settings name it.
    """
    if name == "command":
        yield Commands(state, dry_run=dry_run, access=access)
        return
    async with open_desk(
        state,
        all_users=all_users,
        dry_run=dry_run,
        interval_s=interval_s,
        query=query,
        size=SIZE,
        executor_clock=HurriedClock() if hurried else None,
        node_access=access,
    ) as desk:
        yield Keys(desk)


class Keys:
    """Everything by keys, from the Jobs screen and back to it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def act(self, verb: str, *jobs: str, **more: Any) -> Told:
        desk = self.desk
        await self._ask(verb, jobs, more)
        if isinstance(desk.app.screen, OutcomeScreen):
            told = Told(words=flat(desk.text))
            await self._leave()
            return told
        shown = flat(desk.text)
        begun = time.monotonic()
        await desk.say_yes()
        outcome = await desk.outcome(120)
        told = _told(outcome, shown, flat(desk.text), time.monotonic() - begun)
        await self._leave()
        return told

    async def look(
        self, verb: str, *jobs: str, answer: str = "n", meanwhile: Meanwhile = None, **more: Any
    ) -> str:
        desk = self.desk
        await self._ask(verb, jobs, more)
        if isinstance(desk.app.screen, ConfirmScreen):
            if meanwhile is not None:
                await asyncio.to_thread(meanwhile)
                answers = len(desk.wire.answers_of("squeue"))
                await desk.until("a look", lambda: len(desk.wire.answers_of("squeue")) > answers)
                await desk.pilot.pause()
            shown = flat(desk.text)
            await desk.press(answer)
        else:
            shown = flat(desk.text)
        await self._leave()
        return shown

    def commands_run(self) -> list[tuple[str, ...]]:
        return self.desk.acted()

    async def _leave(self) -> None:
        desk = self.desk
        for _ in range(6):
            if len(desk.app.screen_stack) == 1:
                return
            await desk.press("escape")
        raise AssertionError(desk.text)

    async def _ask(self, verb: str, jobs: tuple[str, ...], more: dict[str, Any]) -> None:
        """Until there is a dialog, or a sentence why there is none."""
        desk = self.desk
        await self._choose_jobs(jobs)
        part = verb == "cancel" and ("tasks" in more or "step" in more)
        await desk.press("C" if part else _KEYS[verb])
        await self._answer(more)

        def arrived() -> bool:
            return isinstance(desk.app.screen, ConfirmScreen | OutcomeScreen)

        await desk.until("a dialog", arrived, 60)
        await desk.pilot.pause()

    async def _choose_jobs(self, jobs: tuple[str, ...]) -> None:
        desk = self.desk
        if len(jobs) > 20:
            # As a person would: they are all that the filter leaves.
            await desk.press("m")
            await desk.until(f"{len(jobs)} marked", lambda: f"{len(jobs)} marked" in desk.head)
            return
        for job in jobs:
            await self._go_to(job)
            if len(jobs) > 1:
                await desk.press("space")

    async def _go_to(self, job: str) -> None:
        desk = self.desk
        base, _, task = job.partition("_")
        if task and not desk.row(job):
            await desk.go_to(base)
            await desk.press("enter")
        await desk.go_to(job)

    async def _answer(self, more: dict[str, Any]) -> None:
        """Whatever is asked before the dialog."""
        desk = self.desk
        end = time.monotonic() + 60
        while time.monotonic() < end:
            screen = desk.app.screen
            if isinstance(screen, ChooseScreen):
                await self._choose(screen, more)
            elif isinstance(screen, AskLineScreen):
                await desk.type(str(more.get("tasks") or more.get("limit") or more["hosts"]))
                await desk.press("enter")
            elif isinstance(screen, SignalScreen):
                await self._choose_signal(screen, more)
            elif isinstance(screen, AskingScreen):
                await desk.pilot.pause(0.05)
            else:
                return
        raise AssertionError(desk.text)

    async def _choose(self, screen: ChooseScreen, more: dict[str, Any]) -> None:
        if "tasks" in more:
            wanted = "typed"
        elif "step" in more:
            wanted = str(more["step"])
        else:
            values = [option.value for option in screen.options]
            which = str(more.get("which") or ("all" if "all" in values else "running"))
            wanted = f"hold:{which}" if more.get("hold") else which
        at = [option.value for option in screen.options].index(wanted)
        await self.desk.press(str(at + 1))

    async def _choose_signal(self, screen: SignalScreen, more: dict[str, Any]) -> None:
        desk, signal = self.desk, str(more["signal"])
        names = list(screen.choice.signals)
        if signal in names:
            await self._move(names.index(signal) - screen.choice.at)
        else:
            # The last row: another one, by its name.
            await self._move(len(names) - 1 - screen.choice.at)
            await desk.press("enter")
            await desk.type(signal.lower())
            await desk.press("enter")
            assert screen.choice.signal == signal, desk.text
        await desk.press("tab")
        step = more.get("step")
        to = _RECIPIENTS[str(more.get("to", "steps"))]
        receivers = screen.choice.receivers
        (at,) = [
            at
            for at, one in enumerate(receivers)
            if (
                one.step is not None and one.step.id == step
                if step is not None
                else one.recipient is to
            )
        ]
        await self._move(at - screen.choice.to)
        shown = flat(desk.text)
        await desk.press("enter")
        await desk.until(f"taken: {shown}", lambda: desk.app.screen is not screen, 10)

    async def _move(self, by: int) -> None:
        await self.desk.press(*["down" if by > 0 else "up"] * abs(by))


def _told(outcome: Outcome, shown: str, words: str, took_s: float) -> Told:
    kind = outcome.action.kind
    # As a command names them: a het job by its leader, some tasks by their numbers.
    jobs = {
        job.target.ids[0] if len(job.target.ids) == 1 else job.target.label: job
        for job in outcome.jobs
    }
    return Told(
        results={name: result_word(kind, job.result) for name, job in jobs.items()},
        says={name: job.sentence for name, job in jobs.items()},
        covers={name: job.target.covers for name, job in jobs.items()},
        shown=shown,
        words=f"{words} {outcome.sentence} {' '.join(job.sentence for job in outcome.jobs)}",
        done=any(job.result is Result.DONE for job in outcome.jobs),
        took_s=took_s,
    )


class Commands:
    """Everything by ``slurmtop VERB JOB…``."""

    def __init__(self, state: Path, *, dry_run: bool, access: str = "auto") -> None:
        self._environ = {"XDG_STATE_HOME": str(state)}
        self._access = () if access == "auto" else ("--node-access", access)
        self._more = ("--dry-run",) if dry_run else ()
        self._commands: list[tuple[str, ...]] = []

    async def act(self, verb: str, *jobs: str, **more: Any) -> Told:
        argv = (*self._argv(verb, jobs, more), *self._access, "--yes", "--json", *self._more)
        said = await asyncio.to_thread(slurmtop, *argv, environ=self._environ)
        assert said.out, said
        data = said.data
        assert (said.rc == 0) == data["ok"], said
        if not data["dry_run"] and not data["refused"]:
            self._commands += [tuple(argv) for argv in data["commands"]]
        kind = _kind(verb, more)
        results = {job["id"]: _word(kind, str(job["outcome"])) for job in data["jobs"]}
        says = {job["id"]: job["sentence"] for job in data["jobs"]}
        return Told(
            results=results,
            says=says,
            covers={job: _covers(job) for job in results},
            shown=said.err,
            words=" ".join([*says.values(), data["refused"] or "", data["log_trouble"] or ""]),
            done=any(job["outcome"] == "done" for job in data["jobs"]),
            took_s=said.took_s,
        )

    async def look(
        self, verb: str, *jobs: str, answer: str = "n", meanwhile: Meanwhile = None, **more: Any
    ) -> str:
        argv = (*self._argv(verb, jobs, more), *self._access)
        typed = b"\n" if answer == "enter" else f"{answer}\n".encode()
        environ = self._environ
        return flat(await asyncio.to_thread(_at_a_terminal, argv, typed, environ, meanwhile))

    def commands_run(self) -> list[tuple[str, ...]]:
        return self._commands

    @staticmethod
    def _argv(verb: str, jobs: tuple[str, ...], more: dict[str, Any]) -> tuple[str, ...]:
        named = list(jobs)
        if "tasks" in more:
            named = [f"{jobs[0]}_[{more['tasks']}]"]
        if "step" in more:
            named = [f"{jobs[0]}.{more['step']}"]
        options: list[str] = []
        if verb == "signal":
            options += ["--signal", str(more["signal"])]
            if "to" in more:
                options += ["--to", str(more["to"])]
        if more.get("hold"):
            options.append("--hold")
        return (verb, *named, *options)


def _kind(verb: str, more: dict[str, Any]) -> Kind:
    if verb == "requeue" and more.get("hold"):
        return Kind.REQUEUE_HOLD
    return _KINDS.get(verb) or Kind(verb)


def _word(kind: Kind, outcome: str) -> str:
    if outcome in ("dry_run", "not_confirmed"):
        return outcome
    return result_word(kind, Result[outcome.upper()])


def _covers(job: str) -> int:
    """The jobs behind an id: ``12_[1,7-8]`` are three."""
    _, bracket, spans = job.partition("_[")
    if not bracket:
        return 1
    ends = [span.split("-") for span in spans.rstrip("]").split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in ends)


def _at_a_terminal(
    argv: tuple[str, ...], typed: bytes, environ: dict[str, str], meanwhile: Meanwhile
) -> str:
    """Run it with a person at the keyboard, who answers the first question."""
    mine, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "slurmtop", *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "200", **environ},
        ) as child:
            os.close(theirs)
            theirs = -1
            text = b""
            answered = False
            while True:
                try:
                    piece = os.read(mine, 4_096)
                except OSError:
                    # Linux says EIO where the last one on the other side has closed it.
                    break
                text += piece
                if not answered and (b"[y/N]" in text or b"to do it:" in text):
                    answered = True
                    if meanwhile is not None:
                        meanwhile()
                    os.write(mine, typed)
                if not piece:
                    break
            child.wait(60)
    finally:
        os.close(mine)
        if theirs >= 0:
            os.close(theirs)
    return text.decode()


def flat(text: str) -> str:
    """The words of a screen on one line, without the frames around them."""
    return " ".join(text.translate({ord(char): " " for char in "│╭╮╰╯─"}).split())
