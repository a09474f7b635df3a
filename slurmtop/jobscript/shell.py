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

#: More than this is no batch script that a person wrote. It also bounds the time.
MAX_BYTES: Final = 256 * 1024
MAX_NODES: Final = 100_000
#: The parser reports each 100 operations. Where the text is not shell at all each of them is
#: slow (it grows with what was skipped), so that broken text gets far less of them.
_REPORTS: Final = 40_000
_REPORTS_WITH_ERROR: Final = 300
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LOOPS = frozenset({"for_statement", "while_statement", "c_style_for_statement"})
_CHOICES = frozenset({"if_statement", "case_statement"})
_SUBSHELLS = frozenset({"subshell", "command_substitution", "process_substitution"})
_NOT_RUN = frozenset({"comment", "heredoc_start", "heredoc_end", "heredoc_content", "regex"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
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
    """Where a command stands. ``shell`` counts subshells: 0 is the script's own shell."""

    shell: int = 0
    background: bool = False
    function: str = ""
    loops: bool = False
    maybe: bool = False
    pipeline: int = 0
    assigns: bool = False


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command: its words without redirections and without ``NAME=value`` in front.

    ``ends`` is the line of its last word, ``text`` what is written, redirections not.
    ``fed`` is true where a here-document or here-string is its input.
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
class Shell:
    """What was found: ``variables`` hold the last literal text given to a name, ``functions``
    the names that are defined. ``broken`` is the first line that is no shell, ``complete`` false
    where reading stopped early."""

    commands: list[ShellCommand] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    broken: int | None = None
    complete: bool = True


_parser: Parser | None = None


def _the_parser() -> Parser:
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return _parser


def parse_shell(text: str, first_line: int = 1) -> Shell:
    """All commands of ``text``. Never raises; bounded by MAX_BYTES, MAX_NODES and the parser's
    own reports, and ``complete`` says when one of them was met."""
    shell = Shell()
    source = _CONTROL.sub("", text).encode("utf-8", errors="replace")
    if len(source) > MAX_BYTES:
        source, shell.complete = source[: source.rfind(b"\n", 0, MAX_BYTES) + 1], False
    reports = 0

    def enough(_offset: int, has_error: bool) -> bool:
        nonlocal reports
        reports += 1
        return reports > (_REPORTS_WITH_ERROR if has_error else _REPORTS)

    parser = _the_parser()
    try:
        tree = parser.parse(lambda at, _point: source[at : at + 65_536], progress_callback=enough)
    except ValueError:  # what the binding makes of a parse that was given up
        tree = None
    if tree is None:
        parser.reset()
        shell.complete = False
        return shell
    _Walk(shell, first_line).run(tree.root_node)
    return shell


class _Walk:
    """Goes through the tree with a stack of its own, so that no nesting is too deep."""

    def __init__(self, shell: Shell, first_line: int) -> None:
        self.found = shell
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
        elif kind == "variable_assignment":
            self.assignment(node)
        elif kind == "function_definition":
            name = node.child_by_field_name("name")
            known = _text(name) if name is not None else "?"
            self.found.functions.add(known)
            place = replace(place, function=known, shell=0, background=False, loops=False)
        elif kind in _SUBSHELLS:
            self.shells += 1
            place = replace(place, shell=self.shells)
        elif kind in _LOOPS:
            place = replace(place, loops=True, maybe=True)
        elif kind in _CHOICES:
            place = replace(place, maybe=True)
        elif kind == "pipeline":
            self.pipelines += 1
            place = replace(place, pipeline=self.pipelines)
        yield from self.children(node, place)

    def children(self, node: Node, place: Place) -> Iterator[tuple[Node, Place]]:
        children = node.children
        piped = node.type == "pipeline"
        after_first = False
        for at, child in enumerate(children):
            if not child.is_named:
                continue
            here = place
            follower = children[at + 1].type if at + 1 < len(children) else ""
            if follower == "&" or piped:
                self.shells += 1
                here = replace(
                    place, shell=self.shells, background=place.background or follower == "&"
                )
            if node.type == "list" and after_first:
                here = replace(here, maybe=True)
            after_first = True
            yield child, here

    def assignment(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None:
            self.found.variables[_text(name)] = word_of(value, 0).text

    def command(self, node: Node, place: Place) -> None:
        words: list[Word] = []
        fed = any(child.type == "herestring_redirect" for child in node.children)
        parent = node.parent
        if parent is not None and parent.type == "redirected_statement":
            fed = fed or any(
                child.type in ("heredoc_redirect", "herestring_redirect")
                for child in parent.children
            )
        for child in node.children:
            if not child.is_named or child.type in _REDIRECTS or child.type == "comment":
                continue
            if child.type == "variable_assignment" and not words:
                continue
            inner = child.named_child(0) if child.type == "command_name" else child
            words.append(word_of(inner if inner is not None else child, self.line(child)))
        if words and any(word.text for word in words[:1]):
            text = " ".join(_text(node).split())
            self.found.commands.append(
                ShellCommand(tuple(words), self.line(node), text, place, fed)
            )


def word_of(node: Node, line: int) -> Word:
    """The word that ``node`` stands for."""
    kind = node.type
    if kind == "word":
        return Word(re.sub(r"\\(\n|.)", _unescape, _text(node), flags=re.DOTALL), line)
    if kind == "raw_string":
        return Word(_text(node)[1:-1], line)
    if kind == "ansi_c_string":
        return Word(re.sub(r"\\(.)", lambda m: _ANSI.get(m[1], m[1]), _text(node)[2:-1]), line)
    if kind in ("string", "translated_string"):
        inside = re.sub(r'\\(["\\$`\n])', _unescape, _text(node).removeprefix("$")[1:-1])
        return Word(inside, line, not any(child.type in _EXPANDS for child in node.children))
    if kind == "concatenation":
        parts = [word_of(child, line) for child in node.named_children]
        return Word("".join(part.text for part in parts), line, all(part.literal for part in parts))
    return Word(_text(node), line, kind not in _EXPANDS)


def _unescape(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", errors="replace")
