"""The process that touches files, so that a mount that hangs stops it and never slurmtop.

Run as a script by :mod:`slurmtop.collect.files`; answers one request after the other until its
input ends, which it does when slurmtop is gone, however it went. It imports next to nothing:
starting it must be cheap.

Request: ``length u32 | op u8 | offset u64 | count u64 | path bytes``.
Answer: ``length u32 | status u8 | payload``. Status 0 is good; else the payload is
``errno u32 | text``. ``read`` answers the bytes, ``stat`` six integers, ``list`` the names,
each ended by a NUL.
"""

import errno
import os
import stat
import struct

READ, STAT, LIST = 1, 2, 3
HEAD = struct.Struct(">I")
REQUEST = struct.Struct(">BQQ")
#: size, mtime in ns, device, inode, is a folder, is a regular file
STAT_ANSWER = struct.Struct(">QqQQBB")
#: More is no log and no folder that a person looks at.
MOST_BYTES = 4 * 1024 * 1024
MOST_NAMES = 65_536


def read_block(path: bytes, offset: int, count: int) -> bytes:
    """At most ``count`` bytes of a regular file; never blocks on a pipe or a device."""
    # Opening a device can have effects of its own (a tape rewinds), so look first; and look
    # again at what was opened, since the name may have changed hands in between.
    check_regular(os.stat(path))  # noqa: PTH116 - pathlib is not loaded here
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    handle = os.open(path, flags)
    try:
        check_regular(os.fstat(handle))
        parts = []
        left = min(count, MOST_BYTES)
        while left:
            part = os.pread(handle, left, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def check_regular(info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise OSError(errno.EISDIR, "Is a directory")
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")


def stat_file(path: bytes) -> bytes:
    info = os.stat(path)  # noqa: PTH116
    return STAT_ANSWER.pack(
        info.st_size,
        info.st_mtime_ns,
        info.st_dev,
        info.st_ino,
        stat.S_ISDIR(info.st_mode),
        stat.S_ISREG(info.st_mode),
    )


def list_folder(path: bytes) -> bytes:
    names = []
    with os.scandir(path) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > MOST_NAMES:
                raise OSError(errno.EOVERFLOW, f"More than {MOST_NAMES} entries")
    return b"".join(name + b"\0" for name in sorted(names))


def answer(request: bytes) -> bytes:
    op, offset, count = REQUEST.unpack_from(request)
    path = request[REQUEST.size :]
    try:
        if op == READ:
            return b"\0" + read_block(path, offset, count)
        if op == STAT:
            return b"\0" + stat_file(path)
        return b"\0" + list_folder(path)
    except (OSError, ValueError, OverflowError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        text = getattr(error, "strerror", None) or str(error)
        return b"\1" + HEAD.pack(number) + text.encode("utf-8", "replace")


def receive(count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def send(data: bytes) -> None:
    view = memoryview(HEAD.pack(len(data)) + data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    # A session of its own: ctrl-C in the terminal is not meant for it. Not standing in the
    # user's folder, so that it never keeps a mount busy.
    os.setsid()
    os.chdir("/")
    try:
        while True:
            send(answer(receive(HEAD.unpack(receive(HEAD.size))[0])))
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
