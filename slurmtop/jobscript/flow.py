"""The commands of a shell script in the order in which they run, functions put in where they
are called, each with what is certain of it: the ground for what is said of traps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from slurmtop.jobscript.handler import NO_HANDLER, Handler
from slurmtop.jobscript.shell import Effort, Place, Shell, ShellCommand, Word, parse_shell
from slurmtop.jobscript.traps import read_trap
from slurmtop.jobscript.usual import is_usual, reads_known_file, sets_up_known_program
from slurmtop.model.script import Trap

_MAX_DEPTH = 6
_MAX_EVENTS = 2_000
_MAX_STEPS = 20_000
_RUNS_TEXT = frozenset({"trap", "eval", "source", ".", "builtin", "command", "exec"})


class What(Enum):
    TRAP = auto()
    WORK = auto()
    """A command that starts something: work, or what is not known to be short."""
    WAIT = auto()
    OPAQUE = auto()
    """What it runs is not in the script: it may set any trap."""
    ERREXIT = auto()
    PLAIN = auto()


@dataclass(frozen=True, slots=True)
class Event:
    """``shell`` counts the shells as they are started; 0 is the script's own. ``certain`` and
    ``place`` are as seen from the start of that shell. ``text`` says what an OPAQUE one does,
    ``starts`` is work and not just what is not known to be short. ``on`` is a ``set -e`` and
    not a ``set +e``, or an ``exec``."""

    what: What
    line: int
    shell: int
    place: Place
    command: ShellCommand
    trap: Trap | None = None
    handler: Handler = NO_HANDLER
    starts: bool = False
    text: str = ""
    on: bool = False

    @property
    def certain(self) -> bool:
        return self.place.certain

    @property
    def replaces(self) -> bool:
        """Is it an ``exec`` that surely takes the place of the script's own shell?"""
        return self.what is What.WORK and self.on and self.shell == 0 and self.certain


@dataclass(slots=True)
class Flow:
    """``parents`` gives the shell that a shell was started by, ``called`` the functions that
    are called. ``complete`` is false where not all could be followed."""

    events: list[Event] = field(default_factory=list)
    parents: dict[int, int] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    complete: bool = True

    def above(self, shell: int) -> frozenset[int]:
        """``shell`` and all that stand above it."""
        found = {shell}
        while shell in self.parents and self.parents[shell] not in found:
            shell = self.parents[shell]
            found.add(shell)
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Reader:
    """How the text of a shell is read: ``verbatim`` tells whether a command stands in the script
    as it is, and does not come out of a variable; ``fixed`` is a text without variables."""

    language: str
    effort: Effort
    starts_work: Callable[[ShellCommand], bool]
    verbatim: Callable[[ShellCommand], bool] = lambda _: True
    fixed: bool = True


def follow(shell: Shell, reader: Reader) -> Flow:
    """The events of ``shell`` from its first command to its last."""
    walk = _Follow(shell, reader, Flow())
    walk.run([one for one in shell.commands if not one.place.function], Place(), (), {})
    walk.flow.complete = (
        walk.flow.complete and shell.complete and shell.broken is None and not walk.cut
    )
    return walk.flow


@dataclass(slots=True)
class _Follow:
    shell: Shell
    reader: Reader
    flow: Flow
    shells: int = 0
    steps: int = 0
    cut: bool = False

    def run(
        self,
        commands: list[ShellCommand],
        at: Place,
        stack: tuple[str, ...],
        shells: dict[int, int],
    ) -> None:
        """Follows the commands of one body, called from ``at``. ``shells`` maps the subshells
        that the text counts to those that are started."""
        shells = {0: at.shell, **shells}
        gone = False
        for command in commands:
            self.steps += 1
            if len(self.flow.events) >= _MAX_EVENTS or self.steps > _MAX_STEPS:
                self.cut = True
                return
            place = self._place(command, at, shells)
            if gone:
                place = replace(place, maybe=True)
            name = command.name
            if name in self.shell.functions:
                self._call(name, command, place, stack)
                continue
            if name == "return" and stack and command.place.shell == 0:
                if command.place.certain:
                    return
                gone = True
            elif name == "exit" and place.shell == 0 and place.certain:
                return
            for event in self._events(command, place):
                self.flow.events.append(event)
                if event.what is What.WORK and event.replaces:
                    return

    def _place(self, command: ShellCommand, at: Place, shells: dict[int, int]) -> Place:
        """Where ``command`` stands, seen from the start of the script."""
        own = command.place
        shell = self._shell(own.shell, shells)
        first = own.shell == 0
        return replace(
            own,
            shell=shell,
            background=own.background or at.background,
            maybe=own.maybe or (first and at.maybe),
            turns=own.turns or (first and at.turns),
            loops=own.loops or at.loops,
            guarded=own.guarded or at.guarded,
            again=own.again or at.again,
        )

    def _shell(self, static: int, shells: dict[int, int]) -> int:
        chain: list[int] = []
        while static not in shells:
            chain.append(static)
            static = self.shell.parents.get(static, 0)
        for one in reversed(chain):
            self.shells += 1
            self.flow.parents[self.shells] = shells[static]
            shells[one] = self.shells
            static = one
        return shells[static]

    def _call(self, name: str, command: ShellCommand, place: Place, stack: tuple[str, ...]) -> None:
        if name in stack or len(stack) >= _MAX_DEPTH:
            self.cut = self.cut or name not in stack
            return
        self.flow.called.add(name)
        early = not stack and command.line < self.shell.defined.get(name, 0)
        if early or name in self.shell.redefined:
            place = replace(place, maybe=True)
        body = [one for one in self.shell.group(name) if one.place.function == name]
        self.run(body, place, (*stack, name), {})

    def _events(self, command: ShellCommand, place: Place) -> Iterator[Event]:
        words = command.words
        while len(words) > 1 and words[0].text in ("builtin", "command"):
            if words[1].text.startswith("-"):
                break
            words = words[1:]
        name = words[0].text
        event = Event(What.PLAIN, command.line, place.shell, place, command)
        if name == "trap":
            found = read_trap(
                words, command.line, self.shell, self.reader.effort, self.reader.language
            )
            if found is not None:
                trap, handler = found
                if not self.reader.verbatim(command):
                    doubt = f"the trap in line {command.line} comes out of a variable"
                    trap = replace(trap, doubt=doubt, indirect=True)
                yield replace(event, what=What.TRAP, trap=trap, handler=handler)
        elif name == "wait":
            yield replace(event, what=What.WAIT)
        elif name == "eval":
            yield from self._eval(words, event)
        elif name in ("source", "."):
            if len(words) < 2 or not reads_known_file(words[1].text):
                yield replace(event, what=What.OPAQUE, text="reads another file")
        elif name == "set":
            yield from _errexit(words, event)
        elif self._hidden(words):
            yield replace(event, what=What.OPAQUE, text="runs what is in a variable")
            yield replace(event, what=What.WORK, starts=True)
        elif name == "exec":
            if len(words) > 1:
                yield replace(event, what=What.WORK, on=True, starts=True)
        elif self.reader.starts_work(command):
            yield replace(event, what=What.WORK, starts=True)
        elif not is_usual(words):
            yield replace(event, what=What.WORK)

    def _hidden(self, words: tuple[Word, ...]) -> bool:
        """A variable in the place of the command that is known to hold a builtin, or that is
        read as shell together with the rest."""
        first = words[0]
        if first.literal:
            return False
        known = self.shell.variables.get(first.text.strip("${}"), "").split()
        return not self.reader.fixed or bool(_RUNS_TEXT.intersection(known[:1]))

    def _eval(self, words: tuple[Word, ...], event: Event) -> Iterator[Event]:
        if sets_up_known_program(" ".join(word.text for word in words[1:])):
            return
        yield event
        text = " ".join(word.text for word in words[1:])
        if not all(word.literal for word in words):
            yield replace(event, what=What.OPAQUE, text="runs what is put together from variables")
            yield replace(event, what=What.WORK, starts=self.reader.starts_work(event.command))
            return
        inner = parse_shell(text, self.reader.effort, event.line)
        if not inner.complete or inner.broken is not None:
            yield replace(event, what=What.OPAQUE, text="runs what could not be read")
            return
        for one in inner.commands:
            if one.name in self.shell.functions or one.name == "eval":
                yield replace(event, what=What.OPAQUE, text="runs a function by eval")
                continue
            place = self._place(one, event.place, {0: event.shell})
            yield from self._events(one, place)


def _errexit(words: tuple[Word, ...], event: Event) -> Iterator[Event]:
    for at, word in enumerate(words[1:], start=1):
        text = word.text
        follows = words[at + 1].text if at + 1 < len(words) else ""
        if text[:1] not in ("-", "+") or text == "--":
            return
        if "e" in text[1:] or (text.endswith("o") and follows == "errexit"):
            yield replace(event, what=What.ERREXIT, on=text[0] == "-")
