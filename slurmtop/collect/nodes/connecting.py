"""A TCP connection to a name, where the name server may hang."""

import asyncio
import contextlib
import socket
import threading
from typing import Any


async def connected(host: str, port: int, *, family: int = 0, bind: str = "") -> socket.socket:
    """A connected socket, each address of the name in turn. The kernel's own errors are raised.

    ``family`` 0 is any; ``bind`` is the own address to connect from. The caller sets a time limit.
    """
    loop = asyncio.get_running_loop()
    failed: OSError = TimeoutError()
    for kind, type_, proto, _, address in await _addresses(host, port, family):
        sock = socket.socket(kind, type_, proto)
        sock.setblocking(False)
        try:
            if bind:
                sock.bind((bind, 0))
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failed


async def _addresses(host: str, port: int, family: int) -> list[Any]:
    """What ``getaddrinfo`` says, from a thread that may be left behind: a name server that hangs
    must not keep slurmtop from leaving, as a thread of the loop's own pool would."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def tell(found: list[Any] | None, error: OSError | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found or [])

    def ask() -> None:
        found, error = None, None
        try:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as failed:
            error = failed if isinstance(failed, OSError) else socket.gaierror(str(failed))
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, found, error)

    threading.Thread(target=ask, name=f"address of {host}", daemon=True).start()
    return await answer
