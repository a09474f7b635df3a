"""What is known of one node, and how its lines begin. Pure."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from slurmtop.model.gpu import KernelLog
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.text import fit
from slurmtop.store.nodes import NodeRow
from slurmtop.ui.present.spans import Line, wrap

LABEL = 9


@dataclass(frozen=True, slots=True)
class Admission:
    """May this person look inside a node? ``allowed`` None: nobody has said yet. ``job`` is their
    own running job there."""

    allowed: bool | None
    job: Job | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """What is known of one node. ``chosen`` is the job under the inner cursor, None outside.

    ``why_not`` is a sentence where nobody can look inside at all.
    """

    row: NodeRow
    now: datetime
    data_now: datetime
    zone: tzinfo | None
    me: str
    all_users: bool
    admission: Admission
    why_not: str = ""
    chosen: int | None = None
    look: HostLook | None = None
    kernel: KernelLog | None = None
    mine: frozenset[str] = frozenset()
    """What names the GPUs of this person's jobs there (UUIDs), as far as it is known."""


def labelled(label: str, line: Line) -> Line:
    """A line behind its label; "" goes on with the one before."""
    return ((fit(label, LABEL), "label"), *line)


def told(label: str, text: str, width: int, role: str) -> list[Line]:
    """Safe ``text`` on as many lines as it needs."""
    lines = wrap(text, max(20, width - LABEL))
    return [
        labelled(label if index == 0 else "", ((line, role),)) for index, line in enumerate(lines)
    ]
