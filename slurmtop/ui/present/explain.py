"""What a class of fault means, as lines for a dialog. Pure."""

from slurmtop.model.text import visible
from slurmtop.triage.catalogue import CATALOGUE
from slurmtop.triage.mistaken import MISTAKEN_FOR
from slurmtop.ui.present.spans import Line, wrap

_INDENT = 7


def is_class(word: str) -> bool:
    """Is ``word`` a class that :func:`class_lines` knows?"""
    return word in CATALOGUE


def class_lines(slug: str, width: int) -> tuple[Line, ...]:
    """What ``slurmtop explain SLUG`` says; nothing for a word that is no class."""
    entry = CATALOGUE.get(slug)
    if entry is None:
        return ()
    out: list[Line] = [
        ((piece, "strong"),) for piece in wrap(f"{slug}  ({visible(entry.family)})", width)
    ]
    for title, text in (
        ("means", entry.meaning),
        ("not", MISTAKEN_FOR.get(slug, "")),
        ("do", entry.first_action),
    ):
        if text:
            pieces = wrap(visible(text), max(10, width - _INDENT))
            out.append(((f"{title:<{_INDENT}}", "label"), (pieces[0], "")))
            out.extend(((" " * _INDENT + piece, ""),) for piece in pieces[1:])
    return tuple(out)
