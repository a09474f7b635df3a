"""What scancel said, job by job. Only a refusal means something; silence means nothing."""

from slurmtop.control.actions import Target
from slurmtop.control.outcome import Said
from slurmtop.model.ports import Completed
from slurmtop.parse.slurm.scancel import ScancelKind, ScancelSays, parse_scancel
from slurmtop.triage.subject import clause

_REFUSED = (ScancelKind.HET_COMPONENT, ScancelKind.NEEDS_CRON, ScancelKind.BAD_SIGNAL)
_UNSURE = (ScancelKind.CONTROLLER_DOWN, ScancelKind.BUSY, ScancelKind.OTHER)


def said_of(target: Target, done: Completed, *, alone: bool) -> Said:
    """What one call of scancel said about ``target``.

    ``alone`` is true when the call named no other job: a status without a line then means
    this one. That a job is unknown or over is left to the read-back, which sees it itself.
    """
    spoken = parse_scancel(done.rc, done.stderr)
    own = next((item for item in spoken if _about(item, target)), None)
    if own is not None:
        return _said(own)
    whole = next((item for item in spoken if item.job is None), None)
    if whole is None:
        return Said()
    if alone or whole.kind in _UNSURE:
        return _said(whole)
    return Said()


def _about(item: ScancelSays, target: Target) -> bool:
    if item.job is None:
        return False
    if item.job in target.ids:
        return True
    base, _, rest = item.job.partition("_")
    # Tasks are joined into one argument, so that a bracket speaks for all of them.
    return base == target.base and (not rest or not target.tasks or rest.startswith("["))


def _said(item: ScancelSays) -> Said:
    sentence = clause(item.sentence)
    if item.kind is ScancelKind.DENIED:
        return Said(denied=f"denied: {sentence}")
    if item.kind in _REFUSED:
        return Said(refused=f"refused: {sentence}")
    return Said(unsure=sentence) if item.kind in _UNSURE else Said()
