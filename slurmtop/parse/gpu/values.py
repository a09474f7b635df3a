"""Single values as GPU tools print them, and the many ways to print no value."""

import math
import re
from typing import Any

_NUMBER = re.compile(
    r"(?P<number>[+-]?\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,3})?)"
    r" ?(?:%|MiB|MB|W|MHz|C|us|ms|mJ|[GK]?B/s)?",
    re.ASCII,
)
_MARKED = re.compile(r"(?i)[+-]?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf(?:inity)?)|<<<\w+>>>")
_BUS = re.compile(
    r"(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<bus>[0-9a-fA-F]{2}):(?P<device>[0-9a-fA-F]{2})"
    r"(?P<function>\.[0-7])?"
)

_RATIO = (0.0, 2.0)
#: What a value of an attribute of GpuSample can be at all; from 0 for those that are not here.
#: Shares of DCGM go above 1 under MIG, so their limit is a loose one.
_RANGES: dict[str, tuple[float, float]] = {
    "util_percent": (0.0, 100.0),
    "mem_util_percent": (0.0, 100.0),
    "mem_used_mib": (0.0, 2.0**24),
    "mem_total_mib": (0.0, 2.0**24),
    "mem_reserved_mib": (0.0, 2.0**24),
    "temp_c": (-60.0, 250.0),
    "mem_temp_c": (-60.0, 250.0),
    "power_w": (0.0, 20_000.0),
    "power_limit_w": (0.0, 20_000.0),
    "sm_clock_mhz": (0.0, 20_000.0),
    "fan_percent": (0.0, 200.0),
    "ecc_uncorrected": (0.0, 2.0**63),
    "remapped_uncorrectable": (0.0, 65_536.0),
    "index": (0.0, 65_536.0),
    "xid": (0.0, 100_000.0),
    "graphics_active": _RATIO,
    "sm_active": _RATIO,
    "sm_occupancy": _RATIO,
    "tensor_active": _RATIO,
    "dram_active": _RATIO,
}
_FROM_ZERO = (0.0, math.inf)

#: DCGM's marks for "no value" (dcgm_structs.h), where raw numbers are printed.
_BLANK_INT32 = range(2_147_483_632, 2_147_483_648)
_BLANK_DOUBLE = 140_737_488_355_328


def number(text: str) -> float | None:
    """A plain decimal, with or without its unit; None for any word, NaN and infinity."""
    found = _NUMBER.fullmatch(text.strip())
    value = float(found["number"]) if found else math.inf
    return value if math.isfinite(value) else None


def dcgm_number(text: str) -> float | None:
    """:func:`number`, where DCGM's marks for "no value" are none (int32, int64, double)."""
    value = number(text)
    if value is None or value >= _BLANK_DOUBLE or value in _BLANK_INT32:
        return None
    return value


def possible(attribute: str, value: float) -> bool:
    """Can a GPU have this value? What cannot be is missing, as if it had not been told."""
    least, most = _RANGES.get(attribute, _FROM_ZERO)
    return least <= value <= most


def possible_or_none(attribute: str, value: Any) -> Any:
    """``value`` as it is; None for a number that no GPU can have (:func:`possible`)."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if plain and not possible(attribute, value) else value


def whole(text: str) -> int | None:
    """A whole number, decimal or with ``0x``."""
    bare = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", bare):
        return int(bare, 16)
    return int(bare) if re.fullmatch(r"-?[0-9]{1,18}", bare) else None


def yes_no(text: str) -> bool | None:
    """``Enabled``, ``Active``, ``Yes`` and their opposites."""
    word = text.strip().casefold()
    if word in ("enabled", "active", "yes"):
        return True
    return False if word in ("disabled", "not active", "no") else None


def bare_word(text: str) -> str:
    """``[GPU is lost]`` without brackets."""
    return text.strip().removeprefix("[").removesuffix("]").strip()


def words_or_none(text: str) -> str | None:
    """Text as it is; None where the tool says that there is none."""
    stripped = text.strip()
    return None if stripped.startswith("[") or is_nothing(stripped) else stripped


def is_nothing(text: str) -> bool:
    """Empty, ``-`` or a form of N/A: nothing was said and nothing is wrong."""
    return bare_word(text).casefold() in ("", "-", "n/a", "<<<null>>>")


def is_words(text: str) -> bool:
    """Something was said in the place of a number: an error, no plain mark for "no value"."""
    return not (is_nothing(text) or _MARKED.fullmatch(text.strip()))


def bus_id(text: str) -> str | None:
    """One spelling for all: ``00000000:3B:00.0`` and ``0000:3b:00`` give ``0000:3b:00[.0]``."""
    match = _BUS.fullmatch(text.strip())
    if match is None:
        return None
    domain = (match["domain"] or "0000").lower()
    if len(domain) == 8 and domain.startswith("0000"):
        domain = domain[4:]
    return f"{domain}:{match['bus']}:{match['device']}{match['function'] or ''}".lower()
