"""``slurmtop export``: own jobs and their GPUs as Prometheus text, to stdout or to a file."""

import asyncio
import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from slurmtop.cli.errors import CANNOT_STATUS, FINE, CannotWork
from slurmtop.cli.export_families import Exported, families
from slurmtop.cli.gpu_gather import MOST_JOBS, look_at, on_nodes
from slurmtop.cli.headless import run_to_end
from slurmtop.cli.job_rows import in_order
from slurmtop.cli.options import Options
from slurmtop.cli.prometheus_text import render
from slurmtop.cli.queue_once import fetch_queue
from slurmtop.cli.wiring import Wiring, load_settings, open_wiring
from slurmtop.collect.log_facts import log_paths, read_log_facts
from slurmtop.config import Config
from slurmtop.model.facts import LogFacts, LogStatus
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase

#: A collector runs as another user, so unlike all else that slurmtop writes this one is for all.
_MODE = 0o644


def run(options: Options) -> int:
    """Write the metrics. 1 where the queue cannot be read: ``slurmtop_up`` is then 0, and nothing
    else is told."""
    path = Path(options.textfile) if options.textfile is not None else None
    if path is not None and not path.parent.is_dir():
        raise CannotWork(
            f"--textfile {path}: there is no folder {path.parent}; make it, or name another file"
        )
    if path is not None:
        _check_file(path)
    config = load_settings(options, os.environ)
    wiring = open_wiring(options, os.environ, config=config)
    found, trouble = run_to_end(_run(wiring, config))
    text = render(families(found))
    if path is None:
        sys.stdout.buffer.write(text.encode())
    else:
        replace_file(path, text.encode())
    if trouble:
        print(f"slurmtop: {trouble}", file=sys.stderr)
        return CANNOT_STATUS
    return FINE


async def _run(wiring: Wiring, config: Config) -> tuple[Exported, str]:
    try:
        return await _gather(wiring, config)
    finally:
        await wiring.aclose()


async def _gather(wiring: Wiring, config: Config) -> tuple[Exported, str]:
    """What is told, and what could not be found out ("": nothing)."""
    try:
        own = (await fetch_queue(wiring, all_users=False)).value.rows
    except CannotWork as error:
        return Exported(now=wiring.clock.now(), jobs=None), str(error)
    everybody: Sequence[Job] | None = None
    trouble = ""
    if config.all_users:
        try:
            everybody = (await fetch_queue(wiring, all_users=True)).value.rows
        except CannotWork as error:
            trouble = str(error)
    running = [job for job in in_order(own) if job.state.phase is Phase.RUNNING]
    on_gpus = [job for job in running if on_nodes(job)]
    gpus, logs = await asyncio.gather(
        look_at(wiring, config, on_gpus[:MOST_JOBS], mine=on_gpus),
        _logs(wiring, running[:MOST_JOBS]),
    )
    found = Exported(
        now=wiring.clock.now(),
        jobs=own,
        everybody=everybody,
        gpus=gpus,
        gpus_left_out=max(0, len(on_gpus) - MOST_JOBS),
        logs=logs,
        logs_left_out=max(0, len(running) - MOST_JOBS),
    )
    return found, trouble


async def _logs(wiring: Wiring, jobs: Sequence[Job]) -> dict[JobKey, LogFacts]:
    """Both ends of the log of each, where it can be read."""

    async def one(job: Job) -> LogFacts | None:
        paths = log_paths(job, None)
        if not paths or paths[0][1] is None:
            return None
        return await read_log_facts(wiring.runner, "stdout", paths[0][1])

    read = await asyncio.gather(*map(one, jobs))
    return {
        job.key: log
        for job, log in zip(jobs, read, strict=True)
        if log is not None and log.status is LogStatus.READ
    }


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of the file at once: a reader sees the old or the new one whole.

    :class:`CannotWork` where that cannot be done; the old file is then as it was. What is there and
    is no regular file (a device, a link, a pipe) is never replaced.
    """
    _check_file(path)
    # A collector reads *.prom only, so it never takes up what is half written.
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), _MODE)
                os.fsync(file.fileno())
            new.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
    except OSError as error:
        raise CannotWork(f"--textfile {path} cannot be written: {error.strerror}") from error


def _check_file(path: Path) -> None:
    """:class:`CannotWork` where ``path`` is there and is no regular file."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CannotWork(f"--textfile {path} cannot be read: {why}") from error
    if stat.S_ISREG(kind):
        return
    # Replacing puts a file in the place of the name: as root, of /dev/null for the whole machine.
    what = (
        "a link, and the link itself would be replaced"
        if stat.S_ISLNK(kind)
        else "a folder"
        if stat.S_ISDIR(kind)
        else "no regular file"
    )
    raise CannotWork(
        f"--textfile {path} is {what}: name a regular file, or leave --textfile away for stdout"
    )
