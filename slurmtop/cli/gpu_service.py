"""What the screens may ask of GPUs, built from the settings over one runner."""

import os
from collections.abc import Callable, Mapping, Sequence

from slurmtop.cli.wiring import Wiring
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.exporter import Exporters
from slurmtop.collect.nodes.gpu_watch import GpuWatch
from slurmtop.collect.nodes.here import is_called, own_names
from slurmtop.collect.nodes.host_memory import Memories
from slurmtop.collect.nodes.job_use import JobUseWatch
from slurmtop.config import Config
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.ui.services import GpuWatching, WatchGpus


def make_exporters(wiring: Wiring, config: Config) -> Exporters:
    """The exporters of the settings; none are asked in a demo or of a recording."""
    if not wiring.live:
        return Exporters(wiring.clock)
    return Exporters(
        wiring.data_clock or wiring.clock,
        exporter_url=config.exporter_url,
        prometheus_url=config.prometheus_url,
    )


def make_watch_gpus(wiring: Wiring, config: Config) -> WatchGpus:
    """Builds watches that share what they learnt of each node, for as long as slurmtop runs."""
    memories = Memories()
    clock = wiring.data_clock or wiring.clock
    exporters = make_exporters(wiring, config)

    def watch_gpus(
        hosts: Sequence[str], *, job: Job | None, on_look: Callable[[HostLook], None]
    ) -> GpuWatching:
        number = None if job is None else job.raw_id or _plain(job.id.text)
        if number is not None:
            wiring.expect(number, hosts)
        return GpuWatch(
            wiring.runner,
            clock,
            hosts,
            on_look,
            memories=memories,
            dcgm=DcgmMode(config.dcgm),
            exporters=exporters,
            reach=wiring.reach,
            try_again=wiring.try_again,
            here=this_node(hosts, os.environ) if wiring.live else None,
            job=number,
        )

    return watch_gpus


def _plain(text: str) -> str | None:
    """The number of a job that is neither a task nor a part; of those ``text`` tells none."""
    return text if text.isascii() and text.isdigit() else None


def start_job_use(wiring: Wiring, config: Config) -> JobUseWatch | None:
    """GPU use of jobs from the exporters of the settings, kept up to date until the wiring is
    closed; None where none is set. Needs a running loop."""
    exporters = make_exporters(wiring, config)
    if not exporters.set_up:
        return None
    watch = JobUseWatch(exporters, wiring.data_clock or wiring.clock)
    task = spawn(watch.run(), name="GPU use of jobs")
    wiring.closers.append(lambda: cancel_and_wait(task))
    return watch


def this_node(
    hosts: Sequence[str], environ: Mapping[str, str], hostname: str | None = None
) -> str | None:
    """The one of ``hosts`` that slurmtop itself runs on; None where it is none of them."""
    for name in own_names(environ, hostname):
        for host in hosts:
            if is_called(host, (name,)):
                return host
    return None
