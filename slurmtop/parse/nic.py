"""Network ports out of ``/sys``: ``grep -sH .`` on their state and counters, a line a file.

The paths are the kernel's (Documentation/ABI: sysfs-class-infiniband, sysfs-class-net), those of
Slingshot its driver's, where a counter ends with the time it was read. Sample::

    /sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE
    /sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data:10254871
    /sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets:88123@1767139200.52

``/proc/uptime`` comes with them: the time between two looks is the node's own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slurmtop.model.nic import NicKind, NicPort

#: ``port_*_data`` counts in words of four bytes.
_WORD_BYTES = 4
_TEXT_CHARS = 80
_RDMA = re.compile(
    r"/sys/class/infiniband/(?P<card>[^/:]{1,64})/ports/(?P<port>\d{1,4})/(?P<at>.+)"
)
_OTHER = re.compile(r"/sys/class/(?P<kind>net|cxi)/(?P<card>[^/:]{1,64})/(?P<at>.+)")
_COUNT = re.compile(r"(?P<count>\d{1,20})(?:@[\d.]{1,40})?", re.ASCII)
_STATE = re.compile(r"(?:\d{1,2}: )?(?P<word>.{1,80})")
_UPTIME = re.compile(r"(?P<seconds>\d{1,12}(?:\.\d{1,6})?)( .*)?")
_LINK_ERRORS = (
    "counters/symbol_error",
    "counters/port_rcv_errors",
    "counters/link_downed",
    "counters/link_error_recovery",
    "counters/local_link_integrity_errors",
)
_NET_ERRORS = ("statistics/rx_errors", "statistics/tx_errors")
_TELEMETRY = "device/telemetry/hni_sts_{0}_ok_octets"


@dataclass(frozen=True, slots=True)
class NicLook:
    """The ports of a node at one moment. ``uptime_s`` None: the node's time is not known."""

    ports: tuple[NicPort, ...] = ()
    uptime_s: float | None = None


def parse_nics(data: bytes) -> NicLook:
    """Every port, in the order of its first line; what is no known file is left out. Never
    raises. Rates come with :func:`with_rates`."""
    files: dict[tuple[str, str], dict[str, str]] = {}
    uptime_s: float | None = None
    for line in data.decode("utf-8", "replace").split("\n"):
        path, _, value = line.partition(":")
        if path == "/proc/uptime":
            found = _UPTIME.fullmatch(value.strip())
            uptime_s = float(found["seconds"]) if found else None
        elif rdma := _RDMA.fullmatch(path):
            key = ("rdma", f"{rdma['card']}/{rdma['port']}")
            files.setdefault(key, {}).setdefault(rdma["at"], value.strip())
        elif other := _OTHER.fullmatch(path):
            key = (other["kind"], other["card"])
            files.setdefault(key, {}).setdefault(other["at"], value.strip())
    made = {"rdma": _rdma_port, "cxi": _cxi_port, "net": _net_port}
    ports = tuple(made[kind](name, found) for (kind, name), found in files.items())
    return NicLook(ports, uptime_s)


def with_rates(before: NicLook | None, now: NicLook) -> tuple[NicPort, ...]:
    """The ports of ``now`` with their rates since ``before``."""
    if before is None or before.uptime_s is None or now.uptime_s is None:
        return now.ports
    seconds = now.uptime_s - before.uptime_s
    if seconds <= 0:
        return now.ports
    old = {port.name: port for port in before.ports}
    return tuple(
        replace(
            port,
            rx_bytes_s=_rate(old[port.name].rx_bytes, port.rx_bytes, seconds),
            tx_bytes_s=_rate(old[port.name].tx_bytes, port.tx_bytes, seconds),
        )
        if port.name in old
        else port
        for port in now.ports
    )


def total_bytes_s(ports: Sequence[NicPort]) -> float | None:
    """Both directions of all ports together; None unless every port that is up is known.

    Plain Ethernet counts only where there is nothing faster: jobs do not talk through it.
    """
    fast = [port for port in ports if port.kind is not NicKind.ETH]
    total: float | None = None
    for port in fast or ports:
        if port.rx_bytes_s is None or port.tx_bytes_s is None:
            if port.works is not False:
                return None
            continue
        total = (total or 0.0) + port.rx_bytes_s + port.tx_bytes_s
    return total


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return (now - before) / seconds


def _rdma_port(name: str, files: Mapping[str, str]) -> NicPort:
    layer = files.get("link_layer", "").casefold()
    if layer == "infiniband":
        kind = NicKind.IB
    elif layer == "ethernet":
        kind = NicKind.ROCE
    else:
        # EFA calls its link layer "Unspecified" and counts bytes in files of its own.
        kind = NicKind.EFA
    received = _bytes(files, "counters/port_rcv_data", "hw_counters/rx_bytes")
    sent = _bytes(files, "counters/port_xmit_data", "hw_counters/tx_bytes")
    return NicPort(
        name=name,
        kind=kind,
        state=_state(files.get("state")),
        speed=_text(files.get("rate")),
        rx_bytes=received,
        tx_bytes=sent,
        errors=_sum(files, _LINK_ERRORS),
    )


def _cxi_port(name: str, files: Mapping[str, str]) -> NicPort:
    return NicPort(
        name=name,
        kind=NicKind.CXI,
        state=_state(files.get("device/port/0/link/state")),
        speed=_text(files.get("device/port/0/link/speed")),
        rx_bytes=_count(files.get(_TELEMETRY.format("rx"))),
        tx_bytes=_count(files.get(_TELEMETRY.format("tx"))),
    )


def _net_port(name: str, files: Mapping[str, str]) -> NicPort:
    speed = _count(files.get("speed"))
    return NicPort(
        name=name,
        kind=NicKind.ETH,
        state=_state(files.get("operstate")),
        speed=f"{speed} Mb/s" if speed else None,
        rx_bytes=_count(files.get("statistics/rx_bytes")),
        tx_bytes=_count(files.get("statistics/tx_bytes")),
        errors=_sum(files, _NET_ERRORS),
    )


def _bytes(files: Mapping[str, str], words: str, octets: str) -> int | None:
    count = _count(files.get(words))
    return _count(files.get(octets)) if count is None else _WORD_BYTES * count


def _count(text: str | None) -> int | None:
    found = None if text is None else _COUNT.fullmatch(text)
    return int(found["count"]) if found else None


def _sum(files: Mapping[str, str], names: Sequence[str]) -> int | None:
    known = [count for name in names if (count := _count(files.get(name))) is not None]
    return sum(known) if known else None


def _state(text: str | None) -> str | None:
    found = None if text is None else _STATE.fullmatch(text)
    return found["word"] if found else None


def _text(text: str | None) -> str | None:
    return text[:_TEXT_CHARS] if text else None
