"""Python stacks as ``py-spy dump --json`` prints them.

Of py-spy 0.4.3 a list of threads, the newest first, frames innermost first::

    [{"pid": 4711, "thread_id": 139, "thread_name": "MainThread", "os_thread_id": 4711,
      "active": true, "owns_gil": false, "frames": [{"name": "step", "filename": "/home/a/train.py",
      "module": null, "short_filename": "train.py", "line": 37, "locals": null, "is_entry": true}]}]

Names of threads, functions and files are the program's own: any text. Secrets in them are masked.
Its text form is not read: such names can forge it.
"""

import json
from collections.abc import Iterable, Sequence
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


@lru_cache(maxsize=16_384)
def _name(text: str) -> str:
    return mask_text(text[:_LONGEST_NAME])


@lru_cache(maxsize=16_384)
def _path(text: str) -> str:
    """Of a path that is too long the end is told: there is the file."""
    return mask_text(text[-_LONGEST_PATH:])
