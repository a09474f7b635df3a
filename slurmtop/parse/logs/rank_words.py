"""What a program tells of its ranks, its rendezvous, and its own host memory.

Source: fairseq, Lightning, Accelerate, DeepSpeed, torch and what people write, for example::

    | initialized host node7 as rank 4
    Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8
    … lr 0.00065650 rank 0 RSS MEM USE: 161.09G
"""

import re
from typing import NamedTuple

_METHOD = r"(?:tcp|file|env)://[^\s'\",;)]{0,300}"
_INIT = re.compile(rf"distributed init \(rank (?P<rank>\d{{1,6}})\): (?P<method>{_METHOD})")
_HOST = re.compile(r"initialized host (?P<host>[^\n]{1,255}?) as rank (?P<rank>\d{1,6})\b")
_LIGHTNING = re.compile(
    r"Initializing (?:distributed|ddp): GLOBAL_RANK: (?P<rank>\d{1,6}), "
    r"MEMBER: \d{1,6}/(?P<world>\d{1,6})"
)
_METHOD_OF = re.compile(
    rf"(?:dist_|distributed_)?init_method['\"]?\s{{0,4}}[:=]\s{{0,4}}['\"]?(?P<method>{_METHOD})"
)
_WORLD = re.compile(
    r"(?i)(?<![\w-])(?:self\.)?(?:dist_|distributed_)?(?:world|global)[_ ]size['\"]?"
    r"\s{0,4}[:=]\s{0,4}(?P<world>\d{1,6})\b(?![.\d])"
)
_RANK = re.compile(
    r"(?i)(?<![\w-])(?:self\.)?(?P<key>dist_rank|global[_ ]rank|world[_ ]rank|process index|rank)"
    r"['\"]?\s{0,4}[:=]\s{0,4}(?P<rank>\d{1,6})\b(?![.\d])"
)
_RANK_OF = re.compile(r"(?i)\brank (?P<rank>\d{1,6})(?:/| of (?:world size )?)(?P<world>\d{1,6})\b")
_BEGINS = re.compile(
    r"(?i)\b(?:init(?:iali[sz]\w{1,6})?|setup|set up|distributed|start\w{0,3}|world\w{0,6}|hostname"
    r"|process index)\b|\bdist_"
)
#: Ranks of matrices.
_ALGEBRA = re.compile(r"(?i)lora|adapter|low[-_ ]?rank|matrix|svd|galore")
#: The checks of c10d and the lines of NCCL tell ranks of groups; they have their own readers.
_OTHERS = re.compile(
    r"NCCL|ProcessGroup|\[PG |CollectiveFingerPrint|store[_ -]based|nranks|WorkNCCL"
)
_ON_HOST = re.compile(
    r"(?i)\b(?:on (?:host|node)|host(?:name)?\s{0,2}[:=])\s{0,4}(?P<host>[\w.-]{1,255})"
)

_WORDS = (
    "rank",
    "Rank",
    "RANK",
    "size",
    "SIZE",
    "Size",
    "init_method",
    "Process index",
    "process i",
)


class Seen(NamedTuple):
    rank: int | None = None
    host: str | None = None
    world: int | None = None
    method: str | None = None


def rank_seen(text: str) -> Seen | None:
    """A rank, world or rendezvous that a line tells of set-up; no measured value."""
    if not any(word in text for word in _WORDS):
        return None
    if _OTHERS.search(text):
        return None
    if (found := _INIT.search(text)) is not None:
        return Seen(rank=int(found["rank"]), method=found["method"])
    if (found := _HOST.search(text)) is not None:
        return Seen(rank=int(found["rank"]), host=found["host"].strip())
    if (found := _LIGHTNING.search(text)) is not None:
        return Seen(rank=int(found["rank"]), world=int(found["world"]))
    method, world = _METHOD_OF.search(text), _WORLD.search(text)
    set_up = _BEGINS.search(text) is not None and _ALGEBRA.search(text) is None
    rank = _RANK.search(text) if set_up else None
    if rank is None and set_up and (found := _RANK_OF.search(text)) is not None:
        size = int(found["world"])
        if int(found["rank"]) < size:
            return Seen(rank=int(found["rank"]), world=size, host=_host(text))
    if method is None and world is None and rank is None:
        return None
    seen = Seen(
        rank=int(rank["rank"]) if rank else None,
        host=_host(text) if rank else None,
        world=int(world["world"]) if world else None,
        method=method["method"] if method else None,
    )
    if seen.rank is not None and seen.world is not None and seen.rank >= seen.world:
        return None
    return seen


def _host(text: str) -> str | None:
    found = _ON_HOST.search(text)
    return found["host"] if found else None


_SIZE = r"(?P<size>\d{1,9}(?:\.\d{1,6})?)\s?(?P<unit>[KMGT])(?:i?B)?\b"
_MEMORY = re.compile(
    r"(?i)(?:\brank (?P<rank>\d{1,6})[: ]{1,2})?\b(?:rss|maxrss|max_rss|resident set(?: size)?"
    r"|(?:cpu|host|system) mem(?:ory)?(?: used| usage| use)?)(?:[ _]mem(?:ory)?)?"
    r"(?:[ _]us(?:e|ed|age))?\s{0,3}[:=]?\s{0,3}(?:used\s{0,2}[:=]\s{0,3})?" + _SIZE
)
_DEEPSPEED = re.compile(r"CPU Virtual Memory:\s{1,4}used = " + _SIZE)
_MEMORY_WORDS = ("rss", "RSS", "mem", "Mem", "MEM", "esident")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_use(text: str) -> tuple[int, int | None] | None:
    """(bytes of the host's memory, the rank in front of it) that a program reports of itself."""
    if not any(word in text for word in _MEMORY_WORDS):
        return None
    found = _MEMORY.search(text)
    rank = int(found["rank"]) if found is not None and found["rank"] else None
    found = found or _DEEPSPEED.search(text)
    if found is None:
        return None
    return int(float(found["size"]) * _UNITS[found["unit"].upper()]), rank
