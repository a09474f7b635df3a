"""``slurmtop explain WORD``: what a word of a verdict, of Slurm or of a driver means."""

import difflib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from slurmtop.cli.errors import CANNOT_STATUS, FINE
from slurmtop.cli.options import Options
from slurmtop.model.text import visible
from slurmtop.parse.slurm.exit_codes import died_of, explain_code, launch_trouble, signal_name
from slurmtop.parse.slurm.reason_table import WORDS
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.states import parse_node_state, parse_state
from slurmtop.triage.catalogue import CATALOGUE
from slurmtop.triage.fault_classes import FAMILIES
from slurmtop.triage.mistaken import MISTAKEN_FOR
from slurmtop.triage.report import wrapped
from slurmtop.triage.state_words import NODE_WORDS, STATE_WORDS
from slurmtop.triage.verdict_words import ALSO_CALLED, LOG_WORDS, VERDICT_WORDS
from slurmtop.triage.xid import XidClass, xid_meaning

_WIDTH = 80
_NEAR = 5
_MOST_SIGNAL = 31
_MOST_CODE = 255
_NUMBER = re.compile(r"\d{1,5}")
_CODE_SIGNAL = re.compile(r"(\d{1,3}):(\d{1,3})")
_XID = re.compile(r"s?xid[ :_#-]{0,3}(\d{1,5})", re.IGNORECASE)
_SIGNAL = re.compile(r"signal[ :_#-]{0,3}(\d{1,2})", re.IGNORECASE)
_SIGNALS = {signal_name(number): number for number in range(1, _MOST_SIGNAL + 1)}
_REASONS = {word.lower(): word for word in WORDS}


@dataclass(frozen=True, slots=True)
class Explained:
    """One meaning of a word; ``kind`` says whose word it is. Empty: there is nothing to say."""

    word: str
    kind: str
    meaning: str
    mistaken_for: str = ""
    first_action: str = ""


def run(options: Options) -> int:
    """Print what is known. 0 when every word is, 1 when one is not."""
    asked = {word: tuple(explain(word)) for word in _words(options.words)}
    if options.json:
        rows = [
            {"word": word, "means": [asdict(one) for one in all]} for word, all in asked.items()
        ]
        print(json.dumps(rows, indent=1))
    else:
        known = [one for found in asked.values() for one in found]
        print("\n\n".join("\n".join(_lines(one)) for one in known), end="\n" if known else "")
    for word in (word for word, found in asked.items() if not found):
        print(f"slurmtop: {visible(unknown(word))}", file=sys.stderr)
    return FINE if all(asked.values()) else CANNOT_STATUS


def _words(words: Sequence[str]) -> Iterator[str]:
    """``xid 79`` and ``signal 7`` are one word each, and so is a family's name."""
    joined = " ".join(words)
    if len(words) > 1 and tuple(explain(joined)):
        yield joined
        return
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if (
            rest
            and word.lower() in ("xid", "sxid", "signal", "exit")
            and _NUMBER.fullmatch(rest[0])
        ):
            number = rest.pop(0)
            word = number if word.lower() == "exit" else f"{word} {number}"
        yield word


def explain(word: str) -> Iterator[Explained]:
    """Every meaning that ``word`` has, the likeliest first; nothing for an unknown word."""
    text = word.strip()
    if not text:
        return
    yield from _own_word(text)
    yield from _fault(text)
    yield from _state(text)
    yield from _reason(text)
    yield from _number(text)


def _own_word(text: str) -> Iterator[Explained]:
    """A state of a verdict, or what people call one or a class of fault."""
    word = " ".join(re.split(r"[\s_-]+", text.lower()))
    if word in VERDICT_WORDS:
        yield Explained(word, "state of a verdict", *VERDICT_WORDS[word])
    if word in LOG_WORDS:
        yield Explained(word, "word of logs", *LOG_WORDS[word])
    for other in ALSO_CALLED.get(word, ()):
        if other in VERDICT_WORDS:
            yield Explained(other, "state of a verdict", *VERDICT_WORDS[other])
        else:
            yield from _fault(other)


def _fault(text: str) -> Iterator[Explained]:
    slug = text.lower().replace("_", "-").replace(" ", "-")
    entry = CATALOGUE.get(slug)
    if entry is not None:
        mistaken = MISTAKEN_FOR.get(slug, "")
        kind = f"class of fault: {entry.family}"
        yield Explained(slug, kind, entry.meaning, mistaken, entry.first_action)
    family = next((name for name in FAMILIES if _plain(name) == _plain(text)), None)
    if family is not None:
        slugs = ", ".join(one.slug for one in CATALOGUE.values() if one.family == family)
        yield Explained(family, "family of faults", f"Its classes: {slugs}.")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _state(text: str) -> Iterator[Explained]:
    base = text.partition(" ")[0]
    state = parse_state(base)
    row = STATE_WORDS.get(state.word)
    if row is not None:
        yield Explained(state.word, "state of a job", *row)
    # Marks behind a node's state belong to it: idle*, mix-.
    node = parse_node_state(base)
    for name in (*((node.base,) if node.base else ()), *node.flags):
        if name in NODE_WORDS and name not in STATE_WORDS:
            yield Explained(name, "state of a node", *NODE_WORDS[name])


def _reason(text: str) -> Iterator[Explained]:
    if text.lower() == "unknown":
        return  # a word of the verdict; Slurm's for a reason that it does not know is None
    reason = explain_reason(_REASONS.get(text.lower(), text))
    if reason.kind != "unknown":
        yield Explained(
            reason.word, f"reason of Slurm ({reason.kind})", reason.meaning, "", reason.advice
        )


def _number(text: str) -> Iterator[Explained]:
    pair = _CODE_SIGNAL.fullmatch(text)
    if pair is not None:
        yield from _exit_pair(text, int(pair[1]), int(pair[2]))
    xid = _XID.fullmatch(text)
    if xid is not None:
        yield _xid(int(xid[1]))
    named = _SIGNALS.get(text.upper(), _SIGNALS.get(f"SIG{text.upper()}"))
    told = _SIGNAL.fullmatch(text)
    number = named if named is not None else int(told[1]) if told is not None else None
    if number is not None and 0 < number <= _MOST_SIGNAL:
        yield Explained(signal_name(number), f"signal {number}", f"{died_of(number)}.")
    if _NUMBER.fullmatch(text):
        code = int(text)
        if code <= _MOST_CODE:
            yield Explained(text, "exit code", _code_words(code), *_code_hints(code))
        if xid_meaning(code).cls is not XidClass.UNKNOWN:
            yield _xid(code)


def _exit_pair(text: str, code: int, signal: int) -> Iterator[Explained]:
    if signal > _MOST_SIGNAL:
        yield Explained(text, "exit code:signal", f"{launch_trouble(signal)}.")
    elif signal:
        yield Explained(text, "exit code:signal", f"It died of {died_of(signal)}.")
    elif code <= _MOST_CODE:
        yield Explained(text, "exit code:signal", _code_words(code), *_code_hints(code))


def _code_words(code: int) -> str:
    if code == 0:
        return "0: it ended well; beside a job that is not over it says nothing."
    words = explain_code(code)
    if words == str(code):
        return f"{code}: the program's own; its log or its manual tells what it stands for."
    return f"{words}."


def _code_hints(code: int) -> tuple[str, str]:
    """What it is taken for, and what to do."""
    if code == 137:
        return (
            "out of memory for sure: SIGKILL also comes from scancel and from the time limit.",
            "sacct -j JOB -o State,ExitCode and the kernel's log of the node tell which",
        )
    if code == 143:
        return ("a crash: somebody told it to end.", "sacct -j JOB -o State%40 tells who")
    if code in (0, 255):
        return ("", "")
    return ("", "read the first error of the log: slurmtop triage JOB")


def _xid(code: int) -> Explained:
    meaning = xid_meaning(code)
    mistaken = {
        XidClass.APPLICATION: "a broken GPU: usually the program's; the same GPU under several"
        " programs is hardware.",
        XidClass.HARDWARE: "a fault of the program: the hardware itself reports it.",
        XidClass.DRIVER: "a broken GPU: driver and firmware come first.",
        XidClass.LINK: "a fault of this GPU: the other end of the link may be the cause.",
        XidClass.INFO: "a cause: it follows from something before it.",
    }.get(meaning.cls, "")
    kind = f"Xid, {meaning.cls}"
    return Explained(f"Xid {code}", kind, f"{meaning.says}.", mistaken, meaning.action)


def unknown(word: str) -> str:
    """The sentence for a word that nobody knows, with the nearest that somebody does."""
    words = {
        **{slug: slug for slug in CATALOGUE},
        **{word: word for word in (*VERDICT_WORDS, *LOG_WORDS)},
        **{name.lower(): name for name in (*STATE_WORDS, *NODE_WORDS, *_SIGNALS)},
        **_REASONS,
    }
    lowered = word.strip().lower()
    near = [words[one] for one in difflib.get_close_matches(lowered, words, _NEAR, 0.6)]
    near += [words[one] for one in words if lowered and lowered in one]
    near = list(dict.fromkeys(near))[:_NEAR]
    if not near:
        return f"{word!r} is no class, state, reason, exit code or Xid that is known"
    return f"{word!r} is not known; near it: {', '.join(near)}"


def _lines(one: Explained) -> Iterator[str]:
    yield from wrapped(f"{visible(one.word)}  ({visible(one.kind)})", _WIDTH)
    for title, text in (
        ("means", one.meaning),
        ("not", one.mistaken_for),
        ("do", one.first_action),
    ):
        if text:
            first, *rest = wrapped(visible(text), _WIDTH - 7)
            yield f"{title:<7}{first}"
            yield from (f"{'':<7}{line}" for line in rest)
