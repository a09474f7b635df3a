"""AMD GPUs, the basic form: ``rocm-smi … --json`` and ``amd-smi metric --json``.

Derived from the documentation of both. rocm-smi has one object a card with sentences for keys
and every value as text, and may print warnings before it; amd-smi wraps a value and its unit::

    {"card0": {"GPU use (%)": "97", "Average Graphics Package Power (W)": "410.0"}}
    [{"gpu": 0, "usage": {"gfx_activity": {"value": 97, "unit": "%"}}}]
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from slurmtop.model.gpu import GpuSample
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.values import is_words, number, possible_or_none

_CARD = re.compile(r"card(?P<index>\d{1,4})")
_EXCERPT = 200
#: Beginnings of rocm-smi's keys, older spellings beside newer ones.
_ROCM = (
    ("GPU use (%)", "util_percent"),
    ("Average Graphics Package Power (W)", "power_w"),
    ("Current Socket Graphics Package Power (W)", "power_w"),
    ("Max Graphics Package Power (W)", "power_limit_w"),
    ("Temperature (Sensor junction) (C)", "temp_c"),
    ("Temperature (Sensor edge) (C)", "temp_c"),
    ("Temperature (Sensor memory) (C)", "mem_temp_c"),
)
_AMD = (
    (("usage", "gfx_activity"), "util_percent"),
    (("usage", "umc_activity"), "mem_util_percent"),
    (("power", "socket_power"), "power_w"),
    (("temperature", "hotspot"), "temp_c"),
    (("temperature", "mem"), "mem_temp_c"),
    (("mem_usage", "used_vram"), "mem_used_mib"),
    (("mem_usage", "total_vram"), "mem_total_mib"),
    (("clock", "gfx_0", "clk"), "sm_clock_mhz"),
)


def parse_amd(data: bytes) -> Parsed[GpuSample]:
    """Cards of either program. Never raises; what is no JSON is one bad record."""
    text = data.decode("utf-8", "replace")
    start = re.search(r"(?m)^[ \t]{0,40}[\[{]", text)
    if start is None:
        return (
            Parsed((), 1, BadRecord(0, "no JSON", text[:_EXCERPT])) if text.strip() else Parsed(())
        )
    try:
        tree, _ = json.JSONDecoder().raw_decode(text[start.start() :].lstrip())
    except (ValueError, RecursionError):
        return Parsed((), 1, BadRecord(0, "no JSON", text[start.start() :][:_EXCERPT]))
    return Parsed.of(_cards(tree))


def _cards(tree: Any) -> Iterator[GpuSample | BadRecord]:
    if isinstance(tree, dict) and isinstance(tree.get("gpu_data"), list):
        tree = tree["gpu_data"]
    if isinstance(tree, list):
        for place, card in enumerate(tree):
            index = card.get("gpu") if isinstance(card, dict) else None
            if isinstance(card, dict) and isinstance(index, int):
                yield _amd_card(index, card)
            else:
                yield BadRecord(place, "no card", str(card)[:_EXCERPT])
        return
    for place, (name, card) in enumerate(tree.items() if isinstance(tree, dict) else ()):
        found = _CARD.fullmatch(name)
        if found and isinstance(card, dict):
            yield _rocm_card(int(found["index"]), card)
        elif found:
            yield BadRecord(place, "no card", str(card)[:_EXCERPT])


def _rocm_card(index: int, card: dict[str, Any]) -> GpuSample:
    pairs = [(attribute, card[key]) for key, attribute in _ROCM if key in card]
    return _sample(index, pairs)


def _amd_card(index: int, card: dict[str, Any]) -> GpuSample:
    pairs: list[tuple[str, Any]] = []
    for path, attribute in _AMD:
        value: Any = card
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value = value.get("value")
        if value is not None:
            pairs.append((attribute, value))
    return _sample(index, pairs)


def _sample(index: int, pairs: list[tuple[str, Any]]) -> GpuSample:
    got: dict[str, Any] = {}
    words: list[tuple[str, str]] = []
    for attribute, raw in pairs:
        text = str(raw)[:_EXCERPT]
        value = possible_or_none(attribute, number(text))
        if got.get(attribute) is None:
            got[attribute] = value
        if is_words(text):
            words.append((attribute, text))
    return GpuSample(index=index, **got, words=tuple(words))
