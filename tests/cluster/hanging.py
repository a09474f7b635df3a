"""A file system that does not answer: whoever asks for a file below it waits in the kernel.

FUSE without anybody who serves it: the kernel waits for a first word that never comes. The mount
is in the login's own namespace, so jobs on nodes go on writing into the folder below it. Run by the
fault helper, as root.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from tests.cluster.layout import CannotRun, ClusterError, Layout
from tests.cluster.spaces import command

_DEVICE, _NAME = "/dev/fuse", "slurmtop-hanging"
_held: dict[Path, int] = {}


def hang(layout: Layout, folder: object) -> dict[str, Any]:
    """From now on ``folder`` (below the shared one) answers nobody on the login side."""
    if not isinstance(folder, str):
        raise ValueError("folder is a path")
    path = Path(folder)
    if path.is_symlink() or not path.resolve().is_relative_to(layout.shared.resolve()):
        raise ValueError(f"{path} is not below {layout.shared}")
    if path in _held:
        return {}
    try:
        handle = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise CannotRun(f"no file system can be made to hang here: {error}") from error
    words = f"fd={handle},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    place = str(path.resolve()).encode()
    if libc.mount(_NAME.encode(), place, b"fuse", 0, words.encode()) != 0:
        number = ctypes.get_errno()
        os.close(handle)
        raise ClusterError(f"mount on {path}: {os.strerror(number)}")
    _held[path] = handle
    return {}


def answer_again() -> None:
    """Take all of these mounts away; whoever still waits gets an error."""
    for handle in _held.values():
        os.close(handle)
    _held.clear()
    for line in Path("/proc/self/mounts").read_text().splitlines():
        name, place, *_ = line.split(" ")
        if name == _NAME:
            command("umount", "--lazy", place)
