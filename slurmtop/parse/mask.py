"""Secrets out of anything that is written to a file: bundles, recordings, reports.

Works on raw bytes of any source (logs, environments, JSON, YAML, command lines)::

    export WANDB_API_KEY=3f2a...      ->  export WANDB_API_KEY=‹masked›
    {"hf_token": "hf_Abc...", "n": 3} ->  {"hf_token": "‹masked›", "n": 3}

The mark says nothing about what stood there. Lines stay where they were and everything a
parser reads (ids, hosts, states, exit codes, GPU uuids, hashes) stays as it was, so the same
verdict comes out of the masked bytes. Masking twice gives the same bytes as masking once. A
secret cut by the end of a line is masked too, and so is its rest on the next line where that
can be told.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from slurmtop.parse.mask_rules import (
    COLOUR,
    COLOUR_HINTS,
    GLUED,
    ID_AND_SECRET,
    KEY_LIKE,
    LINE,
    MAKERS,
    MARKED,
    NAMED_IF_RANDOM,
    NAMED_MAYBE,
    NAMED_PASSWORD,
    NAMED_SURE,
    NOTHING,
    PASSWORD_LINE,
    PEM,
    PEM_END,
    PEM_LINE,
    PLAIN_VALUE,
    QUOTED_REST,
    REST,
    ROOMY,
    SHAPES,
    SHAPES_BUT_WORDS,
    SHAPES_IF_RANDOM,
    SHAPES_IN_BRACKETS,
    TOKEN,
    TOKEN_HINTS,
    TOKENS,
    VALUE_FIRST,
    VOCABULARY,
    VOCABULARY_TOKEN,
)
from slurmtop.parse.mask_rules import MARK as MARK
from slurmtop.parse.mask_trigger import TRIGGER

_Match = re.Match[bytes]
#: What stands in place of a match, and where the search goes on (it may take in a next line).
_Handler = Callable[[_Match], tuple[bytes, int]]

_MARK = re.compile(MARKED + rb"\Z")
#: Lines after one that may hold a secret which are looked at together with it.
_REACH = 12


def _rest_of(match: _Match, end: int, missing: bytes | None = None) -> tuple[bytes, int]:
    """What the next lines hold of a secret that ran to the end of its line, masked."""
    out = b""
    pattern = REST
    if missing is not None:
        pattern = re.compile(rb"(\r?\n)" + missing + rb"(?![A-Za-z0-9_])")
    for _ in range(_REACH - 1):
        rest = pattern.match(match.string, end)
        if rest is None:
            break
        out += rest[1] + MARK
        end = rest.end()
        if missing is not None:
            break
    return out, end


def _is_key(body: bytes) -> bool:
    """Is this a key, and no name of a host or a tool, as ``pk-h100-compute-gpu04``?

    A part without hyphens of a name is a few letters and a few digits; in a key they take turns.
    """
    if MAKERS.match(body):
        return True
    parts = [part for part in re.split(rb"[_-]", body) if len(part) >= _LONG_PART]
    return any(map(_looks_random, parts)) or (len(body) >= 40 and _looks_random(body))


#: A part of a name is seldom longer.
_LONG_PART = 12
_SURELY_LONG = 24


def _looks_random(part: bytes) -> bool:
    kinds = [_kind(byte) for byte in part]
    if not {"lower", "upper"} & set(kinds) or "digit" not in kinds:
        return False
    turns = sum(one != next_one for one, next_one in pairwise(kinds)) / len(part)
    if {"lower", "upper"} <= set(kinds):
        return turns >= 0.35
    if len(part) >= _SURELY_LONG:
        return kinds.count("digit") >= 3
    return len(part) >= 20 and turns >= 0.2


def _kind(byte: int) -> str:
    letter = chr(byte)
    return "digit" if letter.isdigit() else "upper" if letter.isupper() else "lower"


def _mask_token(match: _Match) -> tuple[bytes, int]:
    number = next(index for index in range(len(TOKENS)) if match[f"b{index}"] is not None)
    _, alphabet, length, _ = TOKENS[number]
    body: bytes = match[f"b{number}"]
    if not KEY_LIKE.search(body) or (ROOMY.match(match[0]) and not _is_key(body)):
        return match[0], match.end()
    if length is None:
        rest, end = _rest_of(match, match.end())
    elif len(body) < length:
        rest, end = _rest_of(match, match.end(), alphabet + b"{%d}" % (length - len(body)))
    else:
        rest, end = b"", match.end()
    return MARK + rest, end


def _mask_named(spare: Callable[[bytes], bool], but: re.Pattern[bytes] | None = None) -> _Handler:
    """``spare`` tells of a value that it is no secret, ``but`` matches the end of such a name."""

    def handle(match: _Match) -> tuple[bytes, int]:
        opening: bytes = match["deep"] or match["double"] or match["single"] or b""
        value: bytes = match["inner"] or match["in2"] or match["in1"] or match["bare"]
        end = match.end()
        if match["bare"] and b"/" in value[1:] and _in_path(match):
            # The next part of a path is no part of the value.
            value = value[: value.index(b"/", 1)]
            end = match.start("bare") + len(value)
        if _MARK.match(value) or spare(value) or _ends_in(but, match, match.start()):
            return match.string[match.start() : end], end
        rest, end = _rest_of(match, end)
        if opening and not rest:
            torn = QUOTED_REST.match(match.string, end)
            if torn is not None:
                rest, end = torn[1] + MARK, torn.end()
            while (more := GLUED.match(match.string, end)) is not None:
                rest, end = rest + more["quotes"] + MARK, more.end()
        return match["name"] + match["sep"] + opening + MARK + rest, end

    return handle


#: Between the last slash of a path and the name in it.
_PART_OF_PATH = re.compile(rb"/[\w.+-]{0,100}\Z")


def _in_path(match: _Match) -> bool:
    start = match.start()
    return _PART_OF_PATH.search(match.string[max(0, start - 120) : start]) is not None


def _ends_in(words: re.Pattern[bytes] | None, match: _Match, at: int) -> bool:
    return words is not None and words.search(match.string[max(0, at - 10) : at]) is not None


def _mask_if(spare: Callable[[bytes], bool]) -> _Handler:
    def handle(match: _Match) -> tuple[bytes, int]:
        if _MARK.match(match["value"]) or spare(match["value"]):
            return match[0], match.end()
        rest, end = _rest_of(match, match.end())
        return match["name"] + MARK + rest, end

    return handle


_mask_value = _mask_if(lambda value: False)


def _mask_but_words(match: _Match) -> tuple[bytes, int]:
    """``--pad_token eos`` says no secret."""
    if VOCABULARY_TOKEN.search(match["name"]):
        return match[0], match.end()
    return _mask_value(match)


def _mask_block(match: _Match) -> tuple[bytes, int]:
    return match["name"] + LINE.sub(MARK, match["value"]), match.end()


def _is_nothing(value: bytes) -> bool:
    return NOTHING.match(value) is not None


def _is_plain(value: bytes) -> bool:
    return _is_nothing(value) or PLAIN_VALUE.match(value) is not None


def _is_not_random(value: bytes) -> bool:
    """A word, a number or a path: no key looks like that."""
    return (
        len(value) < 16
        or value[:1] in b"/.~$"
        or value.startswith(b"0x")
        or not re.search(rb"[0-9]", value)
        or not re.search(rb"[A-Za-z]", value)
    )


#: What a rule needs to see at all, its pattern, and what to do with a match.
_RULES: tuple[tuple[Sequence[bytes], re.Pattern[bytes], _Handler], ...] = (
    ([b"akia", b"asia"], ID_AND_SECRET, _mask_value),
    (TOKEN_HINTS, TOKEN, _mask_token),
    *((hints, shape, _mask_value) for hints, shape in SHAPES),
    *((hints, shape, _mask_but_words) for hints, shape in SHAPES_BUT_WORDS),
    *((hints, shape, _mask_but_words) for hints, shape in SHAPES_IN_BRACKETS),
    ([b"value"], VALUE_FIRST, _mask_value),
    *((hints, shape, _mask_if(_is_not_random)) for hints, shape in SHAPES_IF_RANDOM),
    ([b"pass"], PASSWORD_LINE, _mask_if(_is_nothing)),
    ([b"pass", b"secret", b"pwd"], NAMED_PASSWORD, _mask_named(_is_nothing)),
    ([b"key", b"pass", b"secret", b"string", b"x-amz"], NAMED_SURE, _mask_named(_is_nothing)),
    (
        [b"token", b"pass", b"_key", b"_pat", b"_auth", b"pw", b"session"],
        NAMED_MAYBE,
        _mask_named(_is_plain, VOCABULARY),
    ),
    (
        [b"key", b"pass", b"pat", b"auth", b"credential"],
        NAMED_IF_RANDOM,
        _mask_named(_is_not_random),
    ),
)


def _apply(pattern: re.Pattern[bytes], handle: _Handler, data: bytes) -> bytes:
    out: list[bytes] = []
    at = 0
    while (match := pattern.search(data, at)) is not None:
        new, end = handle(match)
        out += (data[at : match.start()], new)
        at = max(end, match.start() + 1)
    out.append(data[at:])
    return b"".join(out)


def _mask_lines(lines: bytes) -> bytes:
    """All rules until nothing changes: what one rule masked may be what another looked for."""
    while True:
        before, lowered = lines, lines.lower()
        for hints, pattern, handle in _RULES:
            # A mask holds no such word, so what stood there at first is all that can stand there.
            if any(hint in lowered for hint in hints):
                lines = _apply(pattern, handle, lines)
        if lines == before:
            return lines


def _mask_once(data: bytes) -> bytes:
    if b"-----BEGIN " in data:
        data = _apply(PEM, _mask_block, data)
    if b"-----END " in data:
        data = _mask_torn_keys(data)
    lowered = data.lower()
    out: list[bytes] = []
    at = 0
    while (hit := TRIGGER.search(lowered, at)) is not None:
        start = max(at, data.rfind(b"\n", 0, hit.start()) + 1)
        # Up to _REACH quiet lines belong to the last line with a trigger in it.
        end = _window_end(lowered, hit.end())
        out += (data[at:start], _mask_lines(data[start:end]))
        at = end
    out.append(data[at:])
    return b"".join(out)


def is_key_line(line: bytes) -> bool:
    """Is this a line of a private key, or of what else is written in base64?"""
    return PEM_LINE.fullmatch(line) is not None


def _mask_torn_keys(data: bytes) -> bytes:
    """The lines before the end of a private key whose start is not there."""
    out: list[bytes] = []
    at = 0
    for end in PEM_END.finditer(data):
        lines = data[at : end.start()].split(b"\n")
        # The last piece is what stands on the line of the end itself.
        first = len(lines) - 1
        while first > 0 and is_key_line(lines[first - 1]):
            first -= 1
        lines[first:-1] = [LINE.sub(MARK, line) for line in lines[first:-1]]
        out += (b"\n".join(lines), end[0])
        at = end.end()
    out.append(data[at:])
    return b"".join(out)


def _window_end(lowered: bytes, at: int) -> int:
    while True:
        end = at
        for _ in range(_REACH):
            line_end = lowered.find(b"\n", end)
            if line_end < 0:
                return len(lowered)
            end = line_end + 1
        hit = TRIGGER.search(lowered, at, end)
        if hit is None:
            return end
        at = hit.end()


def mask(data: bytes) -> bytes:
    """``data`` with every secret replaced by :data:`MARK`; other bytes as they were, but that a
    line with a secret in it loses its colours."""
    look = _mask_coloured if any(hint in data for hint in COLOUR_HINTS) else _mask_once
    while True:
        masked = look(data)
        if masked == data:
            return masked
        data = masked


def _mask_coloured(data: bytes) -> bytes:
    """As the eye reads it: colours end a word where others touch it, and cut none in pieces."""
    return _mask_beside(_mask_beside(data, _A_COLOUR), b"")


#: A byte that stands in no word, in the place of each.
_A_COLOUR = b"\x1b"


def _mask_beside(data: bytes, instead: bytes) -> bytes:
    plain = COLOUR.sub(instead, data)
    masked = _mask_once(plain)
    if masked == plain:
        return data
    lines = zip(data.split(b"\n"), plain.split(b"\n"), masked.split(b"\n"), strict=True)
    return b"\n".join(
        line if was == now else now.replace(_A_COLOUR, b"") for line, was, now in lines
    )


def mask_text(text: str) -> str:
    """The same for text; what is no UTF-8 in it (lone surrogates) comes out as ``?``."""
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def mask_told(value: Any) -> Any:
    """The same for frozen data: every text in it, and in what it holds, of any depth."""
    # Words of ours (enumerations) are texts too, and no secrets.
    if type(value) is str:
        return mask_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        now = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **{name: mask_told(one) for name, one in now.items()})
    if type(value) is tuple:
        return tuple(mask_told(one) for one in value)
    return value


def mask_json(value: Any) -> Any:
    """The same for what is to be written as JSON: every text in it, value by value. Keys stay."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {key: mask_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [mask_json(one) for one in value]
    return value
