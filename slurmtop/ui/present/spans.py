"""Pieces of text with a role, and lines made of them. Roles become styles in a widget.

A role is a word of meaning (``bad``, ``dim``), never a colour: the theme decides the colour,
and every meaning also stands in the words, so that nothing is lost without colour.
"""

from collections.abc import Iterable, Sequence

from slurmtop.model.text import cell_width, fit

#: (text, role). The text is already safe to show.
Span = tuple[str, str]
Line = tuple[Span, ...]

ROLES = ("", "dim", "label", "strong", "good", "busy", "wait", "warn", "bad", "match", "mark")

GAP = " · "


def line_width(line: Iterable[Span]) -> int:
    """Terminal cells of a line."""
    return sum(cell_width(text) for text, _ in line)


def plain(line: Iterable[Span]) -> str:
    """The text of a line, for goldens, the clipboard and terminals without style."""
    return "".join(text for text, _ in line)


def cut_line(line: Line, width: int) -> Line:
    """At most ``width`` cells; what is cut ends in an ellipsis."""
    if line_width(line) <= width:
        return line
    kept: list[Span] = []
    room = width
    for index, (text, role) in enumerate(line):
        size = cell_width(text)
        is_last = index == len(line) - 1
        if size < room or (size == room and is_last):
            kept.append((text, role))
            room -= size
            continue
        kept.append((fit(text, room) if size > room else fit(text + " ", room), role))
        break
    return tuple(kept)


def join(parts: Sequence[Line], gap: str = GAP) -> Line:
    """Parts side by side with a dim gap; empty parts are left out."""
    out: list[Span] = []
    for part in parts:
        if not part:
            continue
        if out:
            out.append((gap, "dim"))
        out.extend(part)
    return tuple(out)


def join_in_rows(parts: Sequence[Line], width: int, gap: str = GAP) -> list[Line]:
    """Like :func:`join`, on as many lines as the parts need; no part is split in two."""
    rows: list[list[Line]] = [[]]
    for part in parts:
        if rows[-1] and line_width(join([*rows[-1], part], gap)) > width:
            rows.append([])
        rows[-1].append(part)
    return [cut_line(join(row, gap), width) for row in rows]


def join_with_slack(
    parts: Sequence[Line], slack: int, width: int, gap: str = GAP, least: int = 8
) -> Line:
    """Like :func:`join`, but part ``slack`` is cut first so that the others stay whole."""
    line = join(parts, gap)
    over = line_width(line) - width
    if over <= 0 or not parts[slack]:
        return cut_line(line, width)
    room = max(least, line_width(parts[slack]) - over)
    shorter = [cut_line(part, room) if i == slack else part for i, part in enumerate(parts)]
    return cut_line(join(shorter, gap), width)


def ends(left: Line, right: Line, width: int) -> Line:
    """``left`` at the left edge, ``right`` at the right edge; the left one gives way."""
    room = width - line_width(right) - 1
    if room < 1:
        return cut_line(left, width)
    left = cut_line(left, room)
    return (*left, (" " * (width - line_width(left) - line_width(right)), ""), *right)


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Break safe text at blanks into lines of at most ``width`` cells.

    ``first`` starts the first line, ``rest`` the others. A word longer than a line is broken.
    """
    out: list[str] = []
    current, used, empty = first, cell_width(first), True
    for word in text.split(" "):
        piece = word
        while True:
            lead = "" if empty else " "
            need = cell_width(lead + piece)
            if used + need <= width:
                current += lead + piece
                used += need
                empty = False
                break
            if not empty:
                out.append(current)
                current, used, empty = rest, cell_width(rest), True
                continue
            head = _head(piece, max(1, width - used))
            out.append(current + head)
            piece = piece[len(head) :]
            current, used = rest, cell_width(rest)
            if not piece:
                break
    if not empty or not out:
        out.append(current)
    return out


def _head(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += cell_width(char)
        if used > width and index:
            return text[:index]
    return text
