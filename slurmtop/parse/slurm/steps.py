"""The running steps of jobs, from ``squeue -s``.

Asked with ``squeue -h -s -O StepID:SEP,…,StepName:MARK``; the name, which people write, stands
last. A job that waits, has ended or never was has no record, and squeue exits 0 without a word.
Sample (``|`` for 0x1f, ``#`` for the mark)::

    59_0.0|RUNNING|2031-05-05T08:00:00|1|gpu01|sleep#
    59_0.batch|RUNNING|2031-05-05T08:00:00|1|gpu01|batch#
"""

from slurmtop.model.job import Step
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.hostlist import count_hosts
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.squeue import RECORD_MARK, SEPARATOR, split_records
from slurmtop.parse.slurm.states import parse_state
from slurmtop.parse.slurm.times import parse_time
from slurmtop.parse.slurm.words import value_or_none

#: Names for ``squeue -s -O`` that 22.05 and later know; there is none for a number of nodes.
STEP_FIELDS = ("StepID", "StepState", "StartTime", "NumTasks", "Nodes", "StepName")
_EXCERPT = 200


def steps_format(record_mark: bytes = RECORD_MARK, separator: bytes = SEPARATOR) -> str:
    """The argument of ``squeue -s -O`` for :data:`STEP_FIELDS`."""
    between, end = separator.decode("ascii"), record_mark.decode("ascii")
    return "".join(f"{name}:{between}," for name in STEP_FIELDS[:-1]) + f"{STEP_FIELDS[-1]}:{end}"


def parse_steps(
    data: bytes, *, separator: bytes = SEPARATOR, record_mark: bytes = RECORD_MARK
) -> Parsed[Step]:
    """A whole answer of ``squeue -h -s``. Never raises; bad records cost no good one."""
    return Parsed.of(
        _step(raw, separator, index) for index, raw in enumerate(split_records(data, record_mark))
    )


def _step(raw: bytes, separator: bytes, index: int) -> Step | BadRecord:
    text = raw.decode("utf-8", "replace")
    between = separator.decode("utf-8", "replace")
    parts = text.split(between, len(STEP_FIELDS) - 1)
    if len(parts) < len(STEP_FIELDS):
        why = f"{len(parts)} fields where {len(STEP_FIELDS)} were asked for"
        return BadRecord(index, why, text[:_EXCERPT])
    id_text, state, start, tasks, nodes, name = parts
    job = parse_job_id(id_text)
    if not job.base or job.cut or not job.step:
        return BadRecord(index, f"no step id: {id_text[:40]!r}", text[:_EXCERPT])
    plain = tasks.isascii() and tasks.isdigit() and len(tasks) < 20
    return Step(
        job=job,
        # One step over several parts of a het job is printed once a part: 0+0, 0+1.
        id=job.step.partition("+")[0],
        name=name,
        state=parse_state(state),
        start=parse_time(start),
        node_count=count_hosts(nodes) or None,
        nodes=value_or_none(nodes),
        tasks=int(tasks) if plain else None,
    )
