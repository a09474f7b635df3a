"""The ways onto nodes, put together for the wiring. What only a node needs is imported with it."""

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slurmtop.collect.nodes.expected import Expected
from slurmtop.collect.nodes.here import HereWay
from slurmtop.collect.nodes.remote import NodeWay
from slurmtop.collect.nodes.runner import NodeRunner
from slurmtop.collect.nodes.srun import Note, SrunWay
from slurmtop.collect.nodes.way_memory import WayMemory
from slurmtop.collect.who import Who
from slurmtop.config import Config, NodeAccess
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble

_ALLOWED = {
    NodeAccess.AUTO: (Way.SSH, Way.OPENSSH, Way.SRUN),
    NodeAccess.SSH: (Way.SSH,),
    NodeAccess.OPENSSH: (Way.OPENSSH,),
    NodeAccess.SRUN: (Way.SRUN,),
    NodeAccess.OFF: (),
}


class NodeWays:
    """Makes node runners over ``local``, which all know the same jobs.

    ``settings`` are read when the first command for a node comes.
    """

    def __init__(
        self,
        local: Runner,
        clock: Clock,
        environ: Mapping[str, str],
        who: Who,
        *,
        cluster: str,
        settings: Callable[[], Config],
        note: Note,
        folder: Path | None,
    ) -> None:
        self.expected = Expected()
        self._local = local
        self._clock = clock
        self._environ = environ
        self._who = who
        self._cluster = cluster
        self._settings = settings
        self._note = note
        self._folder = folder
        self._closed: tuple[Failure | None] | None = None

    def runner(self) -> NodeRunner:
        """The runner that finds the way itself and remembers it."""
        key = self._cluster or f"@{platform.node()}"
        memory = None if self._folder is None else WayMemory(self._folder, key)
        return NodeRunner(
            self._local,
            lambda: [self._make(way) for way in _ALLOWED[self._settings().node_access]],
            self._clock,
            expected=self.expected,
            here=HereWay(self._environ),
            memory=memory,
            closed=self._why_closed,
        )

    def single(self, config: Config) -> dict[Way, NodeRunner]:
        """A runner for each way that the settings allow, for whoever wants to know them all.

        The one that is here reaches no other node than this machine (:meth:`is_here`).
        """

        def made(way: Way) -> Callable[[], Sequence[NodeWay]]:
            return lambda: [self._make(way)]

        allowed = _ALLOWED[config.node_access]
        if not allowed:
            return {}
        here = HereWay(self._environ)
        return {
            Way.HERE: NodeRunner(self._local, lambda: (), self._clock, here=here),
            **{
                way: NodeRunner(self._local, made(way), self._clock, expected=self.expected)
                for way in allowed
            },
        }

    def is_here(self, host: str) -> bool:
        """Is ``host`` the machine that slurmtop runs on?"""
        return HereWay(self._environ).is_here(host)

    def _why_closed(self) -> Failure | None:
        if self._closed is None:
            config, why = self._settings(), None
            if config.node_access is NodeAccess.OFF:
                where = config.node_access_from
                sentence = (
                    "Nodes are not looked into: the settings say so"
                    f" (node_access: off{f', {where}' if where else ''})."
                )
                why = Failure(Trouble.DENIED, sentence, "", float("inf"))
            self._closed = (why,)
        return self._closed[0]

    def _make(self, way: Way) -> NodeWay:
        if way is Way.SSH:
            from slurmtop.collect.nodes.ssh import SshWay
            from slurmtop.collect.nodes.ssh_book import Person

            try:
                home = str(Path.home())
            except RuntimeError:
                # A user without an entry in the password database has no home, and no keys there.
                home = "/"
            person = Person(name=self._who.name, uid=self._who.uid, home=home)
            return SshWay(self._local, self._clock, self._environ, person)
        if way is Way.OPENSSH:
            from slurmtop.collect.nodes.openssh import OpenSshWay

            return OpenSshWay(self._clock, self._environ)
        srun = SrunWay(
            self._local, self._clock, self._environ, self.expected, cluster=self._cluster
        )
        srun.note = self._note
        return srun
