"""Daemons of a node under a filter that lets nobody look into another process.

Whatever they start inherits it: ``ptrace`` and ``process_vm_readv`` are refused with EPERM, as
where the kernel is locked down, even between processes of one user. ``/proc`` stays readable.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from tests.cluster.layout import CannotRun

#: Kind of machine: its number in seccomp's data, and those of ptrace and process_vm_readv.
_NUMBERS = {"x86_64": (0xC000003E, 101, 310), "aarch64": (0xC00000B7, 117, 270)}
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# Codes of classic BPF: load a word at an offset, jump if equal, return.
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _filter(arch: int, *refused: int) -> bytes:
    """The filter: other architectures pass, for nothing here is of one."""
    count = len(refused)
    lines = [(_LOAD, 0, 0, 4), (_EQUAL, 0, count + 1, arch), (_LOAD, 0, 0, 0)]
    lines += [(_EQUAL, count - at, 0, number) for at, number in enumerate(refused)]
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
