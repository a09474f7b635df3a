"""A whole node: all of it stands still, or it does not answer and Slurm misses it as well."""

from collections.abc import Iterable

from slurmtop.model.text import visible
from slurmtop.model.verdict import Culprit, Evidence, Missing, State
from slurmtop.triage.live.finding import (
    LiveFinding,
    Weight,
    node_evidence,
    process_evidence,
    ranks_of,
    waiting_proof,
)
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.power import draws_power
from slurmtop.triage.live.roles import LONG_QUIET_S, Parts, parts_of
from slurmtop.triage.live.together import apart
from slurmtop.triage.live.view import ProcessView, World, all_stopped

#: Silent nodes that are told one by one.
_LISTED = 4
#: Processes that outlive a freeze, or belong to whoever looks.
_NOT_OF_THE_JOB = ("slurmstepd", "sshd", "slurmd")


def find(world: World) -> Iterable[LiveFinding]:
    parts = parts_of(world)
    if parts.works or world.live.log.new_steps or not world.two or apart(world):
        return
    yield from _frozen(world, parts)
    yield from _silent(world, parts)


def _frozen(world: World, parts: Parts) -> Iterable[LiveFinding]:
    hosts = [host for host in world.others if _stands(world, host)]
    others = [one for one in parts.away if one.host not in hosts]
    if len(hosts) != 1 or not parts.waiting or any(o.doing.act is Act.STOPPED for o in others):
        return
    host = hosts[0]
    here = [one for one in world.ranks if one.host == host]
    slurm = node_evidence(world, host, "Slurm's daemon there does not answer")
    reason = "all its processes of the job are stopped"
    if slurm is not None:
        reason += ", and Slurm's daemon does not answer"
    shown: list[Evidence] = [process_evidence(one.view, f"{one.name} is stopped") for one in here]
    shown = shown[:3] + ([slurm] if slurm is not None else [])
    yield LiveFinding(
        cls="node-frozen",
        state=State.HUNG,
        weight=Weight.NODE,
        summary=f"node {visible(host)} stands still: {reason}; {ranks_of(parts.waiting)} wait",
        culprits=(Culprit(host=host, reason=reason),),
        shown=(*shown, *waiting_proof(parts.waiting)),
    )


def _stands(world: World, host: str) -> bool:
    """Is every process of the job there stopped, and more than a rank among them?"""
    those = [one for one in world.others.get(host, ()) if _counts(one)]
    if not all_stopped(those):
        return False
    ranks = {one.view.pid for one in world.ranks if one.host == host}
    if not ranks:
        return False
    return len(those) > len(ranks) + _below(world, host) or _not_responding(world, host)


def _below(world: World, host: str) -> int:
    return sum(len(one.below) for one in world.ranks if one.host == host)


def _counts(one: ProcessView) -> bool:
    name = one.process.name
    return one.process.step != "extern" and not name.startswith(_NOT_OF_THE_JOB)


def _not_responding(world: World, host: str) -> bool:
    word = dict(world.live.node_states).get(host, "").upper()
    return "*" in word or "NOT_RESPONDING" in word or "NO_RESPOND" in word


def _down(world: World, host: str) -> bool:
    word = dict(world.live.node_states).get(host, "").upper()
    return _not_responding(world, host) or word.startswith(("DOWN", "FAIL"))


def _silent(world: World, parts: Parts) -> Iterable[LiveFinding]:
    """Of nodes that do not answer nothing is known: where Slurm misses one as well, it is to
    blame; where it does not, or several are silent at once, our own way there may be broken."""
    silent = world.silent
    if not silent or parts.away or parts.open or not parts.waiting:
        return
    lost = [host for host in silent if _down(world, host)]
    missing = silent_words(world)
    words = ", ".join(visible(host) for host in silent[:_LISTED])
    if len(silent) > _LISTED:
        words += f" and {len(silent) - _LISTED} more nodes"
    waits = f"{ranks_of(parts.waiting)} wait"
    # Whose GPU computes waits for no other node.
    computes = [one for one in parts.waiting if draws_power(one)]
    if len(silent) == 1 and lost and not computes and not world.log_moves:
        slurm = node_evidence(world, lost[0], "Slurm cannot reach it either")
        reason = "it answers neither us nor Slurm"
        down = "DOWN" in dict(world.live.node_states)[lost[0]].upper()
        yield LiveFinding(
            cls="slurm-node-fail" if down else None,
            state=State.HUNG,
            weight=Weight.MISSING,
            summary=f"node {words} answers neither us nor Slurm; {waits} for its ranks",
            culprits=(Culprit(host=lost[0], reason=reason),),
            shown=(*((slurm,) if slurm is not None else ()), *waiting_proof(parts.waiting)),
            missing=missing,
        )
        return
    # Its ranks may well be at work, with an evaluation or a long step.
    quiet = world.live.log.quiet_s or 0.0
    surely = [one for one in parts.waits if "barrier" not in (one.doing.op or "barrier")]
    long = world.timed_out or quiet >= LONG_QUIET_S
    hung = len(silent) == 1 and 2 * len(surely) > world.count > 2 and long and not world.log_moves
    summary = f"{waits}, and {words} did not answer us: who is waited for cannot be seen"
    if computes:
        summary += f"; the GPUs of {ranks_of(computes)} draw the power of work"
    yield LiveFinding(
        state=State.HUNG if hung and not computes else State.UNKNOWN,
        weight=Weight.ALIKE,
        summary=summary,
        shown=waiting_proof(parts.waiting),
        missing=missing,
    )


def _missing(world: World, host: str) -> Missing:
    probe = world.probe(host)
    why = f"{host} gave no answer"
    if probe is not None and probe.failure is not None:
        why = f"{host}: {probe.failure.sentence}"
    return Missing("process", why, f"scontrol show node {host}")


def silent_words(world: World) -> tuple[Missing, ...]:
    """What could not be seen of nodes that gave no answer: of many not one by one."""
    told = tuple(_missing(world, host) for host in world.silent[:_LISTED])
    more = len(world.silent) - len(told)
    if more <= 0:
        return told
    why = f"{more} more nodes gave no answer"
    return (*told, Missing("process", why, f"slurmtop triage {world.live.job} --look"))
