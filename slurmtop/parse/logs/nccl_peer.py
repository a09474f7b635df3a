"""How NCCL names the other end of a connection, and what one warning tells.

Source: ``ncclSocketToString`` of NCCL, ``address<port>`` or, up to 2.19, ``name<port>``::

    10.0.0.6<58683>   node48<37948>   fe80::1:78%ib0<53249>   host-ib.cluster.local<51159>
"""

import re
from typing import NamedTuple

from slurmtop.model.events.nccl import Warn

#: A host or address, up to its ``<port>``; nothing where the address is missing: ``to <4711>``.
PEER = r"(?P<peer>\[?[\w.:%-]{0,255}\]?)(?=<|\s|,|;|\)|$)"

_MASKED = re.compile(r"[xX*.:_-]{0,255}|0\.0\.0\.0")


class Told(NamedTuple):
    """The fields of a :class:`~slurmtop.model.events.nccl.NcclWarn` that its message tells."""

    kind: Warn
    peer: str | None = None
    status: int | None = None
    vendor: int | None = None
    call: str | None = None
    error: str | None = None
    device: str | None = None
    ranks: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    local_gid: str | None = None
    remote_gid: str | None = None


def peer_name(raw: str | None) -> str | None:
    """``raw`` without brackets, scope and IPv6's wrapping of IPv4; None where it names nobody."""
    if not raw:
        return None
    name = raw.strip("[]").partition("%")[0]
    if name[:7].lower() == "::ffff:" and "." in name:
        name = name[7:]
    name = name.rstrip(".:" if "::" not in name else ".")
    return None if _MASKED.fullmatch(name) else name


def number(raw: str | None) -> int | None:
    return None if raw is None else int(raw)
