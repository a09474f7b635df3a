"""A list to choose one thing from, as lines. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.model.text import fit, visible
from slurmtop.ui.present.spans import Line, cut_line, wrap


@dataclass(frozen=True, slots=True)
class Option:
    """``value`` is what is handed back. ``why_not`` says why it cannot be chosen."""

    value: str
    label: str
    note: str = ""
    why_not: str = ""


def first_open(options: Sequence[Option]) -> int:
    """The first that can be chosen."""
    return next((at for at, option in enumerate(options) if not option.why_not), 0)


def moved(options: Sequence[Option], at: int, by: int) -> int:
    """The next one up or down that can be chosen; ``at`` where there is none."""
    there = at + by
    while 0 <= there < len(options):
        if not options[there].why_not:
            return there
        there += by
    return at


def choice_lines(
    intro: str, options: Sequence[Option], at: int, rows: int, width: int
) -> tuple[Line, ...]:
    """The intro, then at most ``rows`` options around the chosen one, numbered from 1."""
    out: list[Line] = [((text, ""),) for text in wrap(visible(intro), width)] if intro else []
    label_cells = min(max((len(option.label) for option in options), default=0), width // 2)
    first = max(0, min(at - rows // 2, len(options) - rows))
    for place in range(first, min(first + rows, len(options))):
        option = options[place]
        sign = ">" if place == at else " "
        number = f"{place + 1}" if place < 9 else " "
        label = fit(visible(option.label), label_cells)
        note = visible(option.why_not or option.note)
        role = "dim" if option.why_not else "strong" if place == at else ""
        line: Line = ((f"{sign} {number}  {label}", role), (f"  {note}" if note else "", "dim"))
        out.append(cut_line(line, width))
    if len(options) > rows:
        more = f"  {at + 1} of {len(options)}, up and down show the others"
        out.append(cut_line(((more, "dim"),), width))
    return tuple(out)
