"""``slurmtop doctor``: what can be reached from here, as whom, and what opens the rest."""

import asyncio
import contextlib
import dataclasses
import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop import __version__
from slurmtop.cli.doctor_here import agent_row, settings_row, state_row, terminal_row, this_terminal
from slurmtop.cli.doctor_table import row_dict, table_lines
from slurmtop.cli.errors import CANNOT_STATUS, FINE, CannotWork, UsageError
from slurmtop.cli.gpu_gather import hosts_of, named_jobs, nodes_of
from slurmtop.cli.gpu_service import make_exporters
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.doctor import HurriedRunner, ask_slurm, try_logs, try_ways
from slurmtop.collect.nodes.dcgmi import DcgmMode
from slurmtop.collect.nodes.gpu_watch import look_once
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.collect.who import Who
from slurmtop.config import Config
from slurmtop.control.rank_signal import raw_number
from slurmtop.model.access import Access, AccessStatus, Group, WayTried
from slurmtop.model.job import Job, Phase
from slurmtop.model.reach import Way
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.ids import looks_like_job_id, split_cluster
from slurmtop.triage.access import exporter_row, log_rows, slurm_rows, way_rows
from slurmtop.triage.access_node import node_rows

DOCTOR_SCHEMA = "slurmtop.doctor/1"
#: One look is enough to judge a cluster by; whoever names more nodes gets these at most.
MOST_HOSTS = 16
#: Of one login, and of the step of srun, which the controller has to start first.
_WAY_LIMIT_S = 10.0
#: A driver without persistence mode may need longer: that is told, and the GPUs tab waits for it.
_GPU_LIMIT_S = 8.0
_NO_JOB = (
    "the ways onto nodes cannot be judged without a running job: pam_slurm_adopt lets in only who"
    " has one there"
)
#: What is found here is not what the recording person had.
_OTHER_MACHINE = Access(
    group=Group.HERE,
    source="settings, log of actions, ssh keys, terminal",
    status=AccessStatus.NOT_ASKED,
    why="a recording tells nothing of them",
)
_NO_STEP = "a step needs a running job of this user on that node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All rows, and the node that the rows about a node are from."""

    rows: tuple[Access, ...]
    slurm_answers: bool
    job: str | None = None
    host: str | None = None


def run(options: Options) -> int:
    """Print the matrix. 0 where slurmtop can work, 1 where Slurm itself does not answer."""
    id, hosts = _where(options.where, options.hosts)
    _, cluster = split_cluster(id)
    if cluster and options.cluster is None:
        options = dataclasses.replace(options, cluster=cluster)
    settings, config = settings_row(options, os.environ)
    here = (_OTHER_MACHINE,) if options.replay is not None else _here(settings)
    try:
        wiring = open_wiring(options, os.environ, config=config)
    except CannotWork as error:
        return _without_slurm(options, error, here)
    found = run_to_end(_run(wiring, config, id, hosts))
    rows = (*found.rows, *here)
    if options.json:
        print(json.dumps(_document(wiring, found, rows), indent=1))
    else:
        print(_title(wiring))
        print()
        for line in table_lines(rows, _width()):
            print(line)
    return FINE if found.slurm_answers else CANNOT_STATUS


def _here(settings: Access) -> tuple[Access, ...]:
    terminal = terminal_row(this_terminal(os.environ))
    return settings, state_row(os.environ), agent_row(os.environ), terminal


def _without_slurm(options: Options, error: CannotWork, here: Sequence[Access]) -> int:
    """What this machine has is told all the same."""
    row = Access(
        group=Group.SLURM, source="Slurm", status=AccessStatus.ABSENT, why=visible(str(error))
    )
    rows = (row, *here)
    if options.json:
        document = {"schema": DOCTOR_SCHEMA, "slurmtop": __version__}
        print(json.dumps({**document, "rows": [row_dict(one) for one in rows]}, indent=1))
    else:
        for line in table_lines(rows, _width()):
            print(line)
    raise error


def _where(words: Sequence[str], more: str = "") -> tuple[str, tuple[str, ...]]:
    """A job id, or nodes, ``more`` of them among these; :class:`UsageError` for both."""
    ids = [word for word in words if _is_job(word)]
    if ids and (len(words) > 1 or more):
        raise UsageError(
            "doctor takes one job, or nodes (--hosts where a name is a number);"
            " see slurmtop doctor --help"
        )
    if ids:
        return ids[0], ()
    lists = (*words, *((more,) if more else ()))
    hosts = tuple(dict.fromkeys(host for text in lists for host in hosts_of(text)))
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"doctor takes at most {MOST_HOSTS} nodes; see slurmtop doctor --help")
    return "", hosts


def _is_job(word: str) -> bool:
    """Slurm writes no job id with a zero in front; nodes may be called so."""
    return looks_like_job_id(split_cluster(word)[0]) and not word.strip().startswith("0")


async def _run(wiring: Wiring, config: Config, id: str, hosts: tuple[str, ...]) -> Findings:
    say = Progress()
    try:
        return await _find(wiring, config, id, hosts, say)
    finally:
        say.over()
        await wiring.aclose()


async def _find(
    wiring: Wiring, config: Config, id: str, hosts: tuple[str, ...], say: "Progress"
) -> Findings:
    runner = HurriedRunner(wiring.runner)
    say.now("asking Slurm")
    asked = await ask_slurm(
        runner, wiring.clock, _whose(wiring), cluster=wiring.cluster, mark=wiring.mark, about=id
    )
    jobs = asked.jobs or ()
    job, refused = await _job(wiring, runner, id, jobs, hosts)
    names = hosts or (nodes_of(job)[:1] if job is not None else ())
    logs, exporter, (nodes, host) = await asyncio.gather(
        try_logs(runner, (job,) if id and job is not None else jobs),
        _exporter(wiring, config, names),
        _nodes(wiring, config, job, names, say) if refused is None else _nothing(refused),
    )
    return Findings(
        rows=(*slurm_rows(asked.slurm), *log_rows(logs), exporter, *nodes),
        slurm_answers=asked.slurm.queue is None,
        job=None if job is None else job.id.text,
        host=host,
    )


def _whose(wiring: Wiring) -> Who | None:
    """Whose rights are told; None where a recording does not say who was answered."""
    replay = wiring.replay
    return wiring.who if replay is None or replay.who is not None else None


async def _nothing(row: Access) -> tuple[tuple[Access, ...], str | None]:
    return (row,), None


async def _exporter(wiring: Wiring, config: Config, hosts: Sequence[str]) -> Access:
    if not wiring.live:
        why = "a recording tells nothing of it"
        return Access(
            group=Group.HERE, source="GPU exporter", status=AccessStatus.NOT_ASKED, why=why
        )
    exporters = make_exporters(wiring, config)
    told = await exporters.ask(hosts[:1]) if exporters.set_up and hosts else {}
    node = told[hosts[0]].node if told else None
    return exporter_row(node, set_up=exporters.set_up)


async def _nodes(
    wiring: Wiring, config: Config, job: Job | None, names: tuple[str, ...], say: "Progress"
) -> tuple[tuple[Access, ...], str | None]:
    """The rows about nodes, and the node that was looked at (the first one of several)."""
    if not wiring.live:
        return await _nothing(_row(AccessStatus.NOT_ASKED, "a recording tells nothing of them"))
    if not names:
        return await _nothing(_row(AccessStatus.NOT_ASKED, _NO_JOB))
    ways = wiring.single_ways(config)
    if not ways:
        return await _nothing(_row(AccessStatus.NOT_ASKED, "node_access: off in the settings"))
    raw = None if job is None else raw_number(job)
    if raw is not None:
        wiring.expect(raw, names)
    here = frozenset(filter(wiring.is_here, names))
    tries = [way for way in ways if way is not Way.HERE or here]
    say.now(f"trying {', '.join(tries)} on {plural(len(names), 'node')}")
    tools = tool_words(config.stacks)
    tried = await try_ways(
        ways, wiring.clock, names, job=raw, timeout_s=_WAY_LIMIT_S, tools=tools, here=here
    )
    rows = list(way_rows(tried))
    if raw is None and Way.SRUN in ways:
        rows.append(_row(AccessStatus.NOT_ASKED, _NO_STEP, source="srun step"))
    seen = _first_seen(tried, names)
    if seen is not None and seen.access is not None:
        say.now(f"asking for the GPUs of {seen.host}")
        look = await look_once(
            ways[seen.way],
            wiring.clock,
            seen.host,
            dcgm=DcgmMode(config.dcgm),
            timeout_s=_GPU_LIMIT_S,
        )
        rows.extend(node_rows(seen.access, raw, look))
    return tuple(rows), names[0]


async def _job(
    wiring: Wiring, runner: HurriedRunner, id: str, mine: Sequence[Job], hosts: Sequence[str]
) -> tuple[Job | None, Access | None]:
    """The running job to judge by, or a row that says why its nodes are not asked."""
    if id:
        try:
            found = await named_jobs(wiring, id, runner=runner, command="doctor")
        except CannotWork as error:
            node = f"; a node of that name: slurmtop doctor --hosts {id}" if id.isdigit() else ""
            return None, _row(AccessStatus.NOT_ASKED, f"{error}{node}")
        return found[0], None
    running = [job for job in mine if job.state.phase is Phase.RUNNING and job.nodes]
    if hosts:
        running = [job for job in running if hosts[0] in nodes_of(job)]
    return (running[0] if running else None), None


def _row(status: AccessStatus, why: str, *, source: str = "nodes") -> Access:
    return Access(group=Group.NODES, source=source, status=status, why=why)


def _first_seen(tried: Sequence[WayTried], names: Sequence[str]) -> WayTried | None:
    """What the first node told by the best way: the rows about a node are one node's."""
    order = list(Way)
    found = [one for one in tried if one.access is not None and one.host == names[0]]
    found = found or [one for one in tried if one.access is not None]
    return min(found, key=lambda one: order.index(one.way)) if found else None


class Progress:
    """What is being waited for, on a terminal's standard error; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def now(self, text: str) -> None:
        self._write(f"\r\x1b[Kslurmtop: {text} ...")

    def over(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._shown:
            with contextlib.suppress(OSError, ValueError):
                print(text, end="", file=sys.stderr, flush=True)


def _title(wiring: Wiring) -> str:
    cluster = f", cluster {visible(wiring.cluster)}" if wiring.cluster else ""
    at = f"{wiring.clock.now().astimezone():%Y-%m-%d %H:%M}"
    if not wiring.live:
        who = _whose(wiring)
        of = f" of {visible(who.name)}" if who is not None else ""
        return f"slurmtop {__version__}: a recording{of}{cluster}, {at}"
    name = visible(socket.gethostname())
    return f"slurmtop {__version__}: {visible(wiring.who.name)} on {name}{cluster}, {at}"


def _document(wiring: Wiring, found: Findings, rows: Sequence[Access]) -> dict[str, object]:
    who = _whose(wiring)
    return {
        "schema": DOCTOR_SCHEMA,
        "slurmtop": __version__,
        "cluster": wiring.cluster or None,
        "user": None if who is None else who.name,
        "uid": None if who is None else who.uid,
        "machine": socket.gethostname() if wiring.live else None,
        "at": wiring.clock.now().isoformat(),
        "job": found.job,
        "node": found.host,
        "rows": [row_dict(one) for one in rows],
    }


def _width() -> int:
    """The terminal's width, at most 120; 80 in a pipe, never less than 60."""
    try:
        return min(120, max(60, os.get_terminal_size(1).columns))
    except OSError:
        return 80
