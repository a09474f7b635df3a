"""What the script that asks a node about its GPUs prints (``collect/nodes/gpu_script.py``).

Lines of its own begin with ``#slurmtop``; the others are of the tool that was started last::

    #slurmtop seen hostengine
    #slurmtop part query
    #slurmtop pid 4242:889123
    0, GPU-00000000-1111-2222-3333-444455550000, 97
    #slurmtop end 0
    #slurmtop done

``open 4242:889123:D`` stands there where an earlier tool still exists and none was started. A part
counts once: what a process name could forge behind it is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_MARK = "#slurmtop "
_OPEN = re.compile(r"(?P<pid>\d{1,10}):(?P<start>\d{1,20})(?::(?P<state>[A-Za-z]))?")
_CGROUP_JOB = re.compile(r"/job_(?P<job>\d{1,12})(?:/|$)", re.MULTILINE)
#: Of a part, more is not read: a node has a few hundred lines at the most.
_LONGEST_LINE = 16 * 1024


@dataclass(frozen=True, slots=True)
class OpenTool:
    """A process of ours on a node. ``state`` is the kernel's letter: D waits in the driver."""

    pid: int
    start_ticks: int
    state: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one tool printed; ``rc`` None: it has not ended, or was cut off."""

    text: bytes
    rc: int | None = None
    started: bool = False
    """The tool itself was reached (it said its pid)."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """A whole answer. ``open_tools`` are in the way, ``running`` are those that were started and
    did not end; ``seen`` are the words ``hostengine``, ``exporter`` and ``hidden`` (not known)."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    open_tools: tuple[OpenTool, ...] = ()
    running: tuple[OpenTool, ...] = ()
    seen: frozenset[str] = frozenset()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """One line of the script itself: its word, and the words behind."""

    word: str
    rest: tuple[str, ...]

    @property
    def number(self) -> int | None:
        """The exit status of ``end``."""
        return int(self.rest[0]) if self.rest and re.fullmatch(r"\d{1,3}", self.rest[0]) else None

    @property
    def tools(self) -> tuple[OpenTool, ...]:
        """The processes behind ``pid`` and ``open``."""
        found = (_OPEN.fullmatch(word) for word in self.rest)
        return tuple(
            OpenTool(int(one["pid"]), int(one["start"]), one["state"] or "") for one in found if one
        )


def said(line: bytes) -> Said | None:
    """``line`` as one of the script's own; None where it is of a tool."""
    if not line.startswith(_MARK.encode()):
        return None
    words = line[:_LONGEST_LINE].decode("utf-8", "replace").split()[1:]
    return Said(words[0], tuple(words[1:])) if words else None


def parse_node_answer(data: bytes) -> NodeAnswer:
    """Take an answer apart, a cut one too. Never raises."""
    texts: dict[str, list[bytes]] = {}
    codes: dict[str, int | None] = {}
    started: set[str] = set()
    running: list[OpenTool] = []
    open_tools: tuple[OpenTool, ...] = ()
    seen: frozenset[str] = frozenset()
    part, ended, whole = "", False, False
    for line in data.split(b"\n"):
        one = said(line)
        if one is None:
            if part and not ended and line.strip():
                texts[part].append(line)
        elif one.word == "part" and one.rest:
            part, ended = one.rest[0], one.rest[0] in texts
            texts.setdefault(part, [])
        elif one.word == "seen" and not texts:
            seen = frozenset(one.rest)
        elif one.word == "pid" and part and not ended and part not in started:
            started.add(part)
            running.extend(one.tools)
        elif one.word == "open" and not started:
            open_tools = one.tools
        elif one.word == "end" and part and not ended:
            codes[part], ended = one.number, True
            running.clear()
        elif one.word == "done":
            whole = True
    return NodeAnswer(
        parts={
            name: Part(b"\n".join(lines), codes.get(name), name in started)
            for name, lines in texts.items()
        },
        open_tools=open_tools,
        running=tuple(running),
        seen=seen,
        whole=whole,
    )


def parse_inside(cgroup: bytes) -> str | None:
    """The raw number of the job in whose cgroup a process is (``/proc/PID/cgroup``).

    Sample: ``0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special``.
    """
    found = _CGROUP_JOB.search(cgroup[: 64 * 1024].decode("utf-8", "replace"))
    return found["job"] if found else None
