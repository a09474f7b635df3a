"""One script over one channel of an open asyncssh connection.

Imports asyncssh, so it is itself imported only when a node is reached.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import asyncssh

from slurmtop.collect.nodes.entrance import Doorway, Entrance
from slurmtop.collect.nodes.ssh_failures import explain_broken, explain_no_shell
from slurmtop.model.ports import NodeUnreachable

#: How long a login shell may take to its first command: module files on a busy file system.
SHELL_TIMEOUT_S = 10.0
_CLOSE_WAIT_S = 1.0
_STDERR_BYTES = 64 * 1024
_HIGH_BYTES = 4 * 1024 * 1024


class SshProcess(asyncssh.SSHClientSession[bytes]):
    """One script on a node, over one channel of an open connection (a ``RemoteProcess``)."""

    def __init__(self, host: str, entrance: Entrance, on_closed: Callable[[], None]) -> None:
        self.host = host
        self.closed = asyncio.Event()
        """The node has let go of the channel, too."""
        self._on_closed = on_closed
        self._doorway = Doorway(entrance.mark)
        self._arrived = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queued = 0
        self._stderr = bytearray()
        self._rc: int | None = None
        self._lost: Exception | None = None
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None

    # What asyncssh calls

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is not None:
            self._stderr += data
            del self._stderr[:-_STDERR_BYTES]
            return
        was_inside = self._doorway.inside
        data = self._doorway.feed(data)
        if self._doorway.inside and not was_inside:
            self._arrived.set()
        if data:
            self._queued += len(data)
            self._chunks.put_nowait(data)
            if self._queued > _HIGH_BYTES and self._channel is not None:
                self._channel.pause_reading()

    def eof_received(self) -> bool:
        return True

    def exit_status_received(self, status: int) -> None:
        self._rc = status

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc
        self._channel = None
        self._chunks.put_nowait(None)
        self._arrived.set()
        self.closed.set()
        self._on_closed()

    # What a way offers

    async def enter(self, channel: asyncssh.SSHClientChannel[bytes], entrance: Entrance) -> None:
        """Send the script and wait until the login shell runs it."""
        # An account without a shell has closed it by now; why stands in what it said.
        with contextlib.suppress(OSError):
            channel.write(entrance.payload)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SHELL_TIMEOUT_S):
                await self._arrived.wait()
        if self._doorway.inside:
            return
        if self._lost is not None:
            raise NodeUnreachable(self.host, explain_broken(self.host, self._lost))
        rc = (self._rc if self._rc is not None else -1) if self.closed.is_set() else None
        failure = explain_no_shell(self.host, rc, self._doorway.noise, self.stderr)
        raise NodeUnreachable(self.host, failure)

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            chunk = await self._chunks.get()
            if chunk is None:
                # For whoever asks once more.
                self._chunks.put_nowait(None)
                break
            self._queued -= len(chunk)
            if self._queued <= _HIGH_BYTES // 2 and self._channel is not None:
                self._channel.resume_reading()
            yield chunk
        # An end without a status: the connection broke, or the shell was killed on the node.
        if self._lost is not None or self._rc is None:
            raise NodeUnreachable(self.host, explain_broken(self.host, self._lost))

    @property
    def stderr(self) -> bytes:
        return bytes(self._stderr)

    async def close(self) -> None:
        if self._channel is None:
            return
        # A closed channel is the end of its stdin, which the watchdog there waits for.
        self._channel.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WAIT_S):
                await self.closed.wait()


async def start(
    connection: asyncssh.SSHClientConnection,
    host: str,
    entrance: Entrance,
    on_closed: Callable[[], None],
) -> SshProcess:
    """Run ``entrance`` on an open connection; ``on_closed`` is called once, when the node has let
    go of the channel or refused it. A refused channel raises asyncssh's error."""
    made: list[SshProcess] = []

    def make() -> SshProcess:
        made.append(SshProcess(host, entrance, on_closed))
        return made[0]

    try:
        channel, _ = await connection.create_session(
            make, entrance.command, encoding=None, request_pty=False
        )
        await made[0].enter(channel, entrance)
    except BaseException:
        for session in made:
            await session.close()
        if not made:
            on_closed()
        raise
    return made[0]
