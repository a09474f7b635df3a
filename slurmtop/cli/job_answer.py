"""The verdict on one job for the commands: from a wiring and options to ``collect.job_triage``."""

import os
from typing import TYPE_CHECKING

from slurmtop.cli.errors import CannotWork
from slurmtop.cli.options import Options
from slurmtop.cli.refining import Refining
from slurmtop.cli.wiring import Wiring, load_settings
from slurmtop.collect.job_triage import Door, triage_job
from slurmtop.collect.live import LookSettings
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.config import Config, NodeAccess
from slurmtop.model.facts import JobFacts
from slurmtop.model.verdict import Verdict

if TYPE_CHECKING:
    from slurmtop.collect.bundle import CannotSave, Saved


def door_of(wiring: Wiring) -> Door:
    """What a triage needs of ``wiring``."""
    return Door(
        runner=wiring.runner,
        clock=wiring.clock,
        who=wiring.who,
        cluster=wiring.cluster,
        mark=wiring.mark,
        expect=wiring.expect,
        reached=wiring.reach,
        replay=wiring.replay,
    )


def look_settings(options: Options, *, once: bool) -> LookSettings:
    """What options and settings allow. ``once``: the nodes of a job that runs are looked at
    whatever its log says."""
    config = load_settings(options, os.environ)
    closed = config.node_access is NodeAccess.OFF
    why_not = "--no-nodes" if options.no_nodes else ""
    if closed:
        where = f", {config.node_access_from}" if config.node_access_from else ""
        why_not = f"the settings say so (node_access: off{where})"
    return LookSettings(
        nodes=not (options.no_nodes or closed),
        why_not=why_not,
        stacks=not options.no_stacks,
        always=options.look,
        once=once,
        sudo=config.node_sudo,
        tools=tool_words(config.stacks),
    )


def settings_for_save(config: Config) -> LookSettings:
    """What is asked of the nodes for a bundle that is made before a job is ended."""
    closed = config.node_access is NodeAccess.OFF
    return LookSettings(
        nodes=not closed,
        why_not="the settings say so (node_access: off)" if closed else "",
        once=True,
        sudo=config.node_sudo,
        tools=tool_words(config.stacks),
    )


async def answer(
    wiring: Wiring,
    job_id: str,
    settings: LookSettings,
    refining: Refining,
    *,
    whole: bool = False,
) -> tuple[JobFacts, Verdict]:
    """Facts and verdict; ``refining`` hears of the answers before. Closes nothing."""
    return await triage_job(door_of(wiring), job_id, settings, refining.news, whole=whole)


async def answer_saved(
    wiring: Wiring, job_id: str, settings: LookSettings, refining: Refining, options: Options
) -> "tuple[JobFacts, Verdict, Saved | CannotSave]":
    """As :func:`answer`, kept in the folder of ``--save``. Raises :class:`CannotWork` where it
    cannot be saved there; nobody was asked then."""
    # An answer that nobody saves comes a quarter of a second sooner without these.
    from slurmtop.cli.bundles import Answer, ask_and_save, ask_job, job_manifest
    from slurmtop.collect.bundle import CannotSave

    config = load_settings(options, os.environ)
    about = job_manifest(job_id, settings, config, whole=options.whole)

    async def ask(door: Door) -> Answer:
        return await ask_job(door, job_id, settings, refining.news, whole=options.whole)

    try:
        done, saved = await ask_and_save(door_of(wiring), about, options.save or "", ask)
    except CannotSave as error:
        raise CannotWork(str(error)) from error
    assert done.facts is not None
    return done.facts, done.verdict, saved
