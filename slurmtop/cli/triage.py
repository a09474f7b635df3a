"""``slurmtop triage PATH… | JOB``: the long form of the verdict, from what a job left behind."""

import asyncio
import dataclasses
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from slurmtop.cli.errors import CANNOT_STATUS, FINE, PROBLEM_STATUS, CannotWork, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.options import Options
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_content import SAMPLE_BYTES, Content, content_of
from slurmtop.collect.log_spans import BLOCK_BYTES
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.ports import Runner, RunnerError
from slurmtop.model.text import visible
from slurmtop.model.trace import Source, Traces
from slurmtop.model.verdict import PROBLEM_STATES, Verdict, verdict_dict
from slurmtop.parse.mask import mask_json, mask_text, mask_told
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster

# What parses logs takes a fifth of a second to load: of a job another process does that.
if TYPE_CHECKING:
    from slurmtop.cli.wiring import Wiring
    from slurmtop.collect.bundle import CannotSave, Saved
    from slurmtop.collect.bundle_open import Bundle

_WIDTH = 80
#: As :data:`slurmtop.collect.left_behind.STDIN`.
STDIN = "-"
#: By its number, as ``<(zcat a.gz)`` makes one; without: standard input.
_OPEN_FILE = re.compile(r"/dev/stdin|/(?:dev|proc/self)/fd/([0-9]{1,9})")


def run(options: Options) -> int:
    """Print the answer. 0 fine, 1 nothing could be read, 2 a problem was found."""
    options = dataclasses.replace(options, paths=tuple(map(_as_stdin, options.paths)))
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
    _check_save(options)
    return run_to_end(_job(options, jobs[0]) if jobs else _files(options))


def _as_stdin(path: str) -> str:
    """Files are opened in a helper, which has none of the shell's open files: standard input is
    read here, by whatever name, and others cannot be."""
    found = _OPEN_FILE.fullmatch(path)
    if found is None:
        return path
    if found[1] in (None, "0"):
        return STDIN
    raise UsageError(f"{path} is a pipe or file of this shell alone: … | slurmtop triage -")


def _check_save(options: Options) -> None:
    if options.save is None:
        return
    if options.timeline:
        raise UsageError("--save keeps a verdict and what it rests on: not with --timeline")
    if STDIN in options.paths:
        raise UsageError("--save cannot keep standard input: put it into a file and name that")


def _is_job(path: str) -> bool:
    return "/" not in path and looks_like_job_id(split_cluster(path)[0])


async def _files(options: Options) -> int:
    """Files and folders; one of them alone may be a bundle."""
    if len(options.paths) == 1 and await _may_be_bundle(options.paths[0]):
        from slurmtop.collect.bundle_form import BundleError
        from slurmtop.collect.bundle_open import open_bundle

        try:
            bundle = await asyncio.to_thread(open_bundle, options.paths[0])
        except BundleError as error:
            raise CannotWork(f"{options.paths[0]}: a bundle, but {error}") from error
        if bundle is not None:
            return await _bundle(bundle, options)
    return await (_paths(options) if options.save is None else _paths_saved(options))


async def _may_be_bundle(path: str) -> bool:
    """Is it worth a closer look? Asked in a helper, because a mount may hang."""
    if path == STDIN:
        return False
    clock = SystemClock()
    try:
        async with LocalRunner(clock, os.environ) as runner:
            stat = await runner.stat(path)
            if stat.is_dir:
                return (await runner.stat(f"{path}/manifest.json")).is_regular
            if not stat.is_regular:
                return False
            start = await runner.read(path, 0, SAMPLE_BYTES)
    except (OSError, RunnerError):
        return False
    return content_of(start) in (Content.GZIP, Content.BUNDLE)


async def _bundle(bundle: "Bundle", options: Options) -> int:
    """What was saved, judged again: no Slurm and no node is asked."""
    from slurmtop.cli.bundles import judge_again, tell_bundle
    from slurmtop.cli.why import exit_status as status_of_job
    from slurmtop.collect.bundle_form import BundleError

    if options.save is not None or options.timeline:
        raise UsageError("a bundle is judged again as it was: without --save and --timeline")
    if options.whole and not bundle.manifest.whole:
        raise UsageError("--whole: this bundle keeps only both ends of long files")
    try:
        answer = await judge_again(bundle)
    except BundleError as error:
        raise CannotWork(f"{bundle.path}: a bundle, but {error}") from error
    tell_bundle(bundle, answer.verdict)
    _print(answer.verdict, options, answer.facts)
    if answer.facts is not None:
        return status_of_job(answer.facts, answer.verdict)
    return exit_status(answer.verdict)


async def _paths_saved(options: Options) -> int:
    """As :func:`_paths`, and what was read is kept."""
    from slurmtop.cli.bundles import Answer, ask_and_save, ask_paths, paths_manifest, tell_saved
    from slurmtop.collect.bundle import CannotSave, NothingFound
    from slurmtop.collect.job_triage import Door
    from slurmtop.collect.who import current_user

    clock = SystemClock()

    async def ask(door: Door) -> Answer:
        answer = await ask_paths(door, options.paths, whole=options.whole)
        assert answer.traces is not None
        if not any(source.status is LogStatus.READ for source in answer.traces.sources):
            raise NothingFound(_nothing_read(options.paths, answer.traces))
        return answer

    about = paths_manifest(options.paths, whole=options.whole)
    async with LocalRunner(clock, os.environ) as runner:
        door = Door(runner=runner, clock=clock, who=current_user())
        try:
            answer, saved = await ask_and_save(door, about, options.save or "", ask)
        except (CannotSave, NothingFound) as error:
            raise CannotWork(str(error)) from error
    _print(answer.verdict, options)
    assert answer.traces is not None
    whole = tell_saved(saved)
    status = _with_unread(options.paths, answer.traces, exit_status(answer.verdict))
    return status if whole else CANNOT_STATUS


async def _paths(options: Options) -> int:
    from slurmtop.triage.judge import explain_traces

    clock = SystemClock()
    async with LocalRunner(clock, os.environ) as runner:
        traces = await _read(runner, options.paths, whole=options.whole)
    if not any(source.status is LogStatus.READ for source in traces.sources):
        raise CannotWork(_nothing_read(options.paths, traces))
    verdict = explain_traces(traces, now=clock.now())
    if options.timeline:
        from slurmtop.triage.join import join
        from slurmtop.triage.timeline import timeline_lines

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
    from slurmtop.collect.left_behind import read_traces

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
        facts, verdict, saved = await _verdict(wiring, options, job_id)
        # Nobody waits for connections that are being closed.
        _print(verdict, options, facts)
        if sys.stdout is not None:
            sys.stdout.flush()
    finally:
        await wiring.aclose()
    if saved is not None:
        from slurmtop.cli.bundles import tell_saved

        if not tell_saved(saved):
            return CANNOT_STATUS
    return status_of_job(facts, verdict)


async def _verdict(
    wiring: "Wiring", options: Options, job_id: str
) -> tuple[JobFacts, Verdict, "Saved | CannotSave | None"]:
    """The last answer, and what became of saving it; the best one so far is printed where somebody
    ends it before."""
    from slurmtop.cli.job_answer import answer, answer_saved, look_settings
    from slurmtop.cli.refining import Refining

    refining = Refining()
    settings = look_settings(options, once=True)
    try:
        if options.save is None:
            facts, verdict = await answer(wiring, job_id, settings, refining, whole=options.whole)
            saved = None
        else:
            facts, verdict, saved = await answer_saved(wiring, job_id, settings, refining, options)
    except asyncio.CancelledError:
        best = refining.broken_off()
        if best is not None:
            _print(best, options)
        raise
    refining.end(verdict)
    return facts, verdict, saved


async def _timeline(wiring: "Wiring", options: Options, job_id: str) -> int:
    """What the logs of a job said when; its nodes are not asked."""
    from slurmtop.cli.why import exit_status as status_of_job
    from slurmtop.cli.why import gather
    from slurmtop.collect.job_triage import read_whole_logs
    from slurmtop.triage.join import join
    from slurmtop.triage.logs_say import logs_say
    from slurmtop.triage.timeline import timeline_lines
    from slurmtop.triage.why import explain_job

    facts = await gather(wiring, job_id, judge_logs=None)
    picture = join(await read_whole_logs(wiring.runner, facts, whole=options.whole))
    only_newest = not (facts.job is not None and facts.job.restarts)
    said = logs_say(picture, only_newest=only_newest, now=facts.now)
    for line in timeline_lines(picture, width=_width()):
        print(line)
    facts = dataclasses.replace(facts, logs_say=said)
    return status_of_job(facts, explain_job(facts))


def _print(verdict: Verdict, options: Options, facts: JobFacts | None = None) -> None:
    if options.json:
        print(json.dumps(mask_json(verdict_dict(verdict)), indent=1))
        return
    from slurmtop.triage.live.class_lines import class_lines
    from slurmtop.triage.report import report_lines

    width = _width()
    if options.save is not None:
        # Beside a bundle the same words stand here as in it. Masked before they are broken into
        # lines: half a secret is known for none.
        verdict = mask_told(verdict)
    where = class_lines(facts.live, width=width) if facts is not None else ()
    report = "\n".join(report_lines(verdict, width=width, where=where))
    print(report if options.save is None else mask_text(report))


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
