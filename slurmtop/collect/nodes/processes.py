"""The processes of one node: one round trip of plain ``sh``, and nothing of ours left there.

The script needs no more than a POSIX shell, grep, tr and awk on the node (dash, bash and busybox
were tried), starts about thirty programs however many processes there are, and reads files of
``/proc`` only. Each of them may vanish at any moment: then it is not told. ``parse/dumps/probe.py``
reads what it prints and shows the form.

Of a command line leave the node: the program, what a Python runs (script or module; of the text
behind ``-c`` a word that is known or a mark), and the numbers of rank options (``--local_rank=3``);
of an environment the names in ``KEEP``; of all those no value that looks like a secret. What else
stands there is never told, so that nobody has to know how a password may look.

Whose processes: one's own and, where a job is named, those in its cgroup. For root: those in the
cgroup of the job, or of any where none is named; all where Slurm keeps no cgroups.
"""

from dataclasses import replace

from slurmtop.collect.nodes.process_script import SCRIPT
from slurmtop.collect.nodes.reading import read_answer
from slurmtop.model.ports import Clock, Command, NodeUnreachable, Runner, RunnerError
from slurmtop.model.process import NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.dumps.probe import NAME, parse_processes

TIMEOUT_S = 40.0
#: About 2 KiB a process are usual.
MAX_BYTES = 8 * 1024 * 1024


def processes_command(host: str, job: str | None = None) -> Command:
    """What :func:`read_processes` runs. ``ValueError`` where ``job`` is not a plain number."""
    if job is not None and not (job.isascii() and job.isdigit()):
        raise ValueError(f"not the number of a job: {job!r}")
    argv = ("/bin/sh", "-c", SCRIPT, NAME, *(() if job is None else (job,)))
    return Command(argv, host=host, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)


async def read_processes(
    runner: Runner, clock: Clock, host: str, *, job: str | None = None, own: bool = False
) -> NodeProcesses:
    """Look once at the processes of ``host``: those of ``job`` (its raw number: of an array task
    its own), or one's own (for root those of all jobs). With ``own`` one's own of other jobs stay
    beside those of ``job``. Never raises; ``failure`` says why there is no answer.
    """
    at = clock.now()
    try:
        done = await runner.run(processes_command(host, job))
    except NodeUnreachable as error:
        return NodeProcesses(host=host, at=at, failure=error.failure)
    except (RunnerError, ValueError) as error:
        failure = Failure(Trouble.OTHER, f"the processes of {host} could not be read: {error}")
        return NodeProcesses(host=host, at=at, failure=failure)
    look = await read_answer(lambda data: parse_processes(data, host, at), done.stdout)
    if look.failure is not None and done.timed_out:
        words = f"the processes of {host} were not told within {TIMEOUT_S:.0f} s"
        return replace(look, failure=Failure(Trouble.TIMEOUT, words))
    if look.failure is not None:
        raw = done.stderr.decode("utf-8", "replace").strip()
        return replace(look, failure=replace(look.failure, raw=raw[:2_000]))
    if done.truncated or done.timed_out:
        look = replace(look, complete=False)
    if job is not None and not own:
        look = replace(look, processes=tuple(p for p in look.processes if p.job == job))
    return look
