"""The way onto nodes by connections of our own (asyncssh).

One connection a host, and one to each jump host whoever stands behind it; eight logins at once;
eight channels at once on a connection, which is below sshd's MaxSessions of ten. What OpenSSH
would use is asked of ``ssh -G``; what only ``ssh`` can do is left to it, in so many words.
"""

import asyncio
import importlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.nodes.backoff import BackOff
from slurmtop.collect.nodes.entrance import entrance
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.ssh_book import KeyFile, Person, SshBook
from slurmtop.collect.nodes.ssh_failures import (
    Attempt,
    explain_broken,
    explain_left_to_ssh,
    explain_login,
    explain_no_session,
    explain_too_many,
    on_the_way,
)
from slurmtop.model.ports import Clock, NodeUnreachable, Runner, RunnerError
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.ssh_config import Jump, SshSettings

if TYPE_CHECKING:
    from slurmtop.collect.nodes import ssh_client

HANDSHAKES_AT_ONCE = 8
CHANNELS_A_CONNECTION = 8
IDLE_S = 60.0
MOST_CONNECTIONS = 512
_CHANNEL_WAIT_S = 10.0
#: sshd counts a session until it has reaped its shell, some time after it closed the channel.
_REFUSED_WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
#: A busy sshd drops some of those who come (MaxStartups), before it says a word; so does one that
#: other people log in to just now.
_DROPPED_WAITS_S = (0.3, 0.6, 1.2)
_LONGEST_CHAIN = 4
_CLOSE_WAIT_S = 1.0


#: A host with the user and port that a jump names.
_Key = tuple[str, str | None, int | None]


@dataclass(eq=False, slots=True)
class _Link:
    """The one connection to a host."""

    key: _Key
    connection: "ssh_client.Connection"
    behind: "_Link | None"
    used_at: float
    channels: int = 0
    carries: int = 0
    """Connections that go through this one."""
    freed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def alive(self) -> bool:
        return not self.connection.is_closed()

    @property
    def busy(self) -> bool:
        return bool(self.channels or self.carries)


class SshWay:
    """A ``NodeWay``. ``local`` runs ``ssh -G`` and reads known hosts and keys on this machine.

    ``options`` are more options for ``ssh -G``, such as ``-F FILE``. ``logins_in_flight`` and
    ``most_in_flight`` count handshakes for whoever measures.
    """

    def __init__(
        self,
        local: Runner,
        clock: Clock,
        environ: Mapping[str, str],
        person: Person,
        *,
        options: tuple[str, ...] = (),
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self._clock = clock
        self._book = SshBook(local, clock, environ, person, options=options)
        self._back_off = BackOff(clock)
        self._handshakes = asyncio.Semaphore(HANDSHAKES_AT_ONCE)
        self._most_connections = most_connections
        self._links: dict[_Key, _Link] = {}
        self._opening: dict[_Key, asyncio.Task[_Link]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._importing: asyncio.Task[object] | None = None
        self.logins_in_flight = 0
        self.most_in_flight = 0

    @property
    def way(self) -> Way:
        return Way.SSH

    @property
    def connections(self) -> int:
        """Open connections, those to jump hosts included."""
        return sum(1 for link in self._links.values() if link.alive)

    async def start(self, host: str, script: bytes) -> RemoteProcess:
        self._back_off.check(host)
        try:
            link, is_new = await self._link_to(host)
            try:
                process = await self._run(link, host, script)
            except NodeUnreachable:
                if link.alive or is_new:
                    raise
                # It had died unseen, e.g. while this machine slept: once more, with a new one.
                link, _ = await self._link_to(host)
                process = await self._run(link, host, script)
        except NodeUnreachable as error:
            self._back_off.failed(host, error.failure)
            if error.failure.trouble is Trouble.DENIED:
                # Settings and keys may be mended until the next try.
                self._book.forget(host)
            raise
        self._back_off.forget(host)
        return process

    def forget(self, host: str) -> None:
        """Try ``host`` again at once: the list of jobs changed, or somebody asks for it."""
        if self._back_off.forget(host):
            self._book.forget(host)

    async def close_idle(self) -> None:
        """Close what carried nothing for a minute, and forget what broke."""
        self._let_go(self._clock.monotonic() - IDLE_S)

    async def aclose(self) -> None:
        await cancel_and_wait(*self._opening.values())
        self._opening.clear()
        links = tuple(self._links.values())
        self._links.clear()
        # Those that go through others first.
        for link in sorted(links, key=lambda link: link.carries):
            self._close(link)
        if self._closing:
            await asyncio.wait(tuple(self._closing), timeout=_CLOSE_WAIT_S)
            for link in links:
                link.connection.abort()
            await cancel_and_wait(*self._closing)
        await self._book.aclose()
        if self._importing is not None:
            await asyncio.gather(self._importing, return_exceptions=True)

    # One script on a connection

    async def _run(self, link: _Link, host: str, script: bytes) -> RemoteProcess:
        import asyncssh

        from slurmtop.collect.nodes import ssh_process

        def closed() -> None:
            link.channels -= 1
            link.used_at = self._clock.monotonic()
            link.freed.set()

        for wait_s in (*_REFUSED_WAITS_S, None):
            await self._channel(link, host)
            try:
                return await ssh_process.start(link.connection, host, entrance(script), closed)
            except asyncssh.ChannelOpenError as error:
                if not link.alive:
                    raise NodeUnreachable(host, explain_broken(host, error)) from error
                if wait_s is None:
                    failure = explain_no_session(host, link.channels, str(error))
                    raise NodeUnreachable(host, failure) from error
            except (asyncssh.Error, OSError) as error:
                raise NodeUnreachable(host, explain_broken(host, error)) from error
            await self._clock.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    async def _channel(self, link: _Link, host: str) -> None:
        """Take one of the connection's channels; they come back when the node lets them go."""
        try:
            async with asyncio.timeout(_CHANNEL_WAIT_S):
                while link.channels >= CHANNELS_A_CONNECTION:
                    link.freed.clear()
                    await link.freed.wait()
        except TimeoutError:
            raise NodeUnreachable(host, explain_too_many(host, link.channels)) from None
        link.channels += 1
        link.used_at = self._clock.monotonic()

    # One connection a host

    async def _link_to(self, host: str) -> tuple[_Link, bool]:
        """The connection to ``host``, and whether it was made just now."""
        link = self._links.get((host, None, None))
        if link is not None and link.alive:
            return link, False
        try:
            route = await self._route(Jump(host=host), ())
            behind: _Link | None = None
            for to, settings in route:
                try:
                    behind = await self._link(to, settings, behind)
                except NodeUnreachable as error:
                    if to.host == host:
                        raise
                    failure = on_the_way(host, to.host, error.failure)
                    raise NodeUnreachable(host, failure) from error
        except RunnerError as error:
            if isinstance(error, NodeUnreachable):
                raise
            failure = Failure(Trouble.LOCAL, f"{host} was not reached: {error}")
            raise NodeUnreachable(host, failure) from error
        assert behind is not None
        return behind, True

    async def _route(
        self, to: Jump, via: tuple[Jump, ...], trail: tuple[str, ...] = ()
    ) -> list[tuple[Jump, SshSettings]]:
        """All hops to ``to``, the first one first; ``via`` are the jumps that are named before it.

        OpenSSH reaches the last jump host of ``ProxyJump FIRST,…,LAST`` as ``ssh -J FIRST,… LAST``.
        """
        settings = await self._book.settings(to.host, user=to.user, port=to.port)
        _refuse_what_only_ssh_can(to.host, settings)
        jumps = via or settings.proxyjump
        if not jumps or (len(jumps) == 1 and jumps[0].host in (to.host, settings.hostname)):
            return [(to, settings)]
        trail = (*trail, to.host)
        *first, last = jumps
        if last.host in trail or len(trail) > _LONGEST_CHAIN:
            sentence = f"The jump hosts in the ssh settings of {trail[0]} lead in a circle."
            raise NodeUnreachable(trail[0], Failure(Trouble.LOCAL, sentence, "", float("inf")))
        return [*await self._route(last, tuple(first), trail), (to, settings)]

    async def _link(self, to: Jump, settings: SshSettings, behind: _Link | None) -> _Link:
        key = (to.host, to.user, to.port)
        link = self._links.get(key)
        if link is not None and link.alive:
            return link
        task = self._opening.get(key)
        if task is None:
            task = spawn(self._log_in(to, settings, behind), name=f"ssh to {to.host}")
            self._opening[key] = task
            task.add_done_callback(lambda done: self._opened(key, done))
        # Shielded: one who stops waiting must not take the connection from the others.
        return await asyncio.shield(task)

    def _opened(self, key: _Key, task: "asyncio.Task[_Link]") -> None:
        if self._opening.get(key) is task:
            del self._opening[key]
        if not task.cancelled():
            # Looked at, also where nobody waits for it any more.
            task.exception()

    async def _log_in(self, to: Jump, settings: SshSettings, behind: _Link | None) -> _Link:
        await self._imported()
        from slurmtop.collect.nodes import ssh_client

        known = await self._book.known(settings)
        keys = await self._book.keys(settings)
        attempt = Attempt(host=to.host, settings=settings, known=known)
        if behind is not None:
            behind.carries += 1
        try:
            for wait_s in (*_DROPPED_WAITS_S, None):
                try:
                    connection = await self._handshake(attempt, keys, behind)
                    break
                except ssh_client.LoginFailed as error:
                    failure = explain_login(error.attempt, error.error)
                    dropped = failure.trouble is Trouble.BUSY and not error.attempt.greeted
                    if wait_s is None or not dropped:
                        raise NodeUnreachable(to.host, failure) from error.error
                    await self._clock.sleep(wait_s * (1 + random.random()))  # noqa: S311
        except BaseException:
            if behind is not None:
                behind.carries -= 1
            raise
        link = _Link((to.host, to.user, to.port), connection, behind, self._clock.monotonic())
        self._links[link.key] = link
        return link

    async def _handshake(
        self, attempt: Attempt, keys: tuple[KeyFile, ...], behind: _Link | None
    ) -> "ssh_client.Connection":
        from slurmtop.collect.nodes import ssh_client

        async with self._handshakes:
            self._make_room()
            self.logins_in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.logins_in_flight)
            try:
                return await ssh_client.connect(
                    attempt,
                    keys,
                    self._book.agent(attempt.settings),
                    None if behind is None else behind.connection,
                )
            finally:
                self.logins_in_flight -= 1

    async def _imported(self) -> None:
        """Have asyncssh imported, in a thread, when the first node is reached."""
        if self._importing is None:
            self._importing = spawn(
                asyncio.to_thread(importlib.import_module, "slurmtop.collect.nodes.ssh_client"),
                name="import asyncssh",
            )
        await asyncio.shield(self._importing)

    # What is let go

    def _make_room(self) -> None:
        """At the bound, close the idle connection that was used longest ago."""
        if len(self._links) < self._most_connections:
            return
        self._let_go(float("-inf"))
        idle = [link for link in self._links.values() if not link.busy]
        if idle and len(self._links) >= self._most_connections:
            self._close(min(idle, key=lambda link: link.used_at))

    def _let_go(self, before: float) -> None:
        for link in tuple(self._links.values()):
            if not link.alive or (not link.busy and link.used_at <= before):
                self._close(link)

    def _close(self, link: _Link) -> None:
        if self._links.get(link.key) is link:
            del self._links[link.key]
        if link.behind is not None:
            link.behind.carries -= 1
            link.behind.used_at = self._clock.monotonic()
        link.connection.close()
        task = spawn(link.connection.wait_closed(), name=f"close ssh to {link.key[0]}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _refuse_what_only_ssh_can(host: str, settings: SshSettings) -> None:
    what = settings.proxycommand and "a ProxyCommand"
    if not what and settings.unsupported:
        what = f"the setting {settings.unsupported[0]}"
    if what:
        raise NodeUnreachable(host, explain_left_to_ssh(host, what))
