"""Warnings of NCCL's InfiniBand transport, of the rdma-sharp plugin and of AWS's libfabric plugin.

Source: ``transport/net_ib*`` and ``misc/ibvwrap*`` of NCCL 2.2 to 2.32, ``ib_plugin.c`` of
nccl-rdma-sharp-plugins (the same words), aws-ofi-nccl 1.0 to 1.16 (``NET/OFI``)::

    NET/IB : Got completion from peer 10.0.0.59<44206> with status=12 opcode=129 … vendor err 129
    NET/IB: Got completion from peer 10.0.0.59<44206> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=…
    NET/IB : mlx5_0:1 Got async event : port error
    Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, …
    NET/OFI Request 0x7f.. completed with error. RC: 107. Error: 4103 (…). Completed length: 0, …
"""

import re

from slurmtop.model.events.nccl import Warn
from slurmtop.parse.logs.nccl_peer import PEER, Told, number, peer_name

#: Events that say nothing is broken (words of ``ibv_event_type_str``).
_QUIET_EVENTS = re.compile(
    r"(?i)communication established|send queue drained|path migrated|port active|LID change"
    r"|P_Key change|SM change|SRQ limit reached|last WQE reached|client reregistration|unknown"
    r"|COMM_EST|SQ_DRAINED|PATH_MIG$|PORT_ACTIVE|LID_CHANGE|PKEY_CHANGE|SM_CHANGE"
    r"|SRQ_LIMIT_REACHED|QP_LAST_WQE_REACHED|CLIENT_REREGISTER|speed change"
)
_EVENT = re.compile(
    r"(?:(?!Got |async )(?P<device>[\w.-]{1,64}(?::\d{1,3})?) )?"
    r"(?:Got )?(?:non-fatal )?async (?:fatal |error )?event"
    r"(?: on (?P<on>CQ|QP|SRQ)\b[^:]{0,200})? ?: ?(?P<event>[^\n]{1,80})"
)
_GID_CHANGED = re.compile(
    r"(?:(?P<device>[\w.-]{1,64}:\d{1,3}) )?(?:GID table change|GID refreshed|marking device with "
    r"fatal error after GID-change|GID info query failed)"
)
_COMPLETION = re.compile(
    r"Got completion|ork completion error|Got CQE with error|poller got error status"
)
_STATUS = re.compile(r"\b(?:status=|with error |got error status )(?:[^()=\n]{1,60}\()?(\d{1,6})\b")
_VENDOR = re.compile(r"\bvendor[ _]err(?:or)?[ =:]{0,3}(\d{1,10})\b")
_PEER = re.compile(r"\bfrom peer " + PEER)
_HCA = re.compile(r"\bhca (?P<device>[\w.-]{1,64})")
#: The two were printed without a blank between word and address for years.
_LOCAL_GID = re.compile(r"\blocal ?G(?:ID|id)s?[ =]?(?P<gid>[0-9A-Fa-fxX:.]{2,60})")
_REMOTE_GID = re.compile(r"\bremote ?G(?:ID|id)s?[ =]?(?P<gid>[0-9A-Fa-fxX:.]{2,60})")

_COLLECTIVE_SIZE = re.compile(r"\blocal size (\d{1,19}),? ?remote(?: size)? (\d{1,19})")
_MISMATCH_PEER = re.compile(r"\bpeer " + PEER)
_POSTED = re.compile(r"posted incorrect receive info: size (-?\d{1,19})")

_IBV = re.compile(
    r"\b[Cc]all to (?P<call>(?:wrap_)?(?:direct_)?(?:ibv|mlx5dv)_\w{2,40}) (?:failed|returned)"
    r"(?: with)?(?: error)?(?: (?P<status>-?\d{1,6}))?(?P<error>[^,\n]{0,120})"
)
_ERRNO = re.compile(r" errno \d{1,6}$")
_DEVICE = re.compile(r"\bon dev(?:ice)? (?P<device>[\w.-]{1,64}(?::\d{1,3})?)")
_MEMORY_CALL = re.compile(r"_reg_")
_CREATE_CALL = re.compile(r"_create_|_alloc_")
_TEARDOWN_CALL = re.compile(r"_(?:dereg|destroy|dealloc|close|ack)\w{0,30}$")
_PROBE_CALL = re.compile(
    r"ibv_(?:open_device|query_\w{2,20}|get_device\w{0,10}|fork_init|set_ece)$"
)
_UNUSABLE = re.compile(r"Unable to (?:open|query|get)|no usable|Attempted to merge|Failed to open")

_OFI_COMPLETION = re.compile(
    r"(?i)complet\w{1,5} with error|completion error|cq error|fi_cq_read\w{0,4}\(?\)? failed"
)
_OFI_MEMORY = re.compile(r"(?i)regist\w{1,8} (?:\w{1,20} ){0,3}memory|memory regist|mr_reg|\bMR\b")
_OFI_NONE = re.compile(
    r"(?i)only EFA provider|initialization failed|failed to initialize|unable to find a protocol"
    r"|no eligible providers|could(?:n't| not) find any|failing initialization|no data available"
    r"|fi_getinfo|list of providers|disabling|not supported|unsupported"
)
_OFI_ERROR = re.compile(
    r"(?i)\bRC: -?\d{1,10}[.,]? {0,2}(?:Flags: \d{1,20}\. )?ERROR: (?:(?P<number>-?\d{1,10}) "
    r"\((?P<words>[^)\n]{1,120})|(?P<plain>[^.\n]{1,120}))"
)


def read_ib(text: str) -> Told | None:
    """A message of the InfiniBand transport; None for another one."""
    if "vent" in text and (found := _EVENT.search(text)) is not None:
        return _event(found["event"], found["device"], on_queue=found["on"] is not None)
    if "GID" in text and (found := _GID_CHANGED.search(text)) is not None:
        return Told(Warn.IB_EVENT, error="GID table change", device=found["device"])
    if _COMPLETION.search(text) is not None:
        return _completion(text)
    if "mismatch" in text or "incorrect receive" in text:
        mismatch = _size_mismatch(text)
        if mismatch is not None:
            return mismatch
    found = _IBV.search(text)
    if found is not None:
        return _call(text, found)
    if "NET/IB" in text and _UNUSABLE.search(text) is not None:
        # NCCL leaves that adapter out and goes on.
        return Told(Warn.BENIGN)
    return None


def async_event(event: str, device: str | None) -> Told:
    """An event of an adapter by the words of libibverbs."""
    return _event(event, device, on_queue=False)


def _event(event: str, device: str | None, *, on_queue: bool) -> Told:
    event = event.strip().partition("(")[0].strip() or event.strip()
    if "GID" in event:
        event = "GID table change"
    if not on_queue and _QUIET_EVENTS.match(event) is not None:
        return Told(Warn.BENIGN, error=event, device=device)
    return Told(Warn.IB_EVENT, error=event, device=device)


def _completion(text: str) -> Told:
    peer, status, vendor, hca = (
        pattern.search(text) for pattern in (_PEER, _STATUS, _VENDOR, _HCA)
    )
    local, remote = _gids(text)
    return Told(
        Warn.IB_COMPLETION,
        peer=peer_name(peer["peer"]) if peer else None,
        status=int(status[1]) if status else None,
        vendor=int(vendor[1]) if vendor else None,
        device=hca["device"] if hca else None,
        local_gid=local,
        remote_gid=remote,
    )


def _gids(text: str) -> tuple[str | None, str | None]:
    local, remote = _LOCAL_GID.search(text), _REMOTE_GID.search(text)
    return (
        peer_name(local["gid"]) if local else None,
        peer_name(remote["gid"]) if remote else None,
    )


def _size_mismatch(text: str) -> Told | None:
    peer = _MISMATCH_PEER.search(text)
    name = peer_name(peer["peer"]) if peer else None
    sizes = _COLLECTIVE_SIZE.search(text)
    if sizes is not None or "collective mismatch" in text:
        both = (int(sizes[1]), int(sizes[2])) if sizes else ()
        return Told(Warn.SIZE_MISMATCH, peer=name, sizes=both)
    if _POSTED.search(text) is not None:
        return Told(Warn.SIZE_MISMATCH, peer=name, error="posted incorrect receive info")
    return None


def _call(text: str, found: re.Match[str]) -> Told:
    call = found["call"]
    error = _ERRNO.sub("", found["error"].strip(" .:")) or None
    device = _DEVICE.search(text)
    local, remote = _gids(text)
    told = Told(
        Warn.IB_CALL,
        status=number(found["status"]),
        call=call,
        error=error,
        device=device["device"] if device else None,
        local_gid=local,
        remote_gid=remote,
    )
    no_memory = "annot allocate memory" in text
    if _TEARDOWN_CALL.search(call) is not None:
        return told._replace(kind=Warn.OTHER)
    if _PROBE_CALL.search(call) is not None or ("not supported" in text and "ece" in call):
        return told._replace(kind=Warn.BENIGN)
    if _MEMORY_CALL.search(call) is not None or (no_memory and _CREATE_CALL.search(call)):
        return told._replace(kind=Warn.IB_MEMORY)
    return told


def read_ofi(text: str) -> Told:
    """A message of AWS's plugin (``NET/OFI`` stands in it)."""
    found = _OFI_ERROR.search(text)
    error = (found["words"] or found["plain"]).strip() if found else None
    if _OFI_COMPLETION.search(text) is not None:
        vendor = number(found["number"]) if found else None
        return Told(Warn.IB_COMPLETION, call="libfabric", error=error, vendor=vendor)
    if _OFI_MEMORY.search(text) is not None or "annot allocate memory" in text:
        return Told(Warn.IB_MEMORY, call="libfabric", error=error)
    if _OFI_NONE.search(text) is not None:
        # NCCL falls back to its own transports.
        return Told(Warn.BENIGN, error=error)
    return Told(Warn.OTHER, call="libfabric", error=error)
