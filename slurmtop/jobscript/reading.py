"""From the text of a batch script to what it says: directives, traps, launches, waits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from slurmtop.jobscript.directives import Directives, read_directives
from slurmtop.jobscript.launches import Found, expand, find_launch
from slurmtop.jobscript.shell import Effort, Shell, ShellCommand, Word, parse_shell
from slurmtop.jobscript.traps import read_trap
from slurmtop.model.script import SHELLS, Launch, Launcher, ScriptReading, Trap, Wait

#: What is read of a script; the controller hands out no more than this either.
MAX_SCRIPT: Final = 1024 * 1024
#: ``bash -c`` in ``bash -c``, functions that call functions.
_MAX_DEPTH: Final = 4
_MAX_NESTED: Final = 200
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
    work = _Work(shell, unsure, effort)
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


@dataclass(slots=True)
class _Work:
    shell: Shell
    unsure: list[str]
    effort: Effort
    traps: list[Trap] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    requeues: int | None = None
    nested: int = 0
    called: frozenset[str] = frozenset()

    def read(self) -> None:
        self.called = self._called()
        own_traps: dict[int, list[Trap]] = {}
        for command in self.shell.commands:
            if command.name in ("trap", "builtin", "command"):
                self._trap(command, own_traps)
            elif command.name == "wait" and command.place.shell == 0:
                self.waits.append(Wait(command.line, command.place.loops))
            elif command.name in ("source", "."):
                self.unsure.append(
                    f"line {command.line} reads another file, which may set traps of its own"
                )
            elif _requeues(command.words):
                self.requeues = self.requeues or command.line
            self._launch(command, own_traps)
        self.launches = [self._waited(launch) for launch in self.launches]

    def _called(self) -> frozenset[str]:
        """The functions that run in the script's own shell."""
        called: set[str] = set()
        for _ in range(_MAX_DEPTH):
            more = {
                command.name
                for command in self.shell.commands
                if command.name in self.shell.functions
                and command.place.shell == 0
                and (not command.place.function or command.place.function in called)
            }
            if more <= called:
                break
            called |= more
        return frozenset(called)

    def _trap(self, command: ShellCommand, own: dict[int, list[Trap]]) -> None:
        words = command.words
        while words and words[0].text in ("builtin", "command"):
            words = words[1:]
        if not words or words[0].text != "trap":
            return
        trap = read_trap(words, command.line, self.shell, self.effort)
        if trap is None:
            return
        place = command.place
        if place.shell != 0:
            own.setdefault(place.shell, []).append(trap)
            return
        if place.function and place.function not in self.called:
            self.unsure.append(
                f"line {command.line} sets a trap in {place.function}, "
                "which nothing is seen to call"
            )
            return
        if place.maybe:
            self.unsure.append(f"the trap in line {command.line} is set only in some cases")
            trap = replace(trap, maybe=True)
        if any(signal.startswith("$") for signal in trap.signals):
            self.unsure.append(f"the trap in line {command.line} names signals by a variable")
        self.traps.append(trap)

    def _launch(self, command: ShellCommand, own: dict[int, list[Trap]]) -> None:
        found = find_launch(command.words, self.shell.variables)
        between = own.get(command.place.shell, []) if command.place.shell else []
        launch = self._follow(found, command, tuple(between))
        if launch is None:
            return
        if launch.outer is Launcher.SRUN and between:
            launch = replace(launch, traps=launch.traps[len(between) :])
        self.launches.append(launch)
        if command.place.function and command.place.function not in self.called:
            self.unsure.append(
                f"line {command.line} stands in {command.place.function}, "
                "which nothing is seen to call"
            )

    def _follow(
        self, found: Found, command: ShellCommand, traps: tuple[Trap, ...]
    ) -> Launch | None:
        if found.shell_text is not None:
            traps = (*traps, *self._nested(found, command, 0))
        if not found.chain:
            return None
        if found.script is not None or command.fed:
            self.unsure.append(
                f"what {found.script or 'the text given to line ' + str(command.line)} "
                "does is not read"
            )
        place = command.place
        return Launch(
            line=command.line,
            text=command.text[:_SHOWN],
            outer=found.chain[0],
            inner=found.chain[-1],
            background=place.background,
            execs=found.execs and place.shell == 0,
            traps=traps,
            program=found.program,
            stays=tuple(found.stays),
            piped=self._piped(command),
            loops=place.loops,
        )

    def _nested(self, found: Found, command: ShellCommand, depth: int) -> list[Trap]:
        """Reads the string of a ``bash -c``: its traps; adds what it starts to ``found``."""
        text, line = found.shell_text or ("", command.line)
        self.nested += 1
        if depth >= _MAX_DEPTH or self.nested > _MAX_NESTED:
            self.unsure.append(f"the string in line {line} is nested too deep to be read")
            return []
        inner = parse_shell(expand(text, self.shell.variables), self.effort, line)
        if not inner.complete or inner.broken is not None:
            self.unsure.append(f"the string in line {line} could not be read as shell")
        traps: list[Trap] = []
        alone = sum(one.place.shell == 0 for one in inner.commands) == 1
        for one in inner.commands:
            if one.name == "trap":
                trap = read_trap(one.words, one.line, inner, self.effort)
                traps += [trap] if trap is not None else []
                continue
            if _requeues(one.words):
                self.requeues = self.requeues or one.line
            below = find_launch(one.words, {**self.shell.variables, **inner.variables})
            if below.shell_text is not None:
                traps += self._nested(below, one, depth + 1)
            if not below.chain:
                continue
            if found.stays and not found.evals and (below.execs or alone):
                found.stays.pop()
            found.chain += below.chain
            found.program = below.program
            found.stays += below.stays
            break
        else:
            if found.chain:
                found.chain.append(Launcher.OTHER)
        return traps

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


def _requeues(words: Sequence[Word]) -> bool:
    texts = [word.text for word in words[:8]]
    if texts[0].rsplit("/", 1)[-1] != "scontrol":
        return False
    return any(text in ("requeue", "requeuehold") for text in texts[1:])
