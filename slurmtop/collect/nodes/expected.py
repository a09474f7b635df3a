"""Which of our jobs runs on which nodes: srun gets onto a node only through a job there."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """A running job by its raw number (an array task has one of its own), and its nodes."""

    job: str
    hosts: tuple[str, ...]


@dataclass(slots=True)
class Expected:
    """The jobs that somebody looks at. What is told last of a node counts."""

    _jobs: dict[str, ExpectedJob] = field(default_factory=dict)

    def expect(self, job: str, hosts: Iterable[str]) -> None:
        self._jobs.pop(job, None)
        self._jobs[job] = ExpectedJob(job, tuple(dict.fromkeys(hosts)))

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
