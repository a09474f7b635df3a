"""What the script of ``collect/nodes/stacks.py`` tells of the stacks of one node.

A line is a letter, a pid and values. A line that py-spy printed stands behind ``N``, parts of a
long one behind ``J`` before it (there the byte 1 is a newline). So no name of a frame or a thread
can look like a line of the script, and a secret in one does not hide the next::

    slurmtop-stacks 1
    I 1000 1
    S 4711 S
    N 4711 [
    N 4711 {
    N 4711 "thread_name": "MainThread",
    …
    E 4711 0 S own
    end

``I``: our uid, and Yama's ptrace_scope where there is one. ``S``: its state before. ``E``: exit
status of py-spy (13 refused, 124 and 137 out of time, 99 it never came back, 97 it printed more
than is read), its state afterwards, as whom it was run; of several readings the last one counts.
``G``: ended, or another process has its pid. ``B``: an earlier reader stands there. ``L``: no time
was left. ``X``: a tool that may not be run, and why.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, ThreadStack
from slurmtop.parse.dumps import stacks_words as words
from slurmtop.parse.dumps.masked import TextMask
from slurmtop.parse.dumps.stack_tools import parse_stack_tools
from slurmtop.parse.dumps.stacks import parse_py_spy_json
from slurmtop.parse.mask import MARK, mask

#: By this the script, and what it starts, are known among the processes of the node.
NAME = "slurmtop-stacks"
_FIRST = f"{NAME} 1".encode()
_PYTHON = re.compile(r"(python|pypy)[0-9.]*[td]?")
_TEXT = re.compile(rb'"(?:name|filename|thread_name)": ')
#: What py-spy prints beside texts: numbers, words of its own, brackets.
_NO_TEXT = re.compile(rb'(?:"[a-z_]{1,20}": )?(?:[0-9]{0,18}|true|false|null|[\[\]{}]{0,2}),?')
_SAID_BYTES = 8 * 1024
_NUMBER = re.compile(rb"[0-9]{1,18}")
_OUT_OF_TIME = (124, 137, 99)
_TOO_LONG = 97
_LIMIT_S = 5


@dataclass(slots=True)
class _Told:
    """What was told of one process so far."""

    parts: list[bytes] = field(default_factory=list)
    said: bytes | None = None
    code: int | None = None
    how: str = ""
    word: str = ""
    """The letter of a line that says why there is no reading."""


def parse_stacks_answer(
    stdout: bytes,
    host: str,
    asked: Sequence[NodeProcess],
    at: datetime,
    *,
    cut: Failure | None = None,
) -> tuple[ProcessStacks, ...]:
    """One entry for each process of ``asked``, in its order; ``cut`` for those of which nothing
    came. Total."""
    told: dict[int, _Told] = {process.pid: _Told() for process in asked}
    left: list[bytes] = []
    lines = stdout.split(b"\n")
    masks = TextMask()
    start = lines.index(_FIRST) + 1 if _FIRST in lines else len(lines)
    me = scope = None
    for line in lines[start:]:
        kind, _, rest = line.partition(b" ")
        if kind == b"I":
            me, scope = _numbers(rest)
        elif kind == b"X":
            left.append(b"stack-left " + (masks(rest) or MARK))
        else:
            _take(kind, rest, told, masks)
    no_tool = _no_tool(host, left)
    out = []
    for process in asked:
        one = told[process.pid]
        threads = _threads(one, process)
        failure = None
        if not threads:
            failure = _why(one, process, host, me, scope) or no_tool or cut
            failure = failure or words.not_told(host)
        out.append(_stacks(process, at, threads, failure))
    return tuple(out)


def without_stacks(
    processes: Iterable[NodeProcess], failure: Failure, at: datetime
) -> tuple[ProcessStacks, ...]:
    """An entry for each that was not read, all for one reason."""
    return tuple(_stacks(process, at, (), failure) for process in processes)


def _stacks(
    process: NodeProcess,
    at: datetime,
    threads: tuple[ThreadStack, ...],
    failure: Failure | None,
) -> ProcessStacks:
    return ProcessStacks(
        host=process.host,
        pid=process.pid,
        start_ticks=process.start_ticks,
        at=at,
        threads=threads,
        failure=failure,
    )


def _take(kind: bytes, rest: bytes, told: dict[int, _Told], masks: TextMask) -> None:
    word, _, rest = rest.partition(b" ")
    one = told.get(int(word)) if _NUMBER.fullmatch(word) else None
    if one is None:
        return
    if kind in (b"J", b"N"):
        # Line by line as it came, so that a bundle, whose bytes are masked, tells the very same.
        text = _masked(rest, masks)
        one.parts.append(_mended(text) + b"\n" if kind == b"N" else text)
    elif kind == b"E":
        code, _, after = rest.partition(b" ")
        one.code = int(code) if _NUMBER.fullmatch(code) else None
        one.how = after[2:].decode("ascii", "replace")
        one.said, one.parts = b"".join(one.parts).replace(b"\x01", b"\n"), []
    elif kind in (b"G", b"B", b"L"):
        one.word = kind.decode()


def _masked(line: bytes, masks: TextMask) -> bytes:
    if _NO_TEXT.fullmatch(line):
        return line
    masked = masks(line)
    if masked is not None:
        return masked
    member = _TEXT.match(line)
    return MARK if member is None else member[0] + MARK


def _mended(line: bytes) -> bytes:
    """A member whose name held half of a quoted secret, so that masking took its end as well."""
    member = _TEXT.match(line) if MARK in line else None
    if member is None:
        return line
    try:
        json.loads(b"{%s}" % line.rstrip(b","))
    except ValueError:
        return b'%s"%s",' % (member[0], MARK)
    return line


def _threads(one: _Told, process: NodeProcess) -> tuple[ThreadStack, ...]:
    if one.code != 0 or one.said is None or one.word:
        return ()
    return parse_py_spy_json(one.said, (process.pid, *process.inner_pids))


def _why(
    one: _Told,
    process: NodeProcess,
    host: str,
    me: int | None,
    scope: int | None,
) -> Failure | None:
    pid = process.pid
    by_letter = {
        "G": words.gone(pid),
        "B": words.late(pid),
        "L": words.no_time(pid),
    }
    if one.word:
        return by_letter[one.word]
    if one.said is None or one.code is None:
        return None
    if one.code in _OUT_OF_TIME:
        return words.out_of_time(pid, _LIMIT_S)
    if one.code == _TOO_LONG:
        return words.too_long(pid)
    # Once more: with its line breaks back a line that was torn is one.
    said = mask(one.said[:_SAID_BYTES]).decode("utf-8", "replace").strip()
    if one.code == 0:
        return Failure(
            Trouble.OTHER, f"what py-spy told of process {pid} cannot be read", raw=said[:2_000]
        )
    if words.is_sudo(said):
        return words.by_sudo(host, "py-spy", said)
    if words.is_denied(said):
        owner, user = process.uid, process.user
        return words.closed(host, said, scope=scope, me=me, owner=owner, user=user)
    return words.refused(host, pid, said, python=_is_python(process))


def _is_python(process: NodeProcess) -> bool:
    """By its command line: torch gives its processes another short name."""
    program = process.argv[0] if process.argv else process.name
    return _PYTHON.fullmatch(program.rsplit("/", 1)[-1]) is not None


def _no_tool(host: str, left: list[bytes]) -> Failure | None:
    return parse_stack_tools([*left, b"stack-end"], host)[1] if left else None


def _numbers(rest: bytes) -> tuple[int | None, int | None]:
    found = [int(word) if _NUMBER.fullmatch(word) else None for word in rest.split(b" ")]
    return (*found, None, None)[0], (*found, None, None)[1]
