"""The form of a recording: JSON lines that a person can read, with secrets masked.

``commands.jsonl``, one line a command (``same`` stands for the stdout of the line before it with
the same command)::

    {"t": "2031-05-05T12:00:00+00:00", "argv": ["squeue", "-h"], "host": null, "stdin": "",
     "rc": 0, "took_s": 0.3, "stdout": "4711...", "stderr": "", "truncated": false}
    {"t": "...", "argv": ["squeue", "-h"], "host": null, "stdin": "", "rc": 0, "took_s": 0.2,
     "same": true, "stderr": "", "truncated": false}

``files.jsonl``, one line a look at a file::

    {"t": "...", "op": "read", "path": "/w/slurm-7.out", "host": null, "offset": 0, "length": 4,
     "data": "hell"}

A script of ours that ran on a node stands there by the SHA-256 of its text, and is known by its
name.
What ran out of time and was waited for no longer has ``left_after_s`` (a command) or ``left`` in
the place of its answer. Bytes that are no UTF-8 are ``{"b64": "..."}``. ``session.json`` keeps the
record mark, and who was answered (``uid``, ``user``).
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from slurmtop.model.ports import Command
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.mask import MARK, is_key_line, mask

SCHEMA = "slurmtop.recording/1"
COMMANDS, FILES, SESSION = "commands.jsonl", "files.jsonl", "session.json"
#: Where a mask would be longer than the secret in a file, whose offsets must stay.
_SHORT_MARK = b"***"
#: Separators of ours, around which a masked value must end. A NUL stands in no Slurm text.
_OURS = ((b"\x1f", b"\n\x00\x1f\x00\n"), (b"\x1e", b"\n\x00\x1e\x00\n"))

NOT_KEPT = "it is packed or no text, which cannot be masked: its bytes were not kept"
#: Letters of UTF-16: a zero beside each.
_WIDE = re.compile(rb"(?:[\t-~]\x00){6}")
#: The mask knows a key whole up to this many bytes.
_LONGEST_KEY = 20_000
#: In place of what is no letter there.
_NO_LETTER = 1

_OUR_SCRIPTS = "slurmtop-"
_SUM = "sha256:"

Key = tuple[str, ...]


def mask_output(data: bytes) -> bytes:
    """``data`` with secrets masked; our separators still stand where they stood."""
    for ours, shielded in _OURS:
        data = data.replace(ours, shielded)
    data = mask(data)
    for ours, shielded in _OURS:
        data = data.replace(shielded, ours)
    return data


def mask_block(data: bytes, offset: int, length: int) -> bytes:
    """``data[offset:offset + length]`` of a file, masked, of the same length.

    The bytes around it are there so that a secret is known even where the block cuts it.
    """
    kept = _without_torn_key(b"\n".join(_masked_lines(data)), offset)
    if _WIDE.search(kept):
        for start in (0, 1):
            kept = _masked_wide(kept, start)
    return kept[offset : offset + length]


def _masked_lines(data: bytes) -> list[bytes]:
    """The lines, each masked within its length."""
    lines, masked = data.split(b"\n"), mask(data).split(b"\n")
    if len(lines) != len(masked):
        masked = [mask(line) for line in lines]
    return [
        line if line == other else _fitted(other, len(line))
        for line, other in zip(lines, masked, strict=True)
    ]


def _fitted(line: bytes, size: int) -> bytes:
    if len(line) > size:
        line = line.replace(MARK, _SHORT_MARK)
    return line[:size].ljust(size)


def _without_torn_key(data: bytes, offset: int) -> bytes:
    """Where all that stands before the block is lines of a key whose start is further up, neither
    is the rest of these lines kept."""
    lines = data.split(b"\n")
    if offset < _LONGEST_KEY:
        return data
    count = next((at for at, line in enumerate(lines[1:], 1) if not is_key_line(line)), len(lines))
    size = len(b"\n".join(lines[:count]))
    if size <= offset:
        return data
    hidden = [_fitted(_SHORT_MARK, len(line)) for line in lines[:count]]
    return b"\n".join(hidden + lines[count:])


def _masked_wide(data: bytes, start: int) -> bytes:
    """UTF-16 whose letters stand at every second byte from ``start`` on, masked as its letters."""
    beside = data[1 - start :: 2]
    letters = bytes(
        letter if not zero and letter < 128 else _NO_LETTER
        for letter, zero in zip(data[start::2], beside, strict=False)
    )
    out, at = bytearray(data), 0
    for line, other in zip(letters.split(b"\n"), _masked_lines(letters), strict=True):
        if line != other:
            # A mark of ours has letters that are no ASCII.
            other = _fitted(other.rstrip().replace(MARK, _SHORT_MARK), len(line))
            pairs = enumerate(zip(line, other, strict=True))
            same = next((index for index, (was, now) in pairs if was != now), len(line))
            for first, units in (
                (start, other[same:].replace(bytes((_NO_LETTER,)), b"?")),
                (1 - start, bytes(len(line) - same)),
            ):
                out[first + 2 * (at + same) : first + 2 * (at + len(line)) : 2] = units
        at += len(line) + 1
    return bytes(out)


def mask_text(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    masked = mask(data)
    return text if masked == data else masked.decode("utf-8", "replace")


def mask_path(path: str) -> str:
    """Each part of a path for itself: what stands behind a masked folder stays."""
    return mask_text(path) if path.startswith("/") else mask_text(f"./{path}").removeprefix("./")


def mask_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Each word masked, seen together with the one before it: ``--token X`` is two words."""
    out: list[str] = []
    before = ""
    for word in argv:
        together = mask_text(f"{before} {word}")
        front = f"{before} "
        out.append(together.removeprefix(front) if together.startswith(front) else mask_text(word))
        before = word
    return tuple(out)


def script_place(argv: Sequence[str]) -> int | None:
    """Where in a command for a node a script of ours stands: ``/bin/sh -c SCRIPT slurmtop-NAME``,
    perhaps behind ``sudo -n``. It goes by its name: its text is that of a version of slurmtop."""
    for place in (2, 4):
        front = tuple(argv[place - 2 : place])
        if front == ("/bin/sh", "-c") and argv[place + 1 : place + 2]:
            return place if argv[place + 1].startswith(_OUR_SCRIPTS) else None
    return None


def kept_argv(command: Command) -> tuple[str, ...]:
    """The words of a command as they are written down: masked, a script of ours by its sum."""
    argv = command.argv
    place = script_place(argv) if command.host is not None else None
    if place is None:
        return mask_argv(argv)
    digest = hashlib.sha256(argv[place].encode("utf-8", "surrogatepass")).hexdigest()
    text = argv[place] if argv[place].startswith(_SUM) else f"{_SUM}{digest}"
    return (*mask_argv(argv[:place]), text, *mask_argv(argv[place + 1 :]))


def command_key(command: Command, *, stream: bool) -> Key:
    """What makes two commands the same one, as far as their masked form tells."""
    stdin = json.dumps(bytes_form(mask_output(command.stdin)))
    argv = kept_argv(command)
    place = script_place(argv) if command.host is not None else None
    words = argv if place is None else (*argv[:place], *argv[place + 1 :])
    return ("stream" if stream else "run", command.host or "", stdin, *words)


def file_key(op: str, path: str, host: str | None, offset: int = 0, length: int = 0) -> Key:
    return (op, mask_path(path), host or "", str(offset), str(length))


def bytes_form(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode("ascii")}


def bytes_of(form: Any) -> bytes:
    """Raises ValueError, KeyError or TypeError for what :func:`bytes_form` never made."""
    if isinstance(form, str):
        return form.encode("utf-8")
    return base64.b64decode(form["b64"], validate=True)


def failure_form(failure: Failure) -> dict[str, Any]:
    """Why a node could not be reached. ``retry_after_s`` null: unknown; -1: never."""
    wait_s = failure.retry_after_s
    return {
        "trouble": failure.trouble.value,
        "sentence": mask_text(failure.sentence),
        "raw": mask_text(failure.raw),
        "retry_after_s": -1.0 if wait_s == math.inf else wait_s,
        "copy": mask_text(failure.copy),
    }


def failure_of(form: Any) -> Failure:
    """Raises ValueError, KeyError or TypeError for what :func:`failure_form` never made."""
    wait_s = form["retry_after_s"]
    never = wait_s is not None and float(wait_s) < 0
    return Failure(
        Trouble(form["trouble"]),
        str(form["sentence"]),
        str(form["raw"]),
        math.inf if never else None if wait_s is None else float(wait_s),
        str(form.get("copy", "")),
    )


def json_line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
