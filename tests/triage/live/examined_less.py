"""The facts of a situation with less in them: refused, timed out, cut or not readable."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.live import Sample
from slurmtop.model.probe import Activity, NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble

_Key = tuple[str, int, int]
SILENT = Failure(Trouble.TIMEOUT, "It did not answer within 8 s.")
_COUNTERS = {"no CPU": "cpu_ticks", "no switches": "switches"}
LOSSES = (
    "some stacks",
    "stacks of a node",
    "stacks of a look",
    "who has the lock",
    "some activity",
    "what the kernel says",
    "threads",
    *_COUNTERS,
    "some environments",
    "some processes",
    "a node",
    "a node at the end",
)


def less(facts: JobFacts, seed: str) -> tuple[JobFacts, Sequence[str]]:
    """``facts`` after one to three losses, and which they are; the same ones for one ``seed``."""
    live = facts.live
    assert live is not None
    dice = random.Random(seed)
    lost = dice.sample(LOSSES, dice.randint(1, 3))
    keys = sorted(
        {
            one.key
            for sample in live.samples
            for probe in sample.probes
            for one in (probe.processes.processes if probe.processes else ())
        }
    )
    few = set(dice.sample(keys, min(len(keys), dice.randint(1, 4))))
    host = dice.choice(live.hosts)
    samples = tuple(
        _sample(sample, nth, lost, few, host) for nth, sample in enumerate(live.samples)
    )
    return replace(facts, live=replace(live, samples=samples)), lost


def _sample(sample: Sample, nth: int, lost: Sequence[str], few: set[_Key], host: str) -> Sample:
    gone = "a node" in lost or ("a node at the end" in lost and nth == 1)
    probes = tuple(
        NodeProbe(host=one.host, at=one.at, failure=SILENT)
        if gone and one.host == host
        else _probe(one, lost, few)
        for one in sample.probes
    )
    silent = {one.host for one in probes if one.failure is not None}
    silent |= {host} if "stacks of a node" in lost else set()
    stacks = [one for one in sample.stacks if one.host not in silent]
    if "some stacks" in lost:
        stacks = [one for one in stacks if one.key not in few]
    if "stacks of a look" in lost and nth == 0:
        stacks = []
    if "who has the lock" in lost:
        stacks = [
            replace(one, threads=tuple(replace(t, gil=None, active=None) for t in one.threads))
            for one in stacks
        ]
    return replace(sample, probes=probes, stacks=tuple(stacks))


def _probe(probe: NodeProbe, lost: Sequence[str], few: set[_Key]) -> NodeProbe:
    look = probe.processes
    if look is None:
        return probe
    activity = [
        _activity(one, lost)
        for one in probe.activity
        if "some activity" not in lost or one.key not in few
    ]
    found = look.processes
    if "some environments" in lost:
        found = _each(found, few, lambda one: replace(one, env=None))
    if "some processes" in lost:
        found = tuple(one for one in found if one.key not in few)
        look = replace(look, complete=False)
    return replace(probe, activity=tuple(activity), processes=replace(look, processes=found))


def _each(
    found: Sequence[NodeProcess], few: set[_Key], change: Callable[[NodeProcess], NodeProcess]
) -> tuple[NodeProcess, ...]:
    return tuple(change(one) if one.key in few else one for one in found)


def _activity(one: Activity, lost: Sequence[str]) -> Activity:
    if "what the kernel says" in lost:
        one = replace(one, wchan=None, syscall=None)
    if "threads" in lost:
        one = replace(one, threads=())
    for loss, name in _COUNTERS.items():
        if loss in lost:
            first = replace(one.first, **{name: None})
            one = replace(one, first=first, second=replace(one.second, **{name: None}))
    return one
