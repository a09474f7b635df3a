"""What an earlier attempt of a rank left behind, beside the ranks that its launcher runs now."""

from collections.abc import Callable
from dataclasses import replace

from slurmtop.model.facts import JobFacts
from slurmtop.model.probe import Activity, Counters, NodeProbe, ThreadState
from slurmtop.model.process import NodeProcess
from tests.triage.live import examined_calls as c
from tests.triage.live.examined import Build
from tests.triage.live.examined_case import Case, case, each_probe

_SHELL = ("sh", "-c", "while true; do date; sleep 60; done")
_PROGRAM = ("ffmpeg", "-i", "x.mp4")
_WORKER = ("python", "train.py")


def left_behind() -> list[Case]:
    """All of it: gloo without torchrun, its ranks below mpirun's daemon."""
    alike = Build(size=4, usual=c.REDUCE, launcher="mpirun")
    sleeps = replace(alike, odd={1: c.SLEEPS})
    out = []
    for kind, argv in (("shell", _SHELL), ("program", _PROGRAM), ("worker", _WORKER)):
        for whose, ranks in (("one", [3]), ("all", range(4))):
            name = f"left-{kind}-of-{whose}"
            out += [
                case(f"{name}-one-sleeps", _with(sleeps, ranks, argv), "hung", may={1}, must=True),
                case(f"{name}-all-wait", _with(alike, ranks, argv), "hung", never={"missing-rank"}),
            ]
    for launcher in ("mpirun", "srun"):
        b = replace(sleeps, launcher=launcher, quiet=400.0)
        all_wait = _orphaned(_with(replace(b, odd={}), [3], _WORKER))
        out += [
            case(f"left-beside-orphans-all-wait-{launcher}", all_wait, "unknown"),
            case(
                f"left-beside-orphans-one-sleeps-{launcher}",
                _orphaned(_with(b, [3], _WORKER)),
                "hung unknown",
                may={1},
            ),
        ]
    return out


def _orphaned(made: Callable[[], JobFacts]) -> Callable[[], JobFacts]:
    """Nothing tells ranks and what is left apart: none has a parent, all have as many threads."""

    def orphans(probe: NodeProbe) -> NodeProbe:
        assert probe.processes is not None
        those = tuple(replace(one, ppid=1, threads=9) for one in probe.processes.processes)
        return replace(probe, processes=replace(probe.processes, processes=those))

    return each_probe(made, orphans)


def _with(build: Build, ranks: range | list[int], argv: tuple[str, ...]) -> Callable[[], JobFacts]:
    """A process of each of ``ranks`` that is older than it and a child of init."""
    pids = [build.pid(rank) for rank in ranks]

    def beside(probe: NodeProbe) -> NodeProbe:
        assert probe.processes is not None
        those = probe.processes.processes
        old = [_older(one, argv) for one in those if one.pid in pids]
        idle = [_idle(one) for one in old]
        look = replace(probe.processes, processes=(*old, *those))
        return replace(probe, processes=look, activity=(*probe.activity, *idle))

    return each_probe(build, beside)


def _older(one: NodeProcess, argv: tuple[str, ...]) -> NodeProcess:
    return replace(
        one,
        pid=one.pid - 5_000,
        start_ticks=one.start_ticks - 90_000,
        ppid=1,
        name=argv[0],
        argv=argv,
        threads=1,
    )


def _idle(one: NodeProcess) -> Activity:
    counted = Counters(
        cpu_ticks=3, read_bytes=0, written_bytes=0, read_chars=9, written_chars=9, switches=4
    )
    return Activity(
        host=one.host,
        pid=one.pid,
        start_ticks=one.start_ticks,
        state="S",
        wchan="hrtimer_nanosleep",
        syscall="230",
        tracer_pid=0,
        first=counted,
        second=counted,
        between_s=0.4,
        threads=(ThreadState(tid=one.pid, state="S", wchan="hrtimer_nanosleep"),),
    )
