"""Trackable resources, generic resources and sizes.

The same eight GPUs stand in one text both with and without their type, a MIG slice counts
as a GPU there, and commas stand inside parentheses: all three have made other tools count
wrong.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from slurmtop.model.job import NO_TRES, Tres
from slurmtop.model.node import GresPool
from slurmtop.parse.slurm.words import NONE_WORDS

_UNITS = "KMGTPE"
#: Slurm's marker for "not set" is just below 2**64; nothing real comes near 2**63.
_TOO_MUCH = 2**63
_MAX_DIGITS = 20
_INDEX_LIMIT = 4_096
#: Generic resources that are counted here, and the kinds of a node's pools.
_GRES = ("gpu", "shard", "mps")
_SLICE = re.compile(r"(?:^|[^0-9a-z])[0-9]{1,2}g\.?[0-9]{1,4}gb", re.ASCII)


def _plain_number(text: str) -> bool:
    whole, _, decimals = text.partition(".")
    return (
        len(text) <= _MAX_DIGITS
        and whole.isascii()
        and whole.isdigit()
        and (not decimals or (decimals.isascii() and decimals.isdigit()))
    )


@lru_cache(maxsize=16_384)
def parse_count(text: str, base: int) -> float | None:
    """A number with an optional suffix K M G T P E: ``1.20M`` is 1,200,000 at ``base`` 1000.

    None for words, for ``?`` (Slurm's own sign for unknown) and for 2**63 and above.
    """
    digits, factor = text, 1
    if text[-1:].upper() in _UNITS and text:
        digits, factor = text[:-1], base ** (_UNITS.index(text[-1].upper()) + 1)
    if not _plain_number(digits):
        return None
    value = float(digits) * factor
    return None if value >= _TOO_MUCH else value


@lru_cache(maxsize=16_384)
def parse_mem(text: str, bare: str = "") -> int | None:
    """A memory size in bytes: ``62.50G``, ``29036860K``, ``4000M``, ``0``.

    ``bare`` is the unit of a number without one: "" bytes (sacct), "M" MiB (sinfo, scontrol
    and mem in a TRES text). None for words, ``?`` and unset markers.
    """
    if bare and text and text[-1].isdigit():
        text += bare
    if len(text) > 1 and text[-1] in "Bb":
        text = text[:-1]
    digits, unit = text, text[-1:].upper()
    factor = 1
    if unit and unit in _UNITS:
        digits, factor = text[:-1], 1024 ** (_UNITS.index(unit) + 1)
    if not _plain_number(digits):
        return None
    value = int(digits) * factor if digits.isdigit() else round(float(digits) * factor)
    return None if value >= _TOO_MUCH else value


def _whole(text: str) -> int | None:
    value = parse_count(text, 1_000)
    return None if value is None else int(value)


@lru_cache(maxsize=1_024)
def is_slice(gpu_type: str) -> bool:
    """Is this GPU type a MIG slice: ``1g.10gb``, ``a100_3g.40gb``, ``nvidia_a100_1g.5gb``?"""
    return _SLICE.search(gpu_type.lower()) is not None


def _split_outside(text: str) -> Iterator[str]:
    """Split at commas that are not inside parentheses; an open one runs to the end."""
    depth = start = 0
    for place, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _gres_name(text: str) -> tuple[str, str | None, int | None]:
    """(name, type, count) of ``gpu``, ``gpu:4``, ``gpu:h100`` or ``gpu:h100:4``.

    A missing count is 1. Count is None where a number was meant and could not be read.
    """
    parts = text.split(":")
    name = parts[0]
    count: int | None = 1
    if len(parts) > 1 and parts[-1][:1].isdigit() and _plain_number(parts[-1].rstrip(_UNITS)):
        count = _whole(parts[-1])
        parts = parts[:-1]
    type_text = ":".join(parts[1:])
    return name, None if type_text in NONE_WORDS else type_text, count


@lru_cache(maxsize=8_192)
def parse_tres(text: str) -> Tres:
    """A TRES text, or what squeue prints for ``tres-per-node``. Never raises.

    Samples: ``cpu=16,mem=64G,node=2,billing=16,gres/gpu=8,gres/gpu:h100=8`` (8 GPUs);
    ``gres:gpu:h100:4`` and ``gres/gpu:4`` (per node). Nothing said (empty, ``N/A``) is all
    None: ``N/A`` there does not mean "no GPU". What was used (``TRESUsageInTot`` of sacct) has
    ``gres/gpumem=36266M,gres/gpuutil=200``: neither is a number of GPUs.
    """
    if text in NONE_WORDS:
        return NO_TRES
    plain: dict[str, str] = {}
    typed: dict[str, int] = {}
    untyped: int | None = None
    shards: int | None = None
    mps: int | None = None
    gpu_mem: int | None = None
    gpu_util: int | None = None
    for item in _split_outside(text):
        name, equals, value = item.partition("=")
        if equals and not name.startswith("gres") and name.partition(":")[0] not in _GRES:
            plain[name] = value
            continue
        gres = name.removeprefix("gres/").removeprefix("gres:").partition("(")[0]
        kind, gpu_type, count = _gres_name(gres)
        if equals:
            kind, _, whole_type = gres.partition(":")
            gpu_type, count = whole_type or None, _whole(value)
        if kind == "gpumem":
            gpu_mem = parse_mem(value)
        elif kind == "gpuutil":
            gpu_util = count
        elif count is None:
            continue
        elif kind == "shard":
            shards = count if gpu_type is None or shards is None else max(shards, count)
        elif kind == "mps":
            mps = count if gpu_type is None or mps is None else max(mps, count)
        elif kind == "gpu" and gpu_type is None:
            untyped = count
        elif kind == "gpu" and gpu_type is not None:
            typed[gpu_type] = count
    whole = tuple(sorted((name, n) for name, n in typed.items() if not is_slice(name)))
    slices = tuple(sorted((name, n) for name, n in typed.items() if is_slice(name)))
    return Tres(
        cpus=_whole(plain.get("cpu", "")),
        nodes=_whole(plain.get("node", "")),
        mem_bytes=parse_mem(plain.get("mem", ""), "M"),
        # What was used, as sacct prints it, has a clock there and tells no number of GPUs.
        gpus=_gpus(
            whole, slices, untyped, said_all=bool(plain) and ":" not in plain.get("cpu", "")
        ),
        gpus_by_type=whole,
        slices_by_type=slices,
        shards=shards,
        energy_j=_whole(plain.get("energy", "")),
        gpu_mem_bytes=gpu_mem,
        gpu_util_percent=gpu_util,
        mps=mps,
    )


def _gpus(
    whole: tuple[tuple[str, int], ...],
    slices: tuple[tuple[str, int], ...],
    untyped: int | None,
    *,
    said_all: bool,
) -> int | None:
    """Whole GPUs, each once: the untyped entry counts every typed card and slice again."""
    by_type = sum(count for _, count in whole)
    if untyped is not None:
        return max(by_type, untyped - sum(count for _, count in slices))
    if whole or slices or said_all:
        return by_type
    return None


def times_nodes(per_node: Tres, node_count: int | None) -> Tres:
    """What ``tres-per-node`` means for the whole job; unknown where the nodes are unknown."""
    if node_count is None:
        return NO_TRES
    return Tres(
        gpus=None if per_node.gpus is None else per_node.gpus * node_count,
        gpus_by_type=tuple((name, n * node_count) for name, n in per_node.gpus_by_type),
        slices_by_type=tuple((name, n * node_count) for name, n in per_node.slices_by_type),
        shards=None if per_node.shards is None else per_node.shards * node_count,
        mps=None if per_node.mps is None else per_node.mps * node_count,
    )


def _index(text: str) -> tuple[int, ...] | None:
    """``0-1,5`` as numbers; ``N/A`` is none in use."""
    if text in NONE_WORDS:
        return ()
    found: list[int] = []
    for piece in text.split(","):
        low_text, dash, high_text = piece.partition("-")
        if not dash:
            high_text = low_text
        if "." in piece or not (_plain_number(low_text) and _plain_number(high_text)):
            return None
        low, high = int(low_text), int(high_text)
        if high < low or len(found) + high - low >= _INDEX_LIMIT:
            return None
        found.extend(range(low, high + 1))
    return tuple(found)


def _shares(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for piece in text.split(","):
        used, slash, total = piece.partition("/")
        if not slash or "." in piece or not (_plain_number(used) and _plain_number(total)):
            return ()
        found.append((int(used), int(total)))
    return tuple(found)


def _pools(text: str) -> dict[tuple[str, str | None], GresPool]:
    """One side of a gres text; ``total`` holds the count printed there."""
    pools: dict[tuple[str, str | None], GresPool] = {}
    if text in NONE_WORDS:
        return pools
    for item in _split_outside(text):
        name_part, note = _split_note(item)
        name, gpu_type, count = _gres_name(name_part)
        if name not in _GRES:
            continue
        kind = "slice" if name == "gpu" and gpu_type and is_slice(gpu_type) else name
        index = _index(note.removeprefix("IDX:")) if note.startswith("IDX:") else None
        shares = _shares(note) if "/" in note and not note.startswith("IDX:") else ()
        old = pools.get((kind, gpu_type))
        if old is not None:
            count = None if old.total is None or count is None else old.total + count
            index = None if old.index is None or index is None else old.index + index
            shares = old.shares + shares
        pools[kind, gpu_type] = GresPool(kind, gpu_type, count, None, index, shares)
    return pools


def _split_note(item: str) -> tuple[str, str]:
    """``gpu:h100:8(S:0-1)`` as ("gpu:h100:8", "S:0-1"); ``gpu:(null):4`` has no note."""
    item = item.strip().replace(":(null)", ":")
    name, _, note = item.partition("(")
    return name.replace("::", ":"), note.removesuffix(")")


@lru_cache(maxsize=8_192)
def parse_gres(text: str, used: str = "") -> tuple[GresPool, ...]:
    """GPUs, MIG slices, shards and MPS of a node, from its ``Gres`` and ``GresUsed``.

    Samples: ``gpu:h100:8(S:0-1)`` with ``gpu:h100:3(IDX:0-1,5)``;
    ``shard:a100:16(S:0)`` with ``shard:a100:6(2/8,4/8)``; ``mps:v100:200`` with
    ``mps:v100:100(100/100,0/100)``. A node without GPUs has ``(null)`` with ``gpu:0``: Slurm
    names every kind of the cluster among what is in use. Other kinds are left out. A pool
    whose use Slurm did not print has ``used`` None; a commas-in-parentheses list stays whole.
    """
    totals, in_use = _pools(text), _pools(used)
    pools = []
    for (kind, gpu_type), total in totals.items():
        found = in_use.pop((kind, gpu_type), None)
        if found is None and sum(1 for other, _ in totals if other == kind) == 1:
            # One side may be printed with the type and the other without.
            alone = [key for key in in_use if key[0] == kind and None in (key[1], gpu_type)]
            found = in_use.pop(alone[0]) if len(alone) == 1 else None
        pools.append(
            GresPool(
                kind,
                gpu_type,
                total.total,
                None if found is None else found.total,
                None if found is None else found.index,
                () if found is None else found.shares,
            )
        )
    for (kind, gpu_type), found in in_use.items():
        # Where Slurm tells what a node has, what is neither there nor in use is no pool.
        nothing = bool(text) and text != "N/A" and found.total == 0
        if not nothing and not any(other == kind for other, _ in totals):
            pools.append(GresPool(kind, gpu_type, None, found.total, found.index, found.shares))
    return tuple(pools)
