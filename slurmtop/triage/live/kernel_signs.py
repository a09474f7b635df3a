"""What the kernel shows of a process: what it waits for, without a look into the program.

``wchan`` is the function of the kernel in which a thread sleeps; its name changes with versions of
Linux, so that beginnings of names are compared. A number of a system call means something on one
architecture only.
"""

from slurmtop.model.probe import Activity, ThreadState
from slurmtop.triage.live.frames import Act

STOPPED = ("T", "t")
DISK = "D"
#: A thread that used this share of the time between two readings is busy.
BUSY_SHARE = 0.5

#: (beginnings of names, what it is). The first that fits counts.
_WCHANS: tuple[tuple[str, Act], ...] = (
    ("do_signal_stop ptrace_stop do_freezer_trap __refrigerator", Act.STOPPED),
    ("futex_ do_futex __futex", Act.LOCK),
    ("hrtimer_nanosleep do_nanosleep common_nsleep hrtimer_sleep", Act.SLEEP),
    (
        "wait_for_partner fifo_open pipe_read anon_pipe_read fifo_pipe_read pipe_write"
        " anon_pipe_write fifo_pipe_write pipe_wait n_tty_read",
        Act.READ,
    ),
    ("flock_lock locks_lock fcntl_setlk posix_lock do_lock_file", Act.READ),
    ("do_wait kernel_wait4 do_wait4 kernel_waitid", Act.CHILD),
    (
        "poll_schedule do_sys_poll do_poll do_select ep_poll do_epoll schedule_hrtimeout",
        Act.POLL,
    ),
    (
        "sk_wait_data tcp_recv inet_csk_accept wait_woken unix_stream __skb_wait skb_wait"
        " inet_stream_connect inet_wait",
        Act.SOCKET,
    ),
)

#: Waits in state D for a disk or a server of files: a large write takes its time, and so does a
#: server that many ask at once. Not among them: drivers, and a child of vfork.
_FILE_WAITS = (
    "nfs_ nfs3_ nfs4_ rpc_ cifs_ smb2_ fuse_ request_wait_answer ceph_ lustre ll_ osc_ mdc_ lov_"
    " cl_ ldlm_ ptlrpc_ obd_ gpfs cxiWait mmfs beegfs fhgfs jbd2_ ext4_ xfs_ btrfs_ f2fs_ zfs_"
    " zil_ txg_ folio_wait wait_on_page __lock_page __folio_lock filemap_ wait_on_commit"
    " io_schedule bit_wait_io blk_ blkdev_ rq_qos_wait wbt_wait balance_dirty_pages"
    " submit_bio_wait wait_on_buffer __wait_on_buffer sync_inodes writeback_ wb_wait vfs_fsync"
    " inode_dio_wait iomap_ dm_ md_"
)
_OF_FILES = tuple(_FILE_WAITS.split())

_WCHAN_ROWS = tuple((tuple(beginnings.split()), act) for beginnings, act in _WCHANS)

#: x86_64 and aarch64, by their number.
_CALLS: dict[str, dict[str, Act]] = {
    "x86_64": {
        "35": Act.SLEEP,
        "230": Act.SLEEP,
        "202": Act.LOCK,
        "61": Act.CHILD,
        "247": Act.CHILD,
        "7": Act.POLL,
        "23": Act.POLL,
        "232": Act.POLL,
        "270": Act.POLL,
        "271": Act.POLL,
        "281": Act.POLL,
        "42": Act.SOCKET,
        "43": Act.SOCKET,
        "45": Act.SOCKET,
        "47": Act.SOCKET,
        "288": Act.SOCKET,
    },
    "aarch64": {
        "101": Act.SLEEP,
        "115": Act.SLEEP,
        "98": Act.LOCK,
        "260": Act.CHILD,
        "95": Act.CHILD,
        "72": Act.POLL,
        "73": Act.POLL,
        "22": Act.POLL,
        "202": Act.SOCKET,
        "203": Act.SOCKET,
        "207": Act.SOCKET,
        "212": Act.SOCKET,
        "242": Act.SOCKET,
    },
}
#: Read, write and open: what they do depends on the file.
_FILE_CALLS = {
    "x86_64": frozenset({"0", "1", "2", "17", "18", "19", "20", "72", "73", "257"}),
    "aarch64": frozenset({"56", "63", "64", "65", "66", "67", "68", "25", "32"}),
}


def act_by_kernel(activity: Activity, arch: str | None = None) -> Act:
    """What the main thread does; ``UNKNOWN`` where the kernel's words tell nothing."""
    if activity.state in STOPPED:
        return Act.STOPPED
    if activity.state == DISK:
        return Act.DISK
    name = activity.wchan or ""
    found = act_by_wchan(name)
    if found is not None:
        return found
    if is_busy(activity) or activity.state == "R":
        return Act.BUSY
    call = activity.syscall or ""
    # Where the name is known and fits nothing, a number would not know better.
    if not name and arch in _CALLS:
        if call in _FILE_CALLS[arch] and activity.state == "S":
            return Act.READ if activity.open_file else Act.UNKNOWN
        return _CALLS[arch].get(call, Act.UNKNOWN)
    return Act.UNKNOWN


def act_by_wchan(name: str) -> Act | None:
    """What a thread waits for that sleeps in ``name``; None where that tells nothing."""
    if not name:
        return None
    return next((act for begins, act in _WCHAN_ROWS if name.startswith(begins)), None)


def waits_for_files(activity: Activity | None) -> bool:
    """Does the main thread wait in state D for a file system, as far as anybody can tell? It may
    come back by itself."""
    return activity is not None and _of_files(activity.state, activity.wchan)


def thread_waits_for_files(thread: ThreadState) -> bool:
    """The same of any other thread."""
    return _of_files(thread.state, thread.wchan)


def _of_files(state: str, wchan: str | None) -> bool:
    told = wchan if wchan != "0" else None
    return state == DISK and (not told or told.startswith(_OF_FILES))


def is_busy(activity: Activity, ticks_per_s: int = 100) -> bool | None:
    """Did it use much of a CPU between the two readings of one probe? None: not readable."""
    first, second, apart = activity.first.cpu_ticks, activity.second.cpu_ticks, activity.between_s
    if first is None or second is None or not apart:
        return None
    return second - first >= BUSY_SHARE * apart * ticks_per_s


def main_thread(activity: Activity) -> ThreadState | None:
    """The main thread of a process, where its threads could be read."""
    return next((one for one in activity.threads if one.tid == activity.pid), None)


def switches_so_far(activity: Activity) -> int | None:
    """How often the main thread was put on a CPU or gave it up, by the newest reading."""
    later = activity.second.switches
    return later if later is not None else activity.first.switches
