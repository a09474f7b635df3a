"""Ranks that each wait in a way of their own: told by its number, and by a file once it waits."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

rank = int(os.environ["SLURM_PROCID"])
os.environ["RANK"] = str(rank)
job = os.environ["SLURM_JOB_ID"]


def fifo(name: str) -> str:
    path = f"{name}-{job}"
    os.mkfifo(path)
    return path


def reads() -> None:
    """Open for reading and writing, so that the open comes back and the read does not."""
    os.read(os.open(fifo("schedule"), os.O_RDWR), 1)


def waits_in_the_kernel() -> None:
    """State D: vfork, and the child waits for somebody who opens the other end."""
    libc = ctypes.CDLL(None)
    actions = ctypes.create_string_buffer(512)
    libc.posix_spawn_file_actions_init(actions)
    libc.posix_spawn_file_actions_addopen(actions, 0, os.fsencode(fifo("server")), os.O_RDONLY, 0)
    argv = (ctypes.c_char_p * 2)(b"/bin/true", None)
    libc.posix_spawn(ctypes.byref(ctypes.c_int()), b"/bin/true", actions, None, argv, None)


def loses_a_child() -> None:
    """Once its memory is limited, a child of it wants more than that."""
    while not Path(f"limited-{job}").exists():
        time.sleep(0.1)
    eat = "eaten = [bytearray(2**24) for _ in range(1000)]"
    subprocess.run([sys.executable, "-c", eat], check=False)
    Path(f"lost-{job}").touch()
    signal.pause()


def runs() -> None:
    while True:
        sum(range(1000))


def forgets() -> None:
    """What it was started with says nothing of who it is."""
    os.execve("/bin/sleep", ["sleep", "900"], {"PATH": "/usr/bin:/bin"})


ways = (reads, waits_in_the_kernel, loses_a_child, runs, signal.pause, forgets)
place = Path(f"waits-{job}-{rank}")
place.with_suffix(".new").write_text(f"{os.uname().nodename} {os.getpid()}")
place.with_suffix(".new").replace(place)
ways[rank % len(ways)]()
