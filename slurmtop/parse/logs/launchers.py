"""How processes ended, by those who started them: DeepSpeed, mpirun, Ray, Horovod, shells.

Sources: DeepSpeed's ``launcher/launch.py``, Open MPI's and MPICH's runtimes, Ray's raylet, bash and
the trainers' own supervisors, for example::

    [ERROR] [launch.py:325:sigkill_handler] ['python', …] exits with return code = -9
    mpirun noticed that process rank 3 with PID 4242 on node node-a exited on signal 9 (Killed).
"""

import re
from collections.abc import Iterable, Iterator

from slurmtop.model.events.launch import (
    ChildEnded,
    ClosingSignal,
    DeathSignal,
    Interrupted,
    WorkerLost,
    WorkersOutOfMemory,
)
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.signals import ended, signal_number
from slurmtop.parse.logs.torch_words import Begun, number, shown

_CODE = re.compile(
    r"\bexits with return code = (?P<deepspeed>-?\d{1,5})"
    r"|\bChild process with PID (?P<pid>\d{1,10}) terminated with code (?P<lightning>-?\d{1,5})"
    r"|\breturned non-zero exit status (?P<status>\d{1,5})"
    r"|\bprocess \d{1,9} terminated with exit code (?P<spawn>-?\d{1,5})"
    r"|\b[Pp]rocess (?P<horovod_rank>\d{1,9}) exit with status code (?P<horovod>-?\d{1,5})"
    r"|\bMPI_ABORT was invoked on rank (?P<abort_rank>\d{1,9}) in communicator"
    r"(?:.{0,120}?with errorcode (?P<abort>-?\d{1,10}))?"
    r"|\b(?:container|[Ww]orker|trial|[Tt]rainer|pod)\b.{0,80}?\b(?:failed|exited|crashed"
    r"|terminated)"
    r" with (?:a )?(?:non-zero )?(?:exit )?(?:code|status)[:=]? ?(?P<other>-?\d{1,5})",
    re.DOTALL,
)
_SIGNALLED = re.compile(
    r"\bdied with <(?P<died>Signals\.\w{3,12})"
    r"|\bprocess \d{1,9} terminated with signal (?P<spawn>[\w.]{3,20})"
)
_MPI_RANK = re.compile(
    r"noticed that process rank (?P<rank>\d{1,9}) with PID (?P<pid>\d{1,10})(?: on node "
    r"(?P<node>\S{1,255}))?"
)
_ON_SIGNAL = re.compile(r"(?:exited\s+on\s+|^\s{0,4})signal\s+(?P<signal>\d{1,3})\b")
_MPICH_WHO = re.compile(
    r"=\s{1,8}(?:RANK (?P<rank>\d{1,9}) )?PID (?P<pid>\d{1,10}) RUNNING AT (?P<node>\S{1,255})"
)
_MPICH_HOW = re.compile(
    r"=\s{1,8}(?:EXIT CODE: (?P<code>\d{1,5})|KILLED BY SIGNAL: (?P<signal>\d{1,3}))"
)
_NAME = re.compile(
    r"^\s{0,20}Process name: \[(?:\[\d{1,10},\d{1,6}\],|[\w.-]{1,200}@\d{1,6},)?"
    r"(?P<rank>\d{1,9})\]"
)
_PRIMARY = re.compile(
    r"Primary job {1,4}terminated normally, but \d{1,6} process|\b(?:mpirun|mpiexec|prterun|orterun"
    r")\S{0,20} detected that one or more processes exited with non-zero"
)
_NAMED_CODE = re.compile(r"(?:^|\])\s{0,20}Exit code: {0,8}(?P<code>-?\d{1,5})")
_DAEMON = re.compile(r"^\s{0,8}Remote daemon: .{1,60} on node (?P<node>\S{1,255})")

_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_SHELL = re.compile(
    r"\bline \d{1,7}: {1,8}(?P<pid>\d{1,10}) (?P<how>Killed|Segmentation fault|Bus error|Aborted"
    r"|Terminated|Illegal instruction|Floating point exception|Hangup)\b"
    r"(?: {1,10}\(core dumped\))?(?: {1,40}(?P<command>\S.{0,300}))?"
)
#: ``slurm_script: line 5: python3: command not found``.
_MISSING = re.compile(
    r"\bline \d{1,7}: (?P<command>[^:\n]{1,200}): (?:(?P<found>command not found)"
    r"|No such file or directory|Permission denied|cannot execute\b)"
)
#: A command with one of these words is the work itself, or may be.
_TRAINS = re.compile(
    r"(?i)python|torch|srun|mpi|deepspeed|accelerate|horovod|train|ray\b|\$|main|launch|run\b"
)
_LONE = re.compile(
    r"^\s{0,4}(?:/\S{1,200}: )?(?P<how>Killed|Segmentation fault|Bus error|Aborted|Terminated"
    r"|Illegal instruction|Floating point exception)(?: {1,10}\(core dumped\))?\s*$"
)

_LOST = re.compile(
    r"A worker died or was killed while executing a task|The actor died unexpectedly"
    r"|The actor is dead because|[Ww]orker exit type: (?:SYSTEM_ERROR|NODE_)|has been marked dead"
    r"|WorkerCrashedError|ActorDiedError|NodeDiedError|OwnerDiedError"
    r"|[Ww]orker proc(?:ess)? \S{1,80} died unexpectedly|scheduler is dead"
    r"|Received sigquit from a child process|has lost communication with a remote daemon"
    r"|(?:ORTE|PRTE) daemon has unexpectedly failed"
    r"|MPI communication peer process has unexpectedly disconnected"
    r"|lost connection to (?:a )?(?:remote )?(?:daemon|peer|orted|prted)"
    r"|mca_(?:btl|oob)_tcp_\w{2,40}:? (?:\w{2,20} failed: |peer closed connection)"
    r"|MPI_ERR_PROC_FAILED|HYDT_bscd\w{2,60}.{0,80}terminated badly"
    r"|Lost connection to the (?:MPI|HNP) server"
)
#: Ray's memory monitor, by the raylet and by the exception of the task: 2.0 to 2.50.
_MEMORY_KILL = re.compile(
    # Terminals wrap this long line between its number and its verb.
    r"(?:\b(?P<count>\d{1,9}) [Ww]orkers? \(tasks / actors\) )?killed due to memory pressure"
    r"|[Ss]ystem memory low at node with IP|killed due to the node running low on memory"
    r"|Memory on the node \(IP: .{0,400}exceeds the memory usage threshold",
    re.DOTALL,
)
_NODE_IP = re.compile(r"\bIP:? (?P<address>\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]{3,45})\b")
_ADDRESS = re.compile(
    r"(?:Worker IP address: |\bip: |\bip=|and address: "
    r"|\bon node with IP )(?P<address>[\w.:-]{2,100})"
)
_WORKER_PID = re.compile(r"(?:Worker PID: |\bpid: |\bpid=)(?P<pid>\d{1,10})")

_KILLING = re.compile(r"\bKilling subprocess (?P<pid>\d{1,10})\b")
_GOT = re.compile(
    r"\bMain process received (?P<main>SIG[A-Z]{3,5}|\d{1,2})|^\s{0,4}Received "
    r"(?P<trainer>SIG[A-Z]{3,5}): \d"
    r"|\b[Rr]eceiv(?:ed|ing) (?:signal )?(?P<trainer2>SIG(?:TERM|INT|HUP))\b"
    r"|\b[Rr]eceived signal (?P<number>\d{1,2})\b|\bCaught signal (?P<caught>SIGINT|SIGTERM"
    r"|SIGHUP)\b(?!.{0,300}\bthis job is )"
    r"|\bcatching signal (?P<catching>SIG[A-Z]{3,5})"
)
_INTERRUPT = re.compile(
    r"^\s{0,8}\^C|\^C\s*$|\^C(?=Traceback|\[|[EWI]\d{4} )|^\s{0,4}KeyboardInterrupt\b"
    r"|Detected KeyboardInterrupt|\b[Ii]nterrupted by (?:the )?user|\b[Cc]ancelled by (?:the )?user"
    r"|\b[Aa]borted by (?:the )?user|[Kk]eyboard [Ii]nterrupt"
)

#: MPICH prints what wait(2) gave: 9 is a process that was killed.
_RAW_SIGNALS = (9, 15)
#: Messages from the first line of a report to its last.
_REACH = 12
_TEXT_CHARS = 400


class LauncherReader:
    """Reads how processes ended; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"exits with return code",
        b"terminated with",
        b"non-zero",
        b"exit with status code",
        b"MPI_ABORT",
        b" with exit code",
        b" with code",
        b" with status",
        b"died with <Signals",
        b"noticed that process rank",
        b"RUNNING AT",
        b"Process name: [",
        b"Primary job",
        b"exited with non-zero",
        b"Remote daemon:",
        b"remote daemon",
        b"communication peer process",
        b"ost connection to ",
        b"_tcp_",
        b"MPI_ERR_PROC",
        b"terminated badly",
        b"daemon has unexpectedly",
        b"Killed",
        b"Segmentation fault",
        b": command not found",
        b": No such file or directory",
        b": Permission denied",
        b": cannot execute",
        b"Bus error",
        b"Aborted",
        b"Terminated",
        b"Illegal instruction",
        b"Floating point exception",
        b"worker died",
        b"actor",
        b"marked dead",
        b"exit type",
        b"DiedError",
        b"CrashedError",
        b"died unexpectedly",
        b"scheduler is dead",
        b"sigquit",
        b"Killing subprocess",
        b"eceived SIG",
        b"eceiving SIG",
        b"eceived signal",
        b"aught signal SIG",
        b"atching signal",
        b"memory pressure",
        b"ystem memory low",
        b"low on memory",
        b"Memory on the node",
        b"^C",
        b"eyboard",
        b"by user",
        b"by the user",
    )

    def __init__(self) -> None:
        self._who: tuple[Begun, re.Match[str]] | None = None

    @property
    def open(self) -> bool:
        return self._who is not None

    def see(self, message: Message) -> Iterable[Event]:
        yield from self._reports(message)
        yield from _ends(message)
        yield from _others(message)

    def finish(self) -> Iterable[Event]:
        self._who = None
        return ()

    def _reports(self, message: Message) -> Iterator[Event]:
        """The ends that mpirun, MPICH and Horovod tell over several lines."""
        text = message.text
        found = _MPI_RANK.search(text) or _MPICH_WHO.search(text) or _NAME.match(text)
        if found is not None:
            self._who = (Begun(message), found)
        if self._who is None:
            return
        begun, who = self._who
        if not begun.goes_on(message, reach=_REACH):
            if message.at.order - begun.message.at.order > _REACH:
                self._who = None
            return
        how = _ON_SIGNAL.search(text) or _MPICH_HOW.search(text) or _NAMED_CODE.search(text)
        if how is None:
            if message.at.order - begun.message.at.order > _REACH:
                self._who = None
            return
        self._who = None
        told, groups = who.groupdict(), how.groupdict()
        exit_code, signal = ended(number(groups.get("code")))
        if "signal" in groups and exit_code in _RAW_SIGNALS:
            signal = exit_code
        signal = signal or signal_number(groups.get("signal"))
        yield ChildEnded(
            at=shown(begun.message, who.start()),
            exit_code=None if signal is not None else exit_code,
            signal=signal,
            rank=number(told.get("rank")),
            pid=number(told.get("pid")) or None,
            node=(told.get("node") or "").rstrip(",.") or None,
        )


def _ends(message: Message) -> Iterator[Event]:
    text = message.text
    if (found := _CODE.search(text)) is not None:
        groups = found.groupdict()
        names = ("deepspeed", "lightning", "status", "spawn", "horovod", "abort", "other")
        exit_code, signal = ended(next((number(groups[one]) for one in names if groups[one]), None))
        if exit_code == 0:
            return
        yield ChildEnded(
            at=shown(message, found.start()),
            exit_code=exit_code,
            signal=signal,
            rank=number(groups["horovod_rank"] or groups["abort_rank"]),
            pid=number(groups["pid"]),
        )
        return
    if (found := _SIGNALLED.search(text)) is not None:
        yield ChildEnded(
            at=shown(message, found.start()), signal=signal_number(found["died"] or found["spawn"])
        )
        return
    if (found := _PRIMARY.search(text)) is not None:
        # Which process it was stands in the lines that follow, if anywhere.
        yield ChildEnded(at=shown(message, found.start()))
        return
    if "srun:" in text or "slurmstepd" in text or message.stream.startswith("srun"):
        return
    if (found := _SHELL.search(text) or _LONE.match(text)) is not None:
        command = found.groupdict().get("command")
        yield ChildEnded(
            at=shown(message, found.start()),
            signal=signal_number(found["how"]),
            pid=number(found.groupdict().get("pid")),
            aside=command is not None and _TRAINS.search(command) is None,
        )
    elif (found := _MISSING.search(text)) is not None:
        # A script goes on from it, unless it is the last thing that it does.
        code = _NOT_FOUND if found["found"] else _NOT_EXECUTABLE
        yield ChildEnded(at=shown(message, found.start()), exit_code=code, aside=True)


def _others(message: Message) -> Iterator[Event]:
    text = message.text
    memory = _MEMORY_KILL.search(text)
    if memory is not None and memory["count"] != "0":
        ip = _NODE_IP.search(text)
        yield WorkersOutOfMemory(
            at=shown(message, memory.start()), address=ip["address"] if ip is not None else None
        )
    daemon = _DAEMON.match(text)
    if (lost := _LOST.search(text) or daemon) is not None:
        address, pid = _ADDRESS.search(text), _WORKER_PID.search(text)
        where = address["address"].rstrip(".:") if address is not None else None
        yield WorkerLost(
            at=shown(message, lost.start()),
            address=daemon["node"].rstrip(".") if daemon is not None else where,
            pid=number(pid["pid"]) if pid is not None else None,
            text=text[lost.start() : lost.start() + _TEXT_CHARS],
        )
    if (killing := _KILLING.search(text)) is not None:
        yield ClosingSignal(
            at=shown(message, killing.start()), pid=int(killing["pid"]), signal="SIGTERM"
        )
    if (got := _GOT.search(text)) is not None:
        signal = signal_number(next((name for name in got.groups() if name), None))
        if signal is not None:
            yield DeathSignal(at=shown(message, got.start()), signal=signal)
    if (interrupt := _INTERRUPT.search(text)) is not None:
        yield Interrupted(at=shown(message, interrupt.start()))
