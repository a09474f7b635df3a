"""Whether the ranks of a launch wait for the next request, as those of a server do. Pure."""

import re

from slurmtop.model.stacks import Frame
from slurmtop.triage.live.doing import PERHAPS_ON_OTHERS
from slurmtop.triage.live.frames import Act, is_own, library_path, plain_name
from slurmtop.triage.live.view import RankView, World

#: Functions of libraries that take one request after the other, by their names.
_TAKES = re.compile(r"(?:^|_)serve(?:_|$)|(?:event|busy|execution)_loop")
_FORWARD = "torch/nn/modules/"
#: Nobody who waits for a request does that; and who waits for a GPU has had one.
_NO_REST = PERHAPS_ON_OTHERS | {Act.STOPPED, Act.DISK, Act.GIL, Act.READ, Act.CHILD}


def is_at_rest(world: World) -> bool:
    """Does every rank stand, by its stack, where a library waits for requests, and is none missing?
    When one comes is told by nothing in the job."""
    return len(world.ranks) == world.count > 0 and all(map(_rests, world.ranks))


def _rests(one: RankView) -> bool:
    doing = one.doing
    if not doing.by_stack or doing.act in _NO_REST:
        return False
    if doing.act is Act.POLL and any("/asyncio/" in frame.file for frame in doing.frames):
        return True
    return any(map(_takes, doing.frames)) and not any(map(_computes, doing.frames))


def _takes(frame: Frame) -> bool:
    return not is_own(frame) and _TAKES.search(plain_name(frame).lower()) is not None


def _computes(frame: Frame) -> bool:
    return library_path(frame.file).startswith(_FORWARD)
