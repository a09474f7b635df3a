"""Lines of source code inside a traceback, told from their bytes: they say nothing by themselves.

Source: ``traceback.py`` of CPython; the line of code, and from 3.11 on what marks its part::

    [rank3]:     return self._loader(path)
    [rank3]:            ^^^^^^^^^^^^^^^^^^
"""

import re

#: Behind a tag of one writer. One blank may belong to the tag.
_INDENTED = re.compile(rb"(?:\[[a-z]{4,8}\d{1,7}\]:)?( {2,200})(?=[^ \t\r|+\[])")
#: A name alone, or with a colon: that may be an exception.
_NAME = re.compile(rb"[\w.]{1,400}(?:\(\w{1,80}\))?\s*(?::|$)")
#: What another writer's message inside the line would hold.
_OTHERS = re.compile(rb"\]:|>:| pid=|\r")


def is_code(line: bytes, before: bytes, deep: int) -> bool:
    """Is it plain that this line, which holds no reader's word, is code of a traceback?

    ``before`` is the line above it: the frame, or other code of it. ``deep`` is the least number
    of blanks in front of code.
    """
    found, above = _INDENTED.match(line), _INDENTED.match(before)
    return (
        found is not None
        and above is not None
        and line[: found.start(1)] == before[: above.start(1)]
        and len(found[1]) > deep
        and not line.endswith(b"]")
        and _NAME.match(line, found.end()) is None
        and _OTHERS.search(line, found.end()) is None
    )


def is_frame(line: bytes) -> bool:
    """Does code stand below this line?"""
    return b'  File "' in line
