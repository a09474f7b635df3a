"""The permission matrix as lines for a person and as JSON. Pure."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slurmtop.model.access import Access, AccessStatus, Group
from slurmtop.model.text import cell_width, fit
from slurmtop.parse.mask import mask_text

_WORDS = {
    AccessStatus.REACHABLE: "yes",
    AccessStatus.REFUSED: "REFUSED",
    AccessStatus.ABSENT: "absent",
    AccessStatus.NOT_ASKED: "not asked",
}
#: Where names of sources begin.
_INDENT = 13
_MOST_SOURCE = 26
_LEAST_TEXT = 24


def table_lines(rows: Sequence[Access], width: int = 80) -> list[str]:
    """Groups with a title, a row a source, what opens it below. Plain signs only, secrets
    masked; no line is wider than ``width`` but for a word that cannot be broken and for what is to
    be copied, which stands in a line of its own."""
    rows = [masked(row) for row in rows]
    names = [size for row in rows if (size := cell_width(row.source)) <= _MOST_SOURCE]
    source = min(max(names, default=0), width - _INDENT - 2 - _LEAST_TEXT)
    out: list[str] = []
    for group in Group:
        some = [row for row in rows if row.group is group]
        if not some:
            continue
        if out:
            out.append("")
        out.append(str(group))
        for row in some:
            out.extend(_lines(row, source, width))
            if row.copy:
                # By itself and from the left: a line that is broken cannot be copied.
                out.append(f"  {row.copy}")
    return out


def _lines(row: Access, source: int, width: int) -> list[str]:
    first = f"  {_WORDS[row.status]}".ljust(_INDENT)
    if cell_width(row.source) > source:
        # Its text stands below it: beside a long name there is no room.
        indent = " " * (_INDENT + 2)
        name = fit(row.source, width - _INDENT, ellipsis="...").rstrip()
        return [f"{first}{name}", *(f"{indent}{line}" for line in _said(row, width - len(indent)))]
    indent = " " * (_INDENT + source + 2)
    said = _said(row, width - len(indent)) or [""]
    line = f"{first}{fit(row.source, source)}  {said[0]}".rstrip()
    return [line, *(f"{indent}{one}" for one in said[1:])]


def _said(row: Access, room: int) -> list[str]:
    why = row.why.removesuffix(row.copy).rstrip() if row.copy else row.why
    said = _wrap(why or row.command, room)
    if row.opens:
        said += _wrap(f"opens it: {row.opens}", room, subsequent_indent="  ")
    return said


def _wrap(text: str, width: int, *, subsequent_indent: str = "") -> list[str]:
    # A path or a key that is broken in two cannot be copied.
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=subsequent_indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def masked(row: Access) -> Access:
    """The row without what looks like a secret: a matrix is made to be shown to others."""
    return replace(
        row,
        source=mask_text(row.source),
        why=mask_text(row.why),
        opens=mask_text(row.opens),
        copy=mask_text(row.copy),
    )


def row_dict(row: Access) -> dict[str, Any]:
    """One row for ``--json``; null where there is nothing to say."""
    row = masked(row)
    return {
        "group": str(row.group),
        "source": row.source,
        "status": str(row.status),
        "host": row.host,
        "why": row.why or None,
        "opens": row.opens or None,
        "command": row.command or None,
    }
