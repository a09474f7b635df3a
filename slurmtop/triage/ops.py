"""One spelling for the operations that PyTorch, NCCL and the flight recorder name differently."""

import re
from math import prod

_CAMEL = {
    "reducescatter": "reduce_scatter",
    "alltoallbase": "alltoall_base",
    "sendrecv": "sendrecv",
}
_SPLIT = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
}

#: Operations whose ranks may give different sizes without any fault.
UNEVEN_OPS = frozenset(
    {"alltoall", "alltoall_base", "scatter", "gather", "send", "recv", "coalesced", "unknown"}
)
#: Operations between two ranks; they are counted apart from collectives.
PAIR_OPS = frozenset({"send", "recv", "sendrecv", "isend", "irecv"})


def plain_op(name: str | None) -> str | None:
    """``_ALLGATHER_BASE``, ``AllReduce``, ``nccl:_all_gather_base`` as ``allgather_base`` …"""
    if not name:
        return None
    word = name.rsplit(":", 1)[-1].strip().strip("_").lower()
    word = re.sub(r"[^a-z0-9_]", "", word)
    for split, joined in _SPLIT.items():
        if word.startswith(split):
            word = joined + word[len(split) :]
    word = _CAMEL.get(word, word)
    return word or None


def group_size(op: str | None, numel_in: int | None, numel_out: int | None) -> int | None:
    """How many ranks a group has, by an operation whose output is that many inputs."""
    if not numel_in or not numel_out or op is None:
        return None
    if op.startswith("allgather"):
        big, small = numel_out, numel_in
    elif op.startswith("reduce_scatter"):
        big, small = numel_in, numel_out
    else:
        return None
    return big // small if big % small == 0 else None


def numel_of(shape: str | None) -> int | None:
    """The number of elements of ``8, 4``; None where no shape is told, 1 for a scalar."""
    if shape is None:
        return None
    dims = [dim.strip() for dim in shape.split(",") if dim.strip()]
    return prod(map(int, dims)) if all(dim.isdecimal() for dim in dims) else None
