"""The way onto the node that slurmtop itself runs on: a shell of our own."""

import asyncio
import platform
import signal
from collections.abc import AsyncIterator, Iterable, Mapping

from slurmtop.collect.child import ended, keep_tail, let_go, start_child
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.env import child_environment
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.session import signal_session
from slurmtop.model.host_names import owner_of
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble

_BLOCK = 64 * 1024
_TERM_WAIT_S = 0.5


class LocalScript:
    """A script in a session of its own (a ``RemoteProcess``)."""

    def __init__(
        self, child: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport
    ) -> None:
        self._child = child
        self._transport = transport
        self._stderr = bytearray()
        self._reading = spawn(keep_tail(child.stderr, self._stderr), name="stderr of a script here")

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self._child.stdout is not None
        while chunk := await self._child.stdout.read(_BLOCK):
            yield chunk

    @property
    def stderr(self) -> bytes:
        return bytes(self._stderr)

    async def close(self) -> None:
        session = self._child.pid
        try:
            if signal_session(session, signal.SIGTERM):
                await ended(self._child, _TERM_WAIT_S)
        finally:
            signal_session(session, signal.SIGKILL)
            await cancel_and_wait(self._reading)
            await let_go(self._child, self._transport)


class HereWay:
    """A ``NodeWay`` onto this machine alone."""

    def __init__(self, environ: Mapping[str, str], *, hostname: str | None = None) -> None:
        self._names = own_names(environ, hostname)
        self._environ = child_environment(environ)
        self._running: set[LocalScript] = set()

    @property
    def way(self) -> Way:
        return Way.HERE

    def is_here(self, host: str) -> bool:
        """Is ``host`` this machine? By the name that slurmd goes by, or by the machine's own."""
        return is_called(host, self._names)

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        try:
            child, transport = await start_child(
                "/bin/sh",
                "-c",
                script,
                "slurmtop-script",
                stdin=asyncio.subprocess.DEVNULL,
                env=self._environ,
            )
        except (OSError, ValueError) as error:
            sentence = f"A shell could not be started here on {host}: {error}."
            raise NodeUnreachable(host, Failure(Trouble.LOCAL, sentence)) from error
        process = LocalScript(child, transport)
        self._running.add(process)
        end = spawn(child.wait(), name="end of a script here")
        end.add_done_callback(lambda _: self._running.discard(process))
        return process

    def forget(self, host: str) -> None:
        """No failure is kept."""

    async def close_idle(self) -> None:
        """Nothing is kept between starts."""

    async def aclose(self) -> None:
        await asyncio.gather(*(process.close() for process in tuple(self._running)))
        self._running.clear()


def own_names(environ: Mapping[str, str], hostname: str | None = None) -> tuple[str, ...]:
    """What this machine is called: by slurmd first, where it runs under one."""
    name = platform.node() if hostname is None else hostname
    return tuple(word for word in (environ.get("SLURMD_NODENAME", ""), name) if word)


def is_called(host: str, names: Iterable[str]) -> bool:
    """Is ``host``, as Slurm writes it, one of ``names`` or one of them without its domain?"""
    return any(owner_of(name, (host.lower(),)) is not None for name in names)
