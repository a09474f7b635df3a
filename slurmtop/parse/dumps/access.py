"""What a node lets us read: the answer of slurmtop's own script ``slurmtop-access``.

Lines of a name, a tab and a value; a name may come again. Sample::

    tool	dcgmi /usr/bin/dcgmi
    ptrace	1

Lines that begin with ``stack-`` are those of ``parse/dumps/stack_tools.py``.
The last line is ``end``: without it the answer was cut. Text of processes (settings) comes from
the job itself and may be anything.
"""

import re
from typing import Any

from slurmtop.model.access import NodeAccess
from slurmtop.parse.dumps.stack_tools import parse_stack_tools

_MOST_LINES = 2_000
_MOST_CHARS = 1_000
_JOB = re.compile(r"(?:^|/)job_([0-9]{1,20})(?:/|$)")
_STEP = re.compile(r"(?:^|/)step_([a-z0-9]{1,20})(?:/|$)")
_SETTING = re.compile(r"([A-Z][A-Z0-9_]{0,99})=(.*)")
_JOURNAL = ("readable", "refused", "absent")


def parse_access(stdout: bytes, host: str) -> NodeAccess:
    """Never raises; what was not told, or not in a form that can be read, stays None."""
    told: dict[str, list[str]] = {}
    lines = stdout.decode("utf-8", "replace").split("\n")[:_MOST_LINES]
    stack_tools, no_stack_tool = parse_stack_tools(
        (line for line in lines if line.startswith("stack-")), host
    )
    for line in lines:
        name, tab, value = line.partition("\t")
        if tab:
            told.setdefault(name, []).append(value.strip()[:_MOST_CHARS])
    uid, _, user = _first(told, "user").partition(" ")
    counts = _first(told, "processes").split()
    cgroup = "\n".join(told.get("cgroup", ()))
    journal, ptrace = _first(told, "journal"), _first(told, "ptrace")
    fields: dict[str, Any] = {
        "uid": _number(uid),
        "user": user or None,
        "groups": tuple(_first(told, "groups").split()),
        "system": _first(told, "system"),
        "tools": tuple(map(_tool, told.get("tool", ()))),
        "stack_tools": stack_tools,
        "no_stack_tool": no_stack_tool,
        "driver": "driver" in told,
        "ptrace_known": ptrace == "none" or _number(ptrace) is not None,
        "ptrace_scope": _number(ptrace),
        "dmesg_rc": _number(_first(told, "dmesg")),
        "dmesg_restrict": _number(_first(told, "dmesg_restrict")),
        "journal": journal if journal in _JOURNAL else None,
        "proc_options": _first(told, "proc"),
        "sees_others": {"yes": True, "no": False}.get(_first(told, "sees_others")),
        "own_processes": _number(counts[0]) if counts else None,
        "closed_processes": _number(counts[1]) if len(counts) > 1 else None,
        "job_processes": _number(counts[2]) if len(counts) > 2 else None,
        "settings": tuple(filter(None, map(_setting, told.get("set", ())))),
        "cgroup": cgroup,
        "complete": "end" in told,
    }
    job, step = _JOB.search(cgroup), _STEP.search(cgroup)
    return NodeAccess(
        host=host,
        inside_job=job[1] if job else None,
        inside_step=step[1] if job and step else None,
        **fields,
    )


def _first(told: dict[str, list[str]], name: str) -> str:
    return told.get(name, [""])[0]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _tool(text: str) -> tuple[str, str]:
    name, _, path = text.partition(" ")
    # An alias is no program of the node.
    return name, path if path.startswith("/") else ""


def _setting(text: str) -> tuple[str, str] | None:
    found = _SETTING.fullmatch(text)
    return None if found is None else (found[1], found[2])
