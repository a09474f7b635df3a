"""What the name of a log file tells: the rank and the host that wrote it.

Source: names that people, launchers and ``NCCL_DEBUG_FILE=nccl.%h.%p`` give, for example::

    logs/rank118.log
    node-3_rank5.err
"""

import re

_RANK = re.compile(r"(?<![a-z])(?:global[_-]?)?rank[_.=-]?(\d{1,7})(?!\d)", re.IGNORECASE)
#: A word with a digit in front of the rank; where it begins is looked for from the rank on.
_BEFORE_RANK = re.compile(r"[._-]rank[_.=-]?\d", re.IGNORECASE)
_HOST_WORD = re.compile(r"[A-Za-z][A-Za-z\d-]{0,62}$")
#: ``nccl.%h.%p``.
_HOST_PID = re.compile(
    r"^(?:nccl[\w-]*|debug|log)[._]([A-Za-z][A-Za-z\d-]{1,62})\.(\d{2,10})(?:\.\w+)?$"
)
_HOST_ALONE = re.compile(
    r"^((?:node|worker|host|gpu|dgx|hgx|pod|compute|server)-?(?:[a-z]|[a-z\d-]{0,60}\d[a-z]?))\.\w{2,4}$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?i)(?:node|worker|host|gpu|dgx|hgx|pod|compute|server)s?$")


def rank_in_name(name: str) -> int | None:
    """The global rank in the name of a file or of the folder it is in; None where none is."""
    for part in reversed(name.split("/")[-2:]):
        found = _RANK.findall(part)
        if len(set(found)) == 1 and not re.search(r"(?i)local[_-]?rank", part):
            return int(found[0])
    return None


def host_in_name(name: str) -> str | None:
    """The host in the name of a file; None where it may be another word."""
    base = name.rpartition("/")[2]
    rank = _BEFORE_RANK.search(base)
    if rank is not None:
        word = re.split(r"[./_]", base[: rank.start()])[-1].lstrip("-0123456789")
        if any(map(str.isdigit, word)) and _HOST_WORD.match(word) and not _PLAIN.match(word):
            return word
    for form in (_HOST_PID, _HOST_ALONE):
        found = form.match(base)
        if found is not None and not _PLAIN.match(found[1]):
            return found[1]
    return None
