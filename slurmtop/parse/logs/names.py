"""What the name of a log file tells: the rank and the host that wrote it.

Source: names that people, launchers and ``NCCL_DEBUG_FILE=nccl.%h.%p`` give, for example::

    logs/rank118.log
    attempt_0/rank3/stdout.log
    node-3_rank5.err

A name that a person may have given to an experiment (``lora_rank16``, ``run7``) tells nothing.
"""

import re

_RANK = re.compile(r"(?<![a-z])(?:global[_-]?)?rank[_.=-]?(\d{1,7})(?!\d)", re.IGNORECASE)
#: A folder of its own for each rank; elsewhere ``rank16`` may be what is tried out.
_ATTEMPT = re.compile(r"attempt[_-]?\d{1,6}")
_STREAM = re.compile(r"(?:stdout|stderr)(?:\.(?:log|txt|out|err))?")
_RANK_FOLDER = re.compile(r"(?i)(?:global[_-]?)?rank[_.=-]?(\d{1,7})")
#: What has a rank that is no process: matrices, adapters, search results.
_OTHER_RANKS = re.compile(
    r"(?i)local[_-]?rank|(?:lora|dora|adapt\w{0,6}|low|matrix|tensor|svd|galore|page|top|alpha\d*)"
    r"[_.=-]?rank"
)
#: A word with a digit in front of the rank; where it begins is looked for from the rank on.
_BEFORE_RANK = re.compile(r"[._-]rank[_.=-]?\d", re.IGNORECASE)
#: Words that machines are called by; ``run7`` and ``seed42`` are none.
_HOST_WORD = re.compile(
    r"(?i)(?:(?:[a-z\d]{1,20}-){0,4}(?:node|worker|host|dgx|hgx|pod|compute|server|nid|rack|gn|cn)"
    r"[a-z]{0,4}|(?:[a-z\d]{1,20}-){0,4}gpu(?=\D|\d{2}))[a-z\d-]{0,40}$"
)
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
    """The global rank in the name of a file, or of its rank's folder; None where none is."""
    *folders, base = name.split("/")
    if _OTHER_RANKS.search(base):
        return None
    found = _RANK.findall(base)
    if len(set(found)) == 1:
        return int(found[0])
    folder = _RANK_FOLDER.fullmatch(folders[-1]) if folders and not found else None
    if folder is None:
        return None
    of_launcher = _ATTEMPT.fullmatch(folders[-2]) if len(folders) > 1 else None
    return int(folder[1]) if of_launcher or _STREAM.fullmatch(base) else None


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
