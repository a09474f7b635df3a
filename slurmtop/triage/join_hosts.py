"""One name for each host: which names and addresses a line ties to one another."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import ChildEnded, ElasticFailure
from slurmtop.model.events.nccl import NcclAddress
from slurmtop.model.trace import Traces

_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]*", re.IGNORECASE)
#: Every host has these, or may have them (the bridge of a container engine): they tie nothing.
_SHARED = ("127.", "::1", "172.17.", "0.0.0.0")  # noqa: S104  not bound to, only compared


def is_address(name: str) -> bool:
    """Is it an IP address? A host may be called ``64``, which is none."""
    return _ADDRESS.fullmatch(name) is not None


def host_aliases(traces: Traces) -> dict[str, str]:
    """Every tied name or address (in lower case) to the name its host is called by.

    Ties are: the address that a process says it listens on, a collector's label beside the
    host's own name, and a full name beside the same short one. A tie that leads to two hosts
    ties nothing; likeness of names (``node48``, ``node-48``) never does.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    labels: dict[str, set[str]] = defaultdict(set)
    names: set[str] = set()
    for event in traces.events:
        at = event.at
        if at.host is None:
            continue
        names.add(at.host)
        if isinstance(event, NcclAddress) and not event.address.startswith(_SHARED):
            owners[event.address.lower()].add(at.host)
        if at.label is not None and at.label != at.host:
            labels[at.label].add(at.host)
    short = _short_names(names | set(_hosts_told(traces)))
    known = {name.lower(): short.get(name, name) for name in names}
    out = {name.lower(): to for name, to in short.items() if name.lower() != to.lower()}
    for name, to in _sole(owners, known):
        out.setdefault(name, to)
    # A host with two labels runs several writers (containers); then a label is no host's name.
    writers: dict[str, set[str]] = defaultdict(set)
    for label, hosts in labels.items():
        for host in hosts:
            writers[known[host.lower()]].add(label)
    called: dict[str, str] = {}
    for name, to in _sole(labels, known):
        if len(writers[to]) == 1:
            out.setdefault(name.lower(), to)
            if not is_address(name):
                called[to] = name
    for event in traces.of(ChildEnded):
        if event.node is not None and event.address is not None:
            to = known.get(event.node.lower(), event.node)
            out.setdefault(event.address.lower(), to)
    return _by_label(out, called)


def _by_label(aliases: dict[str, str], called: dict[str, str]) -> dict[str, str]:
    """A host by the name under which its launcher reaches it, where it calls itself otherwise.

    The name that a process sees may be that of its container or virtual machine; the launcher's
    is the one to exclude or log in to.
    """
    out = {name: called.get(to, to) for name, to in aliases.items()}
    for host, label in called.items():
        out[host.lower()] = label
        if out.get(label.lower()) == label:
            del out[label.lower()]
    return out


def _sole(ties: dict[str, set[str]], known: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, hosts in ties.items():
        found = {known[host.lower()] for host in hosts}
        if len(found) == 1:
            (to,) = found
            if name.lower() != to.lower():
                yield name, to


def _hosts_told(traces: Traces) -> Iterator[str]:
    for event in traces.of(ElasticFailure, ChildEnded):
        if isinstance(event, ElasticFailure) and event.host is not None:
            yield event.host
        elif isinstance(event, ChildEnded) and event.node is not None:
            yield event.node


def _short_names(names: Iterable[str]) -> dict[str, str]:
    """Full names to short ones, where only one full name has that short name."""
    fulls: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if "." in name and not is_address(name):
            fulls[name.split(".", 1)[0].lower()].add(name.lower())
    return {
        name: name.split(".", 1)[0]
        for name in names
        if "." in name
        and not is_address(name)
        and name.split(".", 1)[0]
        and len(fulls[name.split(".", 1)[0].lower()]) == 1
    }
