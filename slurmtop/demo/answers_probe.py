"""What slurmtop's look at one node for one job finds on a simulated node, and the stacks there.

Both answer in the form in which the scripts ``slurmtop-probe`` and ``slurmtop-stacks`` print it.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from slurmtop.demo.answers_gpus import apps, nics, query
from slurmtop.demo.answers_processes import PY_SPY, group_of, node_lines, who_lines
from slurmtop.demo.doing import Doing, doing, threads_of, used
from slurmtop.demo.nodes import CPUS, DemoNode
from slurmtop.demo.processes import UP_S, Kind, Process, processes_on
from slurmtop.demo.values import View

#: Seconds between the two readings of one look.
_APART_S = 0.4
_TOOL = "31337:889123"
_KERNEL = "dmesg: read kernel buffer failed: Operation not permitted"
_SUM = "4f1c0a6d" * 8
_PID = re.compile(r"[0-9]{1,10}")
_FIELDS = re.compile(r"--query-gpu=([\w.,]+)")
_NCCL = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
_TORCH = "/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"


def probe_lines(view: View, node: DemoNode, script: str, words: Sequence[str]) -> str:
    """The answer of ``slurmtop-probe``; the words of ``script`` tell what the GPUs are asked."""
    wanted = words[0] if words else ""
    own = [one for one in processes_on(view, node) if str(one.job.id) == wanted]
    begun = (UP_S + max(view.t, -UP_S)) * 100
    out = ["slurmtop-probe 1", *node_lines(view, node)]
    out += [f"M cpus 0-{CPUS - 1}", f"M cs1 {begun}"]
    states = {one.pid: doing(view, one) for one in own}
    for one in own:
        out += who_lines(view, one, states[one.pid].state)
        out += _counters(view, one, states[one.pid])
    out += _memory(own)
    out += [f"M cs2 {begun + int(_APART_S * 100)}", "M arch x86_64"]
    for one in own:
        if view.mine(one.job):
            out += _where(view, one, states[one.pid])
    out += ["F memory 0", *_gpus(view, node, script)]
    out += [f"k {_KERNEL}", "F kernel 1", *(f"I {line}" for line in nics(view)), "F ports 0"]
    tools = [f"stack-tool own {PY_SPY} 0.4.3 {_SUM}"]
    out += [f"X {line}" for line in ("stack-arch x86_64", *tools, "stack-end")]
    out += [
        f"N {uid} {name}"
        for uid, name in {one.job.spec.uid: one.job.spec.user for one in own}.items()
    ]
    return _lines([*out, f"M cs3 {begun + 60}", "end"])


def _counters(view: View, one: Process, now: Doing) -> list[str]:
    out = []
    for reading, later_s in ((1, 0.0), (2, _APART_S)):
        has = used(view, one, now, later_s)
        out.append(f"B {one.pid} {reading} {one.start_ticks} {now.state} {has.ticks}")
        out.append(f"V {one.pid} {reading} {has.switches} 0")
        if view.mine(one.job):
            out.append(
                f"J {one.pid} {reading} {has.read_chars} {has.written_chars} {has.read_bytes}"
                f" {has.written_bytes}"
            )
    return out


def _where(view: View, one: Process, now: Doing) -> list[str]:
    """What is told of one's own processes alone."""
    out = [f"W {one.pid} {now.wchan or '0'}"]
    ticks = used(view, one, now, _APART_S).ticks
    for tid, name, state, wchan in threads_of(one, now):
        out.append(f"H {one.pid} {tid} {state} {ticks if tid == one.pid else 0} {name}")
        out.append(f"h {one.pid} {tid} {wchan or '0'}")
    fd = "-" if now.fd is None else f"0x{now.fd:x}"
    out.append(f"Y {one.pid} {now.call} {fd}")
    if now.path:
        out.append(f"L {one.pid} {now.path}")
    if one.kind is Kind.RANK and one.job.spec.gpus:
        version = "nvidia_nccl_cu12-2.27.5.dist-info"
        out.append(f"Q {one.pid} nccl {_NCCL}\x01{version}")
        out.append(f"Q {one.pid} torch {_TORCH}\x01torch-2.6.0+cu124.dist-info")
    return out


def _memory(own: Sequence[Process]) -> list[str]:
    out = [f"o {one.pid} /sys/fs/cgroup {group_of(one)}" for one in own]
    for group in dict.fromkeys(group_of(one).partition("/step_")[0] for one in own):
        place = f"/sys/fs/cgroup{group}/memory"
        out += [f"O {place}.events:oom_kill 0", f"O {place}.current:412316860416"]
    return [*out, "F groups 0"]


def _gpus(view: View, node: DemoNode, script: str) -> list[str]:
    asked = _FIELDS.search(script)
    rows, rc = query(view, node, asked.group(1).split(",") if asked else ("uuid",))
    out = ["#slurmtop part query", f"#slurmtop pid {_TOOL}", *rows, f"#slurmtop end {rc}"]
    if not rc:
        out += ["#slurmtop part apps", f"#slurmtop pid {_TOOL}", *apps(view, node)]
        out += ["#slurmtop end 0"]
    return [f"G {line}" for line in (*out, "#slurmtop done")]


def stack_lines(view: View, node: DemoNode, words: Sequence[str]) -> str:
    """The answer of ``slurmtop-stacks``: what py-spy prints of each process that is asked for."""
    by_pid = {one.pid: one for one in processes_on(view, node)}
    out = ["slurmtop-stacks 1", f"I {view.uid} 0"]
    for word in words[3:]:
        pid, _, start = word.partition(":")
        one = by_pid.get(int(pid)) if _PID.fullmatch(pid) else None
        if one is None or str(one.start_ticks) != start:
            out.append(f"G {pid[:10]}")
            continue
        now = doing(view, one)
        out.append(f"S {pid} {now.state}")
        if not view.mine(one.job):
            said, rc = "Permission Denied: Try running again with elevated permissions", 13
        elif not now.calls:
            said, rc = "Error: Failed to find python version from target process", 1
        else:
            said, rc = _dump(one, now), 0
        out += [f"N {pid} {line}" for line in said.splitlines()]
        out.append(f"E {pid} {rc} {now.state} own")
    return _lines([*out, "end"])


def _dump(one: Process, now: Doing) -> str:
    """``py-spy dump --json``, as far as the script hands it on."""
    frames = [{"name": name, "filename": path, "line": line} for name, path, line in now.calls]
    threads: list[dict[str, Any]] = [
        {
            "thread_name": "MainThread",
            "os_thread_id": one.pid,
            "active": now.state == "R",
            "owns_gil": now.gil,
            "frames": frames,
        }
    ]
    text = json.dumps(threads, indent=1)
    return "".join(line.lstrip(" ") + "\n" for line in text.splitlines())


def _lines(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
