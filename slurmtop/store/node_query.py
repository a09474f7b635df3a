"""The filter of the Nodes screen: words, ``key:value``, ``-`` in front for "not".

``idle part:gpu free:>=4 gpu:h100 -node:gpu07``: every part must hold. It is read as the filter of
the Jobs screen is (:mod:`slurmtop.store.query`), with keys of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from slurmtop.model.job import Job
from slurmtop.model.node import Node, Usable
from slurmtop.store.query import split_parts, unknown_key
from slurmtop.store.query_keys import COMPARE, choices_of, is_named, read_count


@dataclass(slots=True)
class NodeSeen:
    """A node as a filter looks at it, with the jobs that are known to be on it."""

    node: Node
    jobs: tuple[Job, ...]
    text: str


NodeTest = Callable[[NodeSeen], bool]


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """``error`` is a sentence where a part could not be understood; the other parts count."""

    text: str = ""
    tests: tuple[NodeTest, ...] = field(default=(), compare=False)
    error: str | None = None

    def __bool__(self) -> bool:
        return bool(self.tests)

    def matches(self, seen: NodeSeen) -> bool:
        return all(test(seen) for test in self.tests)


EVERY_NODE = NodeQuery()


def node_text(node: Node, jobs: Iterable[Job]) -> str:
    """Everything a word is looked for in, lower case."""
    parts = (
        node.name,
        node.state.text,
        node.state.base,
        *node.state.flags,
        *node.partitions,
        *(pool.type for pool in node.gres or ()),
        node.reason,
        node.reason_user,
        *(text for job in jobs for text in (job.id.text, job.name, job.user)),
    )
    return "\n".join(part for part in parts if part).lower()


def parse_node_query(text: str) -> NodeQuery:
    """Take a filter apart. Never raises; what is wrong stands in ``NodeQuery.error``."""
    tests: list[NodeTest] = []
    errors: list[str] = []
    for negated, key, compare, value in split_parts(text, NODE_ALIASES):
        if key is None:
            made: NodeTest | str = _has_word(value.lower())
        elif (name := NODE_ALIASES.get(key.lower())) is None:
            errors.append(unknown_key(key, NODE_ALIASES, NODE_KEYS))
            continue
        elif not value:
            continue
        else:
            made = NODE_KEYS[name](compare, value)
        if isinstance(made, str):
            errors.append(f"{name}: {made}")
        else:
            tests.append(_not(made) if negated else made)
    return NodeQuery(text, tuple(tests), errors[0] if errors else None)


def _not(test: NodeTest) -> NodeTest:
    return lambda seen: not test(seen)


def _has_word(word: str) -> NodeTest:
    return lambda seen: word in seen.text


def _state(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)

    def test(seen: NodeSeen) -> bool:
        state = seen.node.state
        words = {word.lower() for word in (state.text, state.base, *state.flags) if word}
        if state.usable is Usable.YES:
            words.add("usable")
        return any(word.startswith(one) for one in wanted for word in words)

    return test


def _partition(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)
    return lambda seen: any(is_named(name, wanted) for name in seen.node.partitions)


def _node(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)
    return lambda seen: any(one.rstrip("*") in seen.node.name.lower() for one in wanted)


def _reason(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)
    return lambda seen: any(one in (seen.node.reason or "").lower() for one in wanted)


def _user(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)
    return lambda seen: any(is_named(job.user, wanted) for job in seen.jobs)


def _job(_compare: str, value: str) -> NodeTest:
    wanted = choices_of(value)
    return lambda seen: any(
        one in (job.id.text, job.key.id, job.id.base) for one in wanted for job in seen.jobs
    )


def _number(get: Callable[[Node], float | None]) -> Callable[[str, str], NodeTest | str]:
    """A number that is not known is neither above nor below anything."""

    def make(compare: str, value: str) -> NodeTest | str:
        limit = read_count(value)
        if limit is None:
            return f"{value!r} is no number"
        holds = COMPARE[compare]

        def test(seen: NodeSeen) -> bool:
            have = get(seen.node)
            return have is not None and holds(have, limit)

        return test

    return make


def free_gpus(node: Node) -> int | None:
    """GPUs that a job may have now: none of those on a node that takes no job, or that Slurm
    keeps for another; None where nobody can tell."""
    if node.state.usable is Usable.UNKNOWN:
        return None
    free = node.gpu_count().free
    return 0 if free and node.state.usable in (Usable.NO, Usable.SPOKEN_FOR) else free


def _gpu(compare: str, value: str) -> NodeTest | str:
    """A count of whole GPUs, or the name of a type."""
    if compare or read_count(value) is not None:
        return _number(lambda node: node.gpu_count().total)(compare, value)
    wanted = choices_of(value)

    def test(seen: NodeSeen) -> bool:
        types = [(pool.type or "").lower() for pool in seen.node.gres or ()]
        return any(one in type for one in wanted for type in types)

    return test


#: The keys by name, and how each looks at a node.
NODE_KEYS: dict[str, Callable[[str, str], NodeTest | str]] = {
    "state": _state,
    "part": _partition,
    "gpu": _gpu,
    "free": _number(free_gpus),
    "used": _number(lambda node: node.gpu_count().used),
    "node": _node,
    "reason": _reason,
    "user": _user,
    "job": _job,
}
#: What stands before the colon, in all its spellings.
NODE_ALIASES: dict[str, str] = {
    **{name: name for name in NODE_KEYS},
    "st": "state",
    "partition": "part",
    "p": "part",
    "gres": "gpu",
    "gpus": "gpu",
    "type": "gpu",
    "host": "node",
    "name": "node",
    "why": "reason",
    "u": "user",
    "id": "job",
}
