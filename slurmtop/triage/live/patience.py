"""Which waits come to their end by themselves, and how long a silence has to be to doubt that.

Who is stopped, waits in the kernel or opens a FIFO that has no other end stays there for ever: two
looks prove it. An answer from the network, a program that was started, threads of its own, a file
that is looked for again and again: these come sooner or later, and two looks prove nothing.
"""

from collections.abc import Iterator

from slurmtop.model.probe import ThreadState
from slurmtop.model.stacks import Frame, ThreadStack
from slurmtop.model.units import ago_text
from slurmtop.triage.live.doing import Doing, thread_doing
from slurmtop.triage.live.frames import (
    Act,
    Phase,
    in_library,
    is_own,
    library_path,
    own_frame,
    tries_again,
)
from slurmtop.triage.live.kernel_signs import (
    act_by_wchan,
    thread_waits_for_files,
    waits_for_files,
)
from slurmtop.triage.live.motion import Change, Motion, is_transport
from slurmtop.triage.live.pace import Pace, is_long
from slurmtop.triage.live.view import ProcessView, RankView, World
from slurmtop.triage.programs import Part, may_be_work, part_of, program_of

#: Even who waits for a server, or for a program that it has started, is late after so long.
LATE_S = 300.0
#: After so long, and so many times its longest pause, it is no long step any more.
_LONGEST_S = 3_600.0
_TIMES = 3.0
#: Who was put on a CPU more often from one look to the next looks whether something has come.
_NAPS = 2
#: Up to this share of a CPU is no work.
_IDLE_SHARE = 0.02
#: Threads that only watch over a process use less of a CPU than that, and so do its children.
WATCHING_SHARE = 0.1
_STANDS = frozenset({Act.STOPPED, Act.DISK})
#: Of a thread these tell that something comes.
_COMES = frozenset({Act.SOCKET, Act.POLL, Act.CHILD})
#: What only watches or tells is no work of a rank.
_WATCHING = (
    "wandb-core wandb-service gpu_stats tensorboard aim mlflow nvidia-smi dcgmi nvtop gpustat"
    " nvitop top htop vmstat iostat dstat pidstat mpstat sar tail tee sleep date"
)
_LOGGERS = frozenset(_WATCHING.split())
#: Threads of drivers wait for ever, and for nothing.
_DRIVERS = ("cuda", "nv")


def late(world: World) -> bool:
    """Is the job silent for much longer than it ever was, so that no wait is a short one?"""
    log = world.live.log
    if log.new_steps:
        return False
    if world.timed_out:
        return True
    return log.quiet_s is not None and not log.grew and log.quiet_s > late_s(world.pace)


def long_silence(world: World) -> bool:
    """As :func:`.pace.is_long`: work at one place is no more a step like the others."""
    told = world.timed_out and not world.live.log.new_steps
    return told or is_long(world.pace, world.live)


def far_too_long(world: World) -> bool:
    """Is it silent for so long that no step of it can be at work yet? Its own log may tell it."""
    log = world.live.log
    longest = max(_LONGEST_S, _TIMES * world.pace.long_s if world.pace is not None else 0.0)
    return late(world) and (world.timed_out or (log.quiet_s or 0.0) > longest)


def until_late(world: World) -> str:
    """What to wait for, where it is not late yet."""
    if world.live.log.quiet_s is None:
        return "it may come yet, and no log tells how long it has waited"
    return (
        f"it may come yet, so look again once its log is quiet for {ago_text(late_s(world.pace))}"
    )


def late_s(pace: Pace | None) -> float:
    """How long a wait has to be so that it is no short one any more."""
    return max(LATE_S, pace.long_s if pace is not None else 0.0)


def ends_by_itself(one: RankView) -> bool:
    """Does it wait for what comes sooner or later, as far as anybody can tell?"""
    act = one.doing.act
    if act is Act.SOCKET or one.motion is Motion.POLLS:
        return True
    if act is Act.DISK:
        return on_files(one.view)
    if act is Act.CHILD:
        return not any(stands_for_ever(child) for child in serving(one))
    if act is Act.POLL:
        of_loader = one.doing.phase is Phase.LOADER or not one.doing.by_stack
        return not of_loader or _loader_may_come(one)
    if act is Act.READ:
        return _reads_from_child(one) or threads_compute(one.view)
    if act is Act.SLEEP:
        changed = one.view.change
        naps = changed is not None and (changed.switches or 0) >= _NAPS
        # It may sleep until threads of its own have done something.
        return naps or any(map(tries_again, one.doing.frames)) or threads_compute(one.view)
    if act is not Act.LOCK:
        return False
    # Where a thread of the loader pins memory, the main one waits for that.
    loads = one.doing.phase is Phase.LOADER and _loader_may_come(one)
    return loads or _of_library(one.doing) or _thread_may_come(one)


def on_files(view: ProcessView) -> bool:
    """Does it wait in the kernel for a file system, in every look? A slow server answers once."""
    return view.always(Act.DISK) and all(waits_for_files(one.activity) for one in view.looks)


def _of_library(doing: Doing) -> bool:
    """Is it a library that waits here: for its server, its own threads in C, a lock file? What
    torch waits for is known."""
    outer = next((one for one in doing.frames if in_library(one) or is_own(one)), None)
    if outer is None or not in_library(outer):
        return False
    path = library_path(outer.file)
    return not path.startswith("torch/") or path.startswith("torch/utils/file_baton")


def threads_work(view: ProcessView) -> bool:
    """Do threads beside its main one use a CPU, or get on in the program's own code? Those that
    carry data from rank to rank do not count."""
    return threads_compute(view) or threads_moved(view)


def threads_compute(view: ProcessView, least: float = _IDLE_SHARE) -> bool:
    """Do threads beside its main one use more than ``least`` of a CPU?"""
    changed = view.change
    return changed is not None and (changed.others_share or 0.0) > least


def transport_works(view: ProcessView) -> bool:
    """Do threads of one that waits for others use a CPU, as they do while data comes? Its main
    thread may poll without a pause: that is no sign of data."""
    changed = view.change
    if changed is None or changed.cpu_share is None:
        return False
    return changed.cpu_share - _of_main(changed) > _IDLE_SHARE


def _of_main(changed: Change) -> float:
    # Never on a CPU, it can have used none.
    if changed.switches is not None and changed.switches < _NAPS:
        return 0.0
    spins = changed.cpu_share if changed.cpu_share and changed.cpu_share <= 1 else 1.0
    return changed.main_share if changed.main_share is not None else spins


def threads_moved(view: ProcessView) -> bool:
    """Does another thread stand elsewhere in the program's own code than it did before?"""
    return any(True for _ in _moved(view))


def threads_get_on(view: ProcessView) -> bool:
    """Did one of them use a CPU to get there, or get into another function? One that only tells
    that the process is alive does neither."""
    changed = view.change
    share = None
    if changed is not None:
        share = changed.others_share if changed.others_share is not None else changed.cpu_share
    if share is None or share > _IDLE_SHARE:
        return threads_moved(view)
    return any(_own_calls(was) != _own_calls(now) for was, now in _moved(view))


def _moved(view: ProcessView) -> Iterator[tuple[tuple[Frame, ...], tuple[Frame, ...]]]:
    """The stacks of threads beside the main one that changed, in the first and the last look."""
    first, last = view.looks[0].stacks, view.looks[-1].stacks
    if len(view.looks) < 2 or first is None or last is None:
        return
    was = {one.os_id: one.frames for one in first.threads[1:]}
    for one in last.threads[1:]:
        before = was.get(one.os_id, one.frames)
        if one.os_id is not None and before != one.frames and own_frame(one.frames) is not None:
            yield before, one.frames


def _own_calls(frames: tuple[Frame, ...]) -> list[tuple[str, str]]:
    return [(one.function, one.file) for one in frames if is_own(one)]


def serving(one: RankView) -> list[ProcessView]:
    """What it has started, without what only tells of it; with that where it waits for just that,
    and data moves."""
    return [child for child in one.below if not _tells(child) or _sends_for(one, child)]


def _tells(child: ProcessView) -> bool:
    return program_of(child.process) in _LOGGERS or child.process.name in _LOGGERS


def _sends_for(one: RankView, child: ProcessView) -> bool:
    """Does it wait in the library whose process this is, and does that read or write?"""
    library = next(
        (library_path(frame.file) for frame in one.doing.frames if in_library(frame)), ""
    )
    package = library.split("/", 1)[0]
    names = (program_of(child.process), child.process.name)
    own = bool(package) and any(name.startswith(package) for name in names)
    return own and child.change is not None and child.change.io_grew


def only_watches(child: ProcessView) -> bool:
    """Does it move no data, and use less of a CPU than what works for others mostly does?"""
    changed = child.change
    if changed is None or changed.cpu_share is None or changed.io_grew:
        return False
    return changed.cpu_share < WATCHING_SHARE


def loading(one: RankView) -> list[ProcessView]:
    """What it has started and what may be a worker of its loader: no shell, and no plain tool."""
    return [child for child in serving(one) if part_of(child.process) in (Part.HELPER, Part.WORK)]


def stands_for_ever(view: ProcessView) -> bool:
    """Can it never go on by itself, by the kernel's word?"""
    stands = view.always(*_STANDS) and not on_files(view)
    return stands or (view.always(Act.READ) and no_other_end(view))


def no_other_end(view: ProcessView) -> bool:
    """Does it open a FIFO that nobody has opened at the other end?"""
    activity = view.looks[-1].activity
    wchan = (activity.wchan or "") if activity is not None else ""
    return wchan.startswith(("wait_for_partner", "fifo_open"))


def _reads_from_child(one: RankView) -> bool:
    """Does it read from a pipe or socket without a name, which a process that it has started may
    fill?"""
    activity = one.view.looks[-1].activity
    writers = [
        child
        for child in serving(one)
        if part_of(child.process) is not Part.HELPER or may_be_work(child.process)
    ]
    if activity is None or not any(not stands_for_ever(child) for child in writers):
        return False
    file, wchan = activity.open_file or "", activity.wchan or ""
    pipe = wchan.startswith(("anon_pipe_", "pipe_", "unix_stream_"))
    return file.startswith(("pipe:", "socket:")) or (not file and pipe)


def _loader_may_come(one: RankView) -> bool:
    """Data of a loader: do its workers wait for what comes by itself, the network mostly? Who has
    nothing to do reads from a pipe or waits for a lock."""
    workers = loading(one)
    if any(child.act is Act.SOCKET for child in workers):
        return True
    if any(stands_for_ever(child) or child.always(Act.SLEEP) for child in workers):
        return False
    return any(child.act not in (Act.READ, Act.LOCK) for child in workers)


def _thread_may_come(one: RankView) -> bool:
    """May the lock, the queue or the end of a thread come from a thread of its own?"""
    look = one.view.looks[-1]
    threads = look.stacks.threads[1:] if look.stacks is not None else ()
    activity = look.activity
    states = {one.tid: one for one in activity.threads} if activity is not None else {}
    if threads:
        return any(_may_come(thread, states.get(thread.os_id or 0)) for thread in threads)
    return any(_waits_outside(state) for tid, state in states.items() if tid != one.view.pid)


def _may_come(thread: ThreadStack, state: ThreadState | None) -> bool:
    found = thread_doing(thread)
    if not thread.frames or found.phase is Phase.LOADER:
        return False
    if found.act in _COMES or any(map(tries_again, found.frames)):
        return True
    if found.act is not Act.OWN:
        return False
    # Below a library that the table does not know C code may wait for anything.
    if state is None or not state.wchan:
        return found.below_library
    asks = found.below_library and _of_library(found) and act_by_wchan(state.wchan) is Act.LOCK
    return asks or _waits_outside(state)


def _waits_outside(state: ThreadState) -> bool:
    if is_transport(state.name) or state.name.lower().startswith(_DRIVERS):
        return False
    return act_by_wchan(state.wchan or "") in _COMES or thread_waits_for_files(state)
