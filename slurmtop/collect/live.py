"""Looking at the nodes of a running job: once, and again some seconds later where that is wanted.

What is asked of a node is decided by ``triage.live.enough``; a node that does not answer costs its
own cell, never the others' answers.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from slurmtop.collect.pace import Pace
from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.reach import Reach

#: Tells which job (its raw number) is about to be looked at on which nodes.
Expect = Callable[[str, Iterable[str]], None]
#: What came of the last tries to get onto a node.
Reached = Callable[[str], Reach | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookSettings:
    """What may be asked of the nodes of a job.

    ``nodes`` false: nothing, and ``why_not`` says why. ``stacks`` false: no stacks. ``always``: two
    whole looks, also where nobody suspects anything; ``once``: one look at the least. ``sudo``: by
    ``sudo -n`` on the nodes. ``budget_s`` bounds all looks together.
    """

    nodes: bool = True
    why_not: str = ""
    stacks: bool = True
    always: bool = False
    once: bool = False
    sudo: bool = False
    budget_s: float = 20.0


async def look_live(
    runner: Runner,
    clock: Clock,
    facts: JobFacts,
    *,
    settings: LookSettings,
    expect: Expect = lambda job, hosts: None,
    reached: Reached = lambda host: None,
    mark: bytes | None = None,
    pace: Pace | None = None,
) -> AsyncIterator[LiveFacts]:
    """What the nodes of the job of ``facts`` tell, again and again as they answer; the last one is
    the whole. Never raises for a node that is silent."""
    raise NotImplementedError
    yield LiveFacts(job="")
