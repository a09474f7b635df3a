"""The rules, one file a family: each ``find`` is a pure function from the picture to findings.

``ALL`` is what the judge asks. The order says nothing: weight and time decide.
"""

from collections.abc import Callable, Iterable

from slurmtop.triage.finding import Finding
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import (
    call_lines,
    collectives,
    endpoints,
    exits,
    gpu,
    hosts,
    interrupt,
    missing,
    misuse,
    nccl_bug,
    network,
    program,
    reported,
    settings,
    slow,
    slurm_end,
    startup,
    teardown,
    timeouts,
)

Rule = Callable[[Picture], Iterable[Finding]]

ALL: tuple[Rule, ...] = (
    slurm_end.find,
    interrupt.find,
    exits.find,
    program.find,
    teardown.find,
    slow.find,
    nccl_bug.find,
    gpu.find,
    hosts.find,
    network.find,
    endpoints.find,
    startup.find,
    settings.find,
    misuse.find,
    collectives.find,
    reported.find,
    call_lines.find,
    missing.find,
    timeouts.find,
)
