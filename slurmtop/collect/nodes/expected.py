"""Which of our jobs runs on which nodes: srun gets onto a node only through a job there."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """A running job by its raw number (an array task has one of its own), and its nodes.

    ``latest`` are those that were told last, which may be some of ``hosts`` only: somebody looks
    at one node of a job that others look at as a whole.
    """

    job: str
    hosts: tuple[str, ...]
    latest: tuple[str, ...] = ()


@dataclass(slots=True)
class Expected:
    """The jobs that somebody looks at. What is told last of a node counts."""

    _jobs: dict[str, ExpectedJob] = field(default_factory=dict)

    def expect(self, job: str, hosts: Iterable[str]) -> None:
        told = tuple(dict.fromkeys(hosts))
        known = self.hosts_of(job)
        self._jobs.pop(job, None)
        self._jobs[job] = ExpectedJob(job, known if set(told) <= set(known) else told, told)

    def narrow(self, job: str) -> ExpectedJob | None:
        """Take what was told last for the whole; None where it is."""
        known = self._jobs.get(job)
        if known is None or not known.latest or set(known.latest) == set(known.hosts):
            return None
        self._jobs[job] = ExpectedJob(job, known.latest, known.latest)
        return self._jobs[job]

    def forget(self, job: str) -> None:
        self._jobs.pop(job, None)

    def hosts_of(self, job: str) -> tuple[str, ...]:
        known = self._jobs.get(job)
        return () if known is None else known.hosts

    def job_on(self, host: str) -> ExpectedJob | None:
        """The job to get onto ``host`` through; None where none of ours is known there."""
        for known in reversed(self._jobs.values()):
            if host in known.hosts:
                return known
        return None
