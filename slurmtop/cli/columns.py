"""Columns of plain text, for the tables of the commands. Pure."""

from collections.abc import Collection, Iterable, Sequence

from slurmtop.model.text import cell_width, fit


def column_lines(
    rows: Sequence[Sequence[str]], right: Collection[str], places: Iterable[int] | None = None
) -> list[str]:
    """The rows with their columns below each other; the first holds the titles.

    Columns whose title is in ``right`` stand at the right (numbers); of ``places`` only those
    columns are shown. The last one is never padded.
    """
    heads = rows[0]
    shown = range(len(heads)) if places is None else tuple(places)
    widths = {place: max(cell_width(row[place]) for row in rows) for place in shown}
    out = []
    for row in rows:
        cells = []
        for place, width in widths.items():
            pad = " " * (width - cell_width(row[place]))
            cells.append(pad + row[place] if heads[place] in right else row[place] + pad)
        out.append("  ".join(cells).rstrip())
    return out


def short_cell(text: str, most: int | None) -> str:
    """``text`` in at most ``most`` cells; None: however long it is."""
    if most is None or cell_width(text) <= most:
        return text
    return fit(text, most).rstrip()
