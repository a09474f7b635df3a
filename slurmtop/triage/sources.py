"""What was asked for the verdict on a job, and what came of it. Pure."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.job import Job, Phase
from slurmtop.model.live import LiveFacts
from slurmtop.model.probe import NodeProbe
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.model.verdict import SOURCES, Fate, SourceFate, State, Verdict

_LATER = "a later version of slurmtop reads it"
_OF_NODES = SOURCES[SOURCES.index("nodes") :]
_LOG_FATES = {
    LogStatus.READ: Fate.ANSWERED,
    LogStatus.ABSENT: Fate.ABSENT,
    LogStatus.DENIED: Fate.REFUSED,
    LogStatus.HANGS: Fate.TIMED_OUT,
    LogStatus.UNKNOWN_PATH: Fate.ABSENT,
}
#: What is each node's own in words that say the same of all: its host key, by print or whole, its
#: address, and the line of known_hosts that would be added.
_OWN = re.compile(
    r"SHA256:[A-Za-z0-9+/=]{20,}|(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/=]+"
    r"|\[?\b\d{1,3}(?:\.\d{1,3}){3}\b\]?(?::\d{1,5})?"
)
_WAYS = re.compile(r" (?=By (?:ssh|the ssh command|srun|here): )")
_SAVES = re.compile(r"slurmtop triage \S+ --save ")
_PLACES = {name: place for place, name in enumerate(SOURCES)}


def sources_of(facts: JobFacts) -> tuple[SourceFate, ...]:
    """Each source with its fate; what came of several nodes in one way is told once."""
    out = [*_slurm(facts), *(_log(log) for log in facts.logs)]
    if _runs(facts.job):
        out += _of_nodes(facts.live)
    return folded(out)


def folded(sources: Iterable[SourceFate]) -> tuple[SourceFate, ...]:
    """In the order of :data:`SOURCES`; nodes with the same fate for the same reason are one."""
    kept: dict[tuple[object, ...], SourceFate] = {}
    for one in sources:
        key = (one.source, one.fate, _alike(one.why, one), _alike(one.command, one))
        old = kept.get(key)
        if old is None or not one.hosts:
            kept.setdefault(key, one)
        else:
            kept[key] = replace(old, hosts=tuple(dict.fromkeys((*old.hosts, *one.hosts))))
    return tuple(sorted(kept.values(), key=lambda one: _PLACES.get(one.source, len(_PLACES))))


def opens_text(one: SourceFate) -> str:
    """The command that opens a source; in front of it who has to run it, where that is another."""
    command = visible(one.command or "")
    if one.fate is not Fate.ANSWERED and _SAVES.match(command):
        return f"its owner, or root, can keep it for you: {command}"
    return command


def no_reader_text(verdict: Verdict) -> str:
    """That nothing was found by which stacks are read, and how to get it; "" where that made no
    difference."""
    if verdict.state not in (State.HUNG, State.UNKNOWN, State.SLOW):
        return ""
    without = [one for one in verdict.sources if (one.source, one.fate) == ("stacks", Fate.ABSENT)]
    if not without:
        return ""
    more = sum(len(one.hosts) for one in without) - 1
    others = f" (and on {plural(more, 'other node')})" if more > 0 else ""
    return f"judged without stacks{others}: {without[0].why}"


def _alike(text: str | None, one: SourceFate) -> object:
    """``gpu01 did not answer`` says the same of every node, and so does what two ways came to,
    whichever was first."""
    if text is None or len(one.hosts) != 1:
        return text
    return tuple(sorted(_WAYS.split(_OWN.sub("\0", text.replace(one.hosts[0], "\0")))))


def _runs(job: Job | None) -> bool:
    return (
        job is not None
        and job.state.phase is Phase.RUNNING
        and "CONFIGURING" not in job.state.flags
    )


def _slurm(facts: JobFacts) -> Iterable[SourceFate]:
    said = next((one for one in facts.missing if one.family == "slurm"), None)
    if facts.controller_answered:
        yield SourceFate(source="slurm", fate=Fate.ANSWERED)
    else:
        why = said.why if said is not None else "the controller does not answer"
        command = said.command if said is not None else "scontrol ping"
        yield SourceFate(source="slurm", fate=Fate.TIMED_OUT, why=why, command=command)
    if facts.accounting_answered is None:
        why = "the controller knows the job" if facts.job is not None else ""
        yield SourceFate(source="accounting", fate=Fate.NOT_ASKED, why=why)
    elif facts.accounting_answered:
        yield SourceFate(source="accounting", fate=Fate.ANSWERED)
    else:
        told = [one for one in facts.missing if (one.command or "").startswith("sacct")]
        why = told[0].why if told else "accounting does not answer"
        command = told[0].command if told else None
        yield SourceFate(source="accounting", fate=Fate.FAILED, why=why, command=command)


def _log(log: LogFacts) -> SourceFate:
    fate = _LOG_FATES.get(log.status, Fate.FAILED)
    if fate is Fate.ANSWERED:
        return SourceFate(source="logs", fate=fate)
    why = f"{log.path}: {log.why or log.status}" if log.path is not None else log.why
    quoted = shlex.quote(log.path) if log.path is not None and log.path.isprintable() else None
    command = f"ls -l -- {quoted}" if quoted is not None else None
    if fate is Fate.REFUSED and quoted is not None:
        command = f"tail -n 100 -- {quoted}"
    return SourceFate(source="logs", fate=fate, why=why, command=command)


def _of_nodes(live: LiveFacts | None) -> Iterable[SourceFate]:
    known: set[str] = set()
    for one in _told(live):
        known.add(one.source)
        yield one
    for name in ("flight recorder", "ras"):
        if name not in known:
            yield SourceFate(source=name, fate=Fate.NOT_ASKED, why=_LATER)
            known.add(name)
    asked = live is not None and bool(live.samples)
    for name in _OF_NODES:
        if name not in known and not asked:
            yield SourceFate(source=name, fate=Fate.NOT_ASKED, why="the nodes were not looked at")


def _told(live: LiveFacts | None) -> Iterable[SourceFate]:
    """What the look as a whole tells first, then what the newest answer of each node tells."""
    if live is None:
        return
    yield from live.fates
    spoken = {(one.source, host) for one in live.fates for host in one.hosts}
    for probe in _newest(live):
        for one in probe.fates:
            if (one.source, probe.host) not in spoken:
                yield one if one.hosts else replace(one, hosts=(probe.host,))


def _newest(live: LiveFacts) -> Iterable[NodeProbe]:
    newest: dict[str, NodeProbe] = {}
    for sample in live.samples:
        for probe in sample.probes:
            if probe.failure is None:
                newest[probe.host] = probe
    return newest.values()
