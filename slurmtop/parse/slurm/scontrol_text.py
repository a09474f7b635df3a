"""The text of ``scontrol show job`` taken apart, without believing what users wrote into it.

Slurm prints the job's name on the first line, then its own fields from ``UserId=`` on, then
``Command=`` and everything else that users write. Nothing is escaped: a name or a comment may
hold whole lines such as ``   JobState=COMPLETED Reason=None``, and 26.05 repeats the name in
``SubmitLine=``. What counts is therefore the *section*: the fields from ``UserId=`` to the
first of the user's own fields. A field of Slurm's own is read from there only, and only its
first appearance.

Where the name is known from squeue, the section is the first one behind it, and nothing can be
forged. Where it is not known:

* a section that lacks fields which Slurm always prints is a forgery when a whole one exists;
* of two with nothing but ``Command=`` between them the first came from the name;
* if several are left, fields in which they differ are unknown. That is better than a guess.

What stands last in a record (StdErr, StdIn, StdOut) is read from its last appearance.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_START = re.compile(
    r"^JobId=(?P<id>\d{1,10})"
    r"(?P<head>(?: (?:ArrayJobId|ArrayTaskId|ArrayTaskThrottle|HetJobId|HetJobOffset)=\S*)*)"
    r" JobName=",
    re.MULTILINE,
)
_SECTION = re.compile(r"(?<=[ \n])UserId=[^\n=]{0,300}\(\d{1,10}\) GroupId=")
_KEY = re.compile(r"(?<=[ \n])([A-Za-z][A-Za-z0-9_/:]{0,40})=")
#: Between the name and the section stand lines of Slurm's own.
_BEHIND_NAME = re.compile(r"(?:(?:\n {3}| )(?:SLUID|HetJobIdSet)=\S{0,120})*(?:\n {3}| )\Z")

#: Fields that users write, and those behind them, in the order in which Slurm prints them.
TAIL_KEYS = (
    *("Command", "SubmitLine", "WorkDir", "AdminComment", "SystemComment", "Comment", "Extra"),
    *("BurstBuffer", "BurstBufferState", "Container", "ContainerID", "StdErr", "StdIn", "StdOut"),
    *("Switches", "BatchFeatures", "Power", "CpusPerTres", "MemPerTres", "TresBind", "TresFreq"),
    *("TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask", "MailUser", "MailType"),
    *("KillOInInvalidDependent", "Prefer", "StepMgrEnabled", "FedOrigin", "NtasksPerTRES"),
)
_TAIL = frozenset(TAIL_KEYS)
#: Never read behind the section: there they can only have been written by a user.
_OWN = frozenset(
    (
        *("JobId", "ArrayJobId", "ArrayTaskId", "ArrayTaskThrottle", "HetJobId", "HetJobOffset"),
        *("JobName", "SLUID", "HetJobIdSet", "UserId", "GroupId", "MCS_label", "Priority", "Nice"),
        *("Account", "QOS", "WCKey", "JobState", "Reason", "FailedNode", "Dependency", "Requeue"),
        *("Restarts", "BatchFlag", "Reboot", "ExitCode", "DerivedExitCode", "RunTime", "TimeLimit"),
        *("TimeMin", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime"),
        *("Deadline", "ResizeTime", "PreemptEligibleTime", "PreemptTime", "PreSusTime"),
        *("SuspendTime", "SecsPreSuspend", "LastSchedEval", "Scheduler", "Partition"),
        *("ReqNodeList", "ExcNodeList", "NodeList", "SchedNodeList", "BatchHost", "Cluster"),
        *("NumNodes", "NumCPUs", "NumTasks", "TRES", "ReqTRES", "AllocTRES", "CoreSpec"),
        *("JOB_GRES", "Nodes", "CPU_IDs", "Mem", "GRES", "MinCPUsNode", "MinMemoryNode"),
        *("MinMemoryCPU", "MinTmpDiskNode", "Features", "DelayBoot", "Reservation"),
        *("OverSubscribe", "Exclusive", "Contiguous", "Licenses", "LicensesAlloc", "Network"),
    )
)
_TAIL_IN_LINE = re.compile(r"(?<= )(" + "|".join(TAIL_KEYS) + r")=")
_TAIL_IN_BLOCK = re.compile(r"(?<=\n {3})([A-Z][A-Za-z]{0,40})=")
#: Lines of ``-d``, one a group of nodes.
_REPEATED = frozenset({"Nodes", "CPU_IDs", "Mem", "GRES"})
_READ_LAST = frozenset({"StdErr", "StdIn", "StdOut"})

#: Printed by every release for every job.
_ALWAYS = (
    *("JobState", "Reason", "Requeue", "ExitCode", "RunTime", "SubmitTime", "StartTime", "EndTime"),
    *("Partition", "NumNodes"),
)


@dataclass(frozen=True, slots=True)
class JobText:
    """One record: its fields as printed, each once. ``sure`` is false where copies differed."""

    raw_id: str
    name: str
    fields: tuple[tuple[str, str], ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class _Section:
    start: int
    fields: tuple[tuple[str, str], ...]
    tail_at: int
    """Where the users' own fields begin; -1 where the section just stops."""

    @property
    def whole(self) -> bool:
        seen = {key for key, _ in self.fields}
        return self.tail_at >= 0 and seen.issuperset(_ALWAYS)


def key_values(text: str, keys: Iterable[re.Match[str]], end: int) -> list[tuple[str, str]]:
    """Each key with the text up to the next one, or up to ``end``; blanks in front stay."""
    found: list[tuple[str, str]] = []
    last: re.Match[str] | None = None
    for match in keys:
        if last is not None:
            found.append((last[1], text[last.end() : match.start()].rstrip()))
        last = match
    if last is not None:
        found.append((last[1], text[last.end() : end].rstrip()))
    return found


def _sections(text: str, at: int, end: int, *, first_only: bool) -> list[_Section]:
    starts: list[int] = []
    for match in _SECTION.finditer(text, at, end):
        starts.append(match.start())
        if first_only:
            break
    bounds = [*starts[1:], end]
    return [_section(text, start, bound) for start, bound in zip(starts, bounds, strict=False)]


def _section(text: str, start: int, end: int) -> _Section:
    keys: list[re.Match[str]] = []
    tail_at = -1
    for match in _KEY.finditer(text, start, end):
        if match[1] in _TAIL:
            tail_at = end = match.start()
            break
        # Network is free text too, and the last field before the tail.
        if not keys or keys[-1][1] != "Network":
            keys.append(match)
    fields: list[tuple[str, str]] = []
    seen: set[str] = set()
    for key, value in key_values(text, keys, end):
        # The detail lines of -d repeat their keys; of the others the first is Slurm's.
        if key not in seen or key in _REPEATED:
            seen.add(key)
            fields.append((key, value.strip()))
    return _Section(start, tuple(fields), tail_at)


def _believable(text: str, sections: list[_Section]) -> list[_Section]:
    """Those that may be Slurm's own; see the module's docstring."""
    left = [section for section in sections if section.whole] or sections
    kept: list[_Section] = []
    for section in left:
        if kept:
            between = text[kept[-1].tail_at : section.start] if kept[-1].tail_at >= 0 else ""
            if "SubmitLine=" not in between and "WorkDir=" not in between:
                kept.pop()
        kept.append(section)
    return kept


def _agreed(copies: Sequence[Sequence[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """Fields that have the same value in all copies."""
    if len(copies) == 1:
        return tuple(copies[0])
    others = [set(copy) for copy in copies[1:]]
    return tuple(field for field in copies[0] if all(field in other for other in others))


def _tail(text: str, at: int, end: int, name: str | None) -> list[tuple[str, str]]:
    """The users' fields from ``at`` on. ``name`` is the job's, where it is known for certain."""
    in_block = text[max(0, at - 4) : at] == "\n   "
    forged = _spans(text, at, end, name) if name and "=" in name else []
    pattern = _TAIL_IN_BLOCK if in_block else _TAIL_IN_LINE
    keys = [
        match
        for match in pattern.finditer(text, at, end)
        if not any(begin < match.end() <= stop for begin, stop in forged)
    ]
    found: dict[str, list[str]] = {}
    for key, value in key_values(text, keys, end):
        found.setdefault(key, []).append(value)
    # SubmitLine stands in front of WorkDir and may hold another one.
    directories = found.get("WorkDir", [])
    if "SubmitLine" in found and len(set(directories)) > 1:
        del found["WorkDir"]
    return [
        (key, values[-1 if key in _READ_LAST else 0])
        for key, values in found.items()
        if key not in _OWN
    ]


def _spans(text: str, at: int, end: int, name: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    place = text.find(name, at, end)
    while place >= 0 and len(spans) < 16:
        spans.append((place, place + len(name)))
        place = text.find(name, place + len(name), end)
    return spans


def _record_end(text: str, at: int) -> int:
    """Where the next record begins; no record ends before it has a state."""
    user, state = text.find("UserId=", at), text.find("JobState=", at)
    following = _START.search(text, max(user, state) if user >= 0 and state >= 0 else at)
    return len(text) if following is None else following.start()


def split_jobs(text: str, names: Mapping[str, str]) -> list[JobText | str]:
    """The records of an answer, in order; a record that has no fields comes as its text.

    ``names`` maps a raw job id to the raw name that squeue gave. An id that stands twice was
    forged into some record: what its records disagree on is left out of both.
    """
    records: list[JobText | str] = []
    place: dict[str, int] = {}
    at = 0
    while (start := _START.search(text, at)) is not None:
        raw_id = start["id"]
        name = names.get(raw_id)
        name_at = start.end()
        known = name is not None and text.startswith(name, name_at)
        body_at = name_at + len(name) if known and name is not None else name_at
        if known and text[body_at : body_at + 1] not in ("", " ", "\n"):
            known, body_at = False, name_at
        at = _record_end(text, body_at)
        record = _job(text, start, body_at, at, name if known else None)
        if record is None:
            records.append(text[start.start() : at])
        elif raw_id in place:
            records[place[raw_id]] = _merged(records[place[raw_id]], record)
        else:
            place[raw_id] = len(records)
            records.append(record)
    return records


def _merged(old: JobText | str, new: JobText) -> JobText:
    assert isinstance(old, JobText)
    return JobText(old.raw_id, old.name, _agreed([old.fields, new.fields]), False)


def _job(
    text: str, start: re.Match[str], body_at: int, end: int, name: str | None
) -> JobText | None:
    sections = _sections(text, body_at, end, first_only=name is not None)
    if not sections:
        return None
    left = _believable(text, sections)
    last = left[-1]
    tail = [] if last.tail_at < 0 else _tail(text, last.tail_at, end, name)
    if name is None:
        before = text[start.end() : left[0].start]
        behind = _BEHIND_NAME.search(before, max(0, len(before) - 300))
        printed = before[: behind.start()] if behind is not None else before.rstrip()
    else:
        printed = name
    head = [
        (key, value) for key, _, value in (pair.partition("=") for pair in start["head"].split())
    ]
    fields = (
        ("JobId", start["id"]),
        *head,
        ("JobName", printed),
        *_agreed([section.fields for section in left]),
        *tail,
    )
    return JobText(start["id"], printed, fields, len(left) == 1)
