"""A node's state, GPUs and reason in a few words, the same on the screen and in plain output."""

from datetime import datetime

from slurmtop.model.node import Node, Usable
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text

#: (flag, sign, word), the gravest first. A sign says the same as the word, where colour is gone.
_FLAGS = (
    ("INVALID_REG", "✗", "invalid"),
    ("FAIL", "✗", "failing"),
    ("DRAIN", "▽", "drained"),
    ("MAINTENANCE", "◇", "maint"),
    ("REBOOT_ISSUED", "◇", "rebooting"),
    ("REBOOT_REQUESTED", "◇", "reboot"),
    ("POWERING_DOWN", "◇", "power down"),
    ("POWER_DOWN", "◇", "power down"),
    ("POWER_DRAIN", "◇", "power down"),
    ("RESERVED", "◇", "reserved"),
    ("BLOCKED", "◇", "blocked"),
    ("EXTERNAL", "◇", "external"),
    ("POWERING_UP", "~", "power up"),
    ("POWER_UP", "~", "power up"),
    ("POWERED_DOWN", "~", "power off"),
    ("PLANNED", "◔", "planned"),
)
_BASES = {
    "IDLE": ("○", "idle"),
    "MIXED": ("◐", "mixed"),
    "ALLOCATED": ("●", "allocated"),
    "FUTURE": ("◇", "future"),
}
#: What a state means, where no reason says more.
_MEANINGS = {
    "no answer": "slurmd does not respond: no job starts here",
    "down*": "slurmd does not respond",
    "maint": "in a maintenance reservation",
    "reboot": "reboots once its jobs have ended",
    "rebooting": "is being rebooted",
    "reserved": "kept by a reservation",
    "planned": "kept for a job that waits",
    "power off": "switched off to save power: starts when a job needs it",
    "power up": "is being switched on",
    "power down": "is being switched off",
    "invalid": "registered with less than is configured",
    "ending": "a job is being cleaned up",
    "unknown": "a state that slurmtop does not know",
}


def state_word(node: Node) -> tuple[str, str]:
    """(sign, word): ``○ idle``, ``▼ draining``, ``✗ down*``. A star: it does not respond."""
    state = node.state
    flags = set(state.flags)
    silent = "NOT_RESPONDING" in flags
    if state.base in ("DOWN", "ERROR"):
        return "✗", "down*" if silent else "down"
    draining = "DRAIN" in flags and state.may_run_jobs
    if silent and "DRAIN" not in flags:
        return "✗", "no answer"
    for flag, sign, word in _FLAGS:
        if flag in flags:
            if draining and flag == "DRAIN":
                sign, word = "▼", "draining"
            return ("✗", word + "*") if silent else (sign, word)
    if "COMPLETING" in flags and state.base not in ("MIXED", "ALLOCATED"):
        return "●", "ending"
    if state.unknown_flags or state.base not in _BASES:
        return "?", "unknown"
    return _BASES[state.base]


def state_meaning(node: Node) -> str:
    """What the state means, "" where the word says it all."""
    word = state_word(node)[1]
    says = _MEANINGS.get(word, "")
    return f"{says}: {visible(node.state.text)}" if word == "unknown" else says


def type_text(node: Node) -> str:
    """``h100``, ``a100+h100``; ``MIG``, ``shards``, ``MPS`` where no GPU is whole; "" for none."""
    if node.gres is None:
        return "?"
    if node.gpu_types:
        return visible("+".join(dict.fromkeys(node.gpu_types)))
    kinds = {pool.kind for pool in node.gres if pool.total}
    if "gpu" in kinds:
        return "GPU"
    words = {"slice": "MIG", "shard": "shards", "mps": "MPS"}
    return next((word for kind, word in words.items() if kind in kinds), "")


def used_text(node: Node) -> str:
    """``3/8`` whole GPUs; a question mark for what Slurm did not say; "" without GPUs."""
    count = node.gpu_count()
    if count.total == 0:
        return ""
    used = "?" if count.used is None else str(count.used)
    return f"{used}/{'?' if count.total is None else count.total}"


def free_text(node: Node) -> str:
    """``5``; ``(5)`` where they are not in use and still not to be had; ``?`` where unknown."""
    count = node.gpu_count()
    if count.total == 0:
        return ""
    if count.free is None or node.state.usable is Usable.UNKNOWN:
        return "?"
    shut = count.free and node.state.usable in (Usable.NO, Usable.SPOKEN_FOR)
    return f"({count.free})" if shut else str(count.free)


def lost_text(node: Node, seen: int = 0) -> str:
    """How many GPUs are missing, by Slurm or as ``seen`` by a look at the node; "" for none."""
    lost = max(node.gpus_lost or 0, seen)
    return str(lost) if lost else ""


def reason_text(node: Node, now: datetime) -> str:
    """``bad NVLink (root, 3.1 h)``; without a reason what the state means."""
    if node.reason is None:
        return state_meaning(node)
    by = [visible(node.reason_user)] if node.reason_user else []
    if node.reason_at is not None:
        by.append(ago_text((now - node.reason_at).total_seconds()))
    return visible(node.reason) + (f" ({', '.join(by)})" if by else "")
