"""The commands of a shell script, in order, as tree-sitter's bash grammar sees them.

tree-sitter is imported only when a script is read: it costs about 25 ms once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

#: More than this is no batch script that a person wrote.
MAX_BYTES: Final = 64 * 1024
MAX_NODES: Final = 100_000
#: A pipeline costs the parser the square of its length, which none of its counts shows.
MAX_PIPES: Final = 2_000
#: The parser's scanner may look ahead to the end of the text at each word of what is no shell,
#: which makes its time quadratic. It fetches what it looks at in pieces of this size, so that
#: its work can be counted; its own reports come each 100 operations.
_PIECE: Final = 512
_REPORT_COST: Final = 50
_EFFORT: Final = 200_000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LOOPS = frozenset({"for_statement", "while_statement", "c_style_for_statement"})
_LEAVES = frozenset({"break", "exit", "return"})
_CHOICES = frozenset({"if_statement", "case_statement"})
_SUBSHELLS = frozenset({"subshell", "command_substitution", "process_substitution"})
_NOT_RUN = frozenset({"comment", "heredoc_start", "heredoc_end", "heredoc_content", "regex"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_FEEDS = frozenset({"heredoc_redirect", "herestring_redirect"})
_EXPANDS = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
)
_ANSI: Final = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its quotes taken off; expansions stand as they are written, ``literal`` is
    false for those. ``line`` is where it begins."""

    text: str
    line: int
    literal: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command stands. ``shell`` counts subshells: 0 is the script's own shell. ``maybe``
    is behind a condition of that shell, ``turns`` in a loop of it. ``guarded`` is where a failure
    does not end a script under ``set -e``, ``again`` where the script comes back to it though it
    failed."""

    shell: int = 0
    background: bool = False
    function: str = ""
    loops: bool = False
    maybe: bool = False
    pipeline: int = 0
    fed: bool = False
    guarded: bool = False
    again: bool = False
    turns: bool = False

    @property
    def certain(self) -> bool:
        """Does its shell surely run it, and once?"""
        return not self.maybe and not self.turns


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command: its words without redirections and without ``NAME=value`` in front.

    ``text`` is what is written, redirections not. ``fed`` is true where a here-document or
    here-string is its input.
    """

    words: tuple[Word, ...]
    line: int
    text: str
    place: Place
    fed: bool = False

    @property
    def name(self) -> str:
        return self.words[0].text


@dataclass(slots=True)
class Effort:
    """How much parsing is left, in pieces looked at: one count for a script with all its
    strings that are scripts again. A common script takes some hundred."""

    left: int = _EFFORT

    @property
    def spent(self) -> bool:
        return self.left <= 0


@dataclass(slots=True)
class Shell:
    """What was found: ``variables`` hold the last literal text given to a name, ``functions``
    the names that are defined, ``defined`` their lines, ``redefined`` those of which it is not
    certain what they do: defined more than once, in a subshell, or unset. ``parents``
    gives the shell that a subshell belongs to. ``broken`` is the first line that is no shell,
    ``complete`` false where reading stopped early."""

    commands: list[ShellCommand] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    redefined: set[str] = field(default_factory=set)
    defined: dict[str, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    broken: int | None = None
    complete: bool = True
    _groups: dict[str | int, list[ShellCommand]] | None = None

    def group(self, of: str | int) -> list[ShellCommand]:
        """The commands of a function (its name) or of a pipeline (its number)."""
        if self._groups is None:
            self._groups = {}
            for command in self.commands:
                for key in (command.place.function, command.place.pipeline):
                    if key:
                        self._groups.setdefault(key, []).append(command)
        return self._groups.get(of, [])


_parser: Parser | None = None


def _the_parser() -> Parser:
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return _parser


def parse_shell(text: str, effort: Effort, first_line: int = 1) -> Shell:
    """All commands of ``text``. Never raises; ``complete`` is false where the text is too long
    or would cost more than ``effort``."""
    shell = Shell()
    source = _CONTROL.sub("", text[: 2 * MAX_BYTES]).encode("utf-8", errors="replace")
    if len(source) > MAX_BYTES or len(text) > 2 * MAX_BYTES:
        source, shell.complete = source[: source.rfind(b"\n", 0, MAX_BYTES) + 1], False
    if source.count(b"|") > MAX_PIPES:
        shell.complete = False
        return shell

    def piece(at: int, _point: object) -> bytes:
        effort.left -= 1
        return b"" if effort.spent else source[at : at + _PIECE]

    def enough(_offset: int, _has_error: bool) -> bool:
        effort.left -= _REPORT_COST
        return effort.spent

    parser = _the_parser()
    try:
        tree = parser.parse(piece, progress_callback=enough)
    except ValueError:  # how the binding says that it was given up
        parser.reset()
        effort.left = 0
    if effort.spent:
        shell.complete = False
        return shell
    _Walk(shell, source, first_line).run(tree.root_node)
    return shell


class _Walk:
    """Goes through the tree with a stack of its own, so that no nesting is too deep."""

    def __init__(self, shell: Shell, source: bytes, first_line: int) -> None:
        self.found = shell
        self.source = source
        self.first_line = first_line
        self.shells = 0
        self.pipelines = 0

    def line(self, node: Node) -> int:
        return self.first_line + int(node.start_point[0])

    def run(self, root: Node) -> None:
        stack = [(root, Place())]
        seen = 0
        while stack:
            node, place = stack.pop()
            seen += 1
            if seen > MAX_NODES:
                self.found.complete = False
                return
            stack.extend(reversed(list(self.inside(node, place))))

    def inside(self, node: Node, place: Place) -> Iterator[tuple[Node, Place]]:
        """Looks at one node and gives what is to be looked at behind it."""
        kind = node.type
        if kind in _NOT_RUN:
            return
        if (node.is_error or node.is_missing) and self.found.broken is None:
            self.found.broken = self.line(node)
        if kind == "command":
            self.command(node, place)
        elif kind == "unset_command":
            self.found.redefined.update(self.text(node).split())
        elif kind == "variable_assignment":
            self.assignment(node)
        elif kind == "function_definition":
            name = node.child_by_field_name("name")
            known = self.text(name) if name is not None else "?"
            if known in self.found.functions or place.shell != 0:
                self.found.redefined.add(known)
            self.found.defined[known] = self.line(node)
            self.found.functions.add(known)
            place = Place(function=known, maybe=not place.certain)
        elif kind in _SUBSHELLS:
            place = self.subshell(place, aside=kind == "process_substitution")
        elif kind in _LOOPS:
            place = replace(place, loops=True, turns=True)
        elif kind == "negated_command":
            place = replace(place, guarded=True)
        elif kind in _CHOICES:
            place = replace(place, maybe=True)
        elif kind == "redirected_statement":
            place = replace(place, fed=any(child.type in _FEEDS for child in node.children))
        elif kind == "pipeline":
            self.pipelines += 1
            place = replace(place, pipeline=self.pipelines)
        yield from self.children(node, place)

    def children(self, node: Node, place: Place) -> Iterator[tuple[Node, Place]]:
        children = node.children
        piped = node.type == "pipeline"
        after_first = False
        conditional = node.type in ("if_statement", "while_statement")
        for at, child in enumerate(children):
            if not child.is_named:
                continue
            here = place
            follower = children[at + 1].type if at + 1 < len(children) else ""
            if follower == "&" or piped:
                here = self.subshell(place, aside=follower == "&")
            if node.type == "list" and after_first:
                here = replace(here, maybe=True)
            if follower in ("&&", "||"):
                behind = children[at + 2 : at + 3]
                leaves = follower == "||" and bool(behind) and self.leaves(behind[0])
                here = replace(here, guarded=True, again=here.again and not leaves)
            if conditional:
                tested = not any(one.type in ("then", "do_group") for one in children[: at + 1])
                here = replace(here, guarded=True) if tested else here
                if node.type == "while_statement":
                    back = (children[0].type == "until") != (child.type == "negated_command")
                    here = replace(here, again=back or not tested)
            after_first = True
            yield child, here

    def subshell(self, place: Place, *, aside: bool) -> Place:
        self.shells += 1
        self.found.parents[self.shells] = place.shell
        background = place.background or aside
        return replace(place, shell=self.shells, background=background, maybe=False, turns=False)

    def leaves(self, node: Node) -> bool:
        return bool(_LEAVES.intersection(self.text(node).split(maxsplit=1)[:1]))

    def assignment(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None:
            self.found.variables[self.text(name)] = self.word_of(value, 0).text

    def command(self, node: Node, place: Place) -> None:
        words: list[Word] = []
        fed = place.fed
        for child in node.children:
            fed = fed or child.type in _FEEDS
            if not child.is_named or child.type in _REDIRECTS or child.type == "comment":
                continue
            if child.type == "variable_assignment" and not words:
                continue
            inner = child.named_child(0) if child.type == "command_name" else child
            words.append(self.word_of(inner if inner is not None else child, self.line(child)))
        if words and words[0].text:
            text = " ".join(self.text(node).split())
            self.found.commands.append(
                ShellCommand(tuple(words), self.line(node), text, place, fed)
            )

    def word_of(self, node: Node, line: int) -> Word:
        """The word that ``node`` stands for."""
        kind = node.type
        if kind == "word":
            return Word(re.sub(r"\\(\n|.)", _unescape, self.text(node), flags=re.DOTALL), line)
        if kind == "raw_string":
            return Word(self.text(node)[1:-1], line)
        if kind == "ansi_c_string":
            return Word(
                re.sub(r"\\(.)", lambda m: _ANSI.get(m[1], m[1]), self.text(node)[2:-1]), line
            )
        if kind in ("string", "translated_string"):
            inside = re.sub(r'\\(["\\$`\n])', _unescape, self.text(node).removeprefix("$")[1:-1])
            return Word(inside, line, not any(child.type in _EXPANDS for child in node.children))
        if kind == "concatenation":
            parts = [
                self.word_of(child, line)
                if child.is_named
                else Word(self.text(child), line, literal=False)
                for child in node.children
            ]
            return Word(
                "".join(part.text for part in parts), line, all(part.literal for part in parts)
            )
        return Word(self.text(node), line, kind not in _EXPANDS)

    def text(self, node: Node) -> str:
        """What is written there. (The binding's own would ask the parser's reader again.)"""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", errors="replace")


def _unescape(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]
