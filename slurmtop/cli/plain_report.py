"""The queue as plain lines, for where there is no terminal: a pipe, a log, a cron mail."""

import os
import sys

from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import in_order, summary_line, table_lines
from slurmtop.cli.options import Options
from slurmtop.cli.queue_once import bad_records_text, fetch_queue, whose_text
from slurmtop.cli.wiring import Wiring, load_settings, open_wiring
from slurmtop.model.job import Job, Phase
from slurmtop.model.units import plural


def run(options: Options) -> int:
    """``slurmtop`` without a terminal: one report, exit 0."""
    config = load_settings(options, os.environ)
    wiring = open_wiring(options, os.environ)
    for note in config.notes:
        print(f"slurmtop: {note}", file=sys.stderr)
    for line in run_to_end(_report(wiring, all_users=config.all_users)):
        print(line)
    return 0


async def _report(wiring: Wiring, *, all_users: bool) -> list[str]:
    try:
        return await queue_lines(wiring, all_users=all_users)
    finally:
        await wiring.aclose()


async def queue_lines(wiring: Wiring, *, all_users: bool) -> list[str]:
    """A line of counts and the table of jobs."""
    answer = await fetch_queue(wiring, all_users=all_users)
    jobs, now = in_order(answer.value.rows), wiring.clock.now()
    whose = whose_text(wiring, all_users=all_users)
    lines = [
        summary_line(
            jobs,
            whose=whose,
            sampled_at=answer.sampled_at,
            now=now,
            recorded_at=wiring.recorded_at,
        )
    ]
    bad = bad_records_text(answer.value.bad)
    if bad is not None:
        lines.append(bad)
    listed = [job for job in jobs if not _finished_task(job)]
    if listed:
        lines.extend(table_lines(listed, now))
    if len(listed) < len(jobs):
        hidden = plural(len(jobs) - len(listed), "completed task")
        lines.append(f"{hidden} of arrays left out; slurmtop jobs lists them all")
    return lines


def _finished_task(job: Job) -> bool:
    return job.id.task is not None and job.state.phase is Phase.COMPLETED
