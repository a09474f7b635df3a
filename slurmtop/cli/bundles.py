"""Bundles at the command line: what ``triage --save`` keeps, and what ``triage BUNDLE`` says."""

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from slurmtop.cli.job_rows import recorded_text
from slurmtop.collect.bundle import CannotSave, Found, Saved, is_half, save_bundle
from slurmtop.collect.bundle_form import JOB, PATHS, Manifest, same_verdict
from slurmtop.collect.bundle_open import Bundle
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.job_triage import Door, OnNews, triage_job
from slurmtop.collect.live import LookSettings
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.config import Config
from slurmtop.model.facts import JobFacts
from slurmtop.model.text import fit, visible
from slurmtop.model.trace import Traces
from slurmtop.model.verdict import State, Verdict, verdict_dict
from slurmtop.parse.mask import mask_json, mask_told
from slurmtop.triage.live.class_lines import class_lines
from slurmtop.triage.report import report_lines

_REPORT_WIDTH = 100
#: Of notes, which anybody may have written.
_NOTES_SHOWN = 12
_NOTE_WIDTH = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a look came to: of a job its facts, of files what was read."""

    verdict: Verdict
    facts: JobFacts | None = None
    traces: Traces | None = None

    @property
    def found(self) -> Found:
        live = self.facts.live if self.facts is not None else None
        where = class_lines(live, width=_REPORT_WIDTH)
        # Masked before it is broken into lines: half a secret is known for none.
        report = report_lines(mask_told(self.verdict), width=_REPORT_WIDTH, where=where)
        return Found(verdict=self.verdict, facts=self.facts, report=report)


Ask = Callable[[Door], Awaitable[Answer]]


def job_manifest(
    job_id: str, look: LookSettings, config: Config, *, whole: bool = False
) -> Manifest:
    """What a bundle of a job is of. Where tools usually lie hangs on this machine: it is kept."""
    if look.tools is None:
        look = replace(look, tools=tool_words())
    return Manifest(
        kind=JOB, asked=(job_id,), look=look, whole=whole, settings=settings_told(config)
    )


def paths_manifest(paths: Sequence[str], *, whole: bool) -> Manifest:
    """What a bundle of files is of."""
    return Manifest(kind=PATHS, asked=tuple(paths), whole=whole)


def settings_told(config: Config) -> dict[str, object]:
    """The settings on which a verdict may hang. None of them is a secret, all are masked."""
    return {
        "node_access": config.node_access.value,
        "node_access_from": config.node_access_from,
        "node_sudo": config.node_sudo,
        "stacks": config.stacks,
        "dcgm": config.dcgm,
    }


async def ask_job(
    door: Door, job_id: str, look: LookSettings, on_news: OnNews | None, *, whole: bool
) -> Answer:
    """The verdict on a job, through ``door``."""
    facts, verdict = await triage_job(door, job_id, look, on_news, whole=whole)
    return Answer(verdict=verdict, facts=facts)


async def ask_paths(door: Door, paths: Sequence[str], *, whole: bool) -> Answer:
    """The verdict on files, through ``door``."""
    # What parses logs is not needed for a job.
    from slurmtop.collect.left_behind import read_traces
    from slurmtop.triage.judge import explain_traces

    traces = await read_traces(door.runner, paths, whole=whole)
    return Answer(verdict=explain_traces(traces, now=door.clock.now()), traces=traces)


async def ask_and_save(
    door: Door, about: Manifest, to: str, ask: Ask
) -> tuple[Answer, Saved | CannotSave]:
    """The answer, and where it was saved or why not.

    Raises :class:`CannotSave` where what stands at that place forbids it: then nobody was asked. A
    place that cannot be written costs the bundle, not the answer.
    """
    answers: list[Answer] = []

    async def look(recorded: Door) -> Found:
        answer = await ask(recorded)
        answers.append(answer)
        return answer.found

    try:
        saved: Saved | CannotSave = await save_bundle(to, door, about, look)
    except asyncio.CancelledError:
        _tell(_broken_off(to))
        raise
    except CannotSave as error:
        why = error.__cause__
        if not answers and (isinstance(why, FileExistsError) or not isinstance(why, OSError)):
            raise
        saved = error
        if not answers:
            answers.append(await ask(door))
    return answers[0], saved


def _broken_off(to: str) -> str:
    if not is_half(to):
        return f"not saved: broken off before it was whole: {to}"
    return f"not saved whole: broken off; slurmtop triage {shlex.quote(to)} judges what is in it"


def saved_line(saved: Saved) -> str:
    """``saved: /home/anna/b (1.2 MB)``."""
    size = saved.size / 1e6
    amount = f"{size:,.1f} MB" if size >= 0.1 else f"{saved.size:,} bytes"
    return f"saved: {visible(saved.path)} ({amount})"


def tell_saved(saved: Saved | CannotSave) -> bool:
    """Say on standard error what became of it; is all of it saved?"""
    if isinstance(saved, CannotSave):
        _tell(f"not saved: {saved}")
        return False
    _tell(saved_line(saved))
    for note in saved.notes:
        _tell(f"not in the bundle: {note}")
    return True


async def judge_again(bundle: Bundle) -> Answer:
    """The verdict that comes out of a bundle, by the same flow that looked then. Where saving it
    was broken off while a hang was suspected, what came before is no proof that the job is well.

    Raises :class:`~slurmtop.collect.bundle_form.BundleError`.
    """
    manifest, door = bundle.manifest, bundle.door(SystemClock())
    if manifest.kind != JOB:
        return await ask_paths(door, manifest.asked, whole=manifest.whole)
    (job_id,) = manifest.asked
    told: list[Answer] = []

    def news(facts: JobFacts, verdict: Verdict) -> None:
        told.append(Answer(verdict=verdict, facts=facts))

    answer = await ask_job(door, job_id, manifest.look, news, whole=manifest.whole)
    suspected = bool(told) and told[-1].verdict.state is not State.HEALTHY
    well = answer.verdict.state is State.HEALTHY
    return told[-1] if well and suspected and not manifest.finished else answer


def tell_bundle(bundle: Bundle, verdict: Verdict) -> None:
    """Say on standard error what it is, what is wrong with it, and whether its own verdict was
    another one."""
    manifest = bundle.manifest
    parts = [
        f"from a bundle of {recorded_text(manifest.made_at)}" if manifest.made_at else "bundle"
    ]
    if manifest.login_host:
        parts.append(f"made on {manifest.login_host}")
    if manifest.who is not None:
        parts.append(f"by {manifest.who.name}")
    parts.append(f"with slurmtop {manifest.version or '?'}")
    _tell(" ".join(parts))
    notes = (*bundle.notes, *(f"not in it: {note}" for note in manifest.notes))
    for note in notes[:_NOTES_SHOWN]:
        _tell(fit(visible(note), _NOTE_WIDTH).rstrip() if len(note) > _NOTE_WIDTH else note)
    if len(notes) > _NOTES_SHOWN:
        _tell(f"and {len(notes) - _NOTES_SHOWN} notes more: see its manifest.json")
    now = mask_json(verdict_dict(verdict))
    if manifest.finished and not same_verdict(bundle.verdict, now):
        _tell(_own_words(bundle))


def _own_words(bundle: Bundle) -> str:
    said = bundle.verdict if isinstance(bundle.verdict, dict) else {}
    state, summary = said.get("state"), said.get("summary")
    if not isinstance(state, str) or not isinstance(summary, str):
        return "the verdict that was saved with it cannot be read: it may have been another one"
    return f"the verdict that was saved with it was another one: {state}: {summary}"


def _tell(text: str) -> None:
    print(f"slurmtop: {visible(text)}", file=sys.stderr)
