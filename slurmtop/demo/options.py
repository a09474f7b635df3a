"""Command lines of Slurm's programs, and the words they use when one is wrong."""

import getopt
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed. ``took_s`` is how long it made one wait; ``waits_s`` is what it
    waits itself, by the clock of the cluster."""

    rc: int = 0
    out: bytes = b""
    err: bytes = b""
    took_s: float = 0.05
    waits_s: float = 0.0


def said(
    out: str = "", err: str = "", rc: int = 0, took_s: float = 0.05, waits_s: float = 0.0
) -> Answer:
    """An answer in text; bytes that were no UTF-8 come back as they went in."""
    return Answer(
        rc,
        out.encode("utf-8", "surrogateescape"),
        err.encode("utf-8", "surrogateescape"),
        took_s,
        waits_s,
    )


class Misused(Exception):
    """The command line is wrong; ``answer`` is what the real program says then."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.err.decode("utf-8", "replace"))
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Options:
    """``given`` holds the last value of each option by its canonical name ("" for a flag)."""

    given: dict[str, str]
    words: tuple[str, ...]

    def has(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str) -> str | None:
        return self.given.get(name)


@dataclass(frozen=True, slots=True)
class Table:
    """The options of one program: canonical (long) name to short letter, "" without one."""

    program: str
    flags: dict[str, str]
    values: dict[str, str]
    hint: bool = True
    """Most programs add a line that names ``--help``; sacct does not."""

    def parse(self, argv: Sequence[str]) -> Options:
        """Read ``argv`` (without the program). :class:`Misused` with the real words."""
        shorts = "".join(letter for letter in self.flags.values() if letter)
        shorts += "".join(f"{letter}:" for letter in self.values.values() if letter)
        longs = [*self.flags, *(f"{name}=" for name in self.values)]
        try:
            pairs, words = getopt.gnu_getopt(list(argv), shorts, longs)
        except getopt.GetoptError as error:
            raise Misused(said(err=self._complaint(error), rc=1)) from None
        letters = {letter: name for name, letter in (self.flags | self.values).items() if letter}
        given: dict[str, str] = {}
        for option, value in pairs:
            name = option[2:] if option.startswith("--") else letters[option[1:]]
            given[name] = value
        return Options(given, tuple(words))

    def _complaint(self, error: getopt.GetoptError) -> str:
        name = error.opt
        takes = error.msg.endswith("requires argument")
        if len(name) == 1 and name not in self.flags and name not in self.values:
            text = "option requires an argument" if takes else "invalid option"
            line = f"{self.program}: {text} -- '{name}'"
        elif takes:
            line = f"{self.program}: option '--{name}' requires an argument"
        elif "must not have an argument" in error.msg:
            line = f"{self.program}: option '--{name}' doesn't allow an argument"
        elif "unique prefix" in error.msg:
            line = f"{self.program}: option '--{name}' is ambiguous"
        else:
            line = f"{self.program}: unrecognized option '--{name}'"
        return line + "\n" + (f'Try "{self.program} --help" for more information\n' * self.hint)
