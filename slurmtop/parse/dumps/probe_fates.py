"""What came of each part of a look at a node, and what opens those that were closed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.model.probe import Activity
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure
from slurmtop.model.verdict import Fate, SourceFate
from slurmtop.parse.gpu.node_gpus import OUT_OF_TIME

_REFUSED = re.compile(r"not permitted|[Pp]ermission denied|insufficient permissions")
_GPU_FATES = {
    Answer.OK: Fate.ANSWERED,
    Answer.NO_TOOL: Fate.ABSENT,
    Answer.NO_DEVICES: Fate.ABSENT,
    Answer.NO_ANSWER: Fate.TIMED_OUT,
    Answer.DENIED: Fate.REFUSED,
}
_LATE = "it did not come in time"
_NO_LIMIT = "the node has no timeout command, and nvidia-smi may hang for ever"
#: Those have no memory to read, or are of the kernel.
_NO_MEMORY = frozenset("ZX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the parts of one look ended. ``parts``: what runs in the background, and its status."""

    look: NodeProcesses
    gpus: NodeGpus | None
    nics: int
    activity: tuple[Activity, ...]
    counted: bool
    """Some group of memory told how many processes were killed in it."""
    no_tool: Failure | None
    parts: Mapping[str, str]
    stacks_told: bool
    refusal: str
    twice: bool
    """The counters were read a second time."""
    limits: bool
    """There is a ``timeout`` command."""


def fates_of(host: str, job: str, ended: Ended, *, sudo: bool) -> tuple[SourceFate, ...]:
    """Each part's fate, in the order of ``model.verdict.SOURCES``. Of stacks only where nothing
    that reads them was found."""
    return tuple(_fates(host, job, ended, sudo))


def _fates(host: str, job: str, ended: Ended, sudo: bool) -> Iterator[SourceFate]:
    def fate(source: str, what: Fate, why: str = "", command: str | None = None) -> SourceFate:
        return SourceFate(source=source, fate=what, hosts=(host,), why=why, command=command)

    yield fate("processes", *_processes(ended.look, sudo, job))
    yield fate("environment", *_environment(ended, job))
    yield fate("activity", *_activity(ended, job))
    if "groups" not in ended.parts:
        yield fate("memory events", Fate.TIMED_OUT, _LATE)
    elif ended.counted:
        yield fate("memory events", Fate.ANSWERED)
    else:
        why = "no memory cgroup of the job tells how often the kernel killed in it"
        yield fate("memory events", Fate.ABSENT, why)
    yield fate("gpus", *_gpus(ended, host))
    if "ports" not in ended.parts:
        yield fate("network ports", Fate.TIMED_OUT, _LATE)
    elif ended.nics:
        yield fate("network ports", Fate.ANSWERED)
    else:
        yield fate("network ports", Fate.ABSENT, "the kernel shows no network card there")
    yield fate("kernel log", *_kernel(ended, host, sudo))
    if ended.no_tool is not None:
        what = Fate.ABSENT if ended.stacks_told else Fate.TIMED_OUT
        why, command = ended.no_tool.sentence, ended.no_tool.copy or None
        yield fate("stacks", what, why if ended.stacks_told else _LATE, command)


_Fate = tuple[Fate, str, str | None]


def _processes(look: NodeProcesses, sudo: bool, job: str) -> _Fate:
    if not look.complete:
        return Fate.FAILED, "the answer was cut", None
    if look.hidden and not look.processes and not sudo:
        why = "the node hides the processes of others (hidepid), and none of the job is your own"
        return Fate.REFUSED, why, _by_owner(job)
    return Fate.ANSWERED, "" if look.processes else "no process of the job is there", None


def _environment(ended: Ended, job: str) -> _Fate:
    asked = _with_memory(ended.look)
    closed = [process for process in asked if process.env is None]
    if not closed:
        return Fate.ANSWERED, "", None
    told = ended.parts.get("memory")
    many = f"of {len(closed)} of {len(asked)} processes"
    if told is None:
        return Fate.TIMED_OUT, f"{many} it did not come in time", None
    if told == "held":
        why = f"{many} not: an earlier look at one that waits in the kernel waits there itself"
        return Fate.NOT_ASKED, why, None
    if all(process.state == "D" for process in closed):
        return Fate.TIMED_OUT, f"{many} it cannot be read: they wait in the kernel", None
    what = Fate.REFUSED if len(closed) == len(asked) else Fate.ANSWERED
    return what, f"{many} it may not be read{_whose(closed)}", _by_owner(job)


def _activity(ended: Ended, job: str) -> _Fate:
    if not ended.twice:
        return Fate.TIMED_OUT, "the counters were not read twice", None
    closed = {one.pid for one in ended.activity if one.second.written_bytes is None}
    of = [process for process in _with_memory(ended.look) if process.pid in closed]
    if not of:
        return Fate.ANSWERED, "", None
    why = f"state and CPU time alone of {len(of)} processes{_whose(of)}: the rest may not be read"
    return Fate.ANSWERED, why, _by_owner(job)


def _gpus(ended: Ended, host: str) -> _Fate:
    gpus = ended.gpus
    if gpus is None:
        return (Fate.TIMED_OUT, _LATE, None) if ended.limits else (Fate.NOT_ASKED, _NO_LIMIT, None)
    failure = gpus.failure
    what = _GPU_FATES.get(gpus.answer, Fate.FAILED)
    if gpus.answer is Answer.GPU_LOST and gpus.samples:
        what = Fate.ANSWERED
    command = f"ssh {host} nvidia-smi" if what in (Fate.TIMED_OUT, Fate.FAILED) else None
    return what, "" if failure is None else failure.sentence, command


def _kernel(ended: Ended, host: str, sudo: bool) -> _Fate:
    command = None if sudo else f"ssh {host} sudo dmesg -T"
    status = ended.parts.get("kernel")
    if status is None or status in {str(rc) for rc in OUT_OF_TIME}:
        return Fate.TIMED_OUT, _LATE, command
    if status == "0":
        return Fate.ANSWERED, "", None
    if _REFUSED.search(ended.refusal):
        return Fate.REFUSED, "you may not read it there", command
    if status == "127":
        return Fate.ABSENT, "there is neither dmesg nor a journal", command
    return Fate.FAILED, ended.refusal or f"exit status {status}", command


def _with_memory(look: NodeProcesses) -> list[NodeProcess]:
    """Those that have an environment, and of them those of the job's user: what Slurm itself runs
    in a job is root's."""
    alive = [process for process in look.processes if process.state not in _NO_MEMORY]
    return [process for process in alive if process.uid != 0] or alive


def _whose(processes: list[NodeProcess]) -> str:
    names = sorted({one.user or str(one.uid) for one in processes if one.uid is not None})
    return f" (of {', '.join(names[:3])})" if names else ""


def _by_owner(job: str) -> str:
    return f"slurmtop triage {job} --save DIR"
