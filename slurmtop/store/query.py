"""What a person types into the filter: words, ``key:value``, ``-`` in front for "not".

``train user:anna state:failed,pending gpu:>=8 -node:gpu07 "my run"``: every part must hold.
A word is looked for in everything a job says of itself, whatever columns are shown.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurmtop.store.query_keys import ALIASES, QUERY_KEYS, Seen, Test


@dataclass(frozen=True, slots=True)
class Query:
    """``error`` is a sentence where a part could not be understood; the other parts count.

    ``words`` (lower case) must all be in the text; ``tests`` must all be true. ``timed``
    means that the outcome may change while nothing but the time does.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    tests: tuple[Test, ...] = field(default=(), compare=False)
    error: str | None = None
    timed: bool = False

    def __bool__(self) -> bool:
        return bool(self.words or self.tests)

    def matches(self, seen: Seen) -> bool:
        # Plain loops: this runs 20,000 times for a key, and a generator costs more than a test.
        for word in self.words:
            if word not in seen.text:
                return False
        for test in self.tests:  # noqa: SIM110
            if not test(seen):
                return False
        return True


EMPTY = Query()


def parse_query(text: str) -> Query:
    """Take a filter apart. Never raises; what is wrong stands in ``Query.error``."""
    words: list[str] = []
    tests: list[Test] = []
    errors: list[str] = []
    timed = False
    for negated, key, compare, value in split_parts(text, ALIASES):
        if key is None:
            word = value.lower()
            if negated:
                tests.append(_not(_has_word(word)))
            else:
                words.append(word)
            continue
        name = ALIASES.get(key.lower())
        if name is None:
            errors.append(unknown_key(key, ALIASES, QUERY_KEYS))
            continue
        if not value:
            continue
        made = QUERY_KEYS[name](compare, value)
        if isinstance(made, str):
            errors.append(f"{name}: {made}")
            continue
        timed = timed or name == "time"
        tests.append(_not(made) if negated else made)
    return Query(
        text=text,
        words=tuple(words),
        tests=tuple(tests),
        error=errors[0] if errors else None,
        timed=timed,
    )


_PART = re.compile(
    r"(?P<not>[-!]?)"
    r"(?:(?P<key>[A-Za-z_]+)(?P<sep>:|(?=[<>=]))(?P<cmp>[<>]=?|==?)?)?"
    r"(?P<value>\"[^\"]*\"?|'[^']*'?|[^\s\"']\S*)?"
)


def split_parts(text: str, names: Mapping[str, str]) -> list[tuple[bool, str | None, str, str]]:
    """(negated, key, comparison, value) of each part; a quote that is left open ends at the end.

    ``names`` are the keys that are known: an unknown one is a key only where a colon follows.
    """
    out: list[tuple[bool, str | None, str, str]] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _PART.match(text, position)
        if match is None or match.end() == position:
            position += 1
            continue
        position = match.end()
        key, raw = match["key"], match["value"] or ""
        if key is not None and not match["sep"] and key.lower() not in names:
            # A name such as lr=0.1 is a word; only a colon makes an unknown key an error.
            key, raw = None, match[0][len(match["not"]) :]
        value = raw[1:].rstrip(raw[0]) if raw[:1] in ("'", '"') else raw
        if key is None and not value:
            continue
        out.append((bool(match["not"]), key, match["cmp"] or "", value))
    return out


def unknown_key(key: str, aliases: Mapping[str, str], keys: Iterable[str]) -> str:
    """A sentence for a key that is not there: ``aliases`` by every spelling, ``keys`` the names."""
    near = difflib.get_close_matches(key.lower(), aliases, n=1, cutoff=0.5)
    known = ", ".join(keys)
    if near:
        return f"no filter key {key!r}; did you mean {aliases[near[0]]!r}?"
    return f"no filter key {key!r}; there are {known}"


def _not(test: Test) -> Test:
    return lambda seen: not test(seen)


def _has_word(word: str) -> Test:
    return lambda seen: word in seen.text
