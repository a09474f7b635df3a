"""From what the nodes of a job told to the rows of its ranks. Pure.

Ranks that do the same at the same place of the program are one row; where no stack could be read,
what the kernel shows of them has to do.
"""

from collections.abc import Iterator
from dataclasses import replace

from slurmtop.model.live import LiveFacts
from slurmtop.triage.live.call_site import normalised
from slurmtop.triage.live.doing import Doing, site_text
from slurmtop.triage.live.motion import Motion
from slurmtop.triage.live.view import RankView, World, worlds_of
from slurmtop.ui.present.where_ranks import RankRow

_MOVED = {
    Motion.MOVED: True,
    Motion.STILL: False,
    Motion.LOOPS: False,
    Motion.POLLS: None,
    Motion.UNKNOWN: None,
}
_LOOPS = "in a loop"


def rank_rows(live: LiveFacts | None) -> tuple[RankRow, ...]:
    """Where the ranks stood at the newest whole look; before there is one, what stacks have told.

    Without them, the half of a look would only say of everybody that it runs.
    """
    if live is None:
        return ()
    known = tuple(one for one in live.samples if one.whole)
    known = known or tuple(one for one in live.samples if one.stacks)
    worlds = worlds_of(replace(live, samples=known))
    return tuple(row for world in worlds for row in _rows(world))


def _rows(world: World) -> Iterator[RankRow]:
    places: dict[tuple[object, ...], list[RankView]] = {}
    for rank in world.ranks:
        places.setdefault(_place(rank), []).append(rank)
    for there in places.values():
        first = there[0]
        yield RankRow(
            ranks=tuple(sorted({one.rank for one in there if one.rank is not None})),
            nameless=sum(max(1, len(one.told.perhaps)) for one in there if one.rank is None),
            hosts=tuple(dict.fromkeys(one.host for one in there)),
            does=_does(first),
            site=site_text(first.doing.site),
            moved=_MOVED[first.motion],
            pids=frozenset((one.host, one.view.pid) for one in there),
        )


def _place(rank: RankView) -> tuple[object, ...]:
    """What must be equal in one row."""
    frames = normalised(rank.doing.frames)
    return (_does(rank), _MOVED[rank.motion], frames)


def _does(rank: RankView) -> str:
    """``waits in a collective (all_reduce)``, ``waits until something can be read, data
    loading``."""
    doing = rank.doing
    words = [_act(doing)]
    if doing.phase is not None:
        words.append(str(doing.phase))
    if rank.motion is Motion.LOOPS:
        words.append(_LOOPS)
    return ", ".join(words)


def _act(doing: Doing) -> str:
    return f"{doing.act} ({doing.op})" if doing.op else str(doing.act)
