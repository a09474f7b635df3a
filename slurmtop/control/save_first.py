"""What is known of a suspect is saved before it is ended: the evidence dies with the job.

Which jobs are suspects stands in the :class:`~slurmtop.control.actions.Asker`. How a bundle is made
is the business of whoever hands in a :class:`SaveFirst`; where it goes is planned here, so that the
dialog can tell. A save that fails, or takes too long, is told, and nothing is done until the person
(or an option) has said that it may be done without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from slurmtop.control.actions import Action, Asker, Saving, Target
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.model.verdict import State, Verdict

#: Bundles for one action: all are made at once, each opens its ways to its own nodes.
AT_MOST = 4
#: How long all of them together are waited for.
LIMIT_S = 30.0
#: What a person is told beforehand.
ABOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """``paths`` of what was saved; ``trouble`` is a sentence where not all of it was."""

    paths: tuple[str, ...] = ()
    trouble: str | None = None


class SaveFirst(Protocol):
    """Saves what is known of some jobs, all at once, within :data:`LIMIT_S`. Never raises."""

    async def __call__(self, wanted: Sequence[Saving]) -> Kept: ...


async def save_nothing(wanted: Sequence[Saving]) -> Kept:
    """Where nobody handed in how to save."""
    return Kept(trouble="what is known cannot be saved here")


def is_suspect(verdict: Verdict) -> bool:
    """Does the last verdict on a job say that there is something to find out?"""
    return verdict.state in (State.HUNG, State.FAILED, State.SLOW)


def savings(targets: Sequence[Target], asker: Asker) -> tuple[Saving, ...]:
    """The bundles to be made before ``targets`` are ended or requeued, at most :data:`AT_MOST`."""
    if not asker.save_folder:
        return ()
    when = f"{asker.now:%Y%m%dT%H%M%SZ}"
    wanted = [target for target in targets if _suspect(target, asker)]
    return tuple(
        Saving(
            key=target.key,
            job=target.key.id,
            path=f"{asker.save_folder.rstrip('/')}/{_plain(target.key.id)}-{when}",
        )
        for target in wanted[:AT_MOST]
    )


def saving_warnings(targets: Sequence[Target], asker: Asker) -> list[str]:
    """That not of all suspects something is saved, where that is so."""
    left = sum(_suspect(target, asker) for target in targets) - AT_MOST
    if left <= 0 or not asker.save_folder:
        return []
    return [
        f"what is known is saved first of {AT_MOST} suspects only, not of {plural(left, 'other')}"
        " (slurmtop triage JOB --save DIR does it for one)"
    ]


def saving_lines(action: Action) -> list[str]:
    """What the dialog tells of it, as sentences without an end; [] where nothing is saved."""
    if not action.saves:
        return []
    first, *others = action.saves
    more = f" and {len(others)} more" if others else ""
    return [f"saves what is known first: {visible(first.path)}{more}, about {ABOUT_S} s"]


def _suspect(target: Target, asker: Asker) -> bool:
    if target.step is not None or (target.tasks and target.covers != 1):
        # A step ends alone; what waits has left nothing.
        return False
    return not asker.suspects.isdisjoint({target.key, *target.parts})


def _plain(id: str) -> str:
    """The id as the name of a folder: an id has no other signs anyway."""
    return "".join(sign if sign.isalnum() or sign in "_+" else "-" for sign in id)[:40]
