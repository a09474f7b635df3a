"""What came of asking the nodes of a job, source by source, beside what each probe tells itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from slurmtop.collect.one_look import rank_like
from slurmtop.model.live import Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.reach import Reach, Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks
from slurmtop.model.verdict import Fate, SourceFate

_BY = {
    Way.HERE: "this is the node",
    Way.SSH: "by ssh",
    Way.OPENSSH: "by the ssh command",
    Way.SRUN: "by a step of the job",
}
_FATES = {
    Trouble.DENIED: Fate.REFUSED,
    Trouble.AUTH: Fate.REFUSED,
    Trouble.UNKNOWN_JOB: Fate.REFUSED,
    Trouble.TIMEOUT: Fate.TIMED_OUT,
    Trouble.DOWN: Fate.TIMED_OUT,
}
_NOBODY_SUSPECTS = "nothing speaks for a hang"


def fates_of(
    samples: Sequence[Sample], reached: Callable[[str], Reach | None], *, stacks: bool
) -> tuple[SourceFate, ...]:
    """Of the ways onto the nodes, and of the stacks. ``stacks`` false: they were not allowed.

    A node that has answered in any look was reached; the newest answer counts.
    """
    newest: dict[str, NodeProbe] = {}
    for sample in samples:
        for probe in sample.probes:
            if probe.failure is None or probe.host not in newest:
                newest[probe.host] = probe
    out = [_of_node(probe, reached(probe.host)) for probe in newest.values()]
    answered = [probe for probe in newest.values() if probe.failure is None]
    asked = any(sample.stacks_asked for sample in samples)
    if answered and not asked:
        why = _NOBODY_SUSPECTS if stacks else "--no-stacks"
        hosts = tuple(probe.host for probe in answered)
        out.append(SourceFate(source="stacks", fate=Fate.NOT_ASKED, hosts=hosts, why=why))
    elif asked:
        out += _of_stacks(answered, samples)
    return tuple(out)


def _of_node(probe: NodeProbe, reach: Reach | None) -> SourceFate:
    hosts = (probe.host,)
    if probe.failure is not None:
        return of_failure("nodes", probe.failure, hosts, f"slurmtop doctor {probe.host}")
    by = _BY[reach.way] if reach is not None and reach.way is not None else ""
    return SourceFate(source="nodes", fate=Fate.ANSWERED, hosts=hosts, why=by)


def of_failure(
    source: str, failure: Failure, hosts: tuple[str, ...], command: str | None = None
) -> SourceFate:
    """The fate behind a failure, with its own command where it has one."""
    return SourceFate(
        source=source,
        fate=_FATES.get(failure.trouble, Fate.FAILED),
        hosts=hosts,
        why=failure.sentence,
        command=failure.copy or command,
    )


def _of_stacks(probes: Iterable[NodeProbe], samples: Sequence[Sample]) -> list[SourceFate]:
    out: list[SourceFate] = []
    for probe in probes:
        found = [one for sample in samples for one in sample.stacks if one.host == probe.host]
        told = any(one.source == "stacks" for one in probe.fates)
        if not probe.stack_tools and told:
            # The probe has looked for what reads them, and says itself what it found.
            continue
        if found:
            processes = probe.processes.processes if probe.processes is not None else ()
            job = next((one.job for one in processes), None)
            out.append(_of_read(probe.host, found, job))
        else:
            out.append(_of_none(probe))
    return out


def _of_none(probe: NodeProbe) -> SourceFate:
    """No stack came of a node: nobody is there of whom one could be, or none came in time."""
    processes = probe.processes.processes if probe.processes is not None else ()
    job = next((one.job for one in processes if one.job), "")
    hosts = (probe.host,)
    if not rank_like(probe, job):
        why = "no process there looks like a rank"
        return SourceFate(source="stacks", fate=Fate.NOT_ASKED, hosts=hosts, why=why)
    return SourceFate(source="stacks", fate=Fate.TIMED_OUT, hosts=hosts, why="none came in time")


def _of_read(host: str, found: Sequence[ProcessStacks], job: str | None) -> SourceFate:
    """One answer speaks for the tool; where there is none, the first failure says why."""
    failures = [one.failure for one in found if one.failure is not None]
    good = len(found) - len(failures)
    if not failures or good:
        some = f"{good} of {len(found)} processes" if failures else ""
        return SourceFate(source="stacks", fate=Fate.ANSWERED, hosts=(host,), why=some)
    # Whoever may read them can keep them for others.
    denied = job is not None and failures[0].trouble is Trouble.DENIED
    save = f"slurmtop triage {job} --save DIR" if denied else None
    told = of_failure("stacks", failures[0], (host,), save)
    return replace(told, fate=Fate.ABSENT) if failures[0].trouble is Trouble.LOCAL else told
