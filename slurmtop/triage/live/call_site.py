"""Stacks of many ranks as a few classes: who stands at the same place, and where that is.

Two stacks are equal where the main threads stand in the same calls of the same files at the same
lines, once the frames are left out that say nothing: decorators that pass a call on, the
interpreter's and launchers' own way to the first line of a program, addresses of C code.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from slurmtop.model.process import RankProcess
from slurmtop.model.spans import span_text, spans_of
from slurmtop.model.stacks import Frame, ProcessStacks, ThreadStack
from slurmtop.triage.live.frames import is_own, own_frame, passes_on, plain_name

#: Ways to a program's first line: of the interpreter, of threads and processes, of launchers.
_WAYS_IN: tuple[tuple[str, frozenset[str]], ...] = (
    ("threading.py", frozenset({"_bootstrap", "_bootstrap_inner", "run"})),
    ("multiprocessing/process.py", frozenset({"_bootstrap", "run"})),
    ("multiprocessing/spawn.py", frozenset({"spawn_main", "_main"})),
    ("multiprocessing/forkserver.py", frozenset({"main", "_serve_one"})),
    ("multiprocessing/popen_fork.py", frozenset({"_launch", "__init__"})),
    ("torch/multiprocessing/spawn.py", frozenset({"_wrap"})),
    ("torch/distributed/elastic/multiprocessing/errors/__init__.py", frozenset({"wrapper"})),
    ("torch/distributed/elastic/multiprocessing/api.py", frozenset({"_wrap"})),
    ("concurrent/futures/thread.py", frozenset({"_worker", "run"})),
)
_PASSING = frozenset({"wrapper", "inner", "wrapped", "decorate_context", "decorate_autocast"})
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_INTERPRETER = ("<frozen runpy>", "<frozen importlib._bootstrap>")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackClass:
    """Ranks whose main threads stand at the same place.

    ``ranks`` are their numbers, rising; ``nameless`` counts those whose number is not known.
    ``frames`` are the frames that say something, innermost first. ``site`` is the innermost one of
    the program's own code, None where there is none. ``moved``: did the stack change since the
    look before? None: there was none to compare with. ``keys`` are the processes in it.
    """

    ranks: tuple[int, ...] = ()
    nameless: int = 0
    hosts: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    site: Frame | None = None
    moved: bool | None = None
    keys: frozenset[tuple[str, int, int]] = frozenset()

    @property
    def count(self) -> int:
        return len(self.ranks) + self.nameless

    @property
    def ranks_text(self) -> str:
        """``0-1,3``; empty where no number is known."""
        return ",".join(map(span_text, spans_of(self.ranks)))


def normalised(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """Those that say something, in their order."""
    return tuple(frame for frame in frames if not _says_nothing(frame))


def call_site(thread: ThreadStack | None) -> Frame | None:
    """The innermost frame of the program's own code; None where none was read."""
    return None if thread is None else own_frame(normalised(thread.frames))


def group_stacks(
    stacks: Iterable[ProcessStacks],
    ranks: Iterable[RankProcess],
    before: Iterable[ProcessStacks] = (),
) -> tuple[StackClass, ...]:
    """Classes of ``stacks`` of one look, the largest first, those with the lowest rank first among
    equals. Only processes in ``ranks`` count, once each, and only where a stack was read.
    ``before`` are the stacks of the look before.
    """
    numbers: dict[tuple[str, int, int], int | None] = {}
    for rank in ranks:
        numbers[rank.process.key] = rank.rank
        for process in rank.perhaps:
            numbers.setdefault(process.key, None)
    was = {one.key: _place(one) for one in before if _is_read(one)}
    found: dict[tuple[tuple[Frame, ...], bool | None], dict[tuple[str, int, int], int | None]] = {}
    for one in stacks:
        if one.key in numbers and _is_read(one):
            place = _place(one)
            moved = None if one.key not in was else was[one.key] != place
            found.setdefault((place, moved), {})[one.key] = numbers[one.key]
    classes = [_class(place, moved, keys) for (place, moved), keys in found.items()]
    return tuple(sorted(classes, key=_order))


def _class(
    place: tuple[Frame, ...], moved: bool | None, keys: dict[tuple[str, int, int], int | None]
) -> StackClass:
    ranks = sorted({number for number in keys.values() if number is not None})
    return StackClass(
        ranks=tuple(ranks),
        nameless=sum(number is None for number in keys.values()),
        hosts=tuple(sorted({host for host, _, _ in keys})),
        frames=place,
        site=own_frame(place),
        moved=moved,
        keys=frozenset(keys),
    )


def _order(one: StackClass) -> tuple[int, int, list[tuple[str, str, int]]]:
    first = one.ranks[0] if one.ranks else 1 << 62
    return -one.count, first, [(f.file, f.function, f.line or 0) for f in one.frames]


def _is_read(stacks: ProcessStacks) -> bool:
    return stacks.failure is None and stacks.main is not None


def _place(stacks: ProcessStacks) -> tuple[Frame, ...]:
    return () if stacks.main is None else normalised(stacks.main.frames)


def _says_nothing(frame: Frame) -> bool:
    if _ADDRESS.fullmatch(frame.function) or frame.file in _INTERPRETER:
        return True
    if is_own(frame):
        return False
    if passes_on(frame) or plain_name(frame) in _PASSING or frame.file.endswith("/runpy.py"):
        return True
    path = "/" + frame.file
    return any(plain_name(frame) in names and path.endswith(f"/{part}") for part, names in _WAYS_IN)
