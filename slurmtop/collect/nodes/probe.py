"""One look at a node for one job: its processes and what they do, memory, GPUs, ports, kernel log.

One round trip of plain ``sh`` (``probe_script``), about a second on a healthy node and four at the
most on one where something hangs. Nothing is traced or stopped, and nothing is left there.

Whose processes: those of the job, by its cgroup, by Slurm's variables in their environment, or by
their parent; never by their name. Of environments and command lines leaves the node what
:mod:`slurmtop.collect.nodes.processes` tells. Of an open file only its path is told, of the kernel
log only lines that may matter (``probe_script.KERNEL_WORDS``).
"""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.collect.nodes.probe_script import SCRIPT
from slurmtop.collect.nodes.reading import read_answer
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.model.ports import Clock, Command, Completed, NodeUnreachable, Runner, RunnerError
from slurmtop.model.probe import NodeProbe
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import Fate, SourceFate
from slurmtop.parse.dumps.node_probe import NAME, parse_node_probe

TIMEOUT_S = 12.0
#: About 3 KiB a process are usual, and as much for each 20 of its threads.
MAX_BYTES = 8 * 1024 * 1024


def probe_command(
    host: str, job: str, *, sudo: bool = False, words: Sequence[str] = (), tools_sudo: bool = False
) -> Command:
    """What :func:`read_probe` runs. ``ValueError`` where ``job`` is not a plain number.

    ``words`` say where a tool for stacks may lie (``stack_tools.tool_words``); with ``tools_sudo``
    it is also looked for whether it may be run through ``sudo``.
    """
    if not (job.isascii() and job.isdigit()):
        raise ValueError(f"not the number of a job: {job!r}")
    as_root = ("sudo", "-n") if sudo else ()
    tools = "1" if tools_sudo else "0"
    argv = (*as_root, "/bin/sh", "-c", SCRIPT, NAME, job, tools, *words)
    return Command(argv, host=host, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)


async def read_probe(
    runner: Runner,
    clock: Clock,
    host: str,
    *,
    job: str,
    sudo: bool = False,
    words: Sequence[str] | None = None,
) -> NodeProbe:
    """Look once at the processes of ``job`` (its raw number: of an array task its own) on ``host``.

    With ``sudo`` the look is made by ``sudo -n``, and as oneself where that is refused. ``words``
    None: tools for stacks are looked for where they usually lie. Never raises; ``failure`` says why
    there is no answer.
    """
    begun, at = clock.monotonic(), clock.now()
    found = tool_words() if words is None else tuple(words)
    refusal = ""
    try:
        done = await runner.run(probe_command(host, job, sudo=sudo, words=found, tools_sudo=sudo))
        if sudo and not _began(done) and not done.timed_out:
            sudo, refusal = False, _first_line(done) or f"exit status {done.rc}"
            done = await runner.run(probe_command(host, job, words=found))
    except NodeUnreachable as error:
        return NodeProbe(host=host, at=at, took_s=clock.monotonic() - begun, failure=error.failure)
    except (RunnerError, ValueError) as error:
        failure = Failure(Trouble.OTHER, f"{host} could not be looked at: {error}")
        return NodeProbe(host=host, at=at, took_s=clock.monotonic() - begun, failure=failure)

    def read(data: bytes) -> NodeProbe:
        return parse_node_probe(data, host, at, job=job, sudo=sudo)

    probe = await read_answer(read, done.stdout)
    probe = replace(probe, took_s=clock.monotonic() - begun, fates=_without_sudo(probe, refusal))
    if probe.failure is not None:
        return replace(probe, failure=_failure(host, done, probe.failure))
    if (done.truncated or done.timed_out) and probe.processes is not None:
        probe = replace(probe, processes=replace(probe.processes, complete=False))
    return probe


def _began(done: Completed) -> bool:
    return f"{NAME} 1\n".encode() in done.stdout


def _first_line(done: Completed) -> str:
    said = done.stderr.decode("utf-8", "replace").strip()
    return said.split("\n")[0].strip()[:120]


def _without_sudo(probe: NodeProbe, refusal: str) -> tuple[SourceFate, ...]:
    """What is closed, where ``sudo`` was to open it and said ``refusal``."""
    if not refusal:
        return probe.fates
    return tuple(
        replace(one, why=f"{one.why}; sudo did not open it: {refusal}")
        if one.fate is Fate.REFUSED
        else one
        for one in probe.fates
    )


def _failure(host: str, done: Completed, failure: Failure) -> Failure:
    if done.timed_out:
        words = f"{host} did not tell what runs there within {TIMEOUT_S:.0f} s"
        return Failure(Trouble.TIMEOUT, words)
    return replace(failure, raw=done.stderr.decode("utf-8", "replace").strip()[:2_000])
