"""``slurmtop nodes``: the nodes for scripts, as a table or as JSON, and where a wish fits."""

import json
import os
import sys

from slurmtop import __version__
from slurmtop.cli.errors import CannotWork, UsageError
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import recorded_text
from slurmtop.cli.node_rows import (
    NODES_SCHEMA,
    fit_dict,
    fit_text,
    node_dict,
    node_table,
    nodes_summary,
)
from slurmtop.cli.options import Options
from slurmtop.cli.queue_once import fetch_queue
from slurmtop.cli.wiring import Wiring, load_settings, open_wiring
from slurmtop.cli.zone import LocalZone
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sinfo import NodeSource
from slurmtop.model.job import Job
from slurmtop.model.node import Node
from slurmtop.model.ports import RunnerError
from slurmtop.model.snapshot import Parsed, Snapshot
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import hosts_or_text
from slurmtop.store.node_query import NodeQuery, parse_node_query
from slurmtop.store.nodes import NodeView
from slurmtop.triage.fits import Fit, find_fit, parse_wish
from slurmtop.ui.present.spans import wrap

_WIDTH = 80


def run(options: Options) -> int:
    """Print the nodes once; exit 0 also where none matches, 1 where they cannot be read."""
    query = parse_node_query(" ".join(options.where))
    if query.error is not None:
        raise UsageError(f"filter: {query.error}")
    config = load_settings(options, os.environ)
    wiring = open_wiring(options, os.environ)
    run_to_end(_run(wiring, options, query, all_users=config.all_users))
    return 0


async def _run(wiring: Wiring, options: Options, query: NodeQuery, *, all_users: bool) -> None:
    asking = spawn(_fetch_jobs(wiring, all_users=all_users), name="the queue beside the nodes")
    try:
        answer = await _fetch_nodes(wiring)
        jobs = await asking
    finally:
        await cancel_and_wait(asking)
        await wiring.aclose()
    view = NodeView(expand=hosts_or_text)
    view.set_jobs(jobs or (), version=1)
    view.set_nodes(answer.value.rows)
    fit = _fit(options.fit, view, all_users=all_users and jobs is not None)
    view.set_query(query)
    known = jobs is not None
    if options.json:
        document = _document(wiring, answer, view, fit, jobs_known=known)
        print(json.dumps(document, indent=1))
        return
    if answer.value.bad:
        text = f"{answer.value.bad} records of nodes could not be read and are missing here"
        print(f"slurmtop: {text}", file=sys.stderr)
    for line in _lines(wiring, answer, view, fit, jobs_known=known):
        print(line)


async def _fetch_nodes(wiring: Wiring) -> Snapshot[Parsed[Node]]:
    began, sampled_at = wiring.clock.monotonic(), wiring.clock.now()
    source = NodeSource(wiring.runner, cluster=wiring.cluster, mark=wiring.mark)
    try:
        nodes = await source.fetch()
    except SourceFailed as error:
        raise CannotWork(f"the nodes cannot be read: {error.failure.sentence}") from error
    except RunnerError as error:
        raise CannotWork(f"the nodes cannot be read: {error}") from error
    sampled_at = wiring.recorded_at or sampled_at
    return Snapshot(nodes, sampled_at, wiring.clock.monotonic() - began)


async def _fetch_jobs(wiring: Wiring, *, all_users: bool) -> tuple[Job, ...] | None:
    """The jobs beside the nodes; without them the nodes are still worth a table."""
    try:
        return (await fetch_queue(wiring, all_users=all_users)).value.rows
    except CannotWork as error:
        print(
            f"slurmtop: the jobs on the nodes are not known: {visible(str(error))}", file=sys.stderr
        )
        return None


def _fit(text: str, view: NodeView, *, all_users: bool) -> Fit | None:
    if not text:
        return None
    wish = parse_wish(text, view.nodes)
    if isinstance(wish, str):
        raise UsageError(f"--fit: {wish}")
    return find_fit(wish, view.nodes, view.jobs_on, all_jobs_known=all_users)


def _lines(
    wiring: Wiring,
    answer: Snapshot[Parsed[Node]],
    view: NodeView,
    fit: Fit | None,
    *,
    jobs_known: bool,
) -> list[str]:
    now, width = wiring.clock.now(), _width()
    age = ""
    if wiring.recorded_at is not None:
        age = f"from a recording of {recorded_text(wiring.recorded_at)}"
    head = nodes_summary(view.rows, view.totals.nodes, answer.sampled_at, now, age)
    out = wrap(head, max(40, width), rest="  ")
    if fit is not None:
        out += fit_text(fit, now, width, LocalZone())
    if view.rows:
        out += node_table(view.rows, now, width, jobs_known=jobs_known)
    return out


def _width() -> int:
    """Columns of the terminal; 80 where there is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return _WIDTH


def _document(
    wiring: Wiring,
    answer: Snapshot[Parsed[Node]],
    view: NodeView,
    fit: Fit | None,
    *,
    jobs_known: bool,
) -> dict[str, object]:
    now = wiring.clock.now()
    return {
        "schema": NODES_SCHEMA,
        "slurmtop": __version__,
        "cluster": wiring.cluster or None,
        "filter": view.query.text or None,
        "recorded_at": wiring.recorded_at and wiring.recorded_at.isoformat(),
        "sampled_at": answer.sampled_at.isoformat(),
        "age_s": round(max(0.0, (now - answer.sampled_at).total_seconds()), 3),
        "took_s": round(answer.took_s, 3),
        "unreadable_records": answer.value.bad,
        "nodes": [node_dict(row, jobs_known=jobs_known) for row in view.rows],
        "fit": None if fit is None else fit_dict(fit),
    }
