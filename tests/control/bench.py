"""An executor over fakes: what Slurm says and shows is written down, the clock only tests move."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from slurmtop.control.action_log import ActionLog
from slurmtop.control.actions import Action, Target
from slurmtop.control.execute import Executor, Outcome
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ports import Command, Completed
from tests.build import as_planned
from tests.fakes import FakeClock, FakeRunner

DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
#: A row is its state, or its fields by the names of ``squeue -O`` (``ExcNodes`` for ``%x``).
Row = str | Mapping[str, str]


class Lines:
    """An append-only file in memory; ``trouble`` makes it refuse."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.lines: list[bytes] = []
        self.trouble = trouble

    def append_line(self, line: bytes) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.lines.append(line)


class Bench:
    """``queue`` is what squeue shows at each look after the commands, ``steps`` what ``squeue -s``
    does; the last of each repeats. ``steps`` are ``4711.0``, and the first look at them is before
    the command. ``before`` is what squeue shows right before it: None is all as it was planned.
    """

    def __init__(
        self, *, read_only: bool = False, log: Lines | None = None, dry_run: bool = False
    ) -> None:
        self.clock = FakeClock()
        self.runner = FakeRunner(self.clock)
        self.lines = log or Lines()
        self.syslog: list[str] = []
        self.queue: list[Mapping[str, Row] | Completed] = []
        self.before: Mapping[str, Row] | Completed | None = None
        self._planned: Mapping[str, Row] | None = None
        self.steps: list[tuple[str, ...] | Completed] = [()]
        self.looks = self.step_looks = 0
        self.runner.on("scancel *")
        self.runner.on("scontrol *")
        self.runner.on_call("squeue *", self.squeue)
        self.executor = Executor(
            self.runner,
            self.clock,
            ActionLog(lambda: self.lines, who="anna", uid=20011, syslog=self.syslog.append),
            read_only=read_only,
            read_back=QueueReadBack(self.runner),
            dry_run=dry_run,
        )

    def squeue(self, command: Command) -> Completed:
        if "-s" in command.argv:
            return self._steps(command)
        if self._planned is not None:
            answer = self._planned if self.before is None else self.before
            self._planned = None
            return self._shown(command, answer)
        letters = "-o" in command.argv
        answer = self.queue[min(self.looks - letters, len(self.queue) - 1)]
        # The letters belong to the look that has just been asked for the other fields.
        self.looks += not letters
        return self._shown(command, answer)

    def _shown(self, command: Command, answer: Mapping[str, Row] | Completed) -> Completed:
        if isinstance(answer, Completed):
            return answer
        letters = "-o" in command.argv
        rows = _named(command, answer)
        if not rows and "-j" in command.argv and "," not in _after("-j", command):
            return self.refuse("slurm_load_jobs error: Invalid job id specified\n")
        make = record_in_letters if letters else record
        out = b"".join(make(command.argv[-1], id, row) for id, row in rows.items())
        return Completed(0, out, b"", self.clock.now(), 0.1)

    def _steps(self, command: Command) -> Completed:
        answer = self.steps[min(self.step_looks, len(self.steps) - 1)]
        self.step_looks += 1
        if isinstance(answer, Completed):
            return answer
        rows = _named(command, dict.fromkeys(answer, "RUNNING"))
        out = b"".join(
            _filled(command.argv[-1], {"StepID": id, "StepState": "RUNNING", "Nodes": "gpu01"})
            for id in rows
        )
        return Completed(0, out, b"", self.clock.now(), 0.1)

    def refuse(self, words: str, rc: int = 1) -> Completed:
        return Completed(rc, b"", words.encode(), self.clock.now(), 9.0)

    def begin(self, action: Action, **how: Any) -> asyncio.Task[Outcome]:
        """The execution of ``action``, while the clock stands still."""
        self._planned = as_planned(action)
        return asyncio.ensure_future(self.executor.execute(action, **how))

    async def run(
        self,
        action: Action,
        *,
        still_same: Callable[[Target], bool] | None = None,
        without_log: bool = False,
    ) -> Outcome:
        task = self.begin(action, still_same=still_same, without_log=without_log)
        for _ in range(400):
            if task.done():
                break
            await self.clock.advance(0.5)
        return await task

    @property
    def sent(self) -> list[tuple[str, ...]]:
        return [call.argv for call in self.runner.calls if call.argv[0] != "squeue"]

    @property
    def logged(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines.lines]


def _after(option: str, command: Command) -> str:
    return command.argv[command.argv.index(option) + 1]


def _named(command: Command, rows: Mapping[str, Row]) -> dict[str, Row]:
    """Those that ``-j`` names; with ``-u`` all."""
    if "-j" not in command.argv:
        return dict(rows)
    wanted = _after("-j", command).split(",")
    return {id: row for id, row in rows.items() if _number(id) in wanted}


def _number(id: str) -> str:
    return id.split(".")[0].split("_")[0].split("+")[0]


def record(form: str, id: str, row: Row) -> bytes:
    """One record of ``squeue -O FORM``; ``N/A`` for what the row does not say."""
    fields = {"State": row} if isinstance(row, str) else dict(row)
    values = {
        "JobArrayID": id,
        "JobID": _number(id),
        "UserName": "anna",
        "SubmitTime": "2031-05-05T08:00:00",
        "NumNodes": "2",
        "NodeList": "gpu[01-02]",
        "Reason": "None",
        **fields,
    }
    values.pop("ExcNodes", None)
    names = {piece.partition(":")[0] for piece in form.split(",")}
    assert set(values) <= names, set(values) - names
    return _filled(form, values)


def record_in_letters(form: str, id: str, row: Row) -> bytes:
    """One record of ``squeue -o FORM``."""
    excluded = "" if isinstance(row, str) else row.get("ExcNodes", "")
    values = {"%i": id, "%A": _number(id), "%x": excluded}
    for letter, value in values.items():
        form = form.replace(letter, value)
    return form.encode() + b"\n"


def _filled(form: str, values: Mapping[str, str]) -> bytes:
    pieces = (piece.partition(":") for piece in form.split(","))
    return "".join(values.get(name, "N/A") + end for name, _, end in pieces).encode() + b"\n"
