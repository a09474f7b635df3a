"""Daemons of a node under a filter that lets nobody look into another process.

Whatever they start inherits it: ``ptrace`` and ``process_vm_readv`` are refused with EPERM, as
where the kernel is locked down, even between processes of one user. ``/proc`` stays readable.

py-spy (0.4.3) then reads ``/proc/PID/mem`` instead, which a filter cannot tell by its path. But it
seeks to addresses there, and no file has that many bytes: so a seek that far is refused as well.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from tests.cluster.layout import CannotRun

#: Kind of machine: its number in seccomp's data, and those of lseek, ptrace and process_vm_readv.
_NUMBERS = {"x86_64": (0xC000003E, 8, 101, 310), "aarch64": (0xC00000B7, 62, 117, 270)}
#: Upper halves of an offset of 16 TiB and of the first negative one, and where that half stands
#: in the data: it is the second argument.
_TOO_FAR, _BACKWARDS, _OFFSET_AT = 0x1000, 0x80000000, 28
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Codes of classic BPF: load a word at an offset, jump if equal, jump if not less, return.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _filter(arch: int, seek: int, *refused: int) -> bytes:
    """The filter: other architectures pass, for nothing here is of one."""
    count = len(refused)
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 0, count + 5, arch), (_LOAD, 0, 0, 0)]
    lines += [(_EQUAL, count + 4 - at, 0, number) for at, number in enumerate(refused)]
    lines += [(_EQUAL, 0, 3, seek), (_LOAD, 0, 0, _OFFSET_AT)]
    lines += [(_AT_LEAST, 0, 1, _TOO_FAR), (_AT_LEAST, 0, 1, _BACKWARDS)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def seal() -> None:
    """Put this process, and all that it ever starts, under the filter. Needs root."""
    machine = platform.machine()
    if machine not in _NUMBERS:
        raise CannotRun(f"no filter of system calls is known for {machine}")
    code = _filter(*_NUMBERS[machine])
    held = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(held, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        number = ctypes.get_errno()
        raise CannotRun(f"no filter of system calls can be set here: {os.strerror(number)}")
