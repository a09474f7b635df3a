"""One situation of an examination, and what may be said of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from slurmtop.model.facts import JobFacts, StepLines
from slurmtop.model.probe import NodeProbe
from tests.triage.live.examined import Build


@dataclass(frozen=True, kw_only=True)
class Case:
    """``may``: ranks, hosts or pids that may be named; ``must``: somebody has to be. ``never`` are
    classes that would be wrong, ``unsaid`` words that would not be true."""

    name: str
    facts: Callable[[], JobFacts]
    states: str
    classes: tuple[str | None, ...] | None = None
    may: frozenset[int | str] = frozenset()
    must: bool = False
    never: frozenset[str] = frozenset()
    unsaid: tuple[str, ...] = ()


def case(
    name: str,
    build: Build | Callable[[], JobFacts],
    states: str,
    classes: tuple[str | None, ...] | None = None,
    may: set[int | str] | None = None,
    must: bool = False,
    never: set[str] | None = None,
    unsaid: tuple[str, ...] = (),
) -> Case:
    return Case(
        name=name,
        facts=build.facts if isinstance(build, Build) else build,
        states=states,
        classes=classes,
        may=frozenset(may or ()),
        must=must,
        never=frozenset(never or ()),
        unsaid=unsaid,
    )


def rank_of(facts: JobFacts, host: str | None, pid: int | None) -> int | None:
    """The rank of a process, by its environment."""
    for sample in facts.live.samples if facts.live is not None else ():
        probe = sample.probe_of(host or "")
        for one in probe.processes.processes if probe is not None and probe.processes else ():
            told = one.variable("RANK") or one.variable("OMPI_COMM_WORLD_RANK")
            if one.pid == pid and told is not None:
                return int(told)
    return None


def each_probe(
    build: Build | Callable[[], JobFacts], change: Callable[[NodeProbe], NodeProbe]
) -> Callable[[], JobFacts]:
    """The same with every answer of a node changed, of both looks."""

    def made() -> JobFacts:
        facts = build.facts() if isinstance(build, Build) else build()
        assert facts.live is not None
        samples = tuple(
            replace(one, probes=tuple(map(change, one.probes))) for one in facts.live.samples
        )
        return replace(facts, live=replace(facts.live, samples=samples))

    return made


def at_pace(build: Build | Callable[[], JobFacts]) -> Callable[[], JobFacts]:
    """A step a second, by its log."""
    steps = StepLines(lines=40, first=1, last=40, begin=1, span_s=40.0, pause_s=2.0)

    def made() -> JobFacts:
        facts = build.facts() if isinstance(build, Build) else build()
        return replace(facts, logs=tuple(replace(one, steps=steps) for one in facts.logs))

    return made
