"""What a process of NCCL says of itself: version, settings, addresses, communicators, channels.

Source: the ``INFO`` macros of NCCL 2.2 to 2.32 (RCCL writes the same)::

    NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
    NCCL INFO ncclCommInitRank comm 0x5f rank 3 nranks 8 cudaDev 3 … commId 0x2f - Init START
    NCCL INFO ncclCommSplit comm 0x6f rank 1 nranks 2 … parent 0x5f splitCount 1 color 4 key 3- …
    NCCL INFO Channel 00/0 : 3[3] -> 4[4] [send] via NET/IB/0(2)/GDRDMA

Each function takes the message after ``INFO`` and where it stands.
"""

import re
from collections.abc import Iterator

from slurmtop.model.events.nccl import (
    Channel,
    CommInit,
    InitPhase,
    InitTimings,
    NcclAddress,
    NcclNetwork,
    NcclSetting,
    NcclVersion,
)
from slurmtop.model.trace import Where
from slurmtop.parse.logs.nccl_peer import peer_name

_VERSION = re.compile(r"\b[NR]CCL version ?:? ?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)(?![\d.]*\d)")
_SETTING = re.compile(
    r"\b(?P<name>(?:NCCL|RCCL)_[A-Z][A-Z0-9_]{1,60}) set (?:by environment )?to (?P<value>.{0,300})"
)
_NUMBER_DOT = re.compile(r"-?\d{1,20}\.")
_ADDRESS = re.compile(
    r"(?:^|[\s\]])(?P<interface>[A-Za-z][\w.@-]{0,31}):(?P<address>[^\s<>]{1,80})<\d{1,5}>"
)
#: Made by container and virtualisation tools with one address on every host.
_SAME_EVERYWHERE = re.compile(r"(?:docker|virbr|lxcbr|lxdbr|cni|podman|nerdctl)\d{0,4}|lo\d{0,2}")
_LOOPBACK = re.compile(r"127\.|::1$")
_NETWORK = re.compile(
    r"Using (?:internal )?[Nn]etwork (?P<name>\S.{0,60}?)\s*$"
    r"|Assigned NET plugin (?P<plugin>\S.{0,60}?) to comm"
)
_FIELD = re.compile(
    r"\b(?P<name>comm|rank|n[rR]anks|cudaDev|busId|commId|parent|splitCount|childCount|color|key) "
    r"(?P<value>-?[0-9A-Za-z]{1,20})"
)
_PHASE = re.compile(
    r"- ?(?:(?P<what>Init|Destroy|Abort|Finalize|Revoke) )?(?P<step>START|COMPLETE)\b"
)
#: Up to 2.3 the start was these words alone.
_OLD_START = re.compile(r"comm (?:0x)?[0-9a-f]{1,16} rank \d{1,9} nranks \d{1,9}\s*$")
_PHASES = {
    ("Init", "START"): InitPhase.START,
    ("Init", "COMPLETE"): InitPhase.COMPLETE,
    (None, "COMPLETE"): InitPhase.COMPLETE,
    ("Destroy", "START"): InitPhase.LEAVING,
    ("Finalize", "START"): InitPhase.LEAVING,
    ("Abort", "START"): InitPhase.LEAVING,
    ("Revoke", "START"): InitPhase.LEAVING,
    ("Destroy", "COMPLETE"): InitPhase.DESTROYED,
    ("Abort", "COMPLETE"): InitPhase.ABORTED,
}
_TIMINGS = re.compile(
    r"Init timings(?: - \w{1,60})?: rank (\d{1,9}) n[rR]anks (\d{1,9}) "
    r"total (\d{1,9}(?:\.\d{1,9})?)"
    r"(?: \((?P<parts>[^)\n]{0,400})\)?)?"
)
_PART = re.compile(r"(\w{1,30}) (\d{1,9}(?:\.\d{1,9})?)")
_CHANNEL = re.compile(
    r"(?:Channel|Ring) \d{1,4}(?:/\d{1,4})? ?: (\d{1,9})(?:\[[0-9a-fA-F:.]{1,20}\])? -> "
    r"(\d{1,9})(?:\[[0-9a-fA-F:.]{1,20}\])? (?:\[\w{1,10}\] )?via (?P<via>\S.{0,100}?)\s*$"
)
#: The number of an adapter and of the rank whose proxy serves it: there is one kind of way.
_ADAPTER = re.compile(r"/\d{1,4}(?:\(\d{1,9}\))?(?=/|$)")


def read_version(text: str, at: Where) -> NcclVersion | None:
    """The banner, or the end of PyTorch's ``NCCL error in: …, NCCL version 2.21.5``."""
    found = _VERSION.search(text)
    return None if found is None else NcclVersion(at=at, version=found[1])


def read_setting(text: str, at: Where) -> NcclSetting | None:
    found = _SETTING.search(text)
    if found is None:
        return None
    value = found["value"].strip()
    if _NUMBER_DOT.fullmatch(value) is not None:
        value = value[:-1]
    return NcclSetting(at=at, name=found["name"], value=value)


def read_addresses(text: str, at: Where) -> Iterator[NcclAddress]:
    for found in _ADDRESS.finditer(text):
        interface, address = found["interface"], peer_name(found["address"])
        if address is None or _LOOPBACK.match(address) is not None:
            continue
        if _SAME_EVERYWHERE.fullmatch(interface) is None:
            yield NcclAddress(at=at, interface=interface, address=address)


def read_network(text: str, at: Where) -> NcclNetwork | None:
    if "NET/IB" in text and "No device found" in text:
        return NcclNetwork(at=at, name=None)
    found = _NETWORK.search(text)
    return None if found is None else NcclNetwork(at=at, name=found["name"] or found["plugin"])


def read_comm(text: str, at: Where) -> CommInit | None:
    """A communicator that begins, is ready or ends; None for any other line with ``comm``."""
    phase = _phase(text)
    start = text.find("comm ")
    if phase is None or start < 0:
        return None
    fields: dict[str, str] = {}
    for found in _FIELD.finditer(text, start):
        fields.setdefault(found["name"].lower(), found["value"])
    if "comm" not in fields:
        return None
    comm_id = fields.get("commid")
    return CommInit(
        at=at,
        phase=phase,
        comm=fields["comm"],
        rank=_integer(fields.get("rank")),
        nranks=_integer(fields.get("nranks")),
        comm_id=comm_id.lower().removeprefix("0x") if comm_id else None,
        parent=fields.get("parent"),
        split=_integer(fields.get("splitcount", fields.get("childcount"))),
        color=_integer(fields.get("color")),
        key=_integer(fields.get("key")),
        cuda_dev=_integer(fields.get("cudadev")),
        bus_id=fields.get("busid"),
    )


def _phase(text: str) -> InitPhase | None:
    found = _PHASE.search(text)
    if found is not None:
        return _PHASES.get((found["what"], found["step"]))
    return InitPhase.START if _OLD_START.search(text) is not None else None


def _integer(raw: str | None) -> int | None:
    try:
        return None if raw is None else int(raw)
    except ValueError:
        return None


def read_timings(text: str, at: Where) -> InitTimings | None:
    found = _TIMINGS.search(text)
    if found is None:
        return None
    parts = tuple((name, float(took)) for name, took in _PART.findall(found["parts"] or ""))
    return InitTimings(
        at=at, rank=int(found[1]), nranks=int(found[2]), total_s=float(found[3]), parts=parts
    )


def read_channel(text: str, at: Where) -> Channel | None:
    """One way between two ranks, ``via`` without the number of the adapter."""
    found = _CHANNEL.search(text)
    if found is None:
        return None
    via = _ADAPTER.sub("", found["via"])
    return Channel(at=at, sender=int(found[1]), receiver=int(found[2]), via=via)
