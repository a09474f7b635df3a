"""From what stands under the cursor of the Why tab to what it opens.

A proof opens the log it stands in. A step that changes something goes through the dialog of its
kind, for the job that is shown; one that only looks opens what slurmtop shows itself, and any
other command is copied. No command of a verdict is ever run as it stands.
"""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from slurmtop.control.actions import Kind, Refusal
from slurmtop.control.plan import read_only_text
from slurmtop.control.wish import Wish, wish_of
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.text import visible
from slurmtop.model.verdict import Evidence, Missing, NextStep, SourceFate, Verdict
from slurmtop.parse.mask import mask_text
from slurmtop.parse.slurm.ids import key_of, looks_like_job_id, parse_job_id
from slurmtop.ui import choices_flow
from slurmtop.ui.actions_flow import act, refuse
from slurmtop.ui.present.choose import Option
from slurmtop.ui.present.explain import class_lines, is_class
from slurmtop.ui.present.why import Item
from slurmtop.ui.screens.choose import ChooseScreen
from slurmtop.ui.screens.text import TextScreen

if TYPE_CHECKING:
    from slurmtop.ui.screens.job_keys import JobKeys

_SEEN_ON_NODES = frozenset({"stack", "process", "telemetry"})
_HELP = "up, down, enter, or a number: what changes something is asked once more. esc = no"
#: Kinds that leave something open, which is chosen first.
_CHOOSES: dict[Kind, Callable[..., None]] = {Kind.REQUEUE: choices_flow.requeue}


def open_item(screen: "JobKeys", item: Item) -> None:
    """Do what ``enter`` does with a proof, a source that did not answer, or a step."""
    if isinstance(item, Evidence):
        _open_proof(screen, item)
    elif isinstance(item, Missing | SourceFate):
        _copy(screen, item.command or "")
    else:
        do_step(screen, item)


def choose_step(screen: "JobKeys", verdict: Verdict) -> None:
    """Let a person choose one of the verdict's next steps; read-only takes that away as a whole."""
    if screen.services.read_only:
        from_what = screen.services.config.read_only_from
        sentence = read_only_text(from_what, "act on a verdict")
        refuse(screen.tool, "Act on the verdict", Refusal(sentence))
        return
    steps = verdict.next
    if not steps:
        return
    options = [
        Option(str(at), step.label, f"{_changes(step)}{step.command}")
        for at, step in enumerate(steps)
    ]

    def chosen(value: str | None) -> None:
        if value is not None:
            do_step(screen, steps[int(value)])

    title = f"Act on the verdict on job {visible(verdict.job or '')}"
    screen.tool.push_screen(ChooseScreen(title, visible(verdict.summary), options, _HELP), chosen)


def _changes(step: NextStep) -> str:
    return "" if step.effect == "read" else "changes something: "


def _open_proof(screen: "JobKeys", item: Evidence) -> None:
    if item.family in _SEEN_ON_NODES:
        # It was read on a node: no file of that name here holds it.
        _copy(screen, item.text)
        return
    if not item.source.startswith("/"):
        where = visible(item.source)
        screen.say(f"no file to open: {where} said it")
        return
    screen.open_log(item.source, line=item.line, offset=item.offset)
    if item.line is None and item.offset is None:
        screen.say("where in this file the proof stands is not known: / searches for it")


def do_step(screen: "JobKeys", step: NextStep) -> None:
    """Open what the step names, ask for what it changes, or copy its command."""
    if step.effect == "write":
        wish = wish_of(step.command)
        if wish is not None and _is_ours(screen, wish):
            _act(screen, wish)
        else:
            _copy(screen, step.command, " (slurmtop does not run this one)")
    elif not _look(screen, step.command):
        _copy(screen, step.command)


def _is_ours(screen: "JobKeys", wish: Wish) -> bool:
    """Is the wish for the very job that is shown?"""
    key, job = screen.key, screen.job
    return wish.job in _names(key, job) and wish.cluster in ("", key.cluster)


def _names(key: JobKey, job: Job | None) -> set[str]:
    """Every way in which a command may name exactly this job."""
    names = {key.id}
    if job is not None:
        names.add(job.id.text)
        if job.id.task is None and job.id.tasks is None:
            names.add(job.id.base)
    return names


def _act(screen: "JobKeys", wish: Wish) -> None:
    flow = _CHOOSES.get(wish.kind)
    if flow is not None:
        flow(screen.tool, screen.selection())
    else:
        act(screen.tool, screen.selection(), wish.kind, details=wish.details)


def _look(screen: "JobKeys", command: str) -> bool:
    """Open what a command that only looks names; False where that is nothing of slurmtop's."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    match words:
        case ["slurmtop", "explain", word] if is_class(word):
            shown = TextScreen("What this means", lambda width: class_lines(word, width))
            screen.tool.push_screen(shown)
        case ["slurmtop", "why", job, *_] if looks_like_job_id(job):
            _look_at_job(screen, job)
        case ["less", start, path] if start.startswith("+") and start[1:].isdecimal():
            screen.open_log(path, line=int(start[1:]))
        case ["tail", "-n", _, path] if path.startswith("/"):
            screen.open_log(path)
        case _:
            return False
    return True


def _look_at_job(screen: "JobKeys", text: str) -> None:
    key = key_of(parse_job_id(text), screen.key.cluster)
    if text in _names(screen.key, screen.job):
        screen.tool.action_refresh_now()
        if screen.why.state.live is not None:
            screen.action_look_at_nodes()
    else:
        screen.tool.open_job(key)


def _copy(screen: "JobKeys", command: str, besides: str = "") -> None:
    text = mask_text(command)
    screen.tool.copy_to_clipboard(text)
    screen.say(f"copied{besides}: {visible(text)}")
