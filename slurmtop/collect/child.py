"""Starting a child whose pipes and transport are ours to close."""

import asyncio
import contextlib
from collections.abc import Mapping

_BLOCK = 64 * 1024
#: For the end of a child that was killed.
_END_WAIT_S = 1.0
#: Of what a child says on stderr so much is kept: its last words are those that tell.
_TAIL_BYTES = 64 * 1024


class _ChildProtocol(asyncio.subprocess.SubprocessStreamProtocol):
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        # A child that ends before it has read its stdin breaks that pipe. Its exit status says
        # why; asyncio would complain of an error that nobody has asked for.
        super().pipe_connection_lost(fd, None if fd == 0 else exc)


async def start_child(
    *argv: str | bytes, stdin: int, env: Mapping[str, str]
) -> tuple[asyncio.subprocess.Process, asyncio.SubprocessTransport]:
    """Start ``argv`` with pipes, in a session of its own: no key of the terminal reaches it, and
    one group ends all of it. :class:`OSError` or ValueError where that is not possible.

    What ``asyncio.create_subprocess_exec`` does, but the transport can be closed while pipes are
    still open at the other end.
    """
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _ChildProtocol(limit=_BLOCK, loop=loop),
        *argv,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env),
        start_new_session=True,
    )
    return asyncio.subprocess.Process(transport, protocol, loop), transport


async def ended(child: asyncio.subprocess.Process, seconds: float) -> bool:
    """Wait for its end, at most so long: has it come?"""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await child.wait()
    return child.returncode is not None


async def keep_tail(stream: asyncio.StreamReader | None, tail: bytearray) -> None:
    """Read ``stream`` to its end; ``tail`` holds the last 64 KiB of it at any time."""
    assert stream is not None
    while chunk := await stream.read(_BLOCK):
        tail += chunk
        del tail[:-_TAIL_BYTES]


async def let_go(child: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport) -> None:
    """Close what is ours of a child that was ended, also pipes that nobody has read to their end.

    Its end is waited for first, for a second: a transport that is closed before takes the exit
    status away from asyncio, which then complains of an unknown child.
    """
    try:
        if child.returncode is None:
            await ended(child, _END_WAIT_S)
    finally:
        transport.close()
