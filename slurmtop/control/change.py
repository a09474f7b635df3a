"""Plan a change of a job: another time limit, or nodes that it must not get."""

from collections.abc import Iterable, Sequence

from slurmtop.control.actions import Action, Asker, Details, Kind, Refusal, Target
from slurmtop.control.cancel import het_warning
from slurmtop.control.commands import MAX_LIMIT_MINUTES, excluded_after, host_allowed
from slurmtop.control.plan import (
    all_parts,
    ending_confirmation,
    first_refusal,
    ids_text,
    left_out_when_ending,
    loss_warnings,
    make_action,
    make_targets,
    mild_confirmation,
    owner_warnings,
    sort_out,
    typed_confirmation,
    why_nothing,
)
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import clock_text
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts

#: More hosts in one wish are a slip of the hand.
_MAX_HOSTS = 1_024
_LIMIT_VERB = "change the time limit of"
_EXCLUDE_VERB = "exclude nodes from"
_NO_RAISE = "a user may lower the limit of a job that has started, not raise it; an operator may"


def plan_limit(
    jobs: Sequence[Job], asker: Asker, *, minutes: int, known: Iterable[Job] = ()
) -> Action | Refusal:
    """What a time limit of ``minutes`` means for ``jobs``.

    Measured on 22.05: the owner may change the limit of a waiting job both ways, but only
    lower that of one that has started. An update of a het job's leader reaches all its parts.
    """
    refused = first_refusal(jobs, asker, _LIMIT_VERB)
    if refused is not None:
        return refused
    if not 0 < minutes <= MAX_LIMIT_MINUTES:
        return Refusal(
            f"a time limit is 1 to {MAX_LIMIT_MINUTES:,} minutes (a year), not {minutes:,}"
        )

    def left_out(job: Job) -> str | None:
        why = left_out_when_ending(job)
        if why is not None:
            return why
        if job.limit.seconds == minutes * 60:
            return "it has this limit already"
        return _NO_RAISE if _raises(job, minutes) and _may_raise(job, asker) is False else None

    known = tuple(known)
    usable, warnings, reasons = sort_out(jobs, asker, left_out)
    if not usable:
        return why_nothing(jobs, warnings, reasons, _LIMIT_VERB)
    targets = make_targets(usable, known, asker, _LIMIT_VERB)
    if isinstance(targets, Refusal):
        return targets
    reached = all_parts(usable, known)
    warnings.extend(owner_warnings(targets, asker.me))
    warnings.extend(het_warning(target, "get this limit") for target in targets if target.parts)
    warnings.extend(_limit_warnings(reached, asker, minutes))
    ends, unsure = _ended_by(reached, asker, minutes)
    ending = ends + unsure
    if ending:
        keys = {job.key for job in ending}
        hit = [target for target in targets if keys & {target.key, *target.parts}]
        warnings.extend(loss_warnings(hit))
        confirm = typed_confirmation(targets)
    elif any(_started(job) for job in reached) and not asker.rights.operator:
        confirm = ending_confirmation(targets, asker.me)
    else:
        confirm = mild_confirmation(targets, asker.me)
    details = Details(limit_minutes=minutes)
    return make_action(Kind.LIMIT, targets, asker, confirm, warnings, details=details)


def raises_limit(job: Job, minutes: int) -> bool:
    """Would this raise a limit that its owner may only lower, as far as is known?"""
    return _raises(job, minutes) is not False


def _limit_warnings(jobs: Sequence[Job], asker: Asker, minutes: int) -> Iterable[str]:
    ends, unsure = _ended_by(jobs, asker, minutes)
    if ends:
        yield (
            f"{clock_text(minutes * 60)} is not longer than it has run already, so Slurm ends it"
            f" at once: {ids_text(ends)}"
        )
    if unsure:
        yield f"not known how long it has run: it may end at once: {ids_text(unsure)}"
    doubtful = [job for job in jobs if _raises(job, minutes) and _may_raise(job, asker) is None]
    if doubtful:
        yield f"it raises the limit; only Slurm can tell whether you may: {ids_text(doubtful)}"
    blind = [job for job in jobs if _raises(job, minutes) is None and not asker.rights.operator]
    if blind:
        yield f"its limit now is not known; Slurm refuses to raise it: {ids_text(blind)}"
    waiting = [job for job in jobs if not _started(job)]
    if waiting:
        yield "above what its partition or QOS allows, a waiting job would not start"
    lowered = [job for job in jobs if _started(job) and _raises(job, minutes) is False]
    if lowered and not asker.rights.operator:
        yield "once lowered, only an operator can raise it again while the job runs"


def _started(job: Job) -> bool:
    return job.state.phase in (Phase.RUNNING, Phase.SUSPENDED)


def _raises(job: Job, minutes: int) -> bool | None:
    """Is it a raise that a user may not do? None where the limit now is not known."""
    if not _started(job):
        return False
    if job.limit.kind in (LimitKind.UNLIMITED, LimitKind.OVER_A_YEAR):
        return False
    return None if job.limit.seconds is None else minutes * 60 > job.limit.seconds


def _may_raise(job: Job, asker: Asker) -> bool | None:
    rights = asker.rights
    if rights.operator is not False:
        return rights.operator
    # What a coordinator may raise differs between releases.
    coordinator = rights.coordinates is None or job.account in (None, *rights.coordinates)
    return None if coordinator else False


def _ended_by(jobs: Sequence[Job], asker: Asker, minutes: int) -> tuple[list[Job], list[Job]]:
    """Those that have run for so long already, and those of which that is not known."""
    started = [job for job in jobs if _started(job)]
    ends = [
        job
        for job in started
        if job.start is not None and (asker.now - job.start).total_seconds() >= minutes * 60
    ]
    return ends, [job for job in started if job.start is None]


def plan_exclude(
    jobs: Sequence[Job], asker: Asker, *, hosts: Sequence[str], known: Iterable[Job] = ()
) -> Action | Refusal:
    """What it means that waiting ``jobs`` must not get ``hosts`` (names or host lists).

    Slurm replaces the whole list, so that what a job excludes already must be known: it is
    ``excluded_nodes``, where "" is none and None is not known.
    """
    refused = first_refusal(jobs, asker, _EXCLUDE_VERB)
    if refused is not None:
        return refused
    names = read_hosts(hosts)
    if isinstance(names, Refusal):
        return names

    def left_out(job: Job) -> str | None:
        why = left_out_when_ending(job)
        if why is not None:
            return why
        if job.state.phase is not Phase.PENDING:
            return "it has started and keeps its nodes: requeue and hold it, exclude, release it"
        # What is written for the leader of a het job replaces the list of every part.
        lists = [_excluded(part) for part in all_parts([job], known)]
        if any(before is None for before in lists):
            return (
                "not known which nodes it excludes already, and that list would be lost:"
                f" see scontrol show job {visible(job.id.base)}"
            )
        if any(before != lists[0] for before in lists):
            return "its parts exclude different nodes, and one list would replace them all"
        return "it excludes them already" if set(names) <= (lists[0] or set()) else None

    known = tuple(known)
    usable, warnings, reasons = sort_out(jobs, asker, left_out)
    if not usable:
        return why_nothing(jobs, warnings, reasons, _EXCLUDE_VERB)
    targets = make_targets(usable, known, asker, _EXCLUDE_VERB)
    if isinstance(targets, Refusal):
        return targets
    warnings.extend(owner_warnings(targets, asker.me))
    warnings.extend(het_warning(target, "exclude them") for target in targets if target.parts)
    warnings.extend(_exclude_warnings(targets, usable, names))
    confirm = mild_confirmation(targets, asker.me)
    details = Details(exclude=names)
    return make_action(Kind.EXCLUDE, targets, asker, confirm, warnings, details=details)


def _exclude_warnings(
    targets: Sequence[Target], jobs: Sequence[Job], names: Sequence[str]
) -> Iterable[str]:
    for name in names:
        already = [job for job in jobs if name in (_excluded(job) or ())]
        if already:
            yield f"{name} is excluded already: {ids_text(already)}"
    lists = {excluded_after(target, names) for target in targets}
    if any(target.excluded_nodes for target in targets):
        yield f"what they exclude already stays excluded: {'; '.join(sorted(lists)[:3])}"


def read_hosts(hosts: Sequence[str]) -> tuple[str, ...] | Refusal:
    """The plain names in ``hosts``, each once: ``gpu[03-04]`` is two."""
    names: dict[str, None] = {}
    for text in hosts:
        try:
            found = expand_hosts(text, limit=_MAX_HOSTS)
        except HostlistError as error:
            return Refusal(f"no list of hosts: {visible(str(error))}")
        names.update(dict.fromkeys(found))
    bad = [name for name in names if not host_allowed(name)]
    if bad:
        return Refusal(f"not the name of a node: {visible(bad[0][:80])}")
    if not names:
        return Refusal("no node is named to exclude")
    if len(names) > _MAX_HOSTS:
        return Refusal(f"more than {_MAX_HOSTS:,} nodes at once are not excluded")
    return tuple(names)


def _excluded(job: Job) -> set[str] | None:
    """What it excludes already; None where that is not known or cannot be read."""
    if job.excluded_nodes is None:
        return None
    try:
        names = expand_hosts(job.excluded_nodes)
    except HostlistError:
        return None
    return set(names) if all(host_allowed(name) for name in names) else None
