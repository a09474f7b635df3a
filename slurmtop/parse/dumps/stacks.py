"""Python stacks as tools print them: ``py-spy dump`` (JSON and text) and Python's faulthandler.

JSON of py-spy 0.4.3 (``dump --json``), a list of threads, the newest first::

    [{"pid": 4711, "thread_id": 139, "thread_name": "MainThread", "os_thread_id": 4711,
      "active": true, "owns_gil": false, "frames": [{"name": "step", "filename": "/home/a/train.py",
      "module": null, "short_filename": "train.py", "line": 37, "locals": null, "is_entry": true}]}]

Its text (the frames innermost first in all three forms)::

    Thread 4711 (active+gil): "MainThread"
        step (train.py:37)

faulthandler (a signal, ``dump_traceback_later``, a fatal error)::

    Thread 0x00007f1c2e7fc700 (most recent call first):
      File "/home/a/train.py", line 37 in step

Names of threads, functions and files are the program's own: any text. Secrets in them are masked.
Text can be forged by such names; only JSON tells them apart.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from slurmtop.model.stacks import Frame, ThreadStack
from slurmtop.parse.mask import mask_text

_MOST_THREADS = 1_000
#: The innermost ones are kept: a recursion without end shows itself in them.
_MOST_FRAMES = 300
_LONGEST_NAME = 300
_LONGEST_PATH = 1_000
_MOST_BYTES = 8 * 1024 * 1024
_LARGEST = 1 << 63

_THREAD = re.compile(
    r'Thread (?:([0-9]{1,18}|0x[0-9A-Fa-f]{1,16}) )?\(([a-z+]{1,40})\)(?:: "(.*)")?'
)
_CALL = re.compile(r"    (.{1,1300}?) \((.{1,1000}):([0-9]{1,9})\)")
_CALL_BARE = re.compile(r"    (.{1,1300}?) \((.{1,1000})\)")
_FAULT_THREAD = re.compile(
    r"(?:Current thread|Thread) 0x[0-9a-f]{1,16}(?: \[(.{0,300})\])? \(most recent call first\):"
)
_FAULT_CALL = re.compile(r'  File "(.{0,1000})", line ([0-9]{1,9}) in (.{0,300})')


def parse_py_spy_json(data: bytes, pids: Sequence[int] = ()) -> tuple[ThreadStack, ...]:
    """The threads, the main one first (``pids``: the process, in every namespace); empty where this
    is no such list. What stands before the first ``[`` of a line of its own is passed over.
    """
    if len(data) > _MOST_BYTES:
        return ()
    text = data.decode("utf-8", "replace")
    start = 0 if text.startswith("[") else text.find("\n[") + 1
    if not text.startswith("[", start):
        return ()
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(value, list):
        return ()
    threads = [_thread(one) for one in value[-_MOST_THREADS:] if _is_thread(one)]
    return main_first(reversed(threads), pids)


def parse_py_spy_text(data: bytes, pids: Sequence[int] = ()) -> tuple[ThreadStack, ...]:
    """The threads of py-spy's text form, the main one first; files are short or whole there."""
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    for line in _lines(data):
        head = _THREAD.fullmatch(line)
        if head is not None:
            _close(threads, frames)
            threads.append(_text_thread(head))
        elif threads:
            frames += _text_frame(line)
    _close(threads, frames)
    return main_first(threads[:_MOST_THREADS], pids)


def parse_faulthandler(data: bytes) -> tuple[ThreadStack, ...]:
    """The threads of one dump of faulthandler in their order: the main one is last there, unless it
    is the current one. Lines of anything else between them end a thread."""
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    inside = False
    for line in _lines(data):
        head = _FAULT_THREAD.fullmatch(line)
        call = _FAULT_CALL.fullmatch(line) if inside else None
        if head is not None:
            _close(threads, frames)
            threads.append(ThreadStack(name=_name(head[1] or "")))
            inside = True
        elif call is not None:
            frames.append(Frame(_name(call[3]), _path(call[1]), int(call[2])))
        elif line != "  ...":
            inside = False
    _close(threads, frames)
    return tuple(threads[:_MOST_THREADS])


def main_first(threads: Iterable[ThreadStack], pids: Sequence[int]) -> tuple[ThreadStack, ...]:
    """The main thread, then the others in their order. It has the number of its process, or else
    its name; where there is neither, nothing is moved."""
    some = list(threads)
    at = next(
        (n for n, one in enumerate(some) if one.os_id is not None and one.os_id in pids), None
    )
    if at is None:
        at = next((n for n, one in enumerate(some) if one.name == "MainThread"), None)
    if at is not None:
        some.insert(0, some.pop(at))
    return tuple(some)


def _is_thread(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("frames"), list)


def _thread(value: dict[str, Any]) -> ThreadStack:
    name, active, gil = value.get("thread_name"), value.get("active"), value.get("owns_gil")
    frames = [_frame(one) for one in value["frames"][:_MOST_FRAMES] if isinstance(one, dict)]
    return ThreadStack(
        name=_name(name) if isinstance(name, str) else "",
        os_id=_number(value.get("os_thread_id")),
        active=active if isinstance(active, bool) else None,
        gil=gil if isinstance(gil, bool) else None,
        frames=tuple(frames),
    )


def _frame(value: dict[str, Any]) -> Frame:
    name, path, line = value.get("name"), value.get("filename"), _number(value.get("line"))
    return Frame(
        _name(name) if isinstance(name, str) else "",
        _path(path) if isinstance(path, str) else "",
        # py-spy prints 0 for a frame of C code.
        line or None,
    )


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _LARGEST else None


def _lines(data: bytes) -> list[str]:
    return data[:_MOST_BYTES].decode("utf-8", "replace").split("\n")


def _text_thread(head: re.Match[str]) -> ThreadStack:
    number, state, name = head.groups()
    words = state.split("+")
    return ThreadStack(
        name=_name(name or ""),
        os_id=None if number is None or number.startswith("0x") else int(number),
        active="active" in words if {"active", "idle"} & set(words) else None,
        gil="gil" in words,
    )


def _text_frame(line: str) -> list[Frame]:
    call = _CALL.fullmatch(line)
    if call is not None:
        return [Frame(_name(call[1]), _path(call[2]), int(call[3]) or None)]
    bare = _CALL_BARE.fullmatch(line)
    return [] if bare is None else [Frame(_name(bare[1]), _path(bare[2]), None)]


def _close(threads: list[ThreadStack], frames: list[Frame]) -> None:
    if threads:
        threads[-1] = replace(threads[-1], frames=tuple(frames[:_MOST_FRAMES]))
    frames.clear()


@lru_cache(maxsize=16_384)
def _name(text: str) -> str:
    return mask_text(text[:_LONGEST_NAME])


@lru_cache(maxsize=16_384)
def _path(text: str) -> str:
    """Of a path that is too long the end is told: there is the file."""
    return mask_text(text[-_LONGEST_PATH:])
