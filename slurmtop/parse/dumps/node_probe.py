r"""One look at one node for one job, as the script of ``collect/nodes/probe_script.py`` prints it.

A line is a letter, mostly a pid, and values; a newline inside of a value is the byte 1. What tools
print has a letter before each line too, so none of it can be taken for another part::

    slurmtop-probe 1
    M pids pid:[4026531836]
    M cs1 156039
    S 4711 63457 4700 S python3
    B 4711 1 63457 S 912
    J 4711 1 7033446 90233 0 4096
    V 4711 1 211 0
    W 4711 futex_do_wait
    Y 4711 0 0x3
    L 4711 /data/fifo
    H 4711 4712 S 3 pt_autograd_0
    h 4711 4712 futex_do_wait
    o 4711 /sys/fs/cgroup /system.slice/slurmstepd.scope/job_77/step_0/user/task_0
    O /sys/fs/cgroup/system.slice/slurmstepd.scope/job_77/memory.events:oom_kill 1
    Q 4711 torch /venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so^Atorch-2.4.0.dist-info
    K [Mon May  5 10:00:01 2031] python[4711]: segfault at 0 ip 00007f13 sp 00007ffd error 4
    F kernel 0
    end

``S`` and its like are those of ``parse/dumps/probe.py``. ``M pids``: the
namespace of its pids. ``M cs1``, ``cs2``: when the counters were read, in hundredths of a second
since boot. ``B``: which reading, start, state, ticks. ``J``:
reading, ``rchar``, ``wchar``, ``read_bytes``, ``write_bytes``. ``V``: reading, context switches,
who traces it. ``W``: wchan. ``Y``: system call, and its first argument where that may be the number
of a file. ``L``: that file. ``H`` and ``h``: of one thread. ``o`` and ``O``: where memory is
counted, and how much. ``Q``: a library. ``K`` (``k``: why not): the kernel log; ``G``: the script
of the GPUs; ``I``: network ports; ``X``: tools for stacks. ``F``: a part that runs beside the rest,
and how it ended; a part without it did not come in time.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from slurmtop.model.gpu import NodeGpus
from slurmtop.model.nic import NicPort
from slurmtop.model.probe import (
    Activity,
    Counters,
    Library,
    MemoryGroup,
    NodeProbe,
    ThreadState,
)
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure
from slurmtop.parse.dumps.kernel_lines import own_pids, parse_kernel_lines
from slurmtop.parse.dumps.probe import mask_lines, number, parse_processes
from slurmtop.parse.dumps.probe_fates import Ended, fates_of
from slurmtop.parse.dumps.stack_tools import parse_stack_tools
from slurmtop.parse.gpu.fields import CORE_FIELDS
from slurmtop.parse.gpu.node_gpus import gpus_within_limit
from slurmtop.parse.gpu.node_script import parse_node_answer
from slurmtop.parse.nic import parse_nics

#: By this the script, and what it starts, are known among the processes of the node.
NAME = "slurmtop-probe"
#: Seconds that nvidia-smi is given.
GPU_LIMIT_S = 3.0
_FIRST = f"{NAME} 1".encode()
#: First bytes of lines: those of ``parse/dumps/probe.py`` (``slurmtop-processes 1`` and ``end``
#: among them), those of plain numbers and names of the kernel, and those of free text.
_PROCESSES = frozenset(b"sMSUCREATNe")
_NUMBERS = frozenset(b"MBJVWYHhoOIF")
_TEXTS = frozenset(b"LKkGXQ")
_TEXT_CHARS = 400
_MOST_ITEMS = 20_000
#: A limit near the largest number that the kernel knows is none.
_NO_LIMIT = 1 << 60
_ROOT, _ROOT_V1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
_MEMORY = re.compile(r"(?P<dir>/sys/fs/cgroup/.{1,1000})/memory\.(?P<file>\w{1,40}):(?P<text>.*)")
_CPUS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_TORCH = re.compile(r"torch-(?P<v>[0-9][\w.+]{0,60})(?:-py[\d.]{1,6})?\.(?:dist|egg)-info")
_SO_VERSION = re.compile(r"/lib(?:nccl|rccl)\.so\.(?P<v>\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)$")
_DIST = re.compile(r"nvidia_nccl(?:_cu\d{1,3})?-(?P<v>[0-9][\w.+]{0,40})\.dist-info")


@dataclass(slots=True)
class _Doing:
    """What is known of what one pid does. ``ticks``: by reading, the start and the CPU time."""

    ticks: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    state: str = ""
    io: dict[int, tuple[int | None, ...]] = field(default_factory=dict)
    switches: dict[int, int | None] = field(default_factory=dict)
    tracer: int | None = None
    wchan: str | None = None
    call: str | None = None
    file: str | None = None
    threads: dict[int, ThreadState] = field(default_factory=dict)


@dataclass(slots=True)
class _Told:
    """The answer, sorted."""

    node: dict[str, str] = field(default_factory=dict)
    doing: dict[int, _Doing] = field(default_factory=dict)
    groups: list[tuple[int, str, str]] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    libraries: list[Library] = field(default_factory=list)
    tools: dict[str, list[str]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)


def parse_node_probe(
    stdout: bytes, host: str, at: datetime, *, job: str, sudo: bool = False
) -> NodeProbe:
    """What ``host`` told of the processes of ``job`` (its raw number). Total.

    ``at`` is when it was asked, by our clock. ``sudo``: it was asked through ``sudo``.
    """
    lines = stdout.split(b"\n")
    lines = lines[lines.index(_FIRST) + 1 :] if _FIRST in lines else []
    look = parse_processes(_of_kinds(lines, _PROCESSES), host, at)
    if look.failure is not None:
        return NodeProbe(host=host, at=at, failure=look.failure)
    look = replace(look, processes=tuple(one for one in look.processes if one.job == job))
    # Looking for secrets is dear, and most lines are numbers.
    told = _sorted(
        _of_kinds(lines, _NUMBERS), b"\n".join(mask_lines(_of_kinds(lines, _TEXTS).split(b"\n")))
    )
    answer = parse_node_answer("\n".join(told.tools.get("G", [])).encode())
    gpus = gpus_within_limit(host, CORE_FIELDS, answer, GPU_LIMIT_S)
    nics = parse_nics("\n".join(told.tools.get("I", [])).encode()).ports
    stack_tools, no_tool = parse_stack_tools(told.tools.get("X", []), host)
    activity = tuple(
        one for process in look.processes if (one := _activity(process, told)) is not None
    )
    memory = _memory(told, look, job)
    kernel = tuple(line[:_TEXT_CHARS] for line in told.tools.get("K", []) if line.strip())
    ended = _ended(told, look, gpus, nics, activity, memory, no_tool)
    own = {one.pid for one in look.processes}
    return NodeProbe(
        host=host,
        at=at,
        node_at=look.node_at,
        processes=look,
        activity=activity,
        memory=memory,
        gpus=gpus,
        nics=nics,
        kernel_lines=kernel,
        kernel=parse_kernel_lines(
            kernel, at=at, node_at=look.node_at, uptime_s=_hundredths(told.node.get("cs1", ""))
        ),
        kernel_pids=own_pids(told.node.get("pids", "")),
        libraries=tuple(one for one in told.libraries if one.pid in own),
        ptrace_scope=look.ptrace_scope,
        stack_tools=stack_tools,
        ticks_per_s=number(told.node.get("hz", "")) or 100,
        cpus=_cpus(told.node.get("cpus", "")),
        arch=told.node.get("arch", "")[:20] or None,
        fates=fates_of(host, job, ended, sudo=sudo),
    )


def _ended(
    told: _Told,
    look: NodeProcesses,
    gpus: NodeGpus | None,
    nics: Sequence[NicPort],
    activity: Sequence[Activity],
    memory: Sequence[MemoryGroup],
    no_tool: Failure | None,
) -> Ended:
    return Ended(
        look=look,
        gpus=gpus,
        nics=len(nics),
        activity=tuple(activity),
        counted=any(group.oom_kills is not None for group in memory),
        no_tool=no_tool,
        parts=told.ended,
        stacks_told="stack-end" in told.tools.get("X", []),
        refusal=" ".join(told.tools.get("k", []))[:_TEXT_CHARS],
        twice="cs2" in told.node,
        limits=told.node.get("limits") != "none",
    )


def _of_kinds(lines: Iterable[bytes], kinds: frozenset[int]) -> bytes:
    return b"\n".join(line for line in lines if line and line[0] in kinds)


def _sorted(*parts: bytes) -> _Told:
    told = _Told()
    readers = {
        "B": _counted, "J": _io, "V": _switches, "W": _waits, "Y": _call, "L": _file,
        "H": _thread, "h": _thread_waits,
    }  # fmt: skip
    for line in b"\n".join(parts).decode("utf-8", "replace").split("\n"):
        kind, _, rest = line.partition(" ")
        if kind == "M":
            name, _, value = rest.partition(" ")
            told.node.setdefault(name, value)
        elif kind in ("G", "I", "K", "k", "X"):
            if len(told.tools.setdefault(kind, [])) < _MOST_ITEMS:
                told.tools[kind].append(rest)
        elif kind == "F":
            name, _, value = rest.partition(" ")
            told.ended.setdefault(name, value)
        elif kind == "O":
            told.memory.append(rest)
        elif kind in readers or kind in ("o", "Q"):
            word, _, rest = rest.partition(" ")
            pid = number(word)
            if pid is None:
                continue
            if kind == "o":
                base, _, path = rest.partition(" ")
                told.groups.append((pid, base, path))
            elif kind == "Q":
                told.libraries += _library(pid, rest)
            else:
                readers[kind](told.doing.setdefault(pid, _Doing()), rest)
    return told


def _counted(one: _Doing, rest: str) -> None:
    phase, start, state, ticks = (*rest.split(" "), "", "", "", "")[:4]
    if phase in ("1", "2"):
        one.ticks[int(phase)] = (number(start), number(ticks))
        one.state = state[:1]


def _io(one: _Doing, rest: str) -> None:
    phase, *values = rest.split(" ")
    if phase in ("1", "2"):
        one.io[int(phase)] = tuple(number(value) for value in (*values, "", "", "", "")[:4])


def _switches(one: _Doing, rest: str) -> None:
    phase, switches, tracer = (*rest.split(" "), "", "", "")[:3]
    if phase in ("1", "2"):
        one.switches[int(phase)] = number(switches)
        one.tracer = number(tracer)


def _waits(one: _Doing, rest: str) -> None:
    one.wchan = rest


def _call(one: _Doing, rest: str) -> None:
    call = rest.partition(" ")[0]
    if re.fullmatch(r"running|-?[0-9]{1,5}", call):
        one.call = call


def _file(one: _Doing, rest: str) -> None:
    one.file = rest.replace("\x01", "\n")[:_TEXT_CHARS] or None


def _thread(one: _Doing, rest: str) -> None:
    tid, state, ticks, name = (*rest.split(" ", 3), "", "", "", "")[:4]
    found = number(tid)
    if found is not None:
        name = name.replace("\x01", "\n")
        one.threads[found] = ThreadState(
            tid=found, state=state[:1] or "?", name=name, cpu_ticks=number(ticks)
        )


def _thread_waits(one: _Doing, rest: str) -> None:
    tid, _, wchan = rest.partition(" ")
    thread = one.threads.get(number(tid) or 0)
    if thread is not None:
        one.threads[thread.tid] = replace(thread, wchan=_wchan(wchan, thread.state))


def _wchan(text: str | None, state: str) -> str | None:
    """``0`` is told where it waits nowhere, and also where that may not be known."""
    if text is None or text != "0":
        return text or None
    return "" if state == "R" else None


def _activity(process: NodeProcess, told: _Told) -> Activity | None:
    one = told.doing.get(process.pid)
    readings = {} if one is None else one.ticks
    if one is None or any(start != process.start_ticks for start, _ in readings.values()):
        return None
    state = one.state or process.state
    before, after = number(told.node.get("cs1", "")), number(told.node.get("cs2", ""))
    between = None
    if before is not None and after is not None and {1, 2} <= set(readings) and after > before:
        between = (after - before) / 100
    return Activity(
        host=process.host,
        pid=process.pid,
        start_ticks=process.start_ticks,
        state=state,
        wchan=_wchan(one.wchan, state),
        syscall=one.call,
        open_file=one.file,
        tracer_pid=one.tracer,
        first=_counters(one, 1),
        second=_counters(one, 2),
        between_s=between,
        threads=tuple(one.threads.values()),
    )


def _counters(one: _Doing, phase: int) -> Counters:
    through_r, through_w, read, written = one.io.get(phase, (None,) * 4)
    return Counters(
        cpu_ticks=one.ticks.get(phase, (None, None))[1],
        read_bytes=read,
        written_bytes=written,
        read_chars=through_r,
        written_chars=through_w,
        switches=one.switches.get(phase),
    )


def _memory(told: _Told, look: NodeProcesses, job: str) -> tuple[MemoryGroup, ...]:
    """The groups of the job, and others that one of its processes is in, by their path."""
    own = {process.pid for process in look.processes}
    pids: dict[str, list[int]] = {}
    for pid, _, path in told.groups:
        if pid in own:
            pids.setdefault(path, []).append(pid)
    of_job = re.compile(rf"/job_{re.escape(job)}(?:/|$)")
    base = _ROOT_V1 if any(root == _ROOT_V1 for _, root, _ in told.groups) else _ROOT
    values: dict[str, dict[str, str]] = {}
    for line in told.memory[:_MOST_ITEMS]:
        found = _MEMORY.fullmatch(line)
        if found is not None and found["dir"].startswith(f"{base}/"):
            path = found["dir"][len(base) :]
            if path in pids or of_job.search(path):
                values.setdefault(path, {}).setdefault(found["file"], found["text"])
    return tuple(_group(path, pids.get(path, []), files) for path, files in values.items())


def _group(path: str, pids: Sequence[int], files: Mapping[str, str]) -> MemoryGroup:
    kills = files.get("events", files.get("oom_control", "")).removeprefix("oom_kill ")
    limit = number(files.get("max", files.get("limit_in_bytes", "")))
    return MemoryGroup(
        path=path,
        pids=tuple(pids),
        oom_kills=number(kills),
        used_bytes=number(files.get("current", files.get("usage_in_bytes", ""))),
        limit_bytes=None if limit is None or limit >= _NO_LIMIT else limit,
    )


def _library(pid: int, rest: str) -> list[Library]:
    name, _, said = rest.partition(" ")
    path, _, text = said.partition("\x01")
    if name == "torch":
        found = _TORCH.search(text)
    elif name in ("nccl", "rccl"):
        # Where it is a part of a Python, its file has only the first number in its name.
        found = _DIST.search(text) or _SO_VERSION.search(path)
    else:
        found = None
    if found is None:
        return []
    return [Library(pid=pid, name=name, version=found["v"], source=path[:_TEXT_CHARS])]


def _hundredths(text: str) -> float | None:
    found = number(text)
    return None if found is None else found / 100


def _cpus(text: str) -> int | None:
    """``0-63,128-191`` as the kernel lists those that are online."""
    count = 0
    for part in text.split(","):
        found = _CPUS.fullmatch(part.strip())
        if found is None:
            return None
        count += int(found[2] or found[1]) - int(found[1]) + 1
    return count if count > 0 else None
