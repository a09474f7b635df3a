"""What a signal does to each process, by what the kernel says of it (SigCgt, SigIgn). Pure.

This is exact where the text of a script is not: a handler that is set is set. What a handler does
in the end it cannot tell.
"""

from collections.abc import Iterable, Mapping, Sequence

from slurmtop.control.commands import SIGNAL_NUMBERS
from slurmtop.model.job import Step
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.script import SHELLS, Fate, Reaction, Recipient
from slurmtop.model.spans import span_text, spans_of
from slurmtop.model.text import visible
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.process_tree import DEAD
from slurmtop.triage.programs import Part, part_of, program_of
from slurmtop.triage.ranks import rank_processes

#: Who does not handle these goes on as if nothing had been.
HARMLESS = ("CONT", "URG", "CHLD", "WINCH")
_STOPPING = ("STOP", "TSTP", "TTIN", "TTOU")
#: torchrun and its like end their workers, and then themselves.
_AGENT_ENDS = ("TERM", "INT", "HUP", "QUIT")
#: srun waits for these itself, without a handler that the kernel would show.
_SRUN_PASSES = ("USR1", "USR2", "ALRM")
_SRUN_ENDS = ("HUP", "TERM", "QUIT")
#: (who it is, its process, what becomes of it, why)
Row = tuple[str, NodeProcess, Fate, str]
_BATCH_SHELL = "batch shell"


def fate_of(process: NodeProcess, signal: str) -> tuple[Fate, str]:
    """What ``signal`` (a name without SIG) does to ``process``, and why."""
    number = SIGNAL_NUMBERS[signal]
    if signal == "KILL":
        return Fate.DIES, "nothing can handle or ignore KILL"
    if signal == "STOP":
        return Fate.STOPS, "nothing can handle or ignore STOP"
    if process.name == "srun":
        return _srun(signal)
    caught, ignored = process.catches(number), process.ignores(number)
    if caught is None or ignored is None:
        return Fate.UNKNOWN, "its handlers could not be read"
    if ignored:
        return Fate.IGNORES, f"it ignores {signal}"
    if caught:
        return _caught(process, signal)
    if signal in HARMLESS:
        return Fate.CONTINUES, f"{signal} does nothing to it"
    if process.inner_pids and process.inner_pids[-1] == 1:
        return (
            Fate.IGNORES,
            "as the first process of a container it gets no signal it has no handler for",
        )
    if signal in _STOPPING:
        return Fate.STOPS, f"{signal} stops what has no handler"
    return Fate.DIES, f"it has no handler for {signal}"


def _caught(process: NodeProcess, signal: str) -> tuple[Fate, str]:
    part = part_of(process)
    if part is Part.AGENT and signal in _AGENT_ENDS:
        return Fate.DIES, f"its handler for {signal} ends its workers and then itself"
    if process.name in SHELLS or program_of(process) in SHELLS:
        return Fate.UNKNOWN, f"a shell that catches {signal}, perhaps only to end in order"
    if signal == "INT":
        return Fate.UNKNOWN, "it catches INT; Python ends with KeyboardInterrupt by default"
    return Fate.HANDLES, f"it has a handler for {signal}"


def _srun(signal: str) -> tuple[Fate, str]:
    if signal in _SRUN_PASSES:
        return Fate.CONTINUES, f"it passes {signal} on to its tasks"
    if signal == "INT":
        return Fate.CONTINUES, "it reports its tasks; a second INT within a second ends them"
    if signal in _SRUN_ENDS:
        return Fate.DIES, f"srun ends its step on {signal}"
    if signal in (*HARMLESS, "PIPE"):
        return Fate.CONTINUES, f"{signal} does nothing to it"
    return Fate.DIES, f"srun has no handler for {signal}"


def process_reactions(
    looks: Sequence[NodeProcesses],
    job: str,
    signal: str,
    recipient: Recipient,
    step: Step | None = None,
) -> tuple[Reaction, ...]:
    """What ``signal`` does to all whom ``recipient`` reaches, for the nodes that were looked at."""
    ranks = rank_processes(looks, job)
    numbers = {one.process.key: one.rank for one in ranks}
    perhaps = {process.key for one in ranks for process in one.perhaps}
    rows: list[Row] = []
    for look in looks:
        mine = [one for one in look.processes if one.job == job and one.state not in DEAD]
        for process in mine:
            who = _who(process, mine, numbers, recipient, step)
            if who is not None and process.key in perhaps:
                who = f"perhaps a rank: {visible(program_of(process) or process.name)}"
            if who is not None:
                rows.append((who, process, *fate_of(process, signal)))
    return process_rows(rows, numbers)


def _who(
    process: NodeProcess,
    mine: Sequence[NodeProcess],
    ranks: Mapping[tuple[str, int, int], int | None],
    recipient: Recipient,
    step: Step | None,
) -> str | None:
    """What it is called; None where the signal does not reach it. Slurm spares its own."""
    if process.name.startswith("slurmstepd") or process.step in (None, "extern"):
        return None
    in_batch = process.step in ("batch", "interactive")
    pids = {one.pid for one in mine if one.step == process.step and not _is_stepd(one)}
    is_shell = in_batch and process.ppid not in pids
    if recipient is Recipient.RANKS:
        return "rank" if process.key in ranks else None
    if recipient is Recipient.BATCH:
        return _BATCH_SHELL if is_shell else None
    if recipient is Recipient.STEP and (step is None or process.step != step.id):
        return None
    if recipient is Recipient.STEPS and in_batch:
        return None
    if is_shell:
        return _BATCH_SHELL
    if process.key in ranks:
        return "rank"
    part = part_of(process)
    name = visible(program_of(process) or process.name)
    if process.name == "srun":
        return "srun itself"
    if part is Part.AGENT:
        return f"{name} agent"
    return f"helper {name}" if part is Part.HELPER or _in_rank(process, mine, ranks) else name


def _is_stepd(process: NodeProcess) -> bool:
    return process.name.startswith("slurmstepd")


def _in_rank(
    process: NodeProcess,
    mine: Sequence[NodeProcess],
    ranks: Mapping[tuple[str, int, int], int | None],
) -> bool:
    by_pid = {one.pid: one for one in mine}
    at, seen = by_pid.get(process.ppid), set[int]()
    while at is not None and at.pid not in seen:
        if at.key in ranks:
            return True
        seen.add(at.pid)
        at = by_pid.get(at.ppid)
    return False


def process_rows(
    rows: Iterable[Row], ranks: Mapping[tuple[str, int, int], int | None]
) -> tuple[Reaction, ...]:
    """Equal ones are told together: ``8 ranks (0-7) on gpu[01-02]``."""
    groups: dict[tuple[str, Fate, str], list[NodeProcess]] = {}
    for who, process, fate, why in rows:
        groups.setdefault((who, fate, why), []).append(process)
    return tuple(
        Reaction(_named(who, those, ranks), fate, why, count=len(those))
        for (who, fate, why), those in groups.items()
    )


def _named(
    who: str,
    those: Sequence[NodeProcess],
    ranks: Mapping[tuple[str, int, int], int | None],
) -> str:
    hosts = visible(compress_hosts(list(dict.fromkeys(one.host for one in those))))
    if not who.endswith("rank"):
        count = f" ({len(those)})" if len(those) > 1 else ""
        return f"{who}{count} on {hosts}"
    lead = who.removesuffix("rank")
    numbers = [ranks.get(one.key) for one in those]
    known = sorted({number for number in numbers if number is not None})
    if len(known) < len(those):
        # Without numbers, or with some that stand for several: by their programs.
        programs = ", ".join(dict.fromkeys(visible(program_of(one)) for one in those))
        process = "process" if len(those) == 1 else "processes"
        return f"{lead}{len(those)} rank {process} ({programs}) on {hosts}"
    if len(those) == 1:
        return f"{lead}rank {known[0]} on {hosts} (pid {those[0].pid})"
    return f"{lead}{len(those)} ranks ({spans_text(known)}) on {hosts}"


def spans_text(numbers: Sequence[int]) -> str:
    """``0-3,5`` for rising numbers."""
    return ",".join(map(span_text, spans_of(numbers)))


def with_processes(
    by_script: Sequence[Reaction],
    looks: Sequence[NodeProcesses],
    job: str,
    signal: str,
    recipient: Recipient,
    step: Step | None = None,
) -> tuple[Reaction, ...]:
    """What the script tells, made exact by the processes where they could be looked at.

    What a trap comes to stands in the script alone: of a batch shell that catches the signal its
    word stays.
    """
    found = process_reactions(looks, job, signal, recipient, step)
    seen = any(look.failure is None and look.processes for look in looks)
    if not seen or not found:
        return tuple(by_script)
    told = next((one for one in by_script if one.who == _BATCH_SHELL), None)
    out = []
    for one in found:
        caught = one.who.startswith(_BATCH_SHELL) and one.fate is Fate.UNKNOWN
        out.append(told if caught and told is not None and told.fate is not Fate.DIES else one)
    if any(look.failure is not None for look in looks):
        # Those on the other nodes are known by the script alone.
        out += [one for one in by_script if one.who != _BATCH_SHELL and one not in out]
    return tuple(out)
