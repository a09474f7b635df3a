"""The cases as data, and the registers of what the tests hold of them.

A case is a folder of ``tests/cases/slurm`` or ``tests/cases/gpu``: the commands (``cmd.txt``),
their raw answers, and ``expected.yaml`` with the right values and with sentences (``must``,
``must_not``). Every value is one parametrized test, every sentence and every value in prose one
function; the last test (``test_*_zz_coverage.py``) finds what was left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from slurmtop.model.ports import Completed
from tests.fakes import START

_SENTENCES = ("must", "must_not")
#: Maps that are one value.
_WHOLE = frozenset({"by_type"})

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Step:
    """One command of a case with the raw bytes of its answer."""

    n: int
    argv: tuple[str, ...]
    exit: int
    stdout: bytes
    stderr: bytes
    env: dict[str, str] = field(default_factory=dict)
    elapsed_s: float | None = None

    @property
    def completed(self) -> Completed:
        took_s = 0.1 if self.elapsed_s is None else self.elapsed_s
        return Completed(self.exit, self.stdout, self.stderr, START, took_s)


@dataclass(frozen=True, eq=False)
class Case:
    number: str
    steps: tuple[Step, ...]
    expected: Any
    values: dict[str, Any]
    """Every value by its path, e.g. ``001/rows/90012/limit_text``."""
    prose: dict[str, Any]
    """Those of them that are sentences."""

    def __getitem__(self, n: int) -> Step:
        return next(step for step in self.steps if step.n == n)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(_sentences(self.expected))


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _sentences(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _SENTENCES:
                yield from value
            else:
                yield from _sentences(value)
    elif isinstance(node, list):
        for item in node:
            yield from _sentences(item)


def _leaves(
    node: Any, path: str, names: tuple[str, ...], prose: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    name = path.rsplit("/", 1)[-1]
    if isinstance(node, dict) and name not in _WHOLE:
        for key, value in node.items():
            if key not in _SENTENCES:
                yield from _leaves(value, f"{path}/{key}", names, prose)
    elif isinstance(node, list) and (name in prose or any(isinstance(i, dict) for i in node)):
        for key, item in zip(_keys(node, names), node, strict=True):
            yield from _leaves(item, f"{path}/{key}", names, prose)
    else:
        yield path, node


def _keys(items: list[Any], names: tuple[str, ...]) -> list[str]:
    """Rows by the name they carry; by their place where that is not one each."""
    for name in names:
        found = [str(item.get(name)) for item in items if isinstance(item, dict) and name in item]
        if len(found) == len(items) == len(set(found)):
            return found
    return [str(place) for place in range(1, len(items) + 1)]


class Register:
    """One folder of cases, and what the tests hold of it.

    ``prose`` are the names of values that are sentences, ``prose_paths`` more of them by path;
    ``names`` are the fields that rows are told apart by.
    """

    def __init__(
        self,
        folder: str,
        *,
        names: tuple[str, ...],
        prose: frozenset[str],
        prose_paths: frozenset[str],
    ) -> None:
        self.folder = Path(__file__).parent / folder
        self.held_values: set[str] = set()
        self.held_sentences: set[tuple[str, str]] = set()
        self._names = names
        self._prose = prose
        self._prose_paths = prose_paths
        self._answers: dict[str, Callable[[Case], Any]] = {}
        self._cases: dict[str, Case] = {}

    def numbers(self) -> tuple[str, ...]:
        """All cases of the folder."""
        found = (path.name.partition("-")[0] for path in self.folder.iterdir() if path.is_dir())
        return tuple(sorted(set(found)))

    def load(self, number: str) -> Case:
        if number not in self._cases:
            self._cases[number] = self._read(number)
        return self._cases[number]

    def _read(self, number: str) -> Case:
        (folder,) = self.folder.glob(f"{number}-*")
        steps = []
        for document in yaml.safe_load_all((folder / "cmd.txt").read_text(encoding="utf-8")):
            if document is None:
                continue
            n = document["n"]
            steps.append(
                Step(
                    n=n,
                    argv=tuple(document["argv"]),
                    exit=document["exit"],
                    stdout=_bytes(folder / f"{n}.stdout"),
                    stderr=_bytes(folder / f"{n}.stderr"),
                    env=document.get("env") or {},
                    elapsed_s=document.get("elapsed_s"),
                )
            )
        expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
        values = dict(_leaves(expected, number, self._names, self._prose))
        prose = {path: value for path, value in values.items() if self._is_prose(path)}
        return Case(number, tuple(steps), expected, values, prose)

    def _is_prose(self, path: str) -> bool:
        parts = path.split("/")[1:]
        return path in self._prose_paths or any(part in self._prose for part in parts)

    def product(self, number: str) -> Callable[[F], F]:
        """Marks the function that runs slurmtop over a case and gives its values by name.

        What it returns has the shape of ``expected.yaml``, with rows by id instead of in a list.
        """

        def keep(function: F) -> F:
            assert number not in self._answers
            self._answers[number] = lru_cache(maxsize=1)(function)
            return function

        return keep

    def values(self, *cases: str) -> pytest.MarkDecorator:
        """Every value of ``cases`` that is no prose, one test each: (path, wanted)."""
        params = []
        for number in cases:
            for path, wanted in self.load(number).values.items():
                if not self._is_prose(path):
                    self.held_values.add(path)
                    params.append(pytest.param(path, wanted, id=path.replace("/", "-")))
        return pytest.mark.parametrize(("path", "wanted"), params)

    def found(self, path: str) -> Any:
        """What slurmtop made of the value at ``path``."""
        number, *names = path.split("/")
        value = self._answers[number](self.load(number))
        for name in names:
            value = value[name]
        return value

    def prose(self, *paths: str) -> Callable[[F], F]:
        """The test holds the values in prose at ``paths``; its doc is what stands there."""

        def keep(test: F) -> F:
            told = []
            for path in paths:
                number = path.partition("/")[0]
                assert test.__name__.startswith(f"test_case_{number}_"), test.__name__
                told.append(str(self.load(number).prose[path]))
                self.held_values.add(path)
            test.__doc__ = "; ".join(told)
            return test

        return keep

    def sentence(self, number: str, text: str) -> Callable[[F], F]:
        """The test holds one sentence of a case, which becomes its doc."""

        def keep(test: F) -> F:
            assert test.__name__.startswith(f"test_case_{number}_"), test.__name__
            assert text in self.load(number).sentences, f"not in {number}: {text!r}"
            assert (number, text) not in self.held_sentences, f"twice: {text!r}"
            test.__doc__ = text
            self.held_sentences.add((number, text))
            return test

        return keep


# The cases of Slurm's commands

SLURM = Register(
    "slurm",
    names=("id", "node", "leader", "cluster"),
    prose=frozenset({"results", "result", "note", "user_text_must_say", "must_not_say"}),
    prose_paths=frozenset(
        {
            "019/usable_now/n13",
            "029/rows/7501/name_visible",
            "029/rows/7502/name_visible",
            "036/at_t0/8001",
        }
    ),
)
#: Sentences that no test can hold: {case: {sentence: why}}.
UNTESTABLE: dict[str, dict[str, str]] = {}
HELD_VALUES, HELD_SENTENCES = SLURM.held_values, SLURM.held_sentences
numbers, load, found = SLURM.numbers, SLURM.load, SLURM.found
product, values, prose, sentence = SLURM.product, SLURM.values, SLURM.prose, SLURM.sentence

# The cases of the GPU tools

GPU = Register(
    "gpu",
    names=("index", "bus"),
    prose=frozenset(),
    prose_paths=frozenset(
        {"016/rows/6/note", "023/values/sm_active gpu2", "023/second", "023/third"}
    ),
)
