"""squeue -s: the steps that run now. A job that waits or has ended is met with silence."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.nodes import CLUSTER, NODE_NAMES
from slurmtop.demo.options import Answer, Misused, Options, said
from slurmtop.demo.squeue_columns import cells, letter_columns, long_columns
from slurmtop.demo.text import fold_hosts, squeue_secs
from slurmtop.demo.values import View, id_text, step_name, steps_of, tasks_per_node

_DEFAULT = "%.15i %.8j %.9P %.8u %.9M %N"


@dataclass(frozen=True, slots=True)
class StepRow:
    job: DemoJob
    step: str

    @property
    def id(self) -> str:
        return f"{id_text(self.job)}.{self.step}"

    @property
    def start_t(self) -> int:
        return (self.job.start_t or 0) + (0 if self.step == "batch" else 1)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.job.nodes[:1] if self.step == "batch" else self.job.nodes

    @property
    def tasks(self) -> int:
        return 1 if self.step == "batch" else tasks_per_node(self.job.spec) * len(self.nodes)


Value = Callable[[View, StepRow], str]
#: Name for -O, heading, letter for -o ("" where there is none), value.
_TABLE: tuple[tuple[str, str, str, Value], ...] = (
    ("stepid", "STEPID", "i", lambda v, r: r.id),
    ("stepname", "NAME", "j", lambda v, r: "batch" if r.step == "batch" else step_name(r.job.spec)),
    ("stepstate", "STATE", "T", lambda v, r: "RUNNING"),
    ("partition", "PARTITION", "P", lambda v, r: r.job.spec.partition),
    ("username", "USER", "u", lambda v, r: r.job.spec.user),
    ("userid", "USER", "U", lambda v, r: str(r.job.spec.uid)),
    ("timeused", "TIME", "M", lambda v, r: squeue_secs(max(0, v.t - r.start_t))),
    ("timelimit", "TIME_LIMIT", "l", lambda v, r: "UNLIMITED"),
    ("starttime", "START_TIME", "S", lambda v, r: v.iso(r.start_t)),
    ("nodes", "NODELIST", "N", lambda v, r: fold_hosts(r.nodes)),
    ("numtasks", "TASKS", "A", lambda v, r: str(r.tasks)),
    ("jobid", "JOBID", "", lambda v, r: str(r.job.id)),
    ("jobarrayid", "JOBID", "", lambda v, r: id_text(r.job)),
    ("cluster", "CLUSTER", "", lambda v, r: CLUSTER),
)
BY_NAME = {name: (heading, value) for name, heading, _, value in _TABLE}
BY_LETTER = {letter: (heading, value) for _, heading, letter, value in _TABLE if letter}
_STEP = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,7}))?\.(\w{1,20})", re.ASCII)


def answer(view: View, options: Options, wanted: Callable[[DemoJob], bool]) -> Answer:
    """The steps of the running jobs that are ``wanted``."""
    errors: list[str] = []
    text = options.get("Format")
    if text is not None:
        lead, columns = "", long_columns(text, BY_NAME, "job step", errors)
    else:
        short = options.get("format")
        short = _DEFAULT if short is None else short
        lead, columns = letter_columns(short, BY_LETTER, "job step", errors)
    named = _named(options.get("steps") or "")
    nodes = options.get("nodelist")
    if nodes is not None and nodes not in NODE_NAMES:
        raise Misused(said(err=f"squeue: error: Invalid node name {nodes}\n", rc=1))
    rows = [
        row
        for job in view.world.remembered()
        if job.running and wanted(job)
        for row in (StepRow(job, step) for step in steps_of(job))
        if (named is None or row.id in named) and (nodes is None or nodes in row.nodes)
    ]
    rows.sort(key=lambda row: (row.job.array_id or row.job.het_id or row.job.id, row.id))
    lines = [lead + cells(view, row, columns) for row in rows]
    if not options.has("noheader"):
        lines.insert(0, lead + "".join(column.cell(column.heading) for column in columns))
    return said("".join(f"{line}\n" for line in lines), "".join(errors))


def _named(text: str) -> set[str] | None:
    """The steps that the option names; None where it names none and means all."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if _STEP.fullmatch(word) is None:
            raise Misused(said(err=f"squeue: error: Invalid job_step id: {word}\n", rc=1))
    return set(words) or None
