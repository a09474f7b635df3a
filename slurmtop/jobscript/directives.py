"""``#SBATCH`` lines, read as sbatch reads them (22.05, ``sbatch -vvvv --test-only``)::

    #SBATCH --job-name="my job" -t 5   # a comment
    #SBATCH --signal=B:USR1@300

They count from the first column, until the first line that is neither empty nor a comment. A
blank, even one behind a backslash, ends a word; ``#`` begins a comment anywhere but in quotes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slurmtop.jobscript.options import SHORT_LONG, long_name, short_takes_next, takes_value
from slurmtop.jobscript.signals import signal_word
from slurmtop.model.script import SignalRequest

_MARK = "#SBATCH"
_BLANKS = " \t\r\v\f"
#: Slurm's own time where ``--signal`` names none.
_DEFAULT_BEFORE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """``options`` are (line from 1, option as written, value or None), in order."""

    options: tuple[tuple[int, str, str | None], ...] = ()
    signal: SignalRequest | None = None
    open_mode: str | None = None
    requeue: bool | None = None
    unsure: tuple[str, ...] = ()


def read_directives(lines: list[str]) -> Directives:
    """What the directives of ``lines`` (a script without line ends) ask for; the last one counts.

    A stray word ends them, as it does for sbatch.
    """
    options: list[tuple[int, str, str | None]] = []
    signal: SignalRequest | None = None
    open_mode: str | None = None
    requeue: bool | None = None
    unsure: list[str] = []
    words = _words(lines, unsure)
    for line, option, value in _options(words, unsure):
        options.append((line, option, value))
        name = _name(option)
        if name == "signal" and value is not None:
            signal = _signal(value, line)
            if signal is None:
                unsure.append(f"the --signal in line {line} cannot be read")
        elif name == "open-mode" and value is not None:
            open_mode = {"a": "append", "t": "truncate"}.get(value[:1].lower())
        elif name == "requeue":
            requeue = True
        elif name == "no-requeue":
            requeue = False
    return Directives(
        options=tuple(options),
        signal=signal,
        open_mode=open_mode,
        requeue=requeue,
        unsure=tuple(unsure),
    )


def _words(lines: list[str], unsure: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        if not line.startswith(_MARK):
            bare = line.lstrip(_BLANKS)
            if bare and not bare.startswith("#"):
                return
            continue
        rest = line[len(_MARK) :]
        if rest.strip(_BLANKS) in ("hetjob", "packjob"):
            unsure.append(
                f"the directives behind line {number} are of the other parts of the het job"
            )
            return
        for word in split_directive(rest):
            yield number, word


def split_directive(text: str) -> list[str]:
    """The words of one directive: ``--comment="a b" -n2 # x`` gives two."""
    found: list[str] = []
    word: list[str] | None = None
    quote = ""
    escaped = False
    for char in text:
        if not quote and char in _BLANKS:
            if word is not None:
                found.append("".join(word))
            word, escaped = None, False
            continue
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
            word = word if word is not None else []
            continue
        elif quote and char == quote:
            quote = ""
            continue
        elif not quote and char in "\"'":
            quote = char
            word = word if word is not None else []
            continue
        elif not quote and char == "#":
            break
        word = word if word is not None else []
        word.append(char)
    if word is not None:
        found.append("".join(word))
    return found


def _options(
    words: Iterator[tuple[int, str]], unsure: list[str]
) -> Iterator[tuple[int, str, str | None]]:
    for line, word in words:
        if word.startswith("--") and len(word) > 2:
            option, equals, value = word.partition("=")
            if equals:
                yield line, option, value
            elif takes_value(option[2:]):
                yield line, option, next(words, (0, None))[1]
            else:
                yield line, option, None
        elif word.startswith("-") and len(word) > 1 and word != "--":
            if short_takes_next(word):
                yield line, word, next(words, (0, None))[1]
            elif word[1] in SHORT_LONG:
                yield line, word[:2], word[2:]
            else:
                yield line, word, None
        else:
            unsure.append(f"line {line} has a word that is no option; sbatch stops reading there")
            return


def _name(option: str) -> str:
    return long_name(option[2:]) if option.startswith("--") else SHORT_LONG.get(option[1:2], "")


def _signal(value: str, line: int) -> SignalRequest | None:
    """``[R|B:]USR1[@120]``; names in any case, with or without SIG, or numbers."""
    flags, colon, rest = value.partition(":")
    if not colon:
        flags, rest = "", value
    if flags.upper() not in ("", "B", "R", "RB", "BR"):
        return None
    word, at, before = rest.partition("@")
    signal = signal_word(word)
    if signal is None:
        return None
    seconds = _DEFAULT_BEFORE_S
    if at:
        if not (before.isascii() and before.isdigit() and len(before) < 10):
            return None
        seconds = int(before)
    return SignalRequest(signal=signal, before_s=seconds, to_batch="B" in flags.upper(), line=line)
