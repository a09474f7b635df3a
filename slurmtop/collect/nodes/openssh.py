"""The way onto nodes by the ``ssh`` command, without questions: for what only ssh can do.

Host-based login, GSSAPI, proxy commands, and a master connection that the person has opened: that
one is used where it stands (ControlPath as their settings say), but none is ever made
(``ControlMaster=no``). Host keys must be known whatever the settings say, and none is added.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping

from slurmtop.collect.child import ended, keep_tail, let_go, start_child
from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.env import child_environment
from slurmtop.collect.nodes.backoff import BackOff
from slurmtop.collect.nodes.entrance import Doorway, Entrance, entrance
from slurmtop.collect.nodes.openssh_failures import explain_openssh
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.ssh_book import check_host_name
from slurmtop.collect.nodes.ssh_failures import explain_broken, explain_no_shell
from slurmtop.model.ports import Clock, NodeUnreachable
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble

STARTS_AT_ONCE = 8
#: Connecting, logging in (DNS and PAM may be slow) and the login shell, all together.
START_TIMEOUT_S = 25.0
_CLOSE_WAIT_S = 1.0
_KILL_WAIT_S = 0.5
_BLOCK = 64 * 1024
#: What ssh says of its own failures; a script of ours never ends with it.
_SSH_FAILED = 255

_OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "ControlMaster=no",
    "ConnectTimeout=5",
    "ConnectionAttempts=1",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    # pam_slurm_adopt speaks in a banner, which is shown from this level on.
    "LogLevel=INFO",
)


def ssh_argv(host: str, command: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The ``ssh`` that runs ``command`` on ``host`` and asks nothing."""
    words = [word for option in _OPTIONS for word in ("-o", option)]
    return ("ssh", *options, "-T", *words, "--", host, command)


class OpenSshProcess:
    """One ``ssh`` child and the script at its other end (a ``RemoteProcess``)."""

    def __init__(
        self,
        host: str,
        child: asyncio.subprocess.Process,
        transport: asyncio.SubprocessTransport,
        mark: str,
    ) -> None:
        self.host = host
        self._child = child
        self._transport = transport
        self._doorway = Doorway(mark)
        self._first = b""
        self._stderr = bytearray()
        self._reading = spawn(keep_tail(child.stderr, self._stderr), name=f"stderr of ssh {host}")

    async def enter(self, way_in: Entrance) -> None:
        """Send the script and wait until the login shell runs it."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                with contextlib.suppress(OSError):
                    self._child.stdin.write(way_in.payload)
                    await self._child.stdin.drain()
                while not self._doorway.inside:
                    chunk = await self._child.stdout.read(_BLOCK)
                    if not chunk:
                        break
                    self._first += self._doorway.feed(chunk)
        except TimeoutError:
            if self._doorway.noise:
                failure = explain_no_shell(self.host, None, self._doorway.noise, self.stderr)
            else:
                failure = explain_openssh(self.host, None, self.stderr)
            raise NodeUnreachable(self.host, failure) from None
        if self._doorway.inside:
            return
        rc = await self._ended()
        if rc == _SSH_FAILED and not self._doorway.noise:
            failure = explain_openssh(self.host, rc, self.stderr)
        else:
            failure = explain_no_shell(self.host, rc or 0, self._doorway.noise, self.stderr)
        raise NodeUnreachable(self.host, failure)

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self._child.stdout is not None
        chunk, self._first = self._first, b""
        while chunk or (chunk := await self._child.stdout.read(_BLOCK)):
            yield chunk
            chunk = b""
        rc = await self._ended()
        if rc is None or rc == _SSH_FAILED or rc < 0:
            said = self.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise NodeUnreachable(self.host, explain_broken(self.host, OSError(said)))

    @property
    def stderr(self) -> bytes:
        return bytes(self._stderr)

    async def close(self) -> None:
        try:
            # The end of its stdin reaches the watchdog on the node, whoever carries it there.
            if self._child.stdin is not None:
                self._child.stdin.close()
            if await ended(self._child, _CLOSE_WAIT_S):
                return
            self._signal(signal.SIGTERM)
            if not await ended(self._child, _KILL_WAIT_S):
                self._signal(signal.SIGKILL)
                await ended(self._child, _KILL_WAIT_S)
        finally:
            if self._child.returncode is None:
                self._signal(signal.SIGKILL)
            await cancel_and_wait(self._reading)
            await let_go(self._child, self._transport)

    async def _ended(self) -> int | None:
        """Its exit status once its output has ended; None where it goes on without one."""
        await ended(self._child, _CLOSE_WAIT_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_WAIT_S):
                await asyncio.shield(self._reading)
        return self._child.returncode

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)


class OpenSshWay:
    """A ``NodeWay``: one ``ssh`` child for each start, eight of them starting at once.

    ``options`` are more options of ``ssh``, such as ``-F FILE``.
    """

    def __init__(
        self, clock: Clock, environ: Mapping[str, str], *, options: tuple[str, ...] = ()
    ) -> None:
        self._environ = child_environment(environ)
        self._options = options
        self._back_off = BackOff(clock)
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)
        self._processes: set[OpenSshProcess] = set()

    @property
    def way(self) -> Way:
        return Way.OPENSSH

    @property
    def children(self) -> int:
        """``ssh`` children that run now."""
        return len(self._processes)

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        self._back_off.check(host)
        check_host_name(host)
        way_in = entrance(script)
        async with self._starting:
            # Whoever waited here behind a failure of the same host need not repeat it.
            self._back_off.check(host)
            process = await self._spawn(host, way_in)
            try:
                await process.enter(way_in)
            except NodeUnreachable as error:
                self._back_off.failed(host, error.failure)
                await process.close()
                raise
            except BaseException:
                await process.close()
                raise
        self._back_off.forget(host)
        return process

    def forget(self, host: str) -> None:
        """Try ``host`` again at once: the list of jobs changed, or somebody asks for it."""
        self._back_off.forget(host)

    async def close_idle(self) -> None:
        """Nothing is kept between starts."""

    async def aclose(self) -> None:
        await asyncio.gather(*(process.close() for process in tuple(self._processes)))

    async def _spawn(self, host: str, way_in: Entrance) -> OpenSshProcess:
        try:
            child, transport = await start_child(
                *ssh_argv(host, way_in.command, self._options),
                stdin=asyncio.subprocess.PIPE,
                env=self._environ,
            )
        except (OSError, ValueError) as error:
            sentence = f"The ssh command could not be started: {error}."
            raise NodeUnreachable(host, Failure(Trouble.LOCAL, sentence)) from error
        process = OpenSshProcess(host, child, transport, way_in.mark)
        self._processes.add(process)
        end = spawn(child.wait(), name=f"end of ssh {host}")
        end.add_done_callback(lambda _: self._processes.discard(process))
        return process
