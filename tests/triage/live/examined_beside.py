"""What stands beside the ranks of a situation: a second launch, or further threads of some."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.probe import Activity, NodeProbe, ThreadState
from slurmtop.model.stacks import Frame, ProcessStacks
from tests.triage.live.examined import Build, facts_of
from tests.triage.live.examined_well import COLD, HOT


def hot(cold: Collection[int], size: int) -> Mapping[int, tuple[float, float]]:
    """GPUs that draw full power, but those of the ranks ``cold``."""
    return {rank: COLD if rank in cold else HOT for rank in range(size)}


def two(first: Build, other: Build) -> Callable[[], JobFacts]:
    """Two launches of one job."""
    plain = Build(**{one.name: getattr(first, one.name) for one in fields(Build)})
    return lambda: facts_of(plain, other)


def with_thread(
    build: Build,
    ranks: Collection[int],
    *,
    wchan: str = "hrtimer_nanosleep",
    ticks: int = 0,
    moved: tuple[Frame, ...] | None = None,
) -> Callable[[], JobFacts]:
    """A further thread of ``ranks``: where it waits, the CPU ticks it uses between the looks, and
    where it stands in the second one (None: nobody reads its stack)."""

    def made() -> JobFacts:
        facts = build.facts()
        assert facts.live is not None
        keys = {(build.hosts()[rank // build.per], build.pid(rank)) for rank in ranks}
        samples = []
        for number, sample in enumerate(facts.live.samples):
            thread = ThreadState(
                tid=0,
                state="D" if "wait_bit" in wchan else "S",
                name="python",
                wchan=wchan,
                cpu_ticks=100 + ticks * number,
            )
            probes = tuple(_probe(probe, keys, thread) for probe in sample.probes)
            stacks = sample.stacks
            if moved is not None and number:
                stacks = tuple(_stacks(one, keys, moved) for one in stacks)
            samples.append(replace(sample, probes=probes, stacks=stacks))
        return replace(facts, live=replace(facts.live, samples=tuple(samples)))

    return made


def _probe(probe: NodeProbe, keys: set[tuple[str, int]], thread: ThreadState) -> NodeProbe:
    def more(one: Activity) -> Activity:
        if (probe.host, one.pid) not in keys:
            return one
        return replace(one, threads=(*one.threads, replace(thread, tid=one.pid + 7)))

    return replace(probe, activity=tuple(more(one) for one in probe.activity))


def _stacks(
    one: ProcessStacks, keys: set[tuple[str, int]], moved: tuple[Frame, ...]
) -> ProcessStacks:
    if (one.host, one.pid) not in keys:
        return one
    main, thread, *rest = one.threads
    return replace(one, threads=(main, replace(thread, frames=moved), *rest))
