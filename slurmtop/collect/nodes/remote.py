"""What every way onto a node offers: start one script there, read what it prints, end it."""

from collections.abc import AsyncIterator
from typing import Protocol

from slurmtop.model.reach import Way


class RemoteProcess(Protocol):
    """A ``/bin/sh`` on a node that runs one script."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Its stdout as it comes, until it ends. Raises ``NodeUnreachable`` where the connection
        broke on the way."""
        ...

    @property
    def stderr(self) -> bytes:
        """The last of what came on stderr so far, at most 64 KiB: banners, and ssh's own words."""
        ...

    async def close(self) -> None:
        """End it and what it started, on the node too; returns within a second or so even where a
        process there cannot be ended. To close what has ended does nothing."""
        ...


class NodeWay(Protocol):
    """One way onto nodes. ``start`` raises ``NodeUnreachable`` where it cannot get in.

    A way keeps what is costly (connections, a held-open step) between starts, never makes more
    than its bound of handshakes at once, and lets go of what is idle in ``close_idle``.
    """

    @property
    def way(self) -> Way: ...

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        """Run ``script`` by ``/bin/sh`` on ``host``; its stdin is empty."""
        ...

    def forget(self, host: str) -> None:
        """Try ``host`` again at once, whatever it said before."""
        ...

    async def close_idle(self) -> None: ...

    async def aclose(self) -> None:
        """End everything on every node, and close."""
        ...
