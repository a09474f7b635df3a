"""How slurmtop gets onto the nodes, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.snapshot import Failure


class Way(StrEnum):
    """A way onto a node; the value is how a person and the settings file say it."""

    HERE = "here"
    """slurmtop runs on that node itself."""
    SSH = "ssh"
    """A connection of our own, by the person's ssh settings, keys and agent."""
    OPENSSH = "openssh"
    """The ``ssh`` command without questions: host-based login, GSSAPI, an open master."""
    SRUN = "srun"
    """One step inside the job, where ssh is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What came of trying to get onto one node.

    ``way`` is None where none answered; ``failure`` then sums up why. ``refused`` are the ways
    that were tried and failed, in order; a way may be there beside one that answered.
    """

    host: str
    way: Way | None = None
    failure: Failure | None = None
    refused: tuple[tuple[Way, Failure], ...] = ()
