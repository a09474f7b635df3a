"""``slurmtop triage PATH… | JOB``: the long form of the verdict, from what a job left behind."""

import asyncio
import dataclasses
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from slurmtop.cli.errors import CANNOT_STATUS, FINE, PROBLEM_STATUS, CannotWork, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.options import Options
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.left_behind import BLOCK_BYTES, STDIN, read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.ports import Runner
from slurmtop.model.text import visible
from slurmtop.model.trace import Source, Traces
from slurmtop.model.verdict import PROBLEM_STATES, Verdict, verdict_dict
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.logs_say import logs_say
from slurmtop.triage.report import report_lines
from slurmtop.triage.timeline import timeline_lines

if TYPE_CHECKING:
    from slurmtop.cli.wiring import Wiring

_WIDTH = 80


def run(options: Options) -> int:
    """Print the answer. 0 fine, 1 nothing could be read, 2 a problem was found."""
    paths = options.paths
    if any(not path or "\0" in path for path in paths):
        raise UsageError("triage wants paths; an empty one is none; see slurmtop triage --help")
    jobs = [path for path in paths if _is_job(path)]
    if jobs and len(paths) > 1:
        raise UsageError(
            f"{jobs[0]!r} is a job, and a job is triaged alone; for a file of that name:"
            f" ./{jobs[0]}"
        )
    if paths.count(STDIN) > 1:
        raise UsageError("standard input can be read once: give - once")
    return run_to_end(_job(options, jobs[0]) if jobs else _paths(options))


def _is_job(path: str) -> bool:
    return "/" not in path and looks_like_job_id(split_cluster(path)[0])


async def _paths(options: Options) -> int:
    clock = SystemClock()
    async with LocalRunner(clock, os.environ) as runner:
        traces = await _read(runner, options.paths, whole=options.whole)
    if not any(source.status is LogStatus.READ for source in traces.sources):
        raise CannotWork(_nothing_read(options.paths, traces))
    verdict = explain_traces(traces, now=clock.now())
    if options.timeline:
        for line in timeline_lines(join(traces), width=_width()):
            print(line)
    else:
        _print(verdict, options)
    return _with_unread(options.paths, traces, exit_status(verdict))


def _with_unread(paths: Sequence[str], traces: Traces, status: int) -> int:
    """What was named and not read is told, and nothing is fine then."""
    named = set(paths)
    unread = [
        source
        for source in traces.sources
        if source.name in named and source.status is not LogStatus.READ
    ]
    for source in unread:
        print(f"slurmtop: {visible(_why(source))}", file=sys.stderr)
    return CANNOT_STATUS if unread and status == FINE else status


def _why(source: Source) -> str:
    return f"{source.name}: not read: {source.why or source.status}"


async def _read(runner: Runner, paths: Sequence[str], *, whole: bool) -> Traces:
    stdin = _stdin_blocks() if STDIN in paths else None
    return await read_traces(runner, paths, whole=whole, stdin=stdin)


def _nothing_read(paths: Sequence[str], traces: Traces) -> str:
    """Why there is no verdict at all, in one line."""
    if not traces.sources:
        return f"{paths[0]}: no log in it: nothing there holds text"
    more = len(traces.sources) - 1
    others = f" (and {more} more that could not be read)" if more else ""
    return _why(traces.sources[0]) + others


async def _job(options: Options, job: str) -> int:
    """What ``why`` says of a job, in the long form; ``--whole`` reads all of its logs."""
    from slurmtop.cli.why import exit_status as status_of_job
    from slurmtop.cli.wiring import open_wiring

    job_id, cluster = split_cluster(job)
    if cluster and options.cluster is None:
        options = dataclasses.replace(options, cluster=cluster)
    wiring = open_wiring(options, os.environ)
    try:
        if options.timeline:
            return await _timeline(wiring, options, job_id)
        facts, verdict = await _verdict(wiring, options, job_id)
    finally:
        await wiring.aclose()
    _print(verdict, options)
    return status_of_job(facts, verdict)


async def _verdict(wiring: "Wiring", options: Options, job_id: str) -> tuple[JobFacts, Verdict]:
    """The last answer; the best one so far is printed where somebody ends it before."""
    from slurmtop.cli.job_answer import answer, look_settings
    from slurmtop.cli.refining import Refining

    refining = Refining()
    settings = look_settings(options, once=True)
    try:
        facts, verdict = await answer(wiring, job_id, settings, refining, whole=options.whole)
    except asyncio.CancelledError:
        best = refining.broken_off()
        if best is not None and not options.json:
            _print(best, options)
        raise
    refining.end(verdict)
    return facts, verdict


async def _timeline(wiring: "Wiring", options: Options, job_id: str) -> int:
    """What the logs of a job said when; its nodes are not asked."""
    from slurmtop.cli.why import exit_status as status_of_job
    from slurmtop.cli.why import gather
    from slurmtop.collect.job_triage import read_whole_logs
    from slurmtop.triage.why import explain_job

    facts = await gather(wiring, job_id, judge_logs=None)
    picture = join(await read_whole_logs(wiring.runner, facts, whole=options.whole))
    only_newest = not (facts.job is not None and facts.job.restarts)
    said = logs_say(picture, only_newest=only_newest, now=facts.now)
    for line in timeline_lines(picture, width=_width()):
        print(line)
    facts = dataclasses.replace(facts, logs_say=said)
    return status_of_job(facts, explain_job(facts))


def _print(verdict: Verdict, options: Options) -> None:
    if options.json:
        print(json.dumps(verdict_dict(verdict), indent=1))
        return
    for line in report_lines(verdict, width=_width()):
        print(line)


def exit_status(verdict: Verdict) -> int:
    """0 fine, 2 hung, failed, slow or recovering."""
    return PROBLEM_STATUS if verdict.state in PROBLEM_STATES else FINE


def _width() -> int:
    """The terminal's width, at most 100; 80 in a pipe, never less than 40."""
    try:
        return min(100, max(40, os.get_terminal_size(1).columns))
    except OSError:
        return _WIDTH


async def _stdin_blocks() -> AsyncIterator[bytes]:
    """Standard input as it comes. Its reader may be left waiting: ctrl-c still ends slurmtop."""
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(8)

    def take() -> None:
        handle = sys.stdin.fileno()
        block = b"-"
        while block:
            room.acquire()
            try:
                block = os.read(handle, BLOCK_BYTES)
            except OSError:
                block = b""
            try:
                loop.call_soon_threadsafe(blocks.put_nowait, block)
            except RuntimeError:
                return

    threading.Thread(target=take, name="standard input", daemon=True).start()
    while block := await blocks.get():
        room.release()
        yield block
