"""The screen: builds what it needs and opens it. The only subcommand that imports textual."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TypeVar

from slurmtop.cli.errors import SIGNAL_STATUS
from slurmtop.cli.gpu_service import make_watch_gpus, start_job_use
from slurmtop.cli.node_look import make_look_at_nodes
from slurmtop.cli.options import Options
from slurmtop.cli.save_first import make_save_first, save_folder
from slurmtop.cli.terminal import aim_at_terminal
from slurmtop.cli.wiring import Wiring, load_settings, make_executor, open_wiring
from slurmtop.cli.world import make_world
from slurmtop.cli.zone import LocalZone
from slurmtop.collect.cluster_info import ClusterInfo, read_cluster_info, scancel_sends_many
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.judging import judge_again
from slurmtop.collect.log_verdict import judge_beside
from slurmtop.collect.poller import Poller, Source, SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.sinfo import NodeSource, every_s
from slurmtop.config import Config
from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.job import Job
from slurmtop.model.node import Node
from slurmtop.model.ports import RunnerError
from slurmtop.model.snapshot import Parsed, Snapshot
from slurmtop.ui.services import ActionExecutor, OnHealth, OnQueue, QueuePoller, Services

T = TypeVar("T")

#: How long the first paint may wait for the name of the cluster.
_NAME_WAIT_S = 0.3
_ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: After one of these the process is gone no later than this, whatever holds it: the kernel ends it.
_LAST_S = 10


def run(options: Options) -> int:
    """Open the screen on the real cluster, or on a recording."""
    config = load_settings(options, os.environ)
    wiring = open_wiring(
        options, os.environ, early_queue=True, all_users=config.all_users, config=config
    )
    if not wiring.live:
        config = replace(config, read_only=True, read_only_from="--replay")
    read_only = config.read_only
    executor = make_executor(
        wiring,
        os.environ,
        config=config,
        read_only=read_only,
        dry_run=options.dry_run,
        save_first=make_save_first(wiring, config),
    )
    return open_screen(
        wiring, config, executor, read_only=read_only, dry_run=options.dry_run, demo=""
    )


def open_screen(
    wiring: Wiring,
    config: Config,
    executor: ActionExecutor,
    *,
    read_only: bool,
    dry_run: bool,
    demo: str,
) -> int:
    """Show the screen until it is left; the exit status. Never hangs behind the terminal."""
    status = asyncio.run(
        show(wiring, config, executor, read_only=read_only, dry_run=dry_run, demo=demo)
    )
    from slurmtop.ui.driver import is_reading

    if any(is_reading(thread) for thread in threading.enumerate()):
        # A thread in a read that nothing ends would hold the interpreter: all else is done.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    return status


async def show(
    wiring: Wiring,
    config: Config,
    executor: ActionExecutor,
    *,
    read_only: bool,
    demo: str,
    dry_run: bool = False,
) -> int:
    """Run the app until it is left, then end everything it started.

    The terminal is put back as it was also where a signal ends it.
    """
    # Imported late: the first questions to Slurm are on their way by now.
    from slurmtop.ui.app import SlurmtopApp
    from slurmtop.ui.driver import SteadyDriver

    aim_at_terminal()
    try:
        info, one_call = await asyncio.gather(
            _cluster_info(wiring), scancel_sends_many(wiring.runner)
        )
        services = make_services(wiring, config, executor, info, read_only=read_only, demo=demo)
        app = SlurmtopApp(replace(services, one_call=one_call, dry_run=dry_run))
        app.driver_class = SteadyDriver
        ended_by: list[int] = []

        def leave(number: int) -> None:
            ended_by.append(number)
            app.exit()

        def at_once(number: int, frame: FrameType | None) -> None:
            # Also while the loop is held by a terminal that takes nothing, and never runs `leave`.
            signal.alarm(_LAST_S)
            if isinstance(app._driver, SteadyDriver):
                app._driver.hurry()

        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in _ENDED_BY:
            # The loop hears of a signal by its descriptor, whose handler it is all the same.
            loop.add_signal_handler(number, leave, number)
            signal.signal(number, at_once)
        await app.run_async()
    finally:
        await wiring.aclose()
    if wiring.recording is not None and wiring.recording.trouble is not None:
        print(f"slurmtop: the recording is not whole: {wiring.recording.trouble}", file=sys.stderr)
    if ended_by:
        return SIGNAL_STATUS + ended_by[0]
    return app.return_code or 0


async def _cluster_info(wiring: Wiring) -> ClusterInfo:
    """What the cluster says of itself, where it says so at once; else nothing is known."""
    try:
        async with asyncio.timeout(_NAME_WAIT_S):
            return await read_cluster_info(wiring.runner, cluster=wiring.cluster)
    except (SourceFailed, RunnerError, TimeoutError):
        return ClusterInfo()


def _poller(
    wiring: Wiring,
    source: Source[T],
    on_value: Callable[[Snapshot[T]], None],
    on_health: OnHealth,
) -> Poller[T]:
    if wiring.data_clock is None:
        return Poller(source, wiring.clock, on_value, on_health)

    def answered(snapshot: Snapshot[T]) -> None:
        # The poller lives in the reader's time, what it brings in the cluster's.
        on_value(replace(snapshot, sampled_at=wiring.clock.now()))

    return Poller(source, wiring.data_clock, answered, on_health)


def _no_calls() -> int:
    return 0


def make_services(
    wiring: Wiring,
    config: Config,
    executor: ActionExecutor,
    info: ClusterInfo,
    *,
    read_only: bool,
    demo: str,
) -> Services:
    """What the screens may use, over one runner and one clock."""
    accounting = Accounting(wiring.runner, cluster=wiring.cluster, mark=wiring.mark)
    job_use = start_job_use(wiring, config)

    def open_queue(*, user: str | None, on_value: OnQueue, on_health: OnHealth) -> QueuePoller:
        source: Source[Parsed[Job]] = wiring.queue_source(
            all_users=user is None, user=user, interval_s=config.queue_interval_s
        )
        if job_use is None:
            return _poller(wiring, source, on_value, on_health)

        def answered(snapshot: Snapshot[Parsed[Job]]) -> None:
            job_use.saw(snapshot.value.rows)
            on_value(snapshot)

        return _poller(wiring, source, answered, on_health)

    def open_nodes(
        *, on_value: Callable[[Snapshot[Parsed[Node]]], None], on_health: OnHealth
    ) -> QueuePoller:
        source = NodeSource(
            wiring.runner,
            cluster=wiring.cluster,
            mark=wiring.mark,
            interval_s=every_s(wiring.speed),
        )
        return _poller(wiring, source, on_value, on_health)

    async def gather_facts(
        asked: str,
        *,
        job: Job | None = None,
        siblings: tuple[Job, ...] = (),
        ask_start: bool = False,
    ) -> JobFacts:
        return await gather_job_facts(
            wiring.runner,
            wiring.clock,
            asked,
            cluster=wiring.cluster,
            mark=wiring.mark,
            accounting=accounting,
            job=job,
            siblings=siblings,
            want_expected_start=ask_start,
            me=wiring.who,
            judge_logs=judge_beside,
        )

    async def judge_logs(facts: JobFacts) -> LogsSay | None:
        return await judge_again(wiring.runner, wiring.clock, facts, judge_beside)

    return Services(
        runner=wiring.runner,
        clock=wiring.clock,
        config=config,
        uid=wiring.who.uid,
        user=wiring.who.name,
        open_queue=open_queue,
        open_nodes=open_nodes,
        watch_gpus=make_watch_gpus(wiring, config) if wiring.live or demo else None,
        look_at_nodes=make_look_at_nodes(wiring, config) if wiring.live or demo else None,
        job_gpu_use=None if job_use is None else job_use.use_of,
        gather_facts=gather_facts,
        judge_logs=judge_logs,
        way_to_nodes=wiring.way_to_nodes,
        executor=executor,
        world=make_world(wiring, os.environ),
        # A replay asks nobody: what it takes from the recording is no call.
        calls_last_minute=_no_calls if wiring.replay else wiring.runner.calls_last_minute,
        commands_run=wiring.runner.recent,
        cluster=wiring.cluster,
        cluster_label=wiring.cluster or info.name or "",
        read_only=read_only,
        save_folder=save_folder(wiring),
        demo=demo,
        recorded_at=lambda: wiring.recorded_at,
        private_data=info.hides_jobs,
        zone=LocalZone(),
        data_clock=wiring.data_clock,
        speed=wiring.speed,
    )
