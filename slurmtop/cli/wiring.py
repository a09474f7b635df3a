"""Where rooms are put together: runner, clock, cluster and person, for every subcommand."""

import os
import shutil
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from slurmtop.cli.early import EarlyChild, EarlyRunner, first_command, start_early
from slurmtop.cli.errors import CannotWork, UsageError
from slurmtop.cli.node_ways import NodeWays
from slurmtop.cli.options import Options
from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.env import wanted_clusters
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.nodes.many import read_many
from slurmtop.collect.nodes.runner import NodeRunner
from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder
from slurmtop.collect.recording import RecordingExists, RecordingRunner
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.squeue import INTERVAL_S, QueueSource
from slurmtop.collect.syslog_line import send_line
from slurmtop.collect.who import Who, current_user
from slurmtop.config import (
    SITE_PATH,
    Config,
    ConfigError,
    NodeAccess,
    config_path,
    load_config,
)
from slurmtop.control.action_log import ActionLog, AppendOnly
from slurmtop.control.commands import cluster_allowed
from slurmtop.control.execute import Executor
from slurmtop.control.read_back import QueueReadBack
from slurmtop.control.save_first import SaveFirst, save_nothing
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.reach import Reach, Way
from slurmtop.ui.keys import KEYS

NO_SLURM = (
    "Slurm is not here: there is no squeue in PATH; run it on a login node,"
    " or look around with: slurmtop demo"
)
LOG_NAME = "actions.jsonl"
#: The folder beside it for bundles that nobody named a place for.
BUNDLES = "bundles"


class ReplayClock:
    """The time at which what is shown was recorded. It stands still between two answers of the
    queue: ages in a replay are those of then, and nothing ticks that nobody saw. A wait on
    purpose, as between two looks, goes by at once."""

    def __init__(self, real: Clock, replay: ReplayRunner) -> None:
        self._real = real
        self._replay = replay
        self._ahead = timedelta()

    def now(self) -> datetime:
        return self._replay.queue_at + self._ahead

    async def pause(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=max(0.0, seconds))

    def monotonic(self) -> float:
        return self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds)


@dataclass(slots=True, kw_only=True)
class Wiring:
    """Everything a subcommand needs of the world. ``aclose`` ends what still runs.

    ``mark`` is the record mark of the queue; ``live`` is false for a replay and the demo.
    """

    runner: MeteredRunner
    clock: Clock
    who: Who
    cluster: str
    mark: bytes
    live: bool
    closers: list[Callable[[], object]] = field(default_factory=list)
    recording: RecordingRunner | None = None
    data_clock: Clock | None = None
    """The reader's clock, where the cluster's runs ``speed`` times as fast (the demo)."""
    speed: float = 1.0
    replay: ReplayRunner | None = None
    nodes: NodeRunner | None = None
    """What runs commands on nodes, below ``runner``; None for a replay and the demo."""
    node_ways: NodeWays | None = None

    def expect(self, job: str, hosts: Iterable[str]) -> None:
        """``job`` (its raw number) runs on ``hosts``, and somebody is about to look there."""
        if self.nodes is not None:
            self.nodes.expect(job, hosts)

    def reach(self, host: str) -> Reach | None:
        """What came of the last tries to get onto ``host``; None before the first."""
        return None if self.nodes is None else self.nodes.reach(host)

    def try_again(self, host: str) -> None:
        """A person asks for ``host`` now, whatever it said before."""
        if self.nodes is not None:
            self.nodes.try_again(host)

    def way_to_nodes(self) -> str:
        """``ssh``, ``openssh``, ``srun``; empty while it is not known."""
        way = None if self.nodes is None else self.nodes.way
        return "" if way is None else way.value

    def single_ways(self, config: Config) -> Mapping[Way, Runner]:
        """A runner for each way onto nodes that the settings allow, closed with the wiring."""
        if self.node_ways is None:
            return {}
        ways = self.node_ways.single(config)
        self.closers.extend(runner.aclose for runner in ways.values())
        return ways

    def is_here(self, host: str) -> bool:
        """Is ``host`` the machine that slurmtop runs on?"""
        return self.node_ways is not None and self.node_ways.is_here(host)

    @property
    def recorded_at(self) -> datetime | None:
        """When what is shown was recorded; None where it is not from a recording."""
        return None if self.replay is None else self.replay.queue_at

    async def aclose(self) -> None:
        """End every child, then write the rest of the recording."""
        for close in reversed(self.closers):
            result = close()
            if hasattr(result, "__await__"):
                await result

    def queue_source(
        self, *, all_users: bool, user: str | None = None, interval_s: float = INTERVAL_S
    ) -> QueueSource:
        """The queue of the person (default), of one ``user``, or of everybody."""
        other = user if user != self.who.name else None
        return QueueSource(
            self.runner,
            self.clock,
            cluster=self.cluster,
            user=other,
            all_users=all_users,
            me=self.who,
            mark=self.mark,
            interval_s=interval_s,
        )


def load_settings(options: Options, environ: Mapping[str, str]) -> Config:
    """The settings of site and person, with the options of the command line on top."""
    path = Path(options.config) if options.config is not None else _own_config(environ)
    try:
        config = load_config(
            path,
            site_path=SITE_PATH,
            action_ids=frozenset(key.id for key in KEYS),
            must_exist=options.config is not None,
        )
    except ConfigError as error:
        raise CannotWork(f"{error}; correct it, or name another file with --config") from error
    return replace(
        config,
        theme=options.theme or config.theme,
        read_only=options.read_only or config.read_only,
        read_only_from="--read-only" if options.read_only else config.read_only_from,
        all_users=options.all_users or config.all_users,
        **_node_access(options, config),
    )


def _node_access(options: Options, config: Config) -> dict[str, Any]:
    """``--node-access`` stands above the settings, but opens nothing that they close."""
    if options.node_access is None or config.node_access is NodeAccess.OFF:
        return {}
    return {"node_access": NodeAccess(options.node_access), "node_access_from": "--node-access"}


def _own_config(environ: Mapping[str, str]) -> Path | None:
    try:
        return config_path(environ, Path.home())
    except RuntimeError:
        # A user without an entry in the password database has no home.
        return None


def cluster_of(options: Options, environ: Mapping[str, str]) -> str:
    """The one cluster to ask: of ``--cluster``, else of ``SLURM_CLUSTERS``, else the local one."""
    if options.cluster is not None:
        if not cluster_allowed(options.cluster):
            raise UsageError("--cluster wants the name of one cluster; see slurmtop --help")
        return options.cluster
    named = wanted_clusters(environ)
    if len(named) > 1 or named == ("all",):
        raise UsageError(
            f"SLURM_CLUSTERS names several clusters ({', '.join(named)}):"
            " choose one with --cluster NAME"
        )
    if named and not cluster_allowed(named[0]):
        raise UsageError("SLURM_CLUSTERS holds no cluster name: choose one with --cluster NAME")
    return named[0] if named else ""


def open_wiring(
    options: Options,
    environ: Mapping[str, str],
    *,
    early_queue: bool = False,
    all_users: bool = False,
    config: Config | None = None,
) -> Wiring:
    """Build runner and clock as asked. Starts nothing but, with ``early_queue``, the first
    questions of the screen. Without ``config`` the settings are read when a node is asked.

    :class:`CannotWork` where Slurm is not here, or a folder cannot be used.
    """
    cluster = cluster_of(options, environ)
    who = current_user()
    clock: Clock = SystemClock()
    if options.replay is not None:
        return _replay(options.replay, clock, who, cluster)
    if shutil.which("squeue", path=environ.get("PATH", os.defpath)) is None:
        raise CannotWork(NO_SLURM)
    mark = new_record_mark()
    local = LocalRunner(clock, environ)
    ways = NodeWays(
        local,
        clock,
        environ,
        who,
        cluster=cluster,
        settings=lambda: load_settings(options, environ) if config is None else config,
        note=lambda argv: metered.beside(argv),
        folder=private_state_folder(environ),
    )
    nodes = ways.runner()
    closers: list[Callable[[], object]] = [local.aclose, nodes.aclose]
    inner: Runner = nodes
    if early_queue:
        early = EarlyRunner(inner, _early(environ, clock, cluster, who, mark, all_users))
        inner = early
        closers.append(early.end)
    recording = None
    if options.record is not None:
        recording = _recording(options.record, inner, clock, mark, who)
        inner = recording
        closers.append(recording.aclose)
    metered = MeteredRunner(inner, clock)
    return Wiring(
        runner=metered,
        clock=clock,
        who=who,
        cluster=cluster,
        mark=mark,
        live=True,
        closers=closers,
        recording=recording,
        nodes=nodes,
        node_ways=ways,
    )


def _replay(folder: str, clock: Clock, who: Who, cluster: str) -> Wiring:
    try:
        replay = ReplayRunner(folder)
    except (OSError, ValueError) as error:
        raise CannotWork(f"cannot replay {folder}: {_why(error)}") from error
    shifted = ReplayClock(clock, replay)
    return Wiring(
        runner=MeteredRunner(replay, shifted),
        clock=shifted,
        # Own is what was the recording person's own, whoever looks at it now.
        who=replay.who or who,
        cluster=cluster,
        mark=replay.mark,
        live=False,
        replay=replay,
    )


def _recording(folder: str, inner: Runner, clock: Clock, mark: bytes, who: Who) -> RecordingRunner:
    try:
        return RecordingRunner(inner, PrivateFolder(folder), clock=clock, mark=mark, who=who)
    except (OSError, UnsafeFolder, RecordingExists) as error:
        raise CannotWork(f"cannot record into {folder}: {_why(error)}") from error


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


def _early(
    environ: Mapping[str, str],
    clock: Clock,
    cluster: str,
    who: Who,
    mark: bytes,
    all_users: bool,
) -> list[EarlyChild]:
    """The queue, and the cluster's name: what a first screen shows."""

    def queue(runner: Runner) -> Coroutine[Any, Any, object]:
        source = QueueSource(runner, clock, cluster=cluster, all_users=all_users, me=who, mark=mark)
        return source.fetch()

    def config(runner: Runner) -> Coroutine[Any, Any, object]:
        return read_cluster_info(runner, cluster=cluster)

    started = (start_early(first_command(ask), environ, clock) for ask in (queue, config))
    return [child for child in started if child is not None]


class _LogFile:
    """The log of actions in its private folder, as the control room wants it."""

    def __init__(self, folder: PrivateFolder) -> None:
        self._folder = folder

    def append_line(self, line: bytes) -> None:
        self._folder.append(LOG_NAME, line + b"\n")


def state_folder(environ: Mapping[str, str]) -> Path:
    """``$XDG_STATE_HOME/slurmtop``, by default ``~/.local/state/slurmtop``."""
    base = environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "slurmtop"


def action_log_path(environ: Mapping[str, str]) -> str | None:
    """Where the log of actions is; None for a user without a home."""
    folder = private_state_folder(environ)
    return None if folder is None else str(folder / LOG_NAME)


def private_state_folder(environ: Mapping[str, str]) -> Path | None:
    """As :func:`state_folder`; None for a user without a home."""
    try:
        return state_folder(environ)
    except RuntimeError:
        return None


def make_executor(
    wiring: Wiring,
    environ: Mapping[str, str],
    *,
    config: Config,
    read_only: bool,
    dry_run: bool,
    save_first: SaveFirst = save_nothing,
) -> Executor:
    """The executor of confirmed actions. A replay is read-only: there is nobody to ask."""

    def open_log() -> AppendOnly:
        return _LogFile(PrivateFolder(state_folder(environ)))

    log = ActionLog(
        open_log,
        who=wiring.who.name,
        uid=wiring.who.uid,
        syslog=send_line if config.syslog else None,
    )
    return Executor(
        wiring.runner,
        wiring.clock,
        log,
        read_only=read_only,
        read_back=QueueReadBack(wiring.runner),
        dry_run=dry_run,
        look_at_nodes=lambda job, hosts: read_many(wiring.runner, wiring.clock, hosts, job=job),
        save_first=save_first,
    )
