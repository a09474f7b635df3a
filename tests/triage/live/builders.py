"""Looks at the nodes of a job, made of what was captured: ``fixtures/stacks`` and the kernel's own
words beside it. What a situation of the fixtures lacks (a second look, counters) is filled in as
the kernel of that machine counts: who sleeps is not put on a CPU, who computes uses one."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus, StepLines
from slurmtop.model.live import LiveFacts, LogMotion, Sample
from slurmtop.model.probe import Activity, Counters, NodeProbe, ThreadState
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, ThreadStack
from slurmtop.parse.dumps.stacks import parse_py_spy_json
from tests.triage.builders import NOW, job

STACKS = Path(__file__).parents[3] / "fixtures/stacks"
JOB = "4711"
_STATE = re.compile(r"rank (\d+) pid (\d+) state (\S) wchan (\S+)")
APART = timedelta(seconds=6)


@dataclass
class Rank:
    """One rank: what it does in both looks. ``switches``, ``cpu`` and ``io`` are what its main
    thread and its counters grow by from one look to the next."""

    number: int
    state: str = "S"
    wchan: str = "futex_do_wait"
    stacks: tuple[tuple[ThreadStack, ...], tuple[ThreadStack, ...]] = ((), ())
    switches: int = 0
    cpu: int = 0
    io: int = 0
    file: str | None = None
    size: int = 4
    host: str = ""
    env: bool = True
    children: list[tuple[str, str]] = field(default_factory=list)
    """(state, wchan) of each worker of its data loader."""
    child: str = "pt_data_worker"
    lively: bool = False
    """Do its children work?"""
    fresh: bool = False
    """Are they others in each look?"""
    gloo: bool = True
    """Has it the threads of gloo, as every rank of a group has?"""
    thread: str = ""
    """Where another thread of its own program waits in the kernel; none where it is empty."""
    others_cpu: int = 0
    """What another thread of its own program uses, in ticks."""

    @property
    def at(self) -> str:
        return self.host or f"gpu{self.number + 1:02}"

    @property
    def pid(self) -> int:
        return 5000 + 10 * self.number


@cache
def captured(situation: str, name: str) -> tuple[ThreadStack, ...]:
    path = STACKS / situation / f"{name}.json"
    if not path.exists():
        return ()
    pid = next((int(m[2]) for m in _STATE.finditer(states(situation)) if f"rank{m[1]}" in name), 0)
    return parse_py_spy_json(path.read_bytes(), (pid,))


def states(situation: str) -> str:
    return (STACKS / situation / "states").read_text()


def ranks_of(situation: str) -> list[Rank]:
    """The four ranks of a captured situation."""
    out = []
    for found in _STATE.finditer(states(situation)):
        number, state = int(found[1]), found[3]
        first = captured(situation, f"rank{number}")
        later = captured(situation, f"later-rank{number}") or first
        runs = state == "R"
        one = Rank(
            number,
            state=state,
            wchan="" if found[4] == "0" else found[4],
            stacks=(first, later),
            switches=900 if runs else 0,
            cpu=580 if runs else 0,
        )
        if "pt_data_worker" in states(situation):
            wchan = "hrtimer_nanosleep" if number == 2 else "poll_schedule_timeout.constprop.0"
            one.children = [("S", wchan), ("S", wchan)]
        if situation == "healthy" or situation == "shim-healthy":
            one.switches, one.cpu = 60, 8
        out.append(one)
    return out


def live(
    ranks: list[Rank],
    *,
    samples: int = 2,
    stacks: bool = True,
    activity: bool = True,
    silent: tuple[str, ...] = (),
    log: LogMotion | None = None,
    agents: bool = True,
    node_states: tuple[tuple[str, str], ...] = (),
    more: tuple[NodeProcess, ...] = (),
    hosts: tuple[str, ...] = (),
) -> LiveFacts:
    """Looks at all of ``ranks``; nodes in ``silent`` do not answer."""
    hosts = hosts or tuple(dict.fromkeys(one.at for one in ranks))
    looks = []
    for number in range(samples):
        began = NOW + number * APART
        probes = tuple(
            _silent(host, began)
            if host in silent
            else _probe(
                host, [r for r in ranks if r.at == host], number, began, activity, agents, more
            )
            for host in hosts
        )
        read = tuple(
            _stacks(one, number, began) for one in ranks if one.at not in silent and stacks
        )
        looks.append(
            Sample(
                began_at=began,
                probes=probes,
                stacks=tuple(one for one in read if one is not None),
                stacks_asked=stacks,
                whole=True,
            )
        )
    quiet = LogMotion(grew=False, quiet_s=26.0) if log is None else log
    return LiveFacts(job=JOB, hosts=hosts, samples=tuple(looks), log=quiet, node_states=node_states)


def _silent(host: str, at: datetime) -> NodeProbe:
    return NodeProbe(host=host, at=at, failure=Failure(Trouble.TIMEOUT, f"{host} is silent."))


def _stacks(one: Rank, look: int, at: datetime) -> ProcessStacks | None:
    threads = one.stacks[min(look, 1)]
    if not threads:
        return None
    return ProcessStacks(host=one.at, pid=one.pid, start_ticks=100, at=at, threads=threads)


def process(host: str, pid: int, argv: tuple[str, ...], **more: object) -> NodeProcess:
    values: dict[str, object] = {
        "host": host, "pid": pid, "start_ticks": 100, "ppid": 1, "state": "S",
        "name": argv[0].rsplit("/", 1)[-1], "argv": argv, "job": JOB, "step": "0", "threads": 10,
        "env": (("SLURM_JOB_ID", JOB),),
    }  # fmt: skip
    values.update(more)
    return NodeProcess(**values)  # type: ignore[arg-type]


def agent(host: str, **more: object) -> NodeProcess:
    return process(
        host, 4000, ("/usr/bin/python3", "-m", "torch.distributed.run", "train.py"), **more
    )


def _probe(
    host: str,
    ranks: list[Rank],
    look: int,
    at: datetime,
    activity: bool,
    agents: bool,
    more: tuple[NodeProcess, ...],
) -> NodeProbe:
    processes = [one for one in more if one.host == host]
    if agents:
        processes.append(agent(host))
    acts = [_activity(one, one.state, "do_wait", 0, 0, 0, look) for one in processes]
    for one in ranks:
        env = (
            ("RANK", str(one.number)),
            ("LOCAL_RANK", "0"),
            ("WORLD_SIZE", str(one.size)),
            ("MASTER_ADDR", "gpu01"),
            ("TORCHELASTIC_RUN_ID", "4711.0"),
        )
        argv = ("/usr/bin/python3", "-u", "train.py")
        it = process(
            host, one.pid, argv, ppid=4000 if agents else 1, state=one.state, name="python3",
            env=env if one.env else None,
        )  # fmt: skip
        processes.append(it)
        active = _activity(it, one.state, one.wchan, one.switches, one.cpu, one.io, look, one.file)
        acts.append(replace(active, threads=(*active.threads, *_threads(one, look))))
        for n, (state, wchan) in enumerate(one.children, 1):
            pid = one.pid + n + (5 * look if one.fresh else 0)
            child = replace(it, pid=pid, ppid=one.pid, name=one.child, state=state)
            processes.append(child)
            grows = 300 if one.lively else 0
            acts.append(_activity(child, state, wchan, grows, grows, 0, look))
    return NodeProbe(
        host=host,
        at=at,
        processes=NodeProcesses(host=host, at=at, processes=tuple(processes)),
        activity=tuple(acts) if activity else (),
        arch="x86_64",
    )


def _threads(one: Rank, look: int) -> list[ThreadState]:
    """Those beside the main one, with the names that they have on a real node."""
    stopped = one.state in ("T", "t")
    state = one.state if stopped else "S"
    names = [("gloo_tcp_loop", "do_epoll_wait"), ("pt_gloo_runloop", "futex_do_wait")]
    out = [
        ThreadState(
            tid=one.pid + 700 + n,
            state=state,
            name=name,
            wchan="do_signal_stop" if stopped else wchan,
            cpu_ticks=3,
        )
        for n, (name, wchan) in enumerate(names if one.gloo else ())
    ]
    if one.thread:
        tid = one.pid + 720
        out.append(ThreadState(tid=tid, state="S", name="python3", wchan=one.thread, cpu_ticks=4))
    if one.others_cpu:
        ticks = 40 + one.others_cpu * look
        out.append(ThreadState(tid=one.pid + 710, state="R", name="python3", cpu_ticks=ticks))
    return out


def _activity(
    of: NodeProcess,
    state: str,
    wchan: str,
    switches: int,
    cpu: int,
    io: int,
    look: int,
    file: str | None = None,
) -> Activity:
    per_s = cpu / APART.total_seconds()
    base = Counters(
        cpu_ticks=1000 + cpu * look, written_chars=4096 + io * look, read_chars=4096,
        switches=500 + switches * look,
    )  # fmt: skip
    after = replace(base, cpu_ticks=base.cpu_ticks + int(per_s * 0.4))  # type: ignore[operator]
    return Activity(
        host=of.host,
        pid=of.pid,
        start_ticks=of.start_ticks,
        state=state,
        wchan=wchan,
        open_file=file,
        tracer_pid=0,
        first=base,
        second=after,
        between_s=0.4,
        threads=(ThreadState(tid=of.pid, state=state, wchan=wchan, cpu_ticks=base.cpu_ticks),),
    )


#: As the lab prints them: a step every 0.3 s.
STEPS = StepLines(lines=5, first=1, last=5, begin=1, span_s=2.0, pause_s=1.0)


def facts(looked: LiveFacts, **more: object) -> JobFacts:
    """A job that runs, whose log was written some time ago."""
    quiet = looked.log.quiet_s or 0.0
    log = LogFacts(
        label="stdout",
        path="/home/anna/slurm-4711.out",
        status=LogStatus.READ,
        size=4096,
        mtime=NOW - timedelta(seconds=quiet),
        steps=STEPS,
    )
    values: dict[str, object] = {
        "asked": JOB, "cluster": "", "now": NOW, "job": job("RUNNING", JOB), "logs": (log,),
        "live": looked,
    }  # fmt: skip
    values.update(more)
    return JobFacts(**values)  # type: ignore[arg-type]
