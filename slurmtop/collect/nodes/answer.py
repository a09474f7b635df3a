"""One answer from a node: what is between its marks, within bounds, or why there is none."""

from dataclasses import dataclass, field

from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.script import Unframer
from slurmtop.collect.streams import closing
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible

#: What a command may print past its limit before it is taken for a runaway and ended.
_OVERRUN_BYTES = 16 * 1024 * 1024
_KILLED = -9
_KEPT_BEFORE = 500
_AGAIN_S = 5.0


@dataclass(slots=True)
class Answer:
    """``whole`` once the last mark has come. ``rc`` is -9 for a runaway, as a killed child's."""

    unframer: Unframer
    max_bytes: int
    stdout: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    before: bytes = b""
    """The first of what came before the first mark: banners, or a shell that says no."""
    runaway: bool = False
    _seen: int = 0

    @property
    def whole(self) -> bool:
        return self.unframer.complete or self.runaway

    @property
    def rc(self) -> int | None:
        return _KILLED if self.runaway else self.unframer.rc

    @property
    def stderr(self) -> bytes:
        return self.unframer.stderr

    async def read(self, process: RemoteProcess) -> None:
        """Take all of it, until its last mark, its end, or the end of patience."""
        async with closing(process.chunks()) as chunks:
            async for chunk in chunks:
                self.take(chunk)
                if self.whole:
                    return

    def take(self, chunk: bytes) -> None:
        if not self.unframer.begun and len(self.before) < _KEPT_BEFORE:
            self.before = (self.before + chunk)[:_KEPT_BEFORE]
        payload = self.unframer.feed(chunk)
        self._seen += len(payload)
        room = self.max_bytes - len(self.stdout)
        self.stdout += payload[:room]
        if len(payload) > room:
            self.truncated = True
            self.runaway = self._seen > 2 * self.max_bytes + _OVERRUN_BYTES


def cut_off(host: str, stderr: bytes) -> Failure:
    """An answer that began and has no end."""
    sentence = (
        f"The answer of {host} was cut off before its end, so it is not used: what ran there was"
        " killed, or the way to it broke."
    )
    return Failure(Trouble.OTHER, sentence, _words(stderr), _AGAIN_S)


def never_ran(host: str, stdout: bytes, stderr: bytes) -> Failure:
    """A shell that ended before it ran what it was given."""
    said = visible(_words(stdout or stderr).strip().split("\n")[0])[:200]
    told = f": {said}" if said else " and said nothing"
    sentence = f"{host} let us in, but its shell ran nothing{told}"
    return Failure(Trouble.DENIED, sentence, _words(stderr), 60.0)


def _words(data: bytes) -> str:
    return data.decode("utf-8", "replace")[-2_000:].strip()
