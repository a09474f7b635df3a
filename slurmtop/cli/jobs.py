"""``slurmtop jobs``: the queue for scripts, as a table or as JSON."""

import json
import os
import sys

from slurmtop import __version__
from slurmtop.cli.errors import UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import (
    JOBS_SCHEMA,
    filtered,
    in_order,
    job_dict,
    summary_line,
    table_lines,
)
from slurmtop.cli.options import Options
from slurmtop.cli.queue_once import bad_records_text, fetch_queue, whose_text
from slurmtop.cli.wiring import Wiring, load_settings, open_wiring
from slurmtop.model.job import Job
from slurmtop.model.snapshot import Parsed, Snapshot
from slurmtop.parse.slurm.hostlist import hosts_or_text
from slurmtop.store.query import Query, parse_query


def run(options: Options) -> int:
    """Print the queue once; exit 0 also where it is empty, 1 where it cannot be read."""
    query = parse_query(options.query)
    if query.error is not None:
        raise UsageError(f"--filter: {query.error}")
    config = load_settings(options, os.environ)
    wiring = open_wiring(options, os.environ)
    run_to_end(_run(wiring, query, all_users=config.all_users, as_json=options.json))
    return 0


async def _run(wiring: Wiring, query: Query, *, all_users: bool, as_json: bool) -> None:
    try:
        answer = await fetch_queue(wiring, all_users=all_users)
    finally:
        await wiring.aclose()
    now = wiring.clock.now()
    jobs = filtered(in_order(answer.value.rows), query, now, hosts_or_text)
    if as_json:
        print(json.dumps(_document(wiring, answer, jobs, query, all_users=all_users), indent=1))
        return
    bad = bad_records_text(answer.value.bad)
    if bad is not None:
        print(f"slurmtop: {bad}", file=sys.stderr)
    whose = whose_text(wiring, all_users=all_users)
    line = summary_line(
        jobs, whose=whose, sampled_at=answer.sampled_at, now=now, recorded_at=wiring.recorded_at
    )
    print(line)
    for line in table_lines(jobs, now) if jobs else ():
        print(line)


def _document(
    wiring: Wiring,
    answer: Snapshot[Parsed[Job]],
    jobs: list[Job],
    query: Query,
    *,
    all_users: bool,
) -> dict[str, object]:
    now = wiring.clock.now()
    return {
        "schema": JOBS_SCHEMA,
        "slurmtop": __version__,
        "cluster": wiring.cluster or None,
        "user": None if all_users else wiring.who.name,
        "filter": query.text or None,
        "recorded_at": wiring.recorded_at and wiring.recorded_at.isoformat(),
        "sampled_at": answer.sampled_at.isoformat(),
        "age_s": round(max(0.0, (now - answer.sampled_at).total_seconds()), 3),
        "took_s": round(answer.took_s, 3),
        "unreadable_records": answer.value.bad,
        "jobs": [job_dict(job, now) for job in jobs],
    }
