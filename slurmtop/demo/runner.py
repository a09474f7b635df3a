"""The Runner behind the demo: commands and files answered from the simulated cluster."""

from collections.abc import AsyncIterator, Callable

from slurmtop.demo import (
    answers_gpus,
    answers_nodes,
    answers_sacct,
    answers_sacctmgr,
    answers_scancel,
    answers_scontrol,
    answers_sinfo,
    answers_squeue,
    files,
)
from slurmtop.demo.clock import DemoClock
from slurmtop.demo.forms import sdiag_text
from slurmtop.demo.jobs import ME, USERS
from slurmtop.demo.options import Answer, Misused, Table, said
from slurmtop.demo.outage import refusal, refused_now
from slurmtop.demo.values import View
from slurmtop.demo.world import World
from slurmtop.model.ports import Command, Completed, FileStat

_RPCS = {
    "squeue": ("REQUEST_JOB_INFO", "REQUEST_PARTITION_INFO"),
    "sinfo": ("REQUEST_NODE_INFO", "REQUEST_PARTITION_INFO"),
    "scontrol": ("REQUEST_JOB_INFO_SINGLE",),
    "scancel": ("REQUEST_KILL_JOB",),
    "sdiag": ("REQUEST_STATS_INFO",),
}
#: Between two rounds of a stream, by the reader's watch.
ROUND_S = 2.0
_SDIAG = Table(
    "sdiag",
    flags={"all": "a", "help": "h", "reset": "r", "sort-by-id": "i", "sort-by-time": "t",
           "sort-by-time2": "T", "usage": "", "version": "V"},
    values={"cluster": "M"},
)  # fmt: skip


class DemoRunner:
    """Answers for one cluster. It starts nothing and touches no file of this machine.

    With ``outages`` the controller is away for part of every ten real minutes.
    """

    def __init__(self, world: World, clock: DemoClock, *, outages: bool = False) -> None:
        self._world = world
        self._clock = clock
        self._outages = outages
        self._calls: dict[str, int] = {}
        self._memo: dict[str, dict[int, tuple[object, str]]] = {}
        self._programs: dict[str, Callable[[View, tuple[str, ...]], Answer]] = {
            "sacct": answers_sacct.answer,
            "sacctmgr": answers_sacctmgr.answer,
            "scancel": answers_scancel.answer,
            "scontrol": answers_scontrol.answer,
            "sdiag": self._sdiag,
            "sinfo": answers_sinfo.answer,
            "squeue": answers_squeue.answer,
        }

    async def run(self, command: Command) -> Completed:
        """The answer of the real program, in its form. Little makes one wait: an outage, and a
        signal for a job that waits itself."""
        started_at = self._clock.now()
        answer = self._answer(command)
        took_s = answer.took_s + answer.waits_s / self._clock.speed
        if took_s >= 1 or answer.waits_s:
            await self._clock.sleep(min(took_s, command.timeout_s))
            if command.timeout_s < took_s:
                return Completed(None, b"", b"", started_at, command.timeout_s)
        out = answer.out[: command.max_bytes]
        return Completed(
            answer.rc,
            out,
            answer.err[: command.max_bytes],
            started_at,
            took_s,
            truncated=len(out) < len(answer.out),
        )

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        done = await self.run(command)
        yield done.stdout
        script = answers_nodes.script_of(command.argv)
        if command.host is None or script is None or script[0] != "slurmtop-gpus":
            return
        words = script[1]
        goes_on = answers_gpus.streams(words)
        while goes_on:
            node = answers_nodes.node_of(self._view(), command.host)
            text, goes_on = answers_gpus.one_round(self._view(), node, words)
            yield text.encode()
            if goes_on:
                await self._clock.sleep(ROUND_S)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return files.read(self._view(), path, offset, length)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return files.stat(self._view(), path)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return files.names_in(self._view(), path)

    def _view(self) -> View:
        self._world.advance(int(self._clock.elapsed_s()))
        return View(self._world, self._clock.start, ME, USERS[ME][0], self._memo)

    def _answer(self, command: Command) -> Answer:
        if not command.argv:
            return said(err="no command was given\n", rc=127)
        if command.host is not None:
            return answers_nodes.answer(self._view(), command.host, command.argv)
        program, argv = command.argv[0].rpartition("/")[2], command.argv[1:]
        answer = self._programs.get(program)
        if answer is None:
            return said(err=f"{program}: command not found\n", rc=127)
        if any("\0" in word for word in argv):
            return said(err=f"{program}: embedded null byte\n", rc=1)
        for name in _RPCS.get(program, ()):
            self._calls[name] = self._calls.get(name, 0) + 1
        if self._outages and refused_now(self._clock):
            away = refusal(program, argv, self._clock)
            if away is not None:
                return away
        try:
            return answer(self._view(), argv)
        except Misused as wrong:
            return wrong.answer

    def _sdiag(self, view: View, argv: tuple[str, ...]) -> Answer:
        options = _SDIAG.parse(argv)
        if options.has("version"):
            return said(answers_squeue.VERSION)
        if options.has("help") or options.has("usage"):
            return said("Usage: sdiag [OPTIONS]\n")
        if options.has("reset"):
            return said(err="slurm_reset_statistics: Access/permission denied\n", rc=1)
        return said(sdiag_text(view, self._calls))
