"""Who gets a signal and what becomes of them, as lines. Pure."""

from collections import Counter
from collections.abc import Sequence

from slurmtop.model.script import Fate, Reaction
from slurmtop.model.text import visible
from slurmtop.ui.present.spans import Line, wrap

_ROLES = {
    Fate.DIES: "bad",
    Fate.STOPS: "warn",
    Fate.UNKNOWN: "warn",
    Fate.IGNORES: "wait",
    Fate.CONTINUES: "",
    Fate.HANDLES: "good",
}


def reaction_lines(reactions: Sequence[Reaction], width: int) -> list[Line]:
    """``torchrun agent: dies of it: it has no handler (line 12)``, the worst first."""
    out: list[Line] = []
    order = list(_ROLES)
    for reaction in sorted(reactions, key=lambda one: order.index(one.fate)):
        where = f" (line {reaction.line})" if reaction.line is not None else ""
        why = f": {visible(reaction.why)}" if reaction.why else ""
        text = f"{visible(reaction.who)}: {reaction.fate}{why}{where}"
        role = _ROLES[reaction.fate]
        out.extend(((line, role),) for line in wrap(text, width, first="  ", rest="    "))
    return out


def sum_text(reactions: Sequence[Reaction]) -> str:
    """``Who gets it (3): 1 dies of it, 2 handles it``: the worst first."""
    counts: Counter[Fate] = Counter()
    for reaction in reactions:
        counts[reaction.fate] += reaction.count
    parts = [f"{counts[fate]} {fate}" for fate in _ROLES if counts[fate]]
    return f"Who gets it ({counts.total()}): {', '.join(parts)}"


def worst_role(reactions: Sequence[Reaction]) -> str:
    """The role of the worst that happens to any of them."""
    fates = {reaction.fate for reaction in reactions}
    return next((role for fate, role in _ROLES.items() if fate in fates), "")
