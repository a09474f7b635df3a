"""What one command of a script starts, the strings of ``bash -c`` and ``eval`` looked into, each
with the signals that it starts with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from slurmtop.jobscript.course import course_of, started
from slurmtop.jobscript.flow import Event, Flow, Reader, follow
from slurmtop.jobscript.launches import Found, expand, find_launch
from slurmtop.jobscript.settings import Settings, doubted, joined, started_with
from slurmtop.jobscript.shell import Effort, Shell, ShellCommand, Word, parse_shell
from slurmtop.model.script import Launcher, Trap

#: ``bash -c`` in ``bash -c``.
_MAX_DEPTH: Final = 4
_MAX_NESTED: Final = 200


@dataclass(slots=True)
class Started:
    """One program at the end of what a command starts. ``settings`` are what it starts with,
    ``between`` what holds for the shells above it, ``traps`` those that were set on the way.
    ``by_srun`` is where slurmd starts it, which hands nothing on from the batch shell."""

    chain: list[Launcher]
    program: str
    stays: list[str]
    around: list[str]
    settings: Settings
    between: Settings = field(default_factory=dict)
    traps: tuple[Trap, ...] = ()
    by_srun: bool = False
    evals: bool = False


def starts_work(found: Found) -> bool:
    return bool(found.chain) or found.shell_text is not None


def requeues(words: Sequence[Word]) -> bool:
    """``scontrol requeue 4711``."""
    texts = [word.text for word in words[:8]]
    if texts[0].rsplit("/", 1)[-1] != "scontrol":
        return False
    return any(text in ("requeue", "requeuehold") for text in texts[1:])


def traps_above(flow: Flow, event: Event, *, own: bool = False) -> tuple[Trap, ...]:
    """The traps that were set before ``event`` by the subshells it stands in; with ``own`` by
    the first shell, too."""
    above = flow.above(event.shell) - (frozenset() if own else {0})
    out: list[Trap] = []
    for other in flow.events:
        if other is event:
            break
        if other.trap is not None and other.shell in above:
            out.append(other.trap)
    return tuple(out)


@dataclass(slots=True)
class Inside:
    """Reads what commands start. ``requeues`` is the line of a ``scontrol requeue`` in a string."""

    shell: Shell
    effort: Effort
    unsure: list[str]
    language: str
    requeues: int | None = None
    nested: int = 0

    def read(self, command: ShellCommand, start: Settings) -> Iterator[Started]:
        """What ``command``, which starts with ``start``, has running in the end."""
        found = find_launch(command.words, self.shell.variables)
        if found.script is not None or (command.fed and found.chain):
            self.unsure.append(
                f"what {found.script or 'the text given to line ' + str(command.line)} "
                "does is not read"
            )
        yield from self._started(found, command.line, start, self.shell.variables, 0)

    def _started(
        self,
        found: Found,
        line: int,
        start: Settings,
        variables: dict[str, str],
        depth: int,
    ) -> Iterator[Started]:
        by_srun = Launcher.SRUN in found.chain
        settings = start if found.evals and not by_srun else started_with(start, fresh=by_srun)
        if found.doubt:
            settings = doubted(settings, found.doubt)
        inner: list[Started] = []
        if found.shell_text is not None:
            inner = list(self._text(found, line, settings, variables, depth))
        for one in inner:
            yield replace(
                one,
                chain=[*found.chain, *one.chain],
                around=[*found.around, *one.around],
                by_srun=by_srun or one.by_srun,
                evals=found.evals,
            )
        if found.chain and not inner:
            chain = [*found.chain, Launcher.OTHER] if found.shell_text else found.chain
            yield Started(
                chain, found.program, found.stays, found.around, settings, by_srun=by_srun
            )

    def _text(
        self,
        found: Found,
        line: int,
        start: Settings,
        variables: dict[str, str],
        depth: int,
    ) -> Iterator[Started]:
        """What the string of a ``bash -c`` or an ``eval`` starts."""
        text, line = found.shell_text or ("", line)
        self.nested += 1
        if depth >= _MAX_DEPTH or self.nested > _MAX_NESTED:
            self.unsure.append(f"the string in line {line} is nested too deep to be read")
            return
        full = expand(text, variables)
        inner = parse_shell(full, self.effort, line)
        if not inner.complete or inner.broken is not None:
            self.unsure.append(f"the string in line {line} could not be read as shell")
        known = {**variables, **inner.variables}
        as_written = "" if full == text else " ".join(text.split())
        reader = Reader(
            language=found.stays[-1] if found.stays and not found.evals else self.language,
            effort=self.effort,
            starts_work=lambda one: starts_work(find_launch(one.words, known)),
            verbatim=lambda one: not as_written or one.text in as_written,
            fixed=found.fixed,
        )
        flow = follow(inner, reader)
        entry = {} if found.evals else start
        course = course_of(flow, inner, self.effort, start=start, entry=entry)
        holds = {one.signal: one for one in course.settings}
        at_start = started(flow, start, entry)
        alone = sum(one.place.shell == 0 for one in inner.commands) == 1
        stays = found.stays
        if stays and not found.evals and (course.replaced or alone):
            stays = stays[:-1]
        seen: set[int] = set()
        for event in flow.events:
            command = event.command
            if requeues(command.words):
                self.requeues = self.requeues or command.line
            if id(command) in seen:
                continue
            seen.add(id(command))
            below = find_launch(command.words, known)
            begins = at_start.get(id(command), {})
            for one in self._started(below, command.line, begins, known, depth + 1):
                fresh = one.by_srun
                yield replace(
                    one,
                    stays=one.stays if fresh else [*stays, *one.stays],
                    around=[*stays, *one.around] if fresh else one.around,
                    between={} if fresh else joined([holds, one.between]) if one.between else holds,
                    traps=one.traps if fresh else (*traps_above(flow, event, own=True), *one.traps),
                )
