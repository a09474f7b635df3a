"""What the nodes of a running job told, look by look. ``collect.live`` fills it in."""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.probe import NodeProbe
from slurmtop.model.stacks import ProcessStacks
from slurmtop.model.verdict import SourceFate

#: Two samples prove that nothing moved only where their starts lie at least this far apart.
SAMPLES_APART_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at all nodes, begun at ``began_at``. Nodes that have not answered yet are not in
    ``probes`` while the look goes on; ``whole`` once each has answered or run out of time."""

    began_at: datetime
    probes: tuple[NodeProbe, ...] = ()
    stacks: tuple[ProcessStacks, ...] = ()
    stacks_asked: bool = False
    """False where nobody suspected anything: then missing stacks mean nothing."""
    whole: bool = False

    def probe_of(self, host: str) -> NodeProbe | None:
        return next((probe for probe in self.probes if probe.host == host), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMotion:
    """Whether the logs of the job grew from the first look to the newest: sizes in bytes.

    ``grew`` None: no log could be read twice. ``new_steps``: a newer step was printed meanwhile.
    """

    grew: bool | None = None
    new_steps: bool = False
    quiet_s: float | None = None
    """Seconds since the newest log was written to, at the newest look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """All looks at the nodes of one running job, oldest first, at most the last two.

    ``job`` is its raw number, ``hosts`` all its nodes: those without a probe in a whole sample were
    not looked at. ``node_states`` are Slurm's words for those nodes that are not well
    (``gpu03`` → ``DOWN*``). ``fates`` are those of sources that are not told by a single probe.
    """

    job: str
    hosts: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    log: LogMotion = LogMotion()
    node_states: tuple[tuple[str, str], ...] = ()
    fates: tuple[SourceFate, ...] = ()

    @property
    def two_samples(self) -> bool:
        """Are there two whole looks far enough apart to say that something did not move?"""
        if len(self.samples) < 2:
            return False
        first, last = self.samples[-2:]
        apart = (last.began_at - first.began_at).total_seconds()
        return first.whole and last.whole and apart >= SAMPLES_APART_S
