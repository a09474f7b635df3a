"""Which waits come to their end by themselves, and how long a silence has to be to doubt that.

Who is stopped, waits in the kernel or opens a FIFO that has no other end stays there for ever: two
looks prove it. An answer from the network, a program that was started, threads of its own, a file
that is looked for again and again: these come sooner or later, and two looks prove nothing.
"""

from slurmtop.model.probe import ThreadState
from slurmtop.model.stacks import Frame, ThreadStack
from slurmtop.model.units import ago_text
from slurmtop.triage.live.doing import thread_doing
from slurmtop.triage.live.frames import Act, Phase, is_own, library_path, own_frame, plain_name
from slurmtop.triage.live.kernel_signs import act_by_wchan
from slurmtop.triage.live.motion import Change, is_transport
from slurmtop.triage.live.view import ProcessView, RankView, World
from slurmtop.triage.programs import Part, part_of, program_of

#: Even who waits for a server, or for a program that it has started, is late after so long.
LATE_S = 300.0
#: Who was put on a CPU more often from one look to the next looks whether something has come.
_NAPS = 2
#: Up to this share of a CPU is no work.
_IDLE_SHARE = 0.02
_AGAIN = ("retry", "backoff", "tenacity", "wait_for", "wait_until", "poll")
_STANDS = frozenset({Act.STOPPED, Act.DISK})
#: Of a thread these tell that something comes.
_COMES = frozenset({Act.SOCKET, Act.POLL, Act.CHILD})
#: What only watches or tells is no work of a rank.
_WATCHING = (
    "wandb-core wandb-service gpu_stats tensorboard aim mlflow nvidia-smi dcgmi nvtop gpustat"
    " nvitop top htop vmstat iostat dstat pidstat mpstat sar tail tee"
)
_LOGGERS = frozenset(_WATCHING.split())
#: Threads of drivers wait for ever, and for nothing.
_DRIVERS = ("cuda", "nv")


def late(world: World) -> bool:
    """Is the job silent for much longer than it ever was, so that no wait is a short one?"""
    quiet = world.live.log.quiet_s
    if quiet is None or world.live.log.grew or world.live.log.new_steps:
        return False
    return quiet > _late_s(world)


def until_late(world: World) -> str:
    """What to wait for, where it is not late yet."""
    return f"it may come yet, so look again once its log is quiet for {ago_text(_late_s(world))}"


def _late_s(world: World) -> float:
    return max(LATE_S, world.pace.long_s if world.pace is not None else 0.0)


def ends_by_itself(one: RankView) -> bool:
    """Does it wait for what comes sooner or later, as far as anybody can tell?"""
    act = one.doing.act
    if act is Act.SOCKET:
        return True
    if act is Act.CHILD:
        return not any(_stands(child) for child in serving(one))
    if act is Act.POLL:
        of_loader = one.doing.phase is Phase.LOADER or not one.doing.by_stack
        return not of_loader or _loader_may_come(one)
    if act is Act.READ:
        return _reads_from_child(one)
    if act is Act.SLEEP:
        changed = one.view.change
        naps = changed is not None and (changed.switches or 0) >= _NAPS
        return naps or any(map(_tries_again, one.doing.frames))
    return act is Act.LOCK and _thread_may_come(one)


def threads_work(view: ProcessView) -> bool:
    """Do threads beside its main one use a CPU, or get on in the program's own code? Those that
    carry data from rank to rank do not count."""
    changed = view.change
    if changed is not None and (changed.others_share or 0.0) > _IDLE_SHARE:
        return True
    return threads_moved(view)


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
    first, last = view.looks[0].stacks, view.looks[-1].stacks
    if len(view.looks) < 2 or first is None or last is None:
        return False
    was = {one.os_id: one.frames for one in first.threads[1:]}
    return any(
        one.os_id is not None
        and was.get(one.os_id, one.frames) != one.frames
        and own_frame(one.frames) is not None
        for one in last.threads[1:]
    )


def serving(one: RankView) -> list[ProcessView]:
    """What it has started, without what only tells of it."""
    return [
        child
        for child in one.below
        if program_of(child.process) not in _LOGGERS and child.process.name not in _LOGGERS
    ]


def _stands(view: ProcessView) -> bool:
    """Can it never go on by itself?"""
    return view.always(*_STANDS) or (view.always(Act.READ) and no_other_end(view))


def no_other_end(view: ProcessView) -> bool:
    """Does it open a FIFO that nobody has opened at the other end?"""
    activity = view.looks[-1].activity
    wchan = (activity.wchan or "") if activity is not None else ""
    return wchan.startswith(("wait_for_partner", "fifo_open"))


def _reads_from_child(one: RankView) -> bool:
    """Does it read from a pipe without a name, which a process that it has started may fill?"""
    activity = one.view.looks[-1].activity
    writers = [one for one in serving(one) if part_of(one.process) is not Part.HELPER]
    if activity is None or not any(not _stands(child) for child in writers):
        return False
    file, wchan = activity.open_file or "", activity.wchan or ""
    return file.startswith("pipe:") or (not file and wchan.startswith(("anon_pipe_", "pipe_")))


def _loader_may_come(one: RankView) -> bool:
    """Data of a loader: do its workers wait for what comes by itself, the network mostly? Who has
    nothing to do reads from a pipe or waits for a lock."""
    workers = serving(one)
    if any(child.act is Act.SOCKET for child in workers):
        return True
    if any(_stands(child) or child.always(Act.SLEEP) for child in workers):
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
    if found.act is Act.OWN and state is not None:
        return _waits_outside(state)
    return found.act in _COMES


def _waits_outside(state: ThreadState) -> bool:
    if is_transport(state.name) or state.name.lower().startswith(_DRIVERS):
        return False
    return act_by_wchan(state.wchan or "") in _COMES


def _tries_again(frame: Frame) -> bool:
    """Is it a call that tries something again and again, by its name?"""
    if is_own(frame):
        return any(word in plain_name(frame).lower() for word in _AGAIN)
    path = library_path(frame.file)
    return any(word in path for word in ("tenacity/", "backoff/", "urllib3/", "botocore/"))
