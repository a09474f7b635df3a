"""What a rule of live triage found, and the raw words that prove it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from slurmtop.model.spans import span_text, spans_of
from slurmtop.model.verdict import (
    EVIDENCE_CHARS,
    Collective,
    Confidence,
    Culprit,
    Evidence,
    Missing,
    NextStep,
    State,
)
from slurmtop.triage.live.doing import frame_text, shown_frames, site_text
from slurmtop.triage.live.kernel_signs import switches_so_far
from slurmtop.triage.live.view import ProcessView, RankView, World

_LETTERS = {
    "R": "running",
    "S": "sleeping",
    "D": "uninterruptible",
    "T": "stopped",
    "t": "traced",
    "Z": "ended",
    "I": "idle",
}
_LISTED = 6


class Weight(IntEnum):
    """Which of several findings tells the state: the higher one."""

    UNSURE = 20
    IDLE = 25
    """A notebook is seen as a program at rest too."""
    WORKING = 30
    ALIKE = 40
    SLOW = 45
    SITES = 50
    MISSING = 60
    AWAY = 70
    STANDS = 80
    """A process that the kernel itself does not let run."""
    NODE = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFinding:
    """One candidate. ``confidence`` None: by the families of ``shown``. Of what is ``hung`` two
    samples are the proof; the judge takes care of that."""

    state: State
    weight: Weight
    summary: str
    cls: str | None = None
    culprits: tuple[Culprit, ...] = ()
    shown: tuple[Evidence, ...] = ()
    against: tuple[Evidence, ...] = ()
    perhaps: tuple[Evidence, ...] = ()
    """What may have to do with it, and proves nothing."""
    doubt: bool = False
    """However much speaks for it, something is left open: never more than medium."""
    collective: Collective | None = None
    confidence: Confidence | None = None
    missing: tuple[Missing, ...] = ()
    next: tuple[NextStep, ...] = ()


def stack_evidence(view: ProcessView, says: str) -> Evidence | None:
    """The stack of the newest look that has one, as py-spy prints it."""
    for look in reversed(view.looks):
        if look.doing.by_stack:
            text = "\n".join(frame_text(one) for one in shown_frames(look.doing))
            at = look.stacks.at if look.stacks is not None else None
            return Evidence(
                family="stack",
                host=view.host,
                source=f"py-spy dump --nonblocking -p {view.pid} on {view.host}",
                text=text[:EVIDENCE_CHARS],
                says=says,
                time=at,
            )
    return None


def process_evidence(view: ProcessView, says: str) -> Evidence:
    """What the kernel shows of the process: letter, wait channel, CPU; as ``ps`` would."""
    look = view.looks[-1]
    activity, process = look.activity, view.process
    letter = activity.state if activity is not None else process.state
    words = [f"{process.name or 'process'} {view.pid}: State: {letter}"]
    if letter in _LETTERS:
        words.append(f"({_LETTERS[letter]})")
    if activity is not None and activity.wchan:
        words.append(f"wchan: {activity.wchan}")
    if activity is not None and activity.open_file:
        words.append(f"file: {activity.open_file}")
    if activity is not None and activity.tracer_pid:
        words.append(f"TracerPid: {activity.tracer_pid}")
    words += _grown(view)
    return Evidence(
        family="process",
        host=view.host,
        source=f"/proc/{view.pid} on {view.host}",
        text=" ".join(words)[:EVIDENCE_CHARS],
        says=says,
    )


def _grown(view: ProcessView) -> list[str]:
    changed, activity = view.change, view.looks[-1].activity
    if changed is None or activity is None:
        return []
    over = f"in {changed.seconds:.0f} s"
    words = []
    if changed.cpu_share is not None:
        words.append(f"cpu: +{changed.cpu_share * changed.seconds:.2f} s {over}")
    if changed.switches is not None:
        words.append(f"context switches: +{changed.switches} of {switches_so_far(activity)}")
    if changed.written_bytes or changed.read_bytes:
        words.append(f"read: +{changed.read_bytes or 0} written: +{changed.written_bytes or 0}")
    return words


def proofs(view: ProcessView, says: str) -> tuple[Evidence, ...]:
    """Stack and process of one view, as far as there are any."""
    stack = stack_evidence(view, says)
    process = process_evidence(view, says if stack is None else "and so the kernel shows it")
    return (process,) if stack is None else (stack, process)


def waiting_proof(ranks: Iterable[RankView]) -> tuple[Evidence, ...]:
    """One of those that wait, for all of them."""
    found = list(ranks)
    if not found:
        return ()
    one = next((r for r in found if r.on_others), found[0])
    alike = [r for r in found if r.doing.op == one.doing.op and r.doing.act is one.doing.act]
    who = ranks_of(alike)
    says = f"{who} {'waits' if len(alike) == 1 else 'wait'} here"
    stack = stack_evidence(one.view, says)
    return (stack,) if stack is not None else (process_evidence(one.view, says),)


def ranks_of(ranks: Iterable[RankView]) -> str:
    """``rank 2``, ``ranks 0-1, 3``; by processes where a number is not known."""
    found = list(ranks)
    numbers = [one.rank for one in found if one.rank is not None]
    if len(numbers) < len(found):
        return f"{len(found)} ranks" if len(found) > 1 else found[0].name if found else "no rank"
    return numbers_text(numbers)


def numbers_text(numbers: Iterable[int]) -> str:
    spans = spans_of(numbers)
    words = ", ".join(span_text(one) for one in spans[:_LISTED])
    if len(spans) > _LISTED:
        words += ", …"
    only = len(spans) == 1 and spans[0][0] == spans[0][1]
    return f"rank {words}" if only else f"ranks {words}"


def culprit(one: RankView, reason: str) -> Culprit:
    """A rank as one to blame."""
    return Culprit(
        rank=one.rank,
        host=one.host,
        pid=one.view.pid,
        reason=reason,
        step=one.view.process.step,
        attempt=one.told.attempt,
    )


def at_text(one: RankView) -> str:
    """`` at train.py:37 in step``, or nothing."""
    text = site_text(one.doing.site)
    return f" at {text}" if text else ""


def node_evidence(world: World, host: str, says: str) -> Evidence | None:
    """Slurm's word for a node that is not well."""
    word = dict(world.live.node_states).get(host)
    if word is None:
        return None
    return Evidence(
        family="slurm", host=host, source=f"sinfo -N -n {host}", text=f"{host} {word}", says=says
    )
