"""``slurmtop demo``: the screen, or one plain report, on a simulated cluster."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from slurmtop import __version__
from slurmtop.cli.errors import UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_answer import door_of
from slurmtop.cli.options import Options
from slurmtop.cli.plain_report import queue_lines
from slurmtop.cli.terminal import has_terminal
from slurmtop.cli.wiring import Wiring, load_settings
from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.job_triage import triage_job
from slurmtop.collect.live import LookSettings
from slurmtop.collect.log_verdict import judge_here
from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.nodes.many import read_many
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.who import Who
from slurmtop.control.action_log import Entry
from slurmtop.control.execute import Executor
from slurmtop.control.read_back import QueueReadBack
from slurmtop.demo import (
    DEFAULT_SCENARIO,
    DEMO_UID,
    DEMO_USER,
    SCENARIOS,
    DemoClock,
    make_demo,
)
from slurmtop.model.job import Job, Phase
from slurmtop.model.ports import Clock
from slurmtop.model.verdict import State, Verdict
from slurmtop.triage.words import four_lines

#: At most so many jobs are explained in the plain report: it is a sample, not a census.
_EXPLAINED = 12


#: A wait of 20 s would be minutes of the simulated cluster; nobody real is asked.
DEMO_INTERVAL_S = 2.0


class NoLog:
    """Actions on a simulated cluster leave no trace."""

    def record(self, entry: Entry) -> str | None:
        """Keep nothing."""
        return None


class _HastyClock:
    """The cluster's clock, where nobody waits for what is awaited on purpose: between two looks
    the simulated time goes by at once."""

    def __init__(self, clock: Clock, skip: Callable[[float], None]) -> None:
        self._clock, self._skip = clock, skip

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        """As :func:`slurmtop.collect.clock.pause` wants it."""
        self._skip(seconds)


def run(options: Options) -> int:
    """Open the demo, or print its report where there is no terminal. Exit 0."""
    scenario = options.scenario or DEFAULT_SCENARIO
    if scenario not in SCENARIOS:
        known = ", ".join(sorted(SCENARIOS))
        raise UsageError(f"no scenario {scenario!r}; there are {known}")
    # Nothing real is asked, and the cluster's time runs fast: look often. On the simulated nodes
    # somebody watches every counter.
    config = replace(
        load_settings(options, os.environ),
        queue_interval_s=DEMO_INTERVAL_S,
        exporter_url="",
        prometheus_url="",
        dcgm="on",
    )
    wiring = open_demo(scenario, options.speed)
    if not has_terminal():
        for line in run_to_end(report_lines(wiring, scenario)):
            print(line)
        return 0
    from slurmtop.cli import tui

    executor = Executor(
        wiring.runner,
        wiring.clock,
        NoLog(),
        read_only=config.read_only,
        read_back=QueueReadBack(wiring.runner),
        dry_run=options.dry_run,
        look_at_nodes=lambda job, hosts: read_many(wiring.runner, wiring.clock, hosts, job=job),
    )
    for note in config.notes:
        print(f"slurmtop: {note}", file=sys.stderr)
    return tui.open_screen(
        wiring,
        config,
        executor,
        read_only=config.read_only,
        dry_run=options.dry_run,
        demo=scenario,
    )


def open_demo(scenario: str, speed: float) -> Wiring:
    """A wiring over a simulated cluster, seen by the person who lives in it."""
    real = SystemClock()
    runner, clock = make_demo(scenario, real, speed)
    return Wiring(
        runner=MeteredRunner(runner, clock),
        clock=clock,
        who=Who(DEMO_UID, DEMO_USER),
        cluster="",
        mark=new_record_mark(),
        live=False,
        data_clock=real,
        speed=speed,
    )


async def report_lines(wiring: Wiring, scenario: str) -> list[str]:
    """The simulated queue, then the four lines of what hangs and of what failed."""
    title = f"slurmtop {__version__} demo, scenario {scenario}: {SCENARIOS[scenario]}"
    lines = [f"{title}. Nothing here is real.", ""]
    lines += await queue_lines(wiring, all_users=False)
    verdicts = await _verdicts(wiring)
    hung = next((item for item in verdicts if item.state is State.HUNG), None)
    failed = _most_telling([item for item in verdicts if item.state is State.FAILED])
    for verdict in (hung, failed):
        if verdict is not None:
            lines += ["", f"slurmtop why {verdict.job}", *four_lines(verdict)]
    return [*lines, *_where_to_try(hung)]


def _where_to_try(hung: Verdict | None) -> list[str]:
    """What is printed cannot be typed here: no Slurm knows these jobs."""
    lines = ["", "These commands are for a real cluster. Here the screen shows the same jobs, in a"]
    if hung is None:
        return [*lines, "terminal: slurmtop demo"]
    return [
        *lines,
        f"terminal: slurmtop demo, then / {hung.job}, enter twice, and p looks at its nodes.",
    ]


def _most_telling(failed: Sequence[Verdict]) -> Verdict | None:
    """One with an error line of its own, where there is one."""
    return next((item for item in failed if item.evidence[:1] and item.evidence[0].line), None) or (
        failed[0] if failed else None
    )


async def _verdicts(wiring: Wiring) -> list[Verdict]:
    """What ``why`` says of some jobs; the nodes of those that are suspect are looked at."""
    clock, speed = wiring.clock, wiring.speed
    if isinstance(clock, DemoClock):
        demo = clock
        wiring = replace(wiring, clock=_HastyClock(demo, lambda s: demo.skip(s * speed)))
    door = door_of(wiring)
    try:
        answer = await wiring.queue_source(all_users=False).fetch()
    except SourceFailed:
        return []
    chosen = [job for job in answer.rows if _worth_a_look(job)][:_EXPLAINED]
    found = [
        await triage_job(door, job.key.id, LookSettings(), judge_logs=judge_here) for job in chosen
    ]
    return [verdict for _, verdict in found]


def _worth_a_look(job: Job) -> bool:
    plain = job.group_id is None
    return plain and job.state.phase in (Phase.RUNNING, Phase.FAILED)
