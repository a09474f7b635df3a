"""Text from the cluster is hostile: make it harmless to look at.

Job names, comments, paths, reasons and log lines are written by other people. A job may
be called ``ESC[2J`` or hold a right-to-left override that turns ``exe.png`` around. Nothing
is dropped silently: what cannot be shown safely is shown as a visible mark.
"""

import re
import unicodedata

#: Characters that change direction or are invisible and so can disguise a name.
_HIDDEN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHORT = {"\n": "\u21b5", "\t": "\u2192", "\r": "\u240d"}


def _mark(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\u2039{code:04X}\u203a"


def visible(text: str) -> str:
    """Return ``text`` on one line with controls, escapes and bidi marks made visible.

    ``ESC`` becomes the picture ``\u241b``, a line break ``\u21b5``, a right-to-left override
    ``\u2039202E\u203a``. Text without such characters comes back unchanged (the same object).
    """
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_mark, text)


def cell_width(text: str) -> int:
    """Terminal cells that ``text`` takes: 2 for wide, 0 for combining characters."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def fit(text: str, width: int, *, ellipsis: str = "\u2026") -> str:
    """Cut or pad ``text`` to exactly ``width`` terminal cells."""
    size = cell_width(text)
    if size <= width:
        return text + " " * (width - size)
    if width <= 0:
        return ""
    room = width - cell_width(ellipsis)
    if room < 0:
        return " " * width
    kept: list[str] = []
    used = 0
    for char in text:
        step = cell_width(char)
        if used + step > room:
            break
        kept.append(char)
        used += step
    return "".join(kept) + ellipsis + " " * (room - used)
