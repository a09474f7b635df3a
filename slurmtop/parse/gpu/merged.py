"""One GPU as several sources saw it: the values of one, and of the others what it does not have."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from slurmtop.model.gpu import GpuSample

_NAMES = tuple(one.name for one in fields(GpuSample) if one.name not in ("words", "jobs"))


def merge_samples(
    base: Sequence[GpuSample], other: Sequence[GpuSample]
) -> tuple[tuple[GpuSample, ...], bool]:
    """``base`` with what ``other`` knows besides, and whether it knew anything.

    GPUs are joined by UUID alone: numbers differ between tools. What ``other`` has of GPUs that
    are not in ``base`` (of another job, by a cgroup) is left out.
    """
    by_uuid = {one.uuid: one for one in other if one.uuid is not None and one.slice_id is None}
    out: list[GpuSample] = []
    used = False
    for gpu in base:
        beside = None if gpu.uuid is None or gpu.slice_id else by_uuid.get(gpu.uuid)
        more = {} if beside is None else _more(gpu, beside)
        used = used or bool(more)
        out.append(replace(gpu, **more) if more else gpu)
    return tuple(out), used


def _more(gpu: GpuSample, beside: GpuSample) -> dict[str, Any]:
    said = dict(gpu.words)
    more: dict[str, Any] = {}
    for name in _NAMES:
        value = getattr(beside, name)
        # A parent of MIG slices has no utilisation: words that say so stay.
        if value is not None and getattr(gpu, name) is None and name not in said:
            more[name] = value
    if beside.jobs and not gpu.jobs:
        more["jobs"] = beside.jobs
    return more
