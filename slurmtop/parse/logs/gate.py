"""Which lines of a log are worth a look, and which reader is to see them: told from their bytes.

Most lines of a log repeat others up to their numbers, for example::

    iteration     500/  100000 | consumed samples: 128000 | elapsed time per iteration (ms): 812
    iteration     600/  100000 | consumed samples: 153600 | elapsed time per iteration (ms): 815

So the words are looked for once a *form*: the line without its digits. Of thousands of lines of
one form and one writer in one block only the first and the last ones are shown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import itemgetter
from typing import NamedTuple, TypeVar

from slurmtop.parse.logs.forms import Forms

_NO_DIGITS = b"0123456789"
_ZERO = b"0"
_MOST_FORMS = 20_000
_LONGEST_FORM = 400

#: Lines of one form and writer that are shown of a block, at its beginning and at its end.
_ENDS_SHOWN = 64
#: The same for lines that tell of progress alone.
_ENDS_PASSING = 4
_MOST_PASSING = 600

_RUN = re.compile(rb"[A-Za-z]+")
_MOST_RUNS = 50_000

#: Tags that tell writers apart, not the times among them.
_TAGS = re.compile(
    rb"(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?\]?:? ?)?"
    rb"((?:\s{0,8}\d{1,6}: |\[(?!\d{4}-)[\w.,=: -]{1,60}\](?:<\w{1,8}>)?:? ?|\([^()\n]{1,80}\) ?"
    rb"|[\w.-]{1,80}(?:: | >> )){0,4})"
)
_RANKS = re.compile(rb"[Rr](?:ank|ANK)\D{0,3}(\d+)")
#: Bytes of a line in which NCCL's name of the process is looked for.
_HEAD = 400
_PROCESS = re.compile(rb"[^\s:]{0,255}:\d{1,10}:\d{1,10} \[")

#: A communicator is never dropped for another.
_COMM = b" comm 0x"
#: Groups of lines that are told apart by one byte.
_MOST_MARKS = 255
#: So few lines of a group are found one by one.
_FEW = 256

Mask = tuple[int, ...]
T = TypeVar("T")


class Gate:
    """Knows the words of several readers. One object serves any number of sources.

    ``passing`` are the readers whose lines matter at the ends of a run of them only.
    """

    def __init__(self, words: Sequence[Sequence[bytes]], passing: frozenset[int] = frozenset()):
        self._words = [tuple(dict.fromkeys(words_of)) for words_of in words]
        self._numbered = [
            any(word.translate(None, _NO_DIGITS) != word for word in words_of) for words_of in words
        ]
        self._plain: list[tuple[int, bytes]] = []
        self._by_run: dict[bytes, list[int]] = {}
        for reader, words_of in enumerate(self._words):
            for word in {word.translate(None, _NO_DIGITS) for word in words_of}:
                run = max(_RUN.findall(word), key=len, default=b"")
                self._by_run.setdefault(run, []).append(len(self._plain))
                self._plain.append((reader, word))
        self._always = tuple(self._by_run.pop(b"", ()))
        self._runs: dict[bytes, tuple[int, ...]] = {}
        self._passing = passing
        self._masks: dict[bytes, Mask] = {}
        self._kinds: dict[bytes, _Kind] = {}

    def of(self, line: bytes) -> Mask:
        """The readers that are to see this line."""
        form = line.translate(None, _NO_DIGITS)
        mask = self._masks.get(form)
        if mask is None:
            mask = self._learn(form)
        return self._sure(mask, line) if mask else mask

    def pick(self, lines: Sequence[bytes], forms: Forms | None = None) -> dict[int, Mask]:
        """The lines that are worth a look, with their readers; ``forms`` are those of ``lines``."""
        forms = Forms(lines) if forms is None else forms
        known = self._kinds
        wanted: dict[bytes, _Kind] = {}
        for form in forms.kinds:
            kind = known.get(form)
            if kind is None:
                kind = self._kind(form)
            if kind.mask:
                wanted[form] = kind
        if not wanted:
            return {}
        alike: dict[bytes, list[_Kind]] = {}
        for kind in wanted.values():
            alike.setdefault(kind.bare, []).append(kind)
        out: dict[int, Mask] = {}
        for kinds, places in _groups(forms, list(alike.values())):
            self._pick_alike(lines, forms, kinds, places, out)
        self._drop_passing(lines, out)
        return dict(sorted(out.items()))

    def _kind(self, form: bytes) -> "_Kind":
        """What is known of all lines of this form."""
        bare = form.translate(None, _NO_DIGITS)
        mask = self._masks.get(bare)
        kind = _Kind(form, bare, self._learn(bare) if mask is None else mask)
        if len(form) <= _LONGEST_FORM:
            if len(self._kinds) >= _MOST_FORMS:
                self._kinds.clear()
            self._kinds[form] = kind
        return kind

    def _drop_passing(self, lines: Sequence[bytes], out: dict[int, Mask]) -> None:
        """Of very many lines that tell of progress alone the first and the last stay."""
        if len(out) <= _MOST_PASSING:
            return
        passing = self._passing
        places = sorted(
            at
            for at, mask in out.items()
            if passing.issuperset(mask) and b"ank" not in lines[at] and b"ANK" not in lines[at]
        )
        for at in places[_MOST_PASSING // 3 : -(2 * _MOST_PASSING // 3)]:
            del out[at]

    def _pick_alike(
        self,
        lines: Sequence[bytes],
        forms: Forms,
        kinds: Sequence["_Kind"],
        places: "_Places",
        out: dict[int, Mask],
    ) -> None:
        """Lines that are the same without their digits: of each writer those at the ends."""
        mask = kinds[0].mask
        ends = _ENDS_PASSING if self._passing.issuperset(mask) else _ENDS_SHOWN
        if places.count <= 2 * ends:
            shown = places.all()
        elif _one_writer(lines, kinds, places):
            shown = places.ends(ends)
        else:
            shown = []
            for of_one in _by_writer(lines, forms, kinds, places):
                few = len(of_one) <= 2 * ends
                shown += of_one if few else of_one[:ends] + of_one[-ends:]
        for at in shown:
            sure = self._sure(mask, lines[at])
            if sure:
                out[at] = sure

    def _learn(self, form: bytes) -> Mask:
        """Only words whose longest run of letters stands in one of the form's can be in it."""
        runs = self._runs
        possible: set[int] = set(self._always)
        for run in _RUN.findall(form):
            words = runs.get(run)
            if words is None:
                words = self._learn_run(run)
            if words:
                possible.update(words)
        found = (self._plain[at] for at in possible)
        mask = tuple(sorted({reader for reader, word in found if word in form}))
        if len(form) <= _LONGEST_FORM:
            if len(self._masks) >= _MOST_FORMS:
                self._masks.clear()
            self._masks[form] = mask
        return mask

    def _learn_run(self, run: bytes) -> tuple[int, ...]:
        words = tuple(at for key, places in self._by_run.items() if key in run for at in places)
        if len(self._runs) >= _MOST_RUNS:
            self._runs.clear()
        self._runs[run] = words
        return words

    def _sure(self, mask: Mask, line: bytes) -> Mask:
        """Without readers whose words hold digits that this line does not."""
        if not any(self._numbered[reader] for reader in mask):
            return mask
        holds = line.__contains__
        return tuple(
            reader
            for reader in mask
            if not self._numbered[reader] or any(map(holds, self._words[reader]))
        )


class _Kind:
    """All lines of one form: ``bare`` is the form without its digits."""

    __slots__ = ("_told", "bare", "form", "mask")

    def __init__(self, form: bytes, bare: bytes, mask: Mask) -> None:
        self.form = form
        self.bare = bare
        self.mask = mask
        self._told: _Told | None = None

    @property
    def told(self) -> "_Told":
        """What tells the writer of such a line from others."""
        if self._told is None:
            spans = _writer_spans(self.form)
            texts = tuple(self.form[start:end] for start, end in spans)
            self._told = _Told(spans, texts)
        return self._told


class _Told(NamedTuple):
    """Where in a line stands what tells its writer, and the form of what stands there."""

    spans: tuple[tuple[int, int], ...]
    texts: tuple[bytes, ...]

    def numbered(self) -> slice | None:
        """The part of the line with all that may differ; None where nothing does.

        What stands between the first and the last of them may differ, too: that only makes
        more groups, which come together again.
        """
        spans = [span for span, text in zip(self.spans, self.texts, strict=True) if _ZERO in text]
        if not spans:
            return None
        return slice(min(start for start, _ in spans), max(end for _, end in spans))

    def writer(self, line: bytes) -> tuple[bytes, ...]:
        return tuple(line[start:end] for start, end in self.spans)


class _Places:
    """Where in a block the lines of one group stand: ``marks`` holds a byte for each line."""

    def __init__(self, marks: bytes, number: int) -> None:
        self._marks = marks
        self._number = number
        self.count = marks.count(number)

    def of(self, what: Iterable[T]) -> Iterator[T]:
        """Of one thing for each line those of this group."""
        only = bytes(self._number) + b"\1" + bytes(255 - self._number)
        return compress(what, self._marks.translate(only))

    def all(self) -> list[int]:
        if self.count > _FEW:
            return list(self.of(range(len(self._marks))))
        found: list[int] = []
        at = self._marks.find(self._number)
        while at >= 0:
            found.append(at)
            at = self._marks.find(self._number, at + 1)
        return found

    def ends(self, count: int) -> list[int]:
        """The first and the last ``count`` of them; there are at least twice as many."""
        first: list[int] = []
        last: list[int] = []
        start, stop = 0, len(self._marks)
        for _ in range(count):
            first.append(self._marks.find(self._number, start))
            last.append(self._marks.rfind(self._number, 0, stop))
            start, stop = first[-1] + 1, last[-1]
        return first + last[::-1]


def _groups(
    forms: Forms, alike: Sequence[Sequence[_Kind]]
) -> Iterator[tuple[Sequence[_Kind], _Places]]:
    """The places of each group of kinds that are the same without digits."""
    for begin in range(0, len(alike), _MOST_MARKS):
        part = alike[begin : begin + _MOST_MARKS]
        numbers = {kind.form: at for at, kinds in enumerate(part, 1) for kind in kinds}
        marks = forms.numbered(numbers)
        for at, kinds in enumerate(part, 1):
            yield kinds, _Places(marks, at)


def _one_writer(lines: Sequence[bytes], kinds: Sequence[_Kind], places: _Places) -> bool:
    """Is it plain that one writer wrote all of these lines?"""
    told = kinds[0].told
    if any(_COMM in kind.form or kind.told != told for kind in kinds):
        return False
    numbered = told.numbered()
    return numbered is None or len(set(map(itemgetter(numbered), places.of(lines)))) == 1


def _by_writer(
    lines: Sequence[bytes], forms: Forms, kinds: Sequence[_Kind], places: _Places
) -> Iterable[list[int]]:
    """The places of each writer's lines, in order."""
    parts: dict[bytes, list[int]] = {kind.form: [] for kind in kinds}
    for at, form in zip(places.all(), places.of(forms.of), strict=True):
        parts[form].append(at)
    out: dict[tuple[bytes, ...], list[int]] = {}
    for kind in kinds:
        _add_writers(lines, kind, parts[kind.form], out)
    for of_one in out.values():
        of_one.sort()
    return out.values()


def _add_writers(
    lines: Sequence[bytes],
    kind: _Kind,
    places: Sequence[int],
    out: dict[tuple[bytes, ...], list[int]],
) -> None:
    """Add these places, all of one form, to those of the writers of their lines."""
    if _COMM in kind.form:
        comms = [at for at in places if _COMM in lines[at]]
        for at in comms:
            out.setdefault((lines[at],), []).append(at)
        places = sorted(set(places).difference(comms))
    told = kind.told
    numbered = told.numbered()
    if numbered is None:
        out.setdefault(told.texts, []).extend(places)
        return
    groups: dict[bytes, list[int]] = {}
    for at in places:
        groups.setdefault(lines[at][numbered], []).append(at)
    for group in groups.values():
        out.setdefault(told.writer(lines[group[0]]), []).extend(group)


def _writer_spans(form: bytes) -> tuple[tuple[int, int], ...]:
    """Where in a line of this form stands what tells its writer from others."""
    tags = _TAGS.match(form)
    spans, end = ([tags.span(1)], tags.end()) if tags else ([(0, 0)], 0)
    if form.find(b"ank", end) >= 0 or form.find(b"ANK", end) >= 0:
        spans += [found.span(1) for found in _RANKS.finditer(form, end)]
    if form.find(b"NCCL", end) >= 0 or form.find(b"] INFO ", end) >= 0:
        spans += [found.span() for found in _PROCESS.finditer(form[:_HEAD])]
    return tuple(spans)
