"""GPU values from what a site already runs: dcgm-exporter on each node, or Prometheus.

Only addresses out of the settings are asked: ``exporter_url`` with ``{host}`` in it, one request a
node; ``prometheus_url``, one question for all nodes together, and one about how old the answer is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from slurmtop.collect.nodes.http_get import HttpFailed, http_get, shown_url
from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.host_names import owner_of
from slurmtop.model.ports import Clock
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.gpu.exporter import MOST_GPUS, Series, gpus_of, read_exporter
from slurmtop.parse.gpu.prometheus_api import (
    HOST_LABELS,
    PrometheusSaysNo,
    parse_prometheus_api,
    query_for,
    time_of,
    times_for,
)

#: Exporters collect every 30 s where nobody changed it; asking more often gives the same values.
EVERY_S = 15.0
_AT_ONCE = 16
_HOSTS_A_QUERY = 200
_RETRY_S = 60.0
_WORDS_CHARS = 120
_NAMES_SHOWN = 3

EXPORTER, PROMETHEUS = "exporter", "prometheus"

#: ``(url, form) -> body``; raises :class:`HttpFailed`.
Fetch = Callable[[str, bytes | None], Awaitable[bytes]]


async def _fetch(url: str, form: bytes | None) -> bytes:
    return await http_get(url, form=form)


@dataclass(frozen=True, slots=True)
class Told:
    """What a source says of one node. ``at`` is when the values were true, as far as known."""

    node: NodeGpus
    at: datetime
    source: str


class Exporters:
    """Asks the addresses of the settings; both may be empty, then nothing is ever asked."""

    def __init__(
        self,
        clock: Clock,
        *,
        exporter_url: str = "",
        prometheus_url: str = "",
        fetch: Fetch = _fetch,
    ) -> None:
        self._clock = clock
        self._exporter_url = exporter_url
        self._prometheus_url = prometheus_url.rstrip("/")
        self._fetch = fetch

    @property
    def set_up(self) -> bool:
        return bool(self._exporter_url or self._prometheus_url)

    async def ask(self, hosts: Sequence[str]) -> Mapping[str, Told]:
        """One look at these nodes, each of them in the answer. Never raises."""
        if self._exporter_url:
            gate = asyncio.Semaphore(_AT_ONCE)
            told = await asyncio.gather(*(self._one(host, gate) for host in hosts))
            return dict(zip(hosts, told, strict=True))
        if not self._prometheus_url:
            return {}
        out: dict[str, Told] = {}
        for start in range(0, len(hosts), _HOSTS_A_QUERY):
            out |= await self._all(hosts[start : start + _HOSTS_A_QUERY])
        return out

    async def _one(self, host: str, gate: asyncio.Semaphore) -> Told:
        async with gate:
            at = self._clock.now()
            started = self._clock.monotonic()
            try:
                body: bytes | None = await self._fetch(
                    self._exporter_url.replace("{host}", host), None
                )
            except HttpFailed as error:
                if not error.nothing_there:
                    return Told(_failed(host, error.failure), at, EXPORTER)
                body = None
            took_s = self._clock.monotonic() - started
            return Told(read_exporter(host, body, took_s=took_s), at, EXPORTER)

    async def _all(self, hosts: Sequence[str]) -> dict[str, Told]:
        now = self._clock.now()
        try:
            rows = await self._query(query_for(hosts))
        except HttpFailed as error:
            return {host: Told(_failed(host, error.failure), now, PROMETHEUS) for host in hosts}
        try:
            times = _by_host(await self._query(times_for(hosts)), hosts)
        except HttpFailed:
            times = {}
        by_host = _by_host(rows, hosts)
        return {
            host: Told(
                _node(host, by_host[host]),
                _oldest(_of_one(host, times.get(host, {})), now),
                PROMETHEUS,
            )
            for host in hosts
        }

    async def _query(self, query: str) -> Sequence[Series]:
        form = urlencode({"query": query}).encode("ascii")
        body = await self._fetch(f"{self._prometheus_url}/api/v1/query", form)
        try:
            return parse_prometheus_api(body).rows
        except PrometheusSaysNo as error:
            why = visible(str(error))[:_WORDS_CHARS]
            says = f"Prometheus at {shown_url(self._prometheus_url)} refuses: {why}"
            raise HttpFailed(Failure(Trouble.OTHER, says, retry_after_s=_RETRY_S)) from error


def _oldest(times: Sequence[Series], now: datetime) -> datetime:
    known = [at for one in times if (at := time_of(one)) is not None]
    return min([now, *known])


def _by_host(rows: Sequence[Series], hosts: Sequence[str]) -> dict[str, dict[str, list[Series]]]:
    """The series of each host by the name that they bear; an exporter may tell a longer one."""
    asked = {host.lower(): host for host in hosts}
    out: dict[str, dict[str, list[Series]]] = {host: {} for host in hosts}
    for row in rows:
        name = next((row.labels[label] for label in HOST_LABELS if row.labels.get(label)), "")
        host = owner_of(name, asked)
        if host is not None:
            out[asked[host]].setdefault(name.lower(), []).append(row)
    return out


def _of_one(host: str, named: Mapping[str, list[Series]]) -> list[Series]:
    """The series under the host's very name, else those under the one longer name that there is.

    None of several longer ones: each is another machine, and which of them is meant nobody says.
    """
    if (own := named.get(host.lower())) is not None:
        return own
    return next(iter(named.values())) if len(named) == 1 else []


def _several(host: str, named: Mapping[str, list[Series]], gpus: Sequence[GpuSample]) -> str | None:
    """What is said where the series are of more than one machine of this name; None elsewhere."""
    names: Sequence[str] = () if host.lower() in named else sorted(named)
    if len(names) < 2 and not _numbers_clash(gpus):
        return None
    shown = ", ".join(map(visible, names[:_NAMES_SHOWN])) if len(names) > 1 else ""
    which = f" ({shown}{', …' if len(names) > _NAMES_SHOWN else ''})" if shown else ""
    return (
        f"Prometheus knows several machines by the name of {visible(host)}{which}, so their values "
        f"are left alone: name this cluster's own Prometheus in prometheus_url."
    )


def _numbers_clash(gpus: Sequence[GpuSample]) -> bool:
    """Do two cards bear one number? On one node each has its own."""
    cards: dict[int, str] = {}
    return any(
        cards.setdefault(gpu.dcgm_id, gpu.uuid) != gpu.uuid
        for gpu in gpus
        if gpu.dcgm_id is not None and gpu.uuid is not None and gpu.slice_id is None
    )


def _node(host: str, named: Mapping[str, list[Series]]) -> NodeGpus:
    gpus = gpus_of(_of_one(host, named), host)
    if (says := _several(host, named, gpus)) is not None:
        return _failed(host, Failure(Trouble.OTHER, says, retry_after_s=_RETRY_S))
    if len(gpus) > MOST_GPUS:
        says = f"Prometheus names more GPUs on {visible(host)} than a node can have."
        return _failed(host, Failure(Trouble.OTHER, says, retry_after_s=_RETRY_S))
    if gpus:
        return NodeGpus(host=host, samples=gpus)
    says = f"Prometheus has no data of any GPU on {visible(host)}."
    failure = Failure(Trouble.OTHER, says, retry_after_s=_RETRY_S)
    return NodeGpus(host=host, answer=Answer.NO_DATA, failure=failure)


def _failed(host: str, failure: Failure) -> NodeGpus:
    return NodeGpus(host=host, answer=Answer.OTHER, failure=failure)
