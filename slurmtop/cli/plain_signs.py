"""Signs for an output that cannot print them: each as another plain one, none as ``?``.

In every table ``?`` says that something is not known, so it may not stand for a node that is idle.
A sign takes one column, as before. Letters of other scripts are ``?``, as everywhere.
"""

import codecs
import unicodedata

#: The name for ``errors=`` of a text stream, once :func:`register` was called.
ERRORS = "slurmtop.plain"
#: What the screens and tables are made of; within a column no two are the same.
_PLAIN = {
    **dict(zip("○◐●◔◇▽▼✗×", "o%@=^vVxx", strict=True)),
    **dict(zip("▴▾▸→↵…–─│┃║‹›·°", "^v>>/~--|||<>.'", strict=True)),
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
}
_OTHER_SIGN = "#"
_LETTER = "?"


def register() -> None:
    """Make :data:`ERRORS` known to codecs; any number of times."""
    codecs.register_error(ERRORS, _replaced)


def plain(sign: str) -> str:
    """The plain sign in place of one character."""
    known = _PLAIN.get(sign)
    if known is not None:
        return known
    # Letters, their marks and numbers belong to names; the rest is somebody's sign.
    return _LETTER if unicodedata.category(sign)[0] in "LMN" else _OTHER_SIGN


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(plain, error.object[error.start : error.end])), error.end
