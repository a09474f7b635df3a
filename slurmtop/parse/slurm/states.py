"""State words of jobs and nodes, in every spelling that Slurm has used."""

from collections.abc import Iterable
from functools import lru_cache

from slurmtop.model.job import ENDED_STATES, JobState
from slurmtop.model.node import NodeState, Usable

_BASES = ENDED_STATES | {"PENDING", "RUNNING", "SUSPENDED"}
#: In the order in which squeue lets one flag win over the others.
_PRINTED_FLAGS = (
    "COMPLETING",
    "STAGE_OUT",
    "CONFIGURING",
    "EXPEDITING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
)
_FLAG_ORDER = {flag: place for place, flag in enumerate(_PRINTED_FLAGS)}
_SHORT = {
    "PD": "PENDING",
    "R": "RUNNING",
    "S": "SUSPENDED",
    "CD": "COMPLETED",
    "CA": "CANCELLED",
    "F": "FAILED",
    "TO": "TIMEOUT",
    "NF": "NODE_FAIL",
    "PR": "PREEMPTED",
    "BF": "BOOT_FAIL",
    "DL": "DEADLINE",
    "OOM": "OUT_OF_MEMORY",
    # The default squeue format cuts the three letters to two.
    "OO": "OUT_OF_MEMORY",
    "CG": "COMPLETING",
    "SO": "STAGE_OUT",
    "CF": "CONFIGURING",
    "RS": "RESIZING",
    "RQ": "REQUEUED",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "SE": "SPECIAL_EXIT",
    "ST": "STOPPED",
    "RV": "REVOKED",
    "RD": "RESV_DEL_HOLD",
    "SI": "SIGNALING",
}
_ALL_WORDS = (*sorted(_BASES), *_PRINTED_FLAGS)


@lru_cache(maxsize=4_096)
def parse_state(word: str) -> JobState:
    """A state word of squeue, sacct or scontrol, long, short or cut. Never raises.

    ``CANCELLED by 20017`` names who did it; ``OUT_OF_ME+`` is cut by padded sacct; ``OO`` is
    what is left of OOM in the default squeue format. A word that is not known is kept, as
    word and as flag, and its phase is unknown.
    """
    text, by, who = word.strip().partition(" by ")
    upper = text.upper()
    long = _SHORT.get(upper, upper)
    if long.endswith("+"):
        candidates = [name for name in _ALL_WORDS if name.startswith(long[:-1])]
        exact = long[:-1]
        if exact in _ALL_WORDS:
            long = exact
        elif len(candidates) == 1 and len(exact) > 1:
            long = candidates[0]
    by_uid = int(who) if by and len(who) <= 10 and who.isascii() and who.isdigit() else None
    if long in _BASES:
        return JobState(long, long, by_uid=by_uid)
    if long in _FLAG_ORDER:
        return JobState(long, None, (long,), by_uid)
    if upper in ("", "?"):
        return JobState("?", None)
    return JobState(word.strip(), None, (word.strip(),))


def parse_state_list(words: Iterable[str]) -> JobState:
    """The list that ``--json`` prints since 23.11, in any order: one base and its flags.

    The word is what squeue would print: a flag wins over the base. Words that are not known
    stay among the flags.
    """
    base: str | None = None
    flags: list[str] = []
    for item in words:
        upper = item.strip().upper()
        if upper in _BASES and base is None:
            base = upper
        elif upper and upper != "?" and upper not in flags:
            flags.append(upper)
    flags.sort(key=lambda flag: _FLAG_ORDER.get(flag, len(_FLAG_ORDER)))
    printed = next((flag for flag in flags if flag in _FLAG_ORDER), base)
    word = printed or next(iter(flags), "?")
    return JobState(word, base, tuple(flags))


_NODE_BASES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})
_SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
    "+": "COMPLETING",
}
#: Words of sinfo, and flags of older releases, in scontrol's present spelling.
_NODE_WORDS = {
    "UNK": "UNKNOWN",
    "ALLOC": "ALLOCATED",
    "ERR": "ERROR",
    "MIX": "MIXED",
    "FUTR": "FUTURE",
    "MAINT": "MAINTENANCE",
    "REBOOT": "REBOOT_REQUESTED",
    "BOOT": "REBOOT_REQUESTED",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN",
    "DRNG": "DRAIN",
    "FAILING": "FAIL",
    "FAILG": "FAIL",
    "COMP": "COMPLETING",
    "RESV": "RESERVED",
    "PLND": "PLANNED",
    "BLOCK": "BLOCKED",
    "INVAL": "INVALID_REG",
    "NO_RESPOND": "NOT_RESPONDING",
    "POWER": "POWERED_DOWN",
    "POW_DN": "POWERED_DOWN",
    "POW_UP": "POWERING_UP",
    "NPC": "PERFCTRS",
}
_NOT_USABLE = frozenset(
    {
        "DRAIN",
        "FAIL",
        "NOT_RESPONDING",
        "MAINTENANCE",
        "RESERVED",
        "REBOOT_REQUESTED",
        "REBOOT_ISSUED",
        "POWERING_DOWN",
        "POWER_DOWN",
        "POWER_DRAIN",
        "INVALID_REG",
        "BLOCKED",
        "EXTERNAL",
        "DYNAMIC_FUTURE",
    }
)
_POWER = frozenset({"POWERED_DOWN", "POWERING_UP", "POWER_UP"})
_NEUTRAL = frozenset({"CLOUD", "RESUME", "UNDRAIN", "REBOOT_CANCELED", "DYNAMIC_NORM", "PERFCTRS"})
_NODE_FLAGS = _NOT_USABLE | _POWER | _NEUTRAL | {"PLANNED", "COMPLETING"}
_BUSY_WORDS = frozenset({"DRAINING", "DRNG", "FAILING", "FAILG"})


def _node_words(text: str) -> list[str]:
    """``idle*`` is IDLE and NOT_RESPONDING; ``IDLE+DRAIN`` is IDLE and DRAIN."""
    words = []
    upper = text.strip().upper()
    if upper.endswith("+"):
        upper = upper[:-1] + "+COMPLETING"
    for part in upper.split("+"):
        suffixes = []
        while len(part) > 1 and part[-1] in _SUFFIXES:
            suffixes.append(_SUFFIXES[part[-1]])
            part = part[:-1]
        if part in ("REBOOT", "BOOT") and "REBOOT_ISSUED" in suffixes:
            part = "REBOOT_ISSUED"
        words.extend([part, *suffixes] if part else suffixes)
    return words


@lru_cache(maxsize=4_096)
def parse_node_state(text: str) -> NodeState:
    """A node's state as sinfo (``drained*``, ``mix-``) or scontrol (``IDLE+DRAIN``) prints it.

    Never raises. ``base`` is None where the word does not tell it: a ``drained`` node may be
    idle or down. A flag that is not known is kept and makes a usable node UNKNOWN.
    """
    base: str | None = None
    flags: list[str] = []
    busy = False
    for word in _node_words(text):
        busy = busy or word in _BUSY_WORDS
        name = _NODE_WORDS.get(word, word)
        if name in _NODE_BASES and base is None:
            base = name
        elif name != "?" and name not in flags:
            flags.append(name)
    unknown = tuple(flag for flag in flags if flag not in _NODE_FLAGS)
    return NodeState(
        text=text,
        base=base,
        flags=tuple(flags),
        unknown_flags=unknown,
        usable=_usable(base, frozenset(flags), bool(unknown)),
        may_run_jobs=busy or base in ("ALLOCATED", "MIXED") or "COMPLETING" in flags,
    )


def parse_node_state_list(words: Iterable[str]) -> NodeState:
    """The list that ``--json`` prints."""
    return parse_node_state("+".join(words))


def _usable(base: str | None, flags: frozenset[str], unknown: bool) -> Usable:
    if flags & _NOT_USABLE or base in ("DOWN", "ERROR", "FUTURE", "ALLOCATED"):
        return Usable.NO
    if "COMPLETING" in flags and base != "MIXED":
        return Usable.NO
    if unknown or base == "UNKNOWN" or (base is None and not flags):
        return Usable.UNKNOWN
    if flags & _POWER:
        return Usable.AFTER_POWER_UP
    if "PLANNED" in flags:
        return Usable.SPOKEN_FOR
    return Usable.YES if base is not None else Usable.UNKNOWN
