"""Whose logs they are: those of several jobs in one folder are never joined into one run.

The number of a job is told by the name that Slurm gives its output, and by the words of its
programs inside::

    slurm-4711.out, slurm-4711_3.err
    slurmstepd-n1: error: Detected 1 oom_kill event in StepId=4711.0.

A source that tells of no job, or of several, belongs to whoever it is read for. Processes that
share a communicator are one run, whatever their logs are called.
"""

import re
from collections import defaultdict

from slurmtop.model.events.nccl import CommInit
from slurmtop.model.events.slurm import OomKill, StepEnded, TaskExit
from slurmtop.model.trace import Traces

_NAME = re.compile(r"slurm-(?P<job>\d{1,10}(?:_\d{1,10})?)\.(?:out|err|log)(?:\.\w{1,5}){0,2}")

_STEP = re.compile(r"(?P<job>\d{1,10}(?:_\d{1,10})?)(?!\w)")


def split_jobs(traces: Traces) -> dict[str, Traces]:
    """The traces of each job, the newest first; empty where they are not those of several jobs.

    What belongs to no job for sure is with each of them.
    """
    of_source = _jobs(traces)
    jobs = sorted(set(of_source.values()), key=_number, reverse=True)
    if len(jobs) < 2 or _is_one_run(traces, of_source):
        return {}
    return {job: _only(traces, of_source, job) for job in jobs}


def _jobs(traces: Traces) -> dict[str, str]:
    told: dict[str, set[str]] = defaultdict(set)
    ends: list[StepEnded | OomKill | TaskExit] = [*traces.of(StepEnded), *traces.of(OomKill)]
    for event in (*ends, *traces.of(TaskExit)):
        found = _STEP.match(event.step or "")
        if found is not None:
            told[event.at.source].add(found["job"])
    named: dict[str, str] = {}
    for source in traces.sources:
        name = _NAME.fullmatch(source.name.rpartition("/")[2])
        inside = told[source.name]
        if name is not None:
            named[source.name] = name["job"]
        elif len(inside) == 1:
            named[source.name] = next(iter(inside))
    return _with_one_name(named)


def _with_one_name(named: dict[str, str]) -> dict[str, str]:
    """A task of an array has two numbers: ``4711_3`` of its name, and that of its steps."""
    arrays = any("_" in job for job in named.values())
    if arrays and any("_" not in job for job in named.values()):
        return {}
    return named


def _is_one_run(traces: Traces, of_source: dict[str, str]) -> bool:
    jobs_of_comm: dict[str, set[str]] = defaultdict(set)
    for event in traces.of(CommInit):
        job = of_source.get(event.at.source)
        if event.comm_id is not None and job is not None:
            jobs_of_comm[event.comm_id].add(job)
    return any(len(jobs) > 1 for jobs in jobs_of_comm.values())


def _number(job: str) -> tuple[int, ...]:
    return tuple(map(int, job.split("_")))


def _only(traces: Traces, of_source: dict[str, str], job: str) -> Traces:
    kept = {one.name for one in traces.sources if of_source.get(one.name, job) == job}
    return Traces(
        tuple(source for source in traces.sources if source.name in kept),
        tuple(event for event in traces.events if event.at.source in kept),
    )
