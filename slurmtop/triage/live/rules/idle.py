"""The allocation is held and no program trains: a shell, a notebook, a sleep."""

from collections.abc import Iterable

from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.model.verdict import Confidence, State
from slurmtop.triage.live.enough import QUIET_S
from slurmtop.triage.live.finding import LiveFinding, Weight, process_evidence
from slurmtop.triage.live.view import ProcessView, World, is_interactive
from slurmtop.triage.programs import Part, part_of, program_of

_STAGING = frozenset(
    {
        "rsync",
        "cp",
        "mv",
        "tar",
        "gzip",
        "zstd",
        "curl",
        "wget",
        "aws",
        "gsutil",
        "rclone",
        "unzip",
        "dd",
    }
)


def find(world: World) -> Iterable[LiveFinding]:
    if not world.two or not world.seen_whole or world.agents:
        return
    here = [one for those in world.others.values() for one in those if _counts(one)]
    if not here or not all(is_interactive(one.process) for one in here):
        return
    if not all(is_interactive(one.process) for one in world.first_ranks):
        # A rank ran a moment ago: it has just ended, or the next one is about to start.
        return
    busy = [one for one in here if one.change is not None and _moves(one)]
    staging = [one for one in busy if program_of(one.process) in _STAGING]
    if staging:
        one = staging[0]
        yield LiveFinding(
            cls="healthy",
            state=State.HEALTHY,
            weight=Weight.IDLE,
            summary=f"{visible(program_of(one.process))} moves data on {visible(one.host)},"
            " and no rank runs yet",
            shown=(process_evidence(one, "it reads or writes"),),
            confidence=Confidence.MEDIUM,
        )
        return
    quiet = world.live.log.quiet_s
    if busy or (quiet is not None and quiet < QUIET_S):
        return
    shown = sorted(here, key=lambda one: part_of(one.process) is not Part.TOOL)
    names = dict.fromkeys(visible(program_of(one.process)) for one in shown)
    since = f"; its log is quiet for {ago_text(quiet)}" if quiet is not None else ""
    yield LiveFinding(
        state=State.IDLE,
        weight=Weight.IDLE,
        summary=f"no program trains on its {plural(len(world.live.hosts), 'node')}, only"
        f" {', '.join(list(names)[:3])}{since}",
        shown=tuple(process_evidence(one, "all that runs") for one in shown[:2]),
        confidence=Confidence.MEDIUM,
    )


def _counts(one: ProcessView) -> bool:
    process = one.process
    return process.step != "extern" and part_of(process) is not Part.AGENT


def _moves(one: ProcessView) -> bool:
    return one.change is not None and (one.change.works or one.change.io_grew)
