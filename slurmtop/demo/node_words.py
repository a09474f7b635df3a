"""The state of a node in the spellings of sinfo and scontrol."""

from slurmtop.demo.nodes import CPUS, DemoNode
from slurmtop.demo.values import View

_SHORT = {
    "allocated": "alloc",
    "completing": "comp",
    "down": "down",
    "drained": "drain",
    "draining": "drng",
    "idle": "idle",
    "mixed": "mix",
}


def _base(node: DemoNode) -> str:
    if node.trouble == "down":
        return "DOWN"
    if not node.cpus_used:
        return "IDLE"
    return "ALLOCATED" if node.cpus_used >= CPUS else "MIXED"


def _clearing(view: View, node: DemoNode) -> tuple[bool, bool]:
    """(some job here is being cleaned up, nothing else is here)."""
    jobs = [view.world.busy[job] for job in node.cpus if job in view.world.busy]
    return any(job.completing for job in jobs), all(job.completing for job in jobs)


def complete_state(view: View, node: DemoNode) -> str:
    """``MIXED``, ``IDLE+DRAIN``, ``DOWN+NOT_RESPONDING``."""
    words = [_base(node)]
    some, only = _clearing(view, node)
    if some and only:
        words[0] = "IDLE"
    if node.trouble == "drain":
        words.append("DRAIN")
    if some:
        words.append("COMPLETING")
    if node.trouble == "down":
        words.append("NOT_RESPONDING")
    return "+".join(words)


def state_long(view: View, node: DemoNode) -> str:
    """``mixed``, ``drained``, ``down*``, ``allocated+``."""
    base = _base(node)
    some, only = _clearing(view, node)
    if base == "DOWN":
        return "down*"
    if node.trouble == "drain":
        return "drained" if base == "IDLE" else "draining"
    if some and only:
        return "completing"
    return base.lower() + ("+" if some and base == "ALLOCATED" else "")


def state_compact(view: View, node: DemoNode) -> str:
    """``mix``, ``drain``, ``down*``, ``alloc+``."""
    long = state_long(view, node)
    word = long.rstrip("*+")
    return _SHORT[word] + long[len(word) :]
