"""Processes by pid file: start them, know them again, end them.

A record holds the pid *and* the start time the kernel gives it, so that a
number that was handed to another process since is never signalled.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.layout import ClusterError

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """unshare(2); Python has it only from 3.12 on."""
    if _libc.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")


def enter(pid: int, kinds: Sequence[str]) -> None:
    """setns(2) into namespaces of ``pid``; opened first, for /proc may differ afterwards."""
    opened = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    try:
        for descriptor in opened:
            if _libc.setns(descriptor, 0) != 0:
                code = ctypes.get_errno()
                raise OSError(code, f"setns: {os.strerror(code)}")
    finally:
        for descriptor in opened:
            os.close(descriptor)


def namespace_of(pid: int | str, kind: str) -> str:
    """Name of a namespace; equal names are the same one."""
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


@dataclass(frozen=True)
class Stat:
    """What /proc/PID/stat says that matters here."""

    command: str
    state: str
    start: int


def read_stat(pid: int) -> Stat | None:
    """State of a process, None when it is gone or only a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command is in brackets and may hold brackets and blanks itself.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    # A zombie with further threads still is at work: only its first thread has ended.
    if fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1):
        return None
    return Stat(head.partition("(")[2], fields[0], int(fields[19]))


def wait_until(
    what: str, check: Callable[[], bool], deadline_s: float, pause_s: float = 0.05
) -> None:
    """Poll ``check`` until it is true; ClusterError names what did not come."""
    end = time.monotonic() + deadline_s
    while not check():
        if time.monotonic() >= end:
            raise ClusterError(f"{what}: not within {deadline_s:g} s")
        time.sleep(pause_s)


class Record:
    """One daemon's pid file."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / f"{name}.pid"

    def write(self, pid: int) -> None:
        stat = read_stat(pid)
        if stat is None:
            raise ClusterError(f"{self.name} ended as soon as it was started; see its log")
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps({"pid": pid, "start": stat.start, "boot": _boot_id()}))
        temporary.replace(self.path)

    def stat(self) -> tuple[int, Stat] | None:
        """Pid and state when the process we started is still there."""
        try:
            data = json.loads(self.path.read_text())
            pid, start, boot = int(data["pid"]), int(data["start"]), str(data["boot"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        stat = read_stat(pid)
        if stat is None or stat.start != start or boot != _boot_id():
            return None
        return pid, stat

    @property
    def pid(self) -> int | None:
        found = self.stat()
        return found[0] if found else None

    @property
    def stopped(self) -> bool:
        found = self.stat()
        return found is not None and found[1].state == "T"

    def send(self, number: signal.Signals) -> bool:
        """Signal the process; False when it is not there (any more)."""
        pid = self.pid
        if pid is None:
            return False
        try:
            # With a descriptor the pid cannot be handed on between check and signal.
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if self.pid != pid:
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def end(self, first: signal.Signals = signal.SIGTERM, patience_s: float = 15.0) -> None:
        """End the process, politely first, and forget it."""
        if self.send(first):
            self.send(signal.SIGCONT)
            try:
                wait_until(f"end of {self.name}", lambda: self.pid is None, patience_s)
            except ClusterError:
                self.send(signal.SIGKILL)
                wait_until(f"end of {self.name} after SIGKILL", lambda: self.pid is None, 10)
        self.path.unlink(missing_ok=True)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def spawn(
    record: Record,
    argv: Sequence[str],
    log: Path,
    env: dict[str, str],
    *,
    inside: int | None = None,
    kinds: Sequence[str] = ("net", "uts", "mnt"),
    new_pid_namespace: bool = False,
    prepare: Callable[[], None] | None = None,
) -> int:
    """Start a daemon with two forks and write its pid file.

    ``inside`` is a process whose namespaces (``kinds``) are entered first.
    ``prepare`` runs last before exec, as root in the new process.  A pid
    namespace takes effect for children only, hence the process in between,
    which also is the one that knows the pid as this side sees it.
    """
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            os.close(read_end)
            os.setsid()
            if inside is not None:
                enter(inside, kinds)
            if new_pid_namespace:
                unshare(CLONE_NEWPID)
            child = os.fork()
            if child == 0:
                _become(argv, log, env, prepare)
            os.write(write_end, f"{child}\n".encode())
        except BaseException as error:
            os.write(write_end, f"! {error}\n".encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        # Ends when exec has closed the last copy: what came says how it went.
        lines = pipe.read().decode(errors="replace").splitlines()
    os.waitpid(middle, 0)
    errors = [line[2:] for line in lines if line.startswith("! ")]
    pids = [int(line) for line in lines if line.isdigit()]
    if errors or not pids:
        raise ClusterError(f"{record.name} could not be started: {'; '.join(errors) or 'no pid'}")
    record.write(pids[0])
    return pids[0]


def _become(
    argv: Sequence[str], log: Path, env: dict[str, str], prepare: Callable[[], None] | None
) -> None:
    """Last steps in the new process; errors go to the starter through the exception."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir("/")
    os.umask(0o022)
    # Python ignores SIGPIPE, and what is ignored stays so across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if prepare is not None:
        prepare()
    os.execve(argv[0], list(argv), env)
