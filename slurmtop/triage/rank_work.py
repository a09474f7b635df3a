"""The work below a process: past shells, wrappers and agents, in trees of any depth. Pure."""

from collections.abc import Sequence

from slurmtop.model.process import NodeProcess
from slurmtop.triage.identity import Identity, Source
from slurmtop.triage.process_tree import Tree
from slurmtop.triage.programs import Part, is_python, option_of, program_of

#: Of two that may be the work, one with this many times the threads of the other is it.
_MANY_TIMES = 2
#: These agents start a single rank without a word in its environment.
_START_ONE = ("accelerate", "deepspeed")


def resolved(tree: Tree, process: NodeProcess, who: Identity) -> list[NodeProcess]:
    """The work below ``process``, which bears ``who``; several where it cannot be told.

    Empty where it has only started ranks, which have names of their own. Shells may stand below
    one another in any number, so this goes down in a loop, and the answers come up in another.
    """
    found: dict[int, list[NodeProcess]] = {}
    opened: list[tuple[NodeProcess, list[NodeProcess]]] = []
    todo, seen = [process], {process.pid}
    while todo:
        one = todo.pop()
        alone = _without_a_look_below(tree, one, who)
        if alone is not None:
            found[one.pid] = alone
            continue
        below = [
            child
            for child in tree.children.get(one.pid, ())
            if tree.parts[child.pid] not in (Part.TOOL, Part.HELPER) and child.pid not in seen
        ]
        seen |= {child.pid for child in below}
        opened.append((one, below))
        todo += below
    for one, below in reversed(opened):
        if below:
            found[one.pid] = chosen([work for child in below for work in found[child.pid]])
        else:
            # A shell that does the work itself, or is between two commands.
            found[one.pid] = [] if tree.parts[one.pid] is Part.AGENT else [one]
    return found[process.pid]


def _without_a_look_below(
    tree: Tree, process: NodeProcess, who: Identity
) -> list[NodeProcess] | None:
    """Itself, or nothing; None for a shell or an agent, whose work is what it has started."""
    part = tree.parts[process.pid]
    if part is Part.HELPER:
        return []
    others = [
        one
        for one in tree.below(process)
        if tree.identities.get(one.pid, who) != who and tree.parts[one.pid] is not Part.HELPER
    ]
    if part is Part.AGENT and (others or not program_of(process).startswith(_START_ONE)):
        return []
    if part in (Part.WRAPPER, Part.AGENT):
        return [] if others else None
    # What torchrun has started is a rank, also where it starts an evaluation of many ranks itself.
    started = process.variable("TORCHELASTIC_RUN_ID") is not None and who.source is Source.TORCH
    if others and not started and part is Part.WORK and _is_launcher(tree, process, others):
        return []
    return [process]


def _is_launcher(tree: Tree, process: NodeProcess, others: Sequence[NodeProcess]) -> bool:
    """Are ``others``, which it started under other names, the ranks and not it?"""
    names = {(tree.identities[one.pid].rank, tree.identities[one.pid].local_rank) for one in others}
    if len(names) > 1:
        return True
    # One alone may be the rank, or a helper that was given the rank's names.
    first = min(others, key=lambda one: one.start_ticks)
    own, its = process.threads, first.threads
    grows = own is not None and its is not None and its >= own
    return grows and program_of(first) != program_of(process)


def chosen(found: Sequence[NodeProcess]) -> list[NodeProcess]:
    """The one of several that is the work, where that can be told."""
    if len(found) < 2:
        return list(found)
    python = [one for one in found if is_python(one)] or list(found)
    if len(python) == 1:
        return python
    by_threads = sorted(python, key=lambda one: one.threads or 0, reverse=True)
    most, next_most = (one.threads or 0 for one in by_threads[:2])
    return by_threads[:1] if most >= _MANY_TIMES * max(1, next_most) else by_threads


def work_below(tree: Tree, process: NodeProcess) -> list[NodeProcess]:
    """The work at or below ``process``, from the last that was started upwards."""
    found: dict[int, list[NodeProcess]] = {}
    for one in reversed([process, *tree.below(process)]):
        children = tree.children.get(one.pid, ())
        below = [work for child in children for work in found.pop(child.pid, ())]
        found[one.pid] = _work_at(tree, one, below)
    return found[process.pid]


def _work_at(tree: Tree, process: NodeProcess, found: list[NodeProcess]) -> list[NodeProcess]:
    """``found`` below ``process``, or itself in their place."""
    part = tree.parts[process.pid]
    if part is Part.HELPER:
        return []
    if part is Part.AGENT:
        return found
    if part is Part.WRAPPER:
        work = [one for one in found if tree.parts[one.pid] is Part.WORK]
        # Ranks that a shell started one by one are told by their numbers.
        numbers = {by_argv(tree, one) for one in work}
        return work if len(numbers) == len(work) else chosen(work or found)
    numbers = {by_argv(tree, one) for one in found}
    return found if len(numbers) > 1 and (None, None) not in numbers else [process]


def by_argv(tree: Tree, process: NodeProcess) -> tuple[int | None, int | None]:
    """Rank and local rank by ``--rank`` and ``--local_rank``."""
    rank, local = option_of(process, "rank"), option_of(process, "local_rank")
    if rank is None and local is not None:
        for agent in filter(tree.is_torch_agent, tree.above(process)):
            node = option_of(agent, "node_rank")
            each = option_of(agent, "nproc_per_node")
            if node is not None and each is not None:
                rank = node * each + local
    return rank, local
