"""A command for a node as a script between marks, and its answer taken out from between them.

Banners, ``.bashrc`` lines and locale warnings come before, after and beside an answer, so only what
stands between two marks counts, and the exit status is taken from the last one::

    <<<slurmtop-5f0c2a>>>
    0, GPU-77aa0000-1111-2222-3333-444455556666, 97
    <<<slurmtop-5f0c2a err>>>
    <<<slurmtop-5f0c2a end 0>>>

An answer without its last mark was cut off and is none. Pure but for the random mark.
"""

import secrets
import shlex
from dataclasses import dataclass, field

#: From the polite to the sure end of a command that is out of time, on the node.
_KILL_AFTER_S = 2
_FOLLOWS_MARK = b">>>\n"
_LONGEST_TAIL = 64


def new_mark() -> str:
    """Letters that no answer can know beforehand."""
    return f"<<<slurmtop-{secrets.token_hex(6)}"


def framed(argv: tuple[str, ...], mark: str, *, timeout_s: float | None = None) -> bytes:
    """The script that runs ``argv`` between marks; its stdin is ``/dev/null``.

    stderr is kept apart and printed behind stdout. ``timeout_s`` is held on the node as well, where
    there is a ``timeout`` command (exit 124): then nothing is left there should we be gone.
    """
    words = " ".join(shlex.quote(word) for word in argv)
    limit = ""
    if timeout_s is not None:
        limit = f"timeout -k {_KILL_AFTER_S} {timeout_s:g} "
    lines = [
        "LC_ALL=C.UTF-8; TZ=UTC; export LC_ALL TZ",
        f"lim='{limit}'; command -v timeout >/dev/null 2>&1 || lim=''",
        f"printf '\\n%s\\n' '{mark}>>>'",
        "exec 3>&1",
        f"err=$($lim {words} 2>&1 >&3 3>&- </dev/null); rc=$?",
        f"printf '\\n%s\\n%s\\n%s\\n' '{mark} err>>>' \"$err\" \"{mark} end $rc>>>\"",
        "exit 0",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


@dataclass(slots=True)
class Unframer:
    """Takes the payload of one framed answer out of chunks that are cut anywhere.

    ``feed`` gives the part of stdout that is sure to be payload. ``rc`` and ``stderr`` are known
    once ``complete``; an answer that ends without being complete was cut off. With ``eager`` a
    newline is given out at once, though it may be that of a mark: a line of a stream would else
    have no end until the next one comes. An end without a newline may then get one.
    """

    mark: str
    eager: bool = False
    begun: bool = False
    complete: bool = False
    rc: int | None = None
    stderr: bytes = b""
    _buffer: bytes = b""
    _given: int = 0
    """1 where the newline at the start of the buffer was given out already."""
    _in_err: bool = False
    _marks: tuple[bytes, bytes, bytes] = field(init=False)

    def __post_init__(self) -> None:
        mark = self.mark.encode()
        self._marks = (mark + b">>>\n", b"\n" + mark + b" err>>>\n", b"\n" + mark + b" end ")

    def feed(self, chunk: bytes) -> bytes:
        if self.complete:
            return b""
        self._buffer += chunk
        begin, err, end = self._marks
        if not self.begun:
            before, found, rest = self._buffer.partition(begin)
            if not found:
                self._buffer = before[-len(begin) :]
                return b""
            self.begun, self._buffer = True, rest
        payload = b""
        if not self._in_err:
            payload, found, rest = self._buffer.partition(err)
            if not found:
                # A mark may have begun at the end of what is here.
                keep = _overlap(payload, err)
                ready, self._buffer = payload[: len(payload) - keep], payload[len(payload) - keep :]
                return self._given_out(ready)
            self._in_err, self._buffer = True, rest
            payload, self._given = payload[self._given :], 0
        # The newline before the end mark belongs to it, also where stderr is empty.
        said, found, rest = (b"\n" + self._buffer).partition(end)
        status, closed, _ = rest[:_LONGEST_TAIL].partition(_FOLLOWS_MARK)
        if found and closed:
            self.complete = True
            self.stderr = said[1:]
            self.rc = int(status) if status.isdigit() else None
            self._buffer = b""
        return payload

    def _given_out(self, ready: bytes) -> bytes:
        if ready:
            ready, self._given = ready[self._given :], 0
        if self.eager and self._buffer == b"\n" and not self._given:
            self._given = 1
            return ready + b"\n"
        return ready


def _overlap(data: bytes, mark: bytes) -> int:
    """How many bytes at the end of ``data`` may be the beginning of ``mark``."""
    for size in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:size]):
            return size
    return 0
