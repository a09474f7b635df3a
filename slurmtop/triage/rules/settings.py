"""Settings and versions that have to be the same on all hosts of a job, and are not."""

import re
from collections.abc import Iterable, Iterator, Mapping

from slurmtop.model.events.nccl import NcclNetwork, NcclSetting, NcclVersion, NcclWarn, Warn
from slurmtop.model.events.program import PyException
from slurmtop.model.events.torch import NcclError, WatchdogTimeout
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Shown, Weight
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import lines

#: What both ends of a transfer have to agree on. Interfaces, adapters, files and levels of
#: output differ on purpose and are left out.
_SHARED = frozenset(
    {
        "NCCL_ALGO",
        "NCCL_BUFFSIZE",
        "NCCL_COLLNET_ENABLE",
        "NCCL_IB_DISABLE",
        "NCCL_LL128_BUFFSIZE",
        "NCCL_LL_BUFFSIZE",
        "NCCL_MAX_NCHANNELS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_NET",
        "NCCL_NET_PLUGIN",
        "NCCL_NTHREADS",
        "NCCL_NVLS_ENABLE",
        "NCCL_P2P_NET_CHUNKSIZE",
        "NCCL_PROTO",
    }
)
#: The loader's words for a function that the loaded library does not have.
_NO_SYMBOL = re.compile(r"undefined symbol: p?nccl[A-Z]|version `?NCCL_\S{1,40} not found")


def find(picture: Picture) -> Iterable[Finding]:
    yield from _environment(picture)
    yield from _versions(picture)


def _environment(picture: Picture) -> Iterator[Finding]:
    differing = [*_settings(picture), *_networks(picture)]
    if not differing:
        return
    if not _broke(picture):
        return
    sizes = [one for one in picture.of(NcclWarn) if one.kind is Warn.SIZE_MISMATCH]
    names = sorted({one.name for one in differing if isinstance(one, NcclSetting)})
    yield Finding(
        cls="env-mismatch",
        weight=Weight.CAUSE if sizes else Weight.PATTERN,
        summary=f"the hosts of this job differ in {', '.join(names) or 'the network they use'}",
        state=State.FAILED,
        at=(sizes or differing)[0].at,
        shown=(
            *lines.lines(picture, sizes, "the two ends differ in size", limit=3),
            *(Shown(one.at, "another host has another value") for one in differing[:4]),
        ),
        explains=lines.AFTER_A_STALL | {"net-nic-ordering"},
    )


def _broke(picture: Picture) -> bool:
    """Did something go wrong between ranks? Hosts that differ and work well are no finding."""
    quiet = (Warn.BENIGN, Warn.OTHER, Warn.FOREIGN)
    warned = any(one.kind not in quiet for one in picture.of(NcclWarn))
    return warned or bool(picture.of(NcclError, WatchdogTimeout))


def _settings(picture: Picture) -> list[Event]:
    """One line for each value of a setting that no two hosts share."""
    by_name: dict[str, dict[str, dict[str, NcclSetting]]] = {}
    for one in picture.of(NcclSetting):
        host = lines.host_of(picture, one.at)
        if host is not None and one.name in _SHARED:
            by_name.setdefault(one.name, {}).setdefault(host, {}).setdefault(one.value, one)
    return [one for hosts in by_name.values() for one in _apart(hosts)]


def _networks(picture: Picture) -> list[Event]:
    """Hosts that chose different networks: one InfiniBand, another sockets."""
    hosts: dict[str, dict[str, NcclNetwork]] = {}
    for one in picture.of(NcclNetwork):
        host = lines.host_of(picture, one.at)
        if host is not None and one.name is not None:
            hosts.setdefault(host, {}).setdefault(one.name.casefold(), one)
    return [*_apart(hosts)]


def _apart(hosts: Mapping[str, Mapping[str, Event]]) -> list[Event]:
    """The lines of two hosts that have no value in common; none where all hosts share one."""
    named = [(host, set(values)) for host, values in sorted(hosts.items())]
    for place, (host, values) in enumerate(named):
        for other, theirs in named[place + 1 :]:
            if not values & theirs:
                return [*list(hosts[host].values())[:2], *list(hosts[other].values())[:2]]
    return []


def _other_library(picture: Picture) -> Iterator[Finding]:
    """A program was built for another NCCL than the one that was loaded."""
    thrown = [e for e in picture.of(PyException) if _NO_SYMBOL.search(e.message)]
    thrown = [e for e in thrown if not e.swallowed]
    if thrown:
        yield Finding(
            cls="version-mismatch",
            weight=Weight.CAUSE,
            summary="the NCCL that was loaded is of another version than the program was built for",
            state=State.FAILED,
            at=thrown[0].at,
            shown=tuple(Shown(e.at, "a function of NCCL is not there") for e in thrown[:3]),
            explains=frozenset({"python-exception", "task-exit"}),
        )


def _versions(picture: Picture) -> Iterator[Finding]:
    warns = [one for one in picture.of(NcclWarn) if one.kind is Warn.VERSION_MISMATCH]
    hosts: dict[str, dict[str, Event]] = {}
    told: list[NcclVersion | NcclError] = [*picture.of(NcclVersion), *picture.of(NcclError)]
    for one in told:
        if (host := lines.host_of(picture, one.at)) is not None and one.version is not None:
            hosts.setdefault(host, {}).setdefault(one.version.partition("+")[0], one)
    apart = _apart(hosts) if _broke(picture) else []
    # What the ranks first tell each other has the length that their version gives it.
    torn = [
        one
        for one in picture.of(NcclWarn)
        if one.kind is Warn.SIZE_MISMATCH and one.call == "bootstrap"
    ]
    if not warns and not apart and not torn:
        yield from _other_library(picture)
        return
    yield Finding(
        cls="version-mismatch",
        weight=Weight.CAUSE if warns else Weight.PATTERN,
        summary="hosts of this job run different versions of NCCL"
        if warns or apart
        else "the ranks do not understand each other at set-up: different versions are likely",
        state=State.FAILED,
        at=(warns or torn or apart)[0].at,
        shown=(
            *lines.lines(picture, warns, "two ranks have different versions"),
            *lines.lines(picture, torn, "the first message had another length than expected"),
            *(Shown(one.at, "the version of this host") for one in apart),
        ),
        explains=lines.AFTER_A_STALL | {"rank-count-mismatch", "env-mismatch"},
    )
