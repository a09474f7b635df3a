"""From the text of a batch script to what it says: directives, traps, launches, waits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from slurmtop.jobscript.course import course_of, started
from slurmtop.jobscript.directives import Directives, read_directives
from slurmtop.jobscript.flow import Event, Flow, Reader, What, follow
from slurmtop.jobscript.launches import find_launch
from slurmtop.jobscript.shell import Effort, Shell, ShellCommand, parse_shell
from slurmtop.jobscript.starts import Inside, Started, requeues, starts_work, traps_above
from slurmtop.model.script import SHELLS, Course, Launch, ScriptReading, Trap, Wait

#: What is read of a script; the controller hands out no more than this either.
MAX_SCRIPT: Final = 1024 * 1024
_MAX_PIPED: Final = 8
_MAX_KEPT: Final = 200
_MAX_UNSURE: Final = 12
_SHOWN: Final = 160
_ENV: Final = re.compile(r"(?:/usr)?/bin/env$")


def read_script(text: str) -> ScriptReading:
    """What ``text``, a batch script as it was submitted, says of itself. Total: any text gives
    a reading, in bounded time, and what could not be told stands in ``unsure``."""
    cut = len(text) > MAX_SCRIPT
    lines = text[:MAX_SCRIPT].replace("\r\n", "\n").split("\n")
    language = _language(lines[0])
    asked = read_directives(lines)
    unsure = list(asked.unsure)
    if cut:
        unsure.append("the script is longer than 1 MiB; the rest was not read")
    if language not in SHELLS:
        unsure.append(
            f"the script is run by {language}, not by a shell: only its #SBATCH lines were read"
        )
        return _reading(language, asked, unsure, complete=False)
    effort = Effort()
    shell = parse_shell("\n".join(lines), effort)
    work = _Work(shell, unsure, effort, language, _starts_with_errexit(lines[0]))
    work.read()
    complete = shell.complete and not cut and len(work.launches) <= _MAX_KEPT
    if not complete:
        unsure.insert(0, "the commands of the script could not all be read")
    elif shell.broken is not None:
        unsure.insert(0, f"line {shell.broken} could not be understood as shell")
    return replace(
        _reading(language, asked, unsure, complete=complete),
        traps=tuple(work.traps[-_MAX_KEPT:]),
        launches=tuple(work.launches[:_MAX_KEPT]),
        waits=tuple(work.waits[:_MAX_KEPT]),
        requeues_itself=work.requeues,
        course=work.course,
    )


def _reading(
    language: str, asked: Directives, unsure: Sequence[str], *, complete: bool
) -> ScriptReading:
    return ScriptReading(
        language=language,
        directives=asked.options,
        signal=asked.signal,
        open_mode=asked.open_mode,
        requeue=asked.requeue,
        unsure=tuple(dict.fromkeys(unsure))[:_MAX_UNSURE],
        complete=complete,
    )


def _language(first: str) -> str:
    """``bash`` of ``#!/usr/bin/env -S bash -l``; a script without ``#!`` is refused by sbatch."""
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and _ENV.search(words[0]):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0].rsplit("/", 1)[-1][:40] if words else "sh"


def _starts_with_errexit(first: str) -> int | None:
    """``#!/bin/bash -eu``."""
    options = first.split()[1:] if first.startswith("#!") else []
    return 1 if any(re.match(r"-[a-zA-Z]*e", word) for word in options) else None


@dataclass(slots=True)
class _Work:
    shell: Shell
    unsure: list[str]
    effort: Effort
    language: str
    errexit: int | None = None
    traps: list[Trap] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    requeues: int | None = None
    course: Course = field(default_factory=Course)

    def read(self) -> None:
        reader = Reader(self.language, self.effort, self._starts)
        flow = follow(self.shell, reader)
        self.course = course_of(flow, self.shell, self.effort, errexit=self.errexit)
        for event in flow.events:
            if event.trap is not None and event.shell == 0:
                self._trap(event.trap, certain=event.certain)
            elif event.what is What.WAIT and event.shell == 0:
                self.waits.append(Wait(event.line, event.place.again))
        self.traps = list(dict.fromkeys(self.traps))
        self.waits = list(dict.fromkeys(self.waits))
        at_start = started(flow, {})
        by_command: dict[int, list[Event]] = {}
        for event in flow.events:
            by_command.setdefault(id(event.command), []).append(event)
        known = self._known(flow)
        inside = Inside(self.shell, self.effort, self.unsure, self.language)
        for command in self.shell.commands:
            self._uncalled(command, known)
            if command.name in ("source", "."):
                self.unsure.append(
                    f"line {command.line} reads another file, which may set traps of its own"
                )
            elif requeues(command.words):
                self.requeues = self.requeues or command.line
            if len(self.launches) > _MAX_KEPT:
                continue
            events = by_command.get(id(command), [])
            for one in inside.read(command, at_start.get(id(command), {})):
                self._launch(command, one, flow, events)
        self.requeues = self.requeues or inside.requeues
        self.launches = [self._waited(launch) for launch in self.launches]

    def _starts(self, command: ShellCommand) -> bool:
        return starts_work(find_launch(command.words, self.shell.variables))

    def _known(self, flow: Flow) -> frozenset[str]:
        """The functions that are called, by the script or by its traps."""
        by_traps = {one.place.function for event in flow.events for one in event.handler.commands}
        return frozenset(flow.called | by_traps)

    def _uncalled(self, command: ShellCommand, known: frozenset[str]) -> None:
        name = command.place.function
        if not name or name in known:
            return
        if command.name == "trap":
            does = "sets a trap"
        elif starts_work(find_launch(command.words, self.shell.variables)):
            does = "stands"
        else:
            return
        self.unsure.append(f"line {command.line} {does} in {name}, which nothing is seen to call")

    def _trap(self, trap: Trap, *, certain: bool) -> None:
        if not certain:
            self.unsure.append(f"the trap in line {trap.line} is set only in some cases")
            trap = replace(trap, maybe=True)
        if trap.doubt:
            self.unsure.append(trap.doubt)
        self.traps.append(trap)

    def _launch(self, command: ShellCommand, one: Started, flow: Flow, events: list[Event]) -> None:
        place = command.place
        between = traps_above(flow, events[0]) if events and not one.by_srun else ()
        execs = any(event.replaces for event in events) or (one.evals and self.course.replaced)
        self.launches.append(
            Launch(
                line=command.line,
                text=command.text[:_SHOWN],
                outer=one.chain[0],
                inner=one.chain[-1],
                background=place.background or any(one.place.background for one in events),
                execs=execs,
                traps=(*between, *one.traps),
                settings=tuple(one.settings.values()),
                between=tuple(one.between.values()),
                program=one.program,
                stays=tuple(one.stays),
                around=tuple(one.around),
                piped=self._piped(command),
                loops=place.loops,
            )
        )

    def _piped(self, command: ShellCommand) -> tuple[str, ...]:
        if not command.place.pipeline:
            return ()
        return tuple(
            other.name.rsplit("/", 1)[-1]
            for other in self.shell.group(command.place.pipeline)[:_MAX_PIPED]
            if other is not command
        )

    def _waited(self, launch: Launch) -> Launch:
        if not launch.background:
            return launch
        last = max((wait.line for wait in self.waits), default=0)
        return replace(launch, waited=last >= launch.line)
