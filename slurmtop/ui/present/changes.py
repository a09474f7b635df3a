"""How it is told that the jobs of an action are no longer what was shown. Pure."""

from collections import Counter

from slurmtop.control.changes import Change, ChangeKind
from slurmtop.model.job import Job
from slurmtop.model.text import visible
from slurmtop.ui.present.job import state_words
from slurmtop.ui.present.spans import Line, cut_line

SHOWN_CHANGES = 3


def change_text(change: Change) -> str:
    """One sentence without its full stop."""
    name, job = visible(change.key.id), change.job
    if change.kind is ChangeKind.STARTED and change.some:
        base = name.partition("_")[0]
        return f"some of the waiting tasks of {base} have started meanwhile"
    if change.kind is ChangeKind.STARTED:
        where = f" on {visible(job.nodes)}" if job is not None and job.nodes else ""
        return f"{name} has started meanwhile{where}"
    return f"{name} {_SAYS[change.kind]}{_state(change.kind, job)}"


def _state(kind: ChangeKind, job: Job | None) -> str:
    if job is None or kind not in (ChangeKind.ENDED, ChangeKind.REVIVED):
        return ""
    return f": {state_words(job.state)}"


_SAYS = {
    ChangeKind.ENDED: "has ended meanwhile",
    ChangeKind.ENDING: "is ending by itself meanwhile",
    ChangeKind.LEFT: "has left the queue meanwhile",
    ChangeKind.ANOTHER_RUN: "is another run now, not the one shown",
    ChangeKind.STOPPED_RUNNING: "waits in the queue again",
    ChangeKind.REVIVED: "is no longer over",
}


def change_lines(changes: tuple[Change, ...], targets: int, width: int) -> tuple[Line, ...]:
    """The news while the dialog is open, at most :data:`SHOWN_CHANGES` lines."""
    if not changes:
        return ()
    if len(changes) <= SHOWN_CHANGES:
        return tuple(cut_line(((f"! {change_text(each)}", "bad"),), width) for each in changes)
    kinds = Counter(change.kind for change in changes)
    words = ", ".join(f"{count} {_KIND_WORDS[kind]}" for kind, count in kinds.most_common())
    return (cut_line(((f"! meanwhile, of {targets}: {words}", "bad"),), width),)


_KIND_WORDS = {
    ChangeKind.ENDED: "have ended",
    ChangeKind.ENDING: "are ending",
    ChangeKind.LEFT: "left the queue",
    ChangeKind.ANOTHER_RUN: "are another run now",
    ChangeKind.STARTED: "have started",
    ChangeKind.STOPPED_RUNNING: "wait again",
    ChangeKind.REVIVED: "are no longer over",
}
