"""Saving what is known of a suspect before it is ended: which jobs those are, and how."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from slurmtop.cli.bundles import ask_job, job_manifest
from slurmtop.cli.job_answer import door_of, settings_for_save
from slurmtop.cli.wiring import BUNDLES, Wiring, private_state_folder
from slurmtop.collect.bundle import CannotSave, Found, save_bundle
from slurmtop.collect.clock import cancel_and_wait, spawn, within
from slurmtop.collect.job_triage import Door
from slurmtop.collect.log_facts import log_paths, read_log_facts
from slurmtop.config import Config
from slurmtop.control.actions import Kind, Saving
from slurmtop.control.save_first import LIMIT_S, Kept, SaveFirst
from slurmtop.model.facts import LogFacts, LogStatus
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.model.ports import Clock
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.triage.log_steps import step_behind, written_at

#: A log that was not written to for so long may belong to a job that hangs.
QUIET_S = 60.0
#: Logs that are looked at for one command.
LOOKED_AT = 8
_LOOK_S = 5.0
_REQUEUES = (Kind.REQUEUE, Kind.REQUEUE_HOLD)


def bundles_folder(environ: Mapping[str, str]) -> Path | None:
    """Where bundles go that nobody named a folder for; None for a user without a home."""
    state = private_state_folder(environ)
    return None if state is None else state / BUNDLES


def save_folder(wiring: Wiring, environ: Mapping[str, str] | None = None) -> str:
    """As :func:`bundles_folder`, and "" for a recording and the demo."""
    folder = bundles_folder(os.environ if environ is None else environ) if wiring.live else None
    return "" if folder is None else str(folder)


def make_save_first(wiring: Wiring, config: Config) -> SaveFirst:
    """Looks at each job once more, nodes and all, and keeps that as a bundle."""
    look = settings_for_save(config)
    door = door_of(wiring)

    async def save(saving: Saving) -> None:
        async def ask(recorded: Door) -> Found:
            answer = await ask_job(recorded, saving.job, look, None, whole=False)
            return answer.found

        saved = await save_bundle(saving.path, door, job_manifest(saving.job, look, config), ask)
        if saved.notes:
            raise CannotSave(f"{saved.path} is not whole: {saved.notes[0]}")

    async def save_first(wanted: Sequence[Saving]) -> Kept:
        tasks = [spawn(save(one), name=f"save job {one.job}") for one in wanted]
        timer = spawn(wiring.clock.sleep(LIMIT_S), name="time limit of saving")
        everything = spawn(_all_done(tasks), name="all is saved")
        try:
            await asyncio.wait((everything, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(everything, timer, *tasks)
        return _kept(wanted, tasks)

    return save_first


async def _all_done(tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.wait(tasks)


def _kept(wanted: Sequence[Saving], tasks: Sequence[asyncio.Task[None]]) -> Kept:
    paths, why = [], []
    for one, task in zip(wanted, tasks, strict=True):
        trouble = _trouble(task)
        if trouble is None:
            paths.append(one.path)
        else:
            why.append(f"job {visible(one.job)}: {visible(trouble)}")
    told = f"what is known could not be saved first: {'; '.join(why)}" if why else None
    return Kept(paths=tuple(paths), trouble=told)


def _trouble(task: asyncio.Task[None]) -> str | None:
    if task.cancelled():
        return f"it took longer than {LIMIT_S:.0f} s"
    error = task.exception()
    if error is None:
        return None
    return str(error) if isinstance(error, CannotSave) else f"slurmtop failed at it: {error!r}"


async def suspects_of(wiring: Wiring, kind: Kind, rows: Sequence[Job]) -> frozenset[JobKey]:
    """Those of ``rows`` of which more should be saved than Slurm keeps.

    A job that failed and is to run again: its log may be overwritten. A running one whose log is
    quiet for a minute, shows an error behind its newest step, or hangs itself. Only logs are looked
    at, of the first :data:`LOOKED_AT` running jobs; Slurm is not asked.
    """
    found = {job.key for job in rows if kind in _REQUEUES and job.state.phase is Phase.FAILED}
    running = [job for job in rows if job.state.phase is Phase.RUNNING][:LOOKED_AT]
    odd = await asyncio.gather(*(_odd(wiring, job) for job in running))
    return frozenset(found | {job.key for job, yes in zip(running, odd, strict=True) if yes})


def not_looked_at(rows: Sequence[Job]) -> tuple[str, ...]:
    """That not all running jobs were looked at, where that is so."""
    left = sum(job.state.phase is Phase.RUNNING for job in rows) - LOOKED_AT
    if left <= 0:
        return ()
    return (
        f"the logs of {LOOKED_AT} running jobs were looked at for what should be saved first, not"
        f" those of {plural(left, 'other')}",
    )


async def _odd(wiring: Wiring, job: Job) -> bool:
    try:
        return await within(
            wiring.clock, _looks_odd(wiring, job), _LOOK_S, name=f"log of job {job.key.id}"
        )
    except TimeoutError:
        return True


async def _looks_odd(wiring: Wiring, job: Job) -> bool:
    logs = [
        await read_log_facts(wiring.runner, label, path)
        for label, path in log_paths(job, None)
        if path is not None
    ]
    if any(log.status is LogStatus.HANGS for log in logs):
        return True
    read = [log for log in logs if log.status is LogStatus.READ]
    return any(_errs(log) for log in read) or _quiet(wiring.clock, read)


def _errs(log: LogFacts) -> bool:
    """An error that the job did not get over, as far as one look tells."""
    return log.late_error is not None or (log.first_error is not None and log.progress is None)


def _quiet(clock: Clock, logs: Sequence[LogFacts]) -> bool:
    if step_behind(logs) is not None:
        return True
    written = written_at(logs)
    return written is not None and (clock.now() - written).total_seconds() >= QUIET_S
