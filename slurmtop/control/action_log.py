"""Two lines of JSON for everything slurmtop does to a job, with one ``id`` in both.

``asked`` is written before the first command: who, when, what, to which jobs. ``outcome`` follows
when it is known what became of it, which may take 90 s; it is missing where slurmtop was killed.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from slurmtop.model.text import visible
from slurmtop.parse.mask import mask_text

SCHEMA = "slurmtop.action/1"
#: A line of syslog is cut at about a thousand bytes.
SYSLOG_JOBS = 20


class AppendOnly(Protocol):
    """A private file that only grows. ``append_line`` adds the newline; ``OSError`` or any
    other exception says that it could not."""

    def append_line(self, line: bytes) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of an action. ``outcomes`` maps each job to (result, sentence).

    ``event`` is ``asked`` or ``outcome``; before the outcome a job's result is ``asked`` too.
    ``hosts`` is where each command runs (None: here).
    ``details`` is what the kind needs beside its jobs: a signal, a limit, nodes.
    """

    id: str
    event: str
    when: datetime
    kind: str
    cluster: str
    argvs: Sequence[Sequence[str]]
    outcomes: Mapping[str, tuple[str, str]]
    hosts: Sequence[str | None] = ()
    verdict: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)


class ActionLog:
    """Appends to the log of actions. Values that look like secrets are masked first.

    ``open_file`` is called for each line, so that a folder that appears later is found, and
    a log that cannot be opened is told with the action it belongs to. ``syslog`` gets one line
    for each outcome as well, whatever becomes of the file; it never fails an action.
    """

    def __init__(
        self,
        open_file: Callable[[], AppendOnly],
        *,
        who: str,
        uid: int,
        syslog: Callable[[str], None] | None = None,
    ) -> None:
        self._open_file = open_file
        self._syslog = syslog
        self._who = who
        self._uid = uid

    def record(self, entry: Entry) -> str | None:
        """Write one line. Returns None, or a sentence for the person when it cannot be kept."""
        if self._syslog is not None and entry.event == "outcome":
            # A second trail: it must not stand in the way of the first one.
            with contextlib.suppress(Exception):
                self._syslog(syslog_text(entry, who=self._who))
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
        "details": {name: _masked_value(value) for name, value in entry.details.items()},
        "commands": [[mask_text(word) for word in argv] for argv in entry.argvs],
        "hosts": list(entry.hosts) if any(entry.hosts) else None,
        "jobs": [
            {"job": job, "outcome": result, "says": mask_text(sentence)}
            for job, (result, sentence) in entry.outcomes.items()
        ],
        "verdict": mask_text(entry.verdict) if entry.verdict is not None else None,
    }
    return json.dumps(value, ensure_ascii=True).encode("ascii")


def syslog_text(entry: Entry, *, who: str) -> str:
    """``alice requeue 4711 4712: 1 requeued, 1 denied``: one line, harmless, secrets masked."""
    jobs = list(entry.outcomes)
    named = " ".join(jobs[:SYSLOG_JOBS])
    if len(jobs) > SYSLOG_JOBS:
        named += f" and {len(jobs) - SYSLOG_JOBS} more"
    details = ", ".join(f"{name} {_plain(value)}" for name, value in entry.details.items())
    counts = Counter(result for result, _ in entry.outcomes.values())
    if len(jobs) == 1:
        results = next(iter(counts))
    else:
        results = ", ".join(f"{count} {result}" for result, count in counts.items())
    what = f"{who} {entry.kind} {named}" + (f" ({details})" if details else "")
    return visible(mask_text(f"{what}: {results or 'nothing done'}"))


def _plain(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    more = f" and {len(value) - SYSLOG_JOBS} more" if len(value) > SYSLOG_JOBS else ""
    return ",".join(map(str, value[:SYSLOG_JOBS])) + more


def _masked_value(value: object) -> object:
    # Value by value: over the whole line a mask might swallow a quote and break the record.
    if isinstance(value, str):
        return mask_text(value)
    return [mask_text(str(one)) for one in value] if isinstance(value, list) else value
