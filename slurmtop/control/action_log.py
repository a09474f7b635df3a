"""Two lines of JSON for everything slurmtop does to a job, with one ``id`` in both.

``asked`` is written before the first command: who, when, what, to which jobs. ``outcome`` follows
when it is known what became of it, which may take 90 s; it is missing where slurmtop was killed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slurmtop.parse.mask import mask

SCHEMA = "slurmtop.action/1"


class AppendOnly(Protocol):
    """A private file that only grows. ``append_line`` adds the newline; ``OSError`` or any
    other exception says that it could not."""

    def append_line(self, line: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of an action. ``outcomes`` maps each job to (result, sentence).

    ``event`` is ``asked`` or ``outcome``; before the outcome a job's result is ``asked`` too.
    """

    id: str
    event: str
    when: datetime
    kind: str
    cluster: str
    argvs: Sequence[Sequence[str]]
    outcomes: Mapping[str, tuple[str, str]]
    verdict: str | None = None


class ActionLog:
    """Appends to the log of actions. Values that look like secrets are masked first.

    ``open_file`` is called for each line, so that a folder that appears later is found, and
    a log that cannot be opened is told with the action it belongs to.
    """

    def __init__(self, open_file: Callable[[], AppendOnly], *, who: str, uid: int) -> None:
        self._open_file = open_file
        self._who = who
        self._uid = uid

    def record(self, entry: Entry) -> str | None:
        """Write one line. Returns None, or a sentence for the person when it cannot be kept."""
        line = entry_line(entry, who=self._who, uid=self._uid)
        try:
            self._open_file().append_line(line)
        except Exception as error:  # Whatever the disk says, the action itself has happened.
            return f"this action could not be written to the log of actions: {error}"
        return None


def entry_line(entry: Entry, *, who: str, uid: int) -> bytes:
    """The line without its newline; text of any kind stays on one line, secrets are masked."""
    value = {
        "schema": SCHEMA,
        "id": entry.id,
        "event": entry.event,
        "when": entry.when.isoformat(timespec="seconds"),
        "who": who,
        "uid": uid,
        "kind": entry.kind,
        "cluster": entry.cluster,
        "commands": [list(argv) for argv in entry.argvs],
        "jobs": [
            {"job": job, "outcome": result, "says": _masked(sentence)}
            for job, (result, sentence) in entry.outcomes.items()
        ],
        "verdict": _masked(entry.verdict) if entry.verdict is not None else None,
    }
    return json.dumps(value, ensure_ascii=True).encode("ascii")


def _masked(text: str) -> str:
    # Value by value: over the whole line a mask might swallow a quote and break the record.
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")
