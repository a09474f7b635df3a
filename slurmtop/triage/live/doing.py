"""What a process is doing at one moment: by its Python stack, else by what the kernel shows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from slurmtop.model.probe import Activity
from slurmtop.model.process import NodeProcess
from slurmtop.model.stacks import Frame, ProcessStacks, ThreadStack
from slurmtop.model.text import visible
from slurmtop.triage.live.call_site import normalised
from slurmtop.triage.live.frames import (
    Act,
    Phase,
    act_of,
    closes_down,
    in_library,
    is_own,
    of_framework,
    own_frame,
    passes_on,
    phase_of,
    plain_name,
)
from slurmtop.triage.live.kernel_signs import DISK, STOPPED, act_by_kernel, is_busy

#: Waits that end only when other ranks do something.
ON_OTHERS = frozenset({Act.COLLECTIVE, Act.P2P, Act.STORE})
#: Waits that may be one on others: the device runs a collective, or C code waits for one.
PERHAPS_ON_OTHERS = frozenset({Act.DEVICE, Act.BACKWARD})
#: Acts of a main thread that leave room for a collective on a helper thread.
_WAITS_FOR_THREAD = frozenset({Act.LOCK, Act.UNKNOWN, Act.OWN, Act.DEVICE, Act.BACKWARD})
#: What the kernel may say more of where the stack only shows the program's own code.
_TOLD_BY_KERNEL = frozenset({Act.SLEEP, Act.READ, Act.CHILD, Act.SOCKET, Act.POLL, Act.LOCK})
#: Of these the kernel shows that a main thread in its own code waits for no other thread.
_BY_ITSELF = frozenset({Act.SLEEP, Act.READ, Act.CHILD, Act.BUSY})
_SHOWN_FRAMES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What one process does.

    ``site`` is the innermost frame of the program's own code, ``frames`` those of the thread that
    tells (innermost first). ``by_stack`` false: the kernel alone tells it. ``framework``: a library
    that talks in sub-groups by itself stands on the way. ``helper``: another thread than the main
    one waits in the collective. ``gil``, ``active`` and ``busy`` as the tools saw them, None where
    that is not told.
    """

    act: Act = Act.UNKNOWN
    op: str | None = None
    phase: Phase | None = None
    site: Frame | None = None
    frames: tuple[Frame, ...] = ()
    by_stack: bool = False
    framework: bool = False
    helper: bool = False
    gil: bool | None = None
    active: bool | None = None
    busy: bool | None = None

    @property
    def on_others(self) -> bool:
        """Does it wait for other ranks for certain, as its stack shows?"""
        return self.by_stack and self.act in ON_OTHERS

    @property
    def inner(self) -> Frame | None:
        """The innermost frame that does not only pass a call on."""
        return next((one for one in self.frames if not passes_on(one)), None)

    @property
    def below_library(self) -> bool:
        """Does C code below a library wait that the table does not know? It may be anything."""
        inner = self.inner
        return inner is not None and in_library(inner) and act_of(inner) is None


def doing_of(
    process: NodeProcess,
    activity: Activity | None,
    stacks: ProcessStacks | None,
    arch: str | None = None,
) -> Doing:
    """What ``process`` does, by all that was read of it at that moment."""
    kernel = act_by_kernel(activity, arch) if activity is not None else Act.UNKNOWN
    if activity is None and process.state in (*STOPPED, DISK):
        kernel = Act.DISK if process.state == DISK else Act.STOPPED
    busy = is_busy(activity) if activity is not None else None
    known = stacks is not None and stacks.failure is None and stacks.main is not None
    if not known or stacks is None or stacks.main is None or not stacks.main.frames:
        return Doing(act=kernel, busy=busy)
    found = _main_doing(stacks.main)
    if kernel in (Act.STOPPED, Act.DISK):
        return replace(found, act=kernel, op=None, busy=busy)
    alone = found.act is Act.OWN and kernel in _BY_ITSELF
    if found.act in _WAITS_FOR_THREAD and not alone:
        for thread in stacks.threads[1:]:
            other = thread_doing(thread)
            if other.act in ON_OTHERS:
                return replace(other, helper=True, busy=busy)
    if found.act is Act.OWN:
        found = replace(found, act=_own_act(found, kernel, busy))
    return replace(found, busy=busy)


def _own_act(found: Doing, kernel: Act, busy: bool | None) -> Act:
    """The program's own code, or a library that is not known, is innermost: C code below it may
    wait for something that only the kernel shows."""
    if kernel in (Act.READ, Act.CHILD) or kernel is Act.BUSY:
        return kernel
    if found.gil and not busy and found.active is False:
        return Act.GIL
    if kernel in _TOLD_BY_KERNEL:
        return kernel
    return Act.BUSY if busy else Act.OWN


def _main_doing(thread: ThreadStack) -> Doing:
    """What the main thread does, by its stack alone. What the interpreter calls by itself when a
    program has ended has no module below it; no other thread has one at any time."""
    found = thread_doing(thread)
    if found.phase is None and thread.frames and _at_exit(thread.frames):
        return replace(found, phase=Phase.TEARDOWN)
    return found


def thread_doing(thread: ThreadStack) -> Doing:
    """What one thread does, by its stack alone."""
    frames = thread.frames
    inner = next((one for one in frames if not passes_on(one)), None)
    act = act_of(inner) if inner is not None else None
    op = None
    if inner is not None and act in ON_OTHERS:
        outer = _op_frame(frames)
        op = plain_name(outer if outer is not None else inner)
    return Doing(
        act=act or Act.OWN,
        op=op,
        phase=_phase(frames),
        site=own_frame(frames),
        frames=frames,
        by_stack=True,
        framework=any(of_framework(one) for one in frames),
        gil=thread.gil,
        active=thread.active,
    )


def _op_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The outermost call of the collective library in a row: ``all_gather_object`` gathers by
    ``all_gather``, and is what the program called."""
    found = None
    for frame in frames:
        if act_of(frame) in ON_OTHERS:
            found = frame
        elif not passes_on(frame):
            break
    return found


def _phase(frames: tuple[Frame, ...]) -> Phase | None:
    """What it is about: the innermost call that tells it. A function that is called ``cleanup``
    cleans up after the program only where no library has called it."""
    found = next((phase for one in frames if (phase := phase_of(one)) is not None), None)
    if found is None:
        outer = reversed(normalised(frames))
        if any(closes_down(one) for one in takewhile(is_own, outer)):
            return Phase.TEARDOWN
    return found


def _at_exit(frames: tuple[Frame, ...]) -> bool:
    last = frames[-1]
    return len(frames) < 40 and plain_name(last) not in (
        "<module>",
        "_bootstrap",
        "_run_module_as_main",
    )


def shown_frames(doing: Doing) -> Iterator[Frame]:
    """The frames that tell it to a person: the innermost ones, and the program's own code."""
    frames = doing.frames[:_SHOWN_FRAMES]
    yield from frames
    if doing.site is not None and doing.site not in frames:
        yield doing.site


def frame_text(frame: Frame) -> str:
    """``    step (train.py:37)``, as py-spy prints it."""
    name = frame.file.rsplit("/", 1)[-1]
    line = f":{frame.line}" if frame.line is not None else ""
    return f"    {frame.function} ({name}{line})"


def site_text(frame: Frame | None) -> str:
    """``train.py:37 in step``; empty where no code of the program stands there."""
    if frame is None:
        return ""
    name = frame.file.rsplit("/", 1)[-1]
    line = f":{frame.line}" if frame.line is not None else ""
    return visible(f"{name}{line} in {frame.function}")
