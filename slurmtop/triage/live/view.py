"""The looks at the nodes of a job as one picture of its ranks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.look import HostLook
from slurmtop.model.probe import Activity, NodeProbe
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess
from slurmtop.model.stacks import ProcessStacks
from slurmtop.model.text import visible
from slurmtop.model.verdict import Fate
from slurmtop.triage.live.doing import ON_OTHERS, Doing, doing_of
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.kernel_signs import STOPPED
from slurmtop.triage.live.launches import launches
from slurmtop.triage.live.motion import Change, Motion, change, is_transport, motion_of
from slurmtop.triage.live.pace import Pace
from slurmtop.triage.process_tree import DEAD, Tree
from slurmtop.triage.programs import Part, part_of
from slurmtop.triage.ranks import rank_processes, ranks_by_gpu

#: Programs at work in an allocation that trains nothing by itself.
_INTERACTIVE = ("jupyter", "ipython", "ipykernel", "code-server", "vscode", "rstudio")
#: A log that was written to so short a while ago may well go on.
_FRESH_S = 10.0
_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One process in one sample."""

    process: NodeProcess
    activity: Activity | None
    stacks: ProcessStacks | None
    doing: Doing


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One process over the looks: ``looks`` holds those in which it was seen, oldest first."""

    looks: tuple[Look, ...]
    motion: Motion = Motion.UNKNOWN
    change: Change | None = None

    @property
    def process(self) -> NodeProcess:
        return self.looks[-1].process

    @property
    def doing(self) -> Doing:
        return self.looks[-1].doing

    @property
    def act(self) -> Act:
        return self.doing.act

    @property
    def host(self) -> str:
        return self.process.host

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def in_group(self) -> bool:
        """Does it talk to other ranks, by its threads or its stack?"""
        activity = self.looks[-1].activity
        threads = activity.threads if activity is not None else ()
        waits = any(look.doing.on_others for look in self.looks)
        return waits or any(is_transport(one.name) for one in threads)

    def always(self, *acts: Act) -> bool:
        """Was it in one of ``acts`` in every look? One look is not always."""
        return len(self.looks) > 1 and all(one.doing.act in acts for one in self.looks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank of a job: its process, and what serves it (loader workers and other children)."""

    told: RankProcess
    view: ProcessView
    below: tuple[ProcessView, ...] = ()
    gpu_busy: float | None = None
    """Per cent, the least of its GPUs; None where that is not known."""
    gpu_power: float | None = None
    """The power that its GPUs draw against their limit, 0-1, the least over the looks."""

    @property
    def rank(self) -> int | None:
        return self.told.rank

    @property
    def host(self) -> str:
        return self.view.host

    @property
    def doing(self) -> Doing:
        return self.view.doing

    @property
    def motion(self) -> Motion:
        return self.view.motion

    @property
    def name(self) -> str:
        """``rank 2 on gpu03``; the process where its rank is not known."""
        if self.rank is not None:
            return f"rank {self.rank} on {visible(self.host)}"
        return f"process {self.view.pid} on {visible(self.host)}"

    @property
    def on_others(self) -> bool:
        """Did it wait for other ranks by its stack, in every look at its stack?"""
        told = [one.doing for one in self.view.looks if one.doing.by_stack]
        return bool(told) and all(one.act in ON_OTHERS for one in told)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ranks of one launch, and all that is known of the nodes around them.

    ``size`` is how many ranks it was started with, None where that is not told.
    """

    live: LiveFacts
    ranks: tuple[RankView, ...]
    size: int | None = None
    answered: tuple[str, ...] = ()
    """Nodes whose processes are known of the newest look."""
    silent: tuple[str, ...] = ()
    """Nodes that gave no answer in the newest look that has come to its end."""
    agents: Mapping[str, tuple[NodeProcess, ...]]
    """torchrun and its like, by node."""
    others: Mapping[str, tuple[ProcessView, ...]]
    """All processes of the job, by node."""
    first_ranks: tuple[RankProcess, ...] = ()
    """The ranks of the first look."""
    started_at: datetime | None = None
    """When the job's newest run began, by Slurm."""
    gpus: bool = False
    """Has the job GPUs, as far as anything tells? Who waits for a GPU spins on a CPU."""
    pace: Pace | None = None
    """How fast it makes steps, by its log; None where that is not known."""
    finished: bool = False
    """Does its log tell its last step?"""
    stepped: bool = False
    """Have its ranks made a step already, by the logs?"""
    timed_out: bool = False
    """Does its log tell that a collective waited in vain, for as long as the job itself allows?"""
    partly: bool = False
    """May ranks of it run on nodes of another job, or of another part of a het job?"""

    @property
    def two(self) -> bool:
        return self.live.two_samples

    @property
    def log_moves(self) -> bool:
        """Does its log show that it lives? Where it tells steps only a step does, until the last
        one; where it tells none, any line, but not those of a watchdog."""
        log = self.live.log
        any_line = not self.timed_out and (self.finished or not self.stepped)
        fresh = log.quiet_s is not None and log.quiet_s < _FRESH_S
        return log.new_steps or (any_line and (bool(log.grew) or fresh))

    @property
    def count(self) -> int:
        """How many ranks there are: by the launch, or else as many as were seen."""
        return max(self.size or 0, len(self.ranks))

    def probe(self, host: str) -> NodeProbe | None:
        return next(
            (found for one in reversed(self.live.samples) if (found := one.probe_of(host))), None
        )

    @property
    def seen_whole(self) -> bool:
        """Were the processes of every node of the job seen, all of them?"""
        hosts = self.live.hosts
        return bool(hosts) and set(hosts) <= set(self.answered) and not self.silent


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one sample tells, by process."""

    sample: Sample
    processes: Mapping[_Key, NodeProcess]
    activity: Mapping[_Key, Activity]
    stacks: Mapping[_Key, ProcessStacks]
    arch: Mapping[str, str | None]


def worlds_of(live: LiveFacts) -> tuple[World, ...]:
    """The launches of the job that were seen, the largest first; one without ranks where there are
    none. Empty where no node answered."""
    samples = [one for one in live.samples if one.probes][-2:]
    if not samples or not any(_answered(probe) for probe in samples[-1].probes):
        return ()
    seen = [_seen(sample) for sample in samples]
    views = _views(live, seen)
    newest = samples[-1]
    told = [
        rank
        for one in _ranks(newest, live.job)
        if part_of(one.process) is Part.WORK
        for rank in _own_ranks(one, views)
    ]
    whole = _world_frame(live, newest, views, _ranks(samples[0], live.job))
    groups = launches(told)
    found = [_of_launch(whole, newest, views, group) for group in groups]
    return tuple(sorted(found, key=lambda one: -len(one.ranks))) or (whole,)


def _answered(probe: NodeProbe) -> bool:
    look = probe.processes
    refused = any(
        one.source == "processes" and one.fate is not Fate.ANSWERED for one in probe.fates
    )
    return probe.failure is None and look is not None and look.failure is None and not refused


def _looks(sample: Sample) -> list[NodeProcesses]:
    return [one.processes for one in sample.probes if _answered(one) and one.processes is not None]


def _ranks(sample: Sample, job: str) -> tuple[RankProcess, ...]:
    return rank_processes(_looks(sample), job)


def _seen(sample: Sample) -> _Seen:
    return _Seen(
        sample=sample,
        processes={one.key: one for look in _looks(sample) for one in look.processes},
        activity={one.key: one for probe in sample.probes for one in probe.activity},
        stacks={one.key: one for one in sample.stacks if one.failure is None},
        arch={probe.host: probe.arch for probe in sample.probes},
    )


def _views(live: LiveFacts, seen: Sequence[_Seen]) -> dict[_Key, ProcessView]:
    """Every process of the job that the newest look shows."""
    out: dict[_Key, ProcessView] = {}
    for key, process in seen[-1].processes.items():
        if process.job == live.job and process.state not in DEAD:
            looks = tuple(
                _look(one, key, one.processes[key]) for one in seen if key in one.processes
            )
            out[key] = _process_view(live, seen, looks)
    return out


def _look(seen: _Seen, key: _Key, process: NodeProcess) -> Look:
    activity, stacks = seen.activity.get(key), seen.stacks.get(key)
    doing = doing_of(process, activity, stacks, seen.arch.get(process.host))
    return Look(process=process, activity=activity, stacks=stacks, doing=doing)


def _process_view(live: LiveFacts, seen: Sequence[_Seen], looks: tuple[Look, ...]) -> ProcessView:
    if len(looks) < 2:
        return ProcessView(looks=looks)
    first, last = looks[0], looks[-1]
    probes = [one.sample.probe_of(last.process.host) for one in seen]
    seconds, ticks = 0.0, 100
    if probes[0] is not None and probes[-1] is not None:
        seconds = (probes[-1].at - probes[0].at).total_seconds()
        ticks = probes[-1].ticks_per_s
    changed = change(first.activity, last.activity, seconds, ticks)
    motion = motion_of(first.doing, last.doing, changed) if live.two_samples else Motion.UNKNOWN
    return ProcessView(looks=looks, motion=motion, change=changed)


def _own_ranks(one: RankProcess, views: Mapping[_Key, ProcessView]) -> list[RankProcess]:
    """Those that a program has started as ranks (``torch.multiprocessing.spawn``), in its place:
    where they are in a group, and it is in none."""
    below = [views[process.key] for process in one.perhaps if process.key in views]
    own = views.get(one.process.key)
    if own is None or own.in_group or not any(view.in_group for view in below):
        return [one]
    return [RankProcess(process=view.process) for view in below]


def _world_frame(
    live: LiveFacts,
    newest: Sample,
    views: Mapping[_Key, ProcessView],
    first_ranks: tuple[RankProcess, ...],
) -> World:
    answered = tuple(one.host for one in newest.probes if _answered(one))
    whole = next((one for one in reversed(live.samples) if one.whole), None)
    silent: tuple[str, ...] = ()
    if whole is not None:
        silent = tuple(
            host
            for host in live.hosts
            if (probe := whole.probe_of(host)) is None or probe.failure is not None
        )
        silent = tuple(host for host in silent if host not in answered)
    others: dict[str, list[ProcessView]] = {}
    for view in views.values():
        others.setdefault(view.host, []).append(view)
    agents: dict[str, tuple[NodeProcess, ...]] = {}
    for host, those in others.items():
        tree = Tree({one.pid: one.process for one in those}, {})
        agents[host] = tuple(one.process for one in those if tree.is_torch_agent(one.process))
    return World(
        live=live,
        ranks=(),
        answered=answered,
        silent=silent,
        agents={host: those for host, those in agents.items() if those},
        others={host: tuple(those) for host, those in others.items()},
        first_ranks=first_ranks,
    )


def _of_launch(
    whole: World,
    newest: Sample,
    views: Mapping[_Key, ProcessView],
    ranks: Sequence[RankProcess],
) -> World:
    trees = {
        host: Tree({one.pid: one.process for one in those}, {})
        for host, those in whole.others.items()
    }
    keys = {one.process.key for one in ranks}
    busy = _on_gpus(newest, ranks, "util_percent")
    power = [_on_gpus(one, ranks, "power_share") for one in whole.live.samples[-2:]]
    found = []
    for one in ranks:
        view = views[one.process.key]
        below = trees[view.host].below(one.process)
        # Lightning's first rank starts the others: they serve nobody, nor does what is below them.
        sisters = [child for child in below if child.key in keys]
        theirs = {child.key for each in sisters for child in trees[view.host].below(each)}
        below = [child for child in below if child.key not in keys | theirs]
        found.append(
            RankView(
                told=one,
                view=view,
                below=tuple(views[child.key] for child in below if child.key in views),
                gpu_busy=busy.get(one.process.key),
                gpu_power=_least(each.get(one.process.key) for each in power),
            )
        )
    sizes = {one.world_size for one in ranks if one.world_size is not None}
    return replace(whole, ranks=tuple(found), size=sizes.pop() if len(sizes) == 1 else None)


def _least(values: Iterable[float | None]) -> float | None:
    """The least; None where one is not known."""
    found = list(values)
    known = [one for one in found if one is not None]
    return min(known) if known and len(known) == len(found) else None


def _on_gpus(sample: Sample, ranks: Sequence[RankProcess], name: str) -> dict[_Key, float]:
    """The least ``name`` (of a GPU's sample) of the GPUs of each rank."""
    out: dict[_Key, float] = {}
    for probe in sample.probes:
        if probe.gpus is None:
            continue
        use = {one.uuid: getattr(one, name) for one in probe.gpus.samples}
        look = HostLook(host=probe.host, gpus=probe.gpus, processes=probe.processes)
        for uuid, those in ranks_by_gpu(look, ranks).items():
            value = use.get(uuid)
            if value is not None:
                for one in those:
                    out[one.process.key] = min(value, out.get(one.process.key, value))
    return out


def has_gpus(live: LiveFacts) -> bool:
    """Do the nodes show that the job runs on GPUs, or can they not tell that it does not?"""
    for probe in (probe for sample in live.samples for probe in sample.probes):
        if probe.gpus is not None and probe.gpus.samples:
            return True
        if any(one.name == "nccl" for one in probe.libraries):
            return True
    return False


def is_interactive(process: NodeProcess) -> bool:
    """A shell, a notebook or a plain tool: nothing that trains by itself."""
    part = part_of(process)
    words = " ".join((process.name, *process.argv[:3])).lower()
    return part is not Part.WORK or any(word in words for word in _INTERACTIVE)


def all_stopped(views: Iterable[ProcessView]) -> bool:
    """Are all of them stopped, in every look?"""
    found = list(views)
    return bool(found) and all(
        one.process.state in STOPPED or one.act is Act.STOPPED for one in found
    )
