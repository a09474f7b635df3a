"""Which ranks of a job belong together: those of one launch. Pure."""

from collections.abc import Iterable

from slurmtop.model.process import RankProcess


def launches(ranks: Iterable[RankProcess]) -> list[list[RankProcess]]:
    """The ranks by launch: by step, and apart where one number stands there twice."""
    steps: dict[str | None, list[RankProcess]] = {}
    for one in ranks:
        steps.setdefault(one.process.step, []).append(one)
    out: list[list[RankProcess]] = []
    for those in steps.values():
        numbers = [one.rank for one in those if one.rank is not None]
        if len(set(numbers)) == len(numbers):
            out.append(those)
            continue
        apart: dict[tuple[object, ...], list[RankProcess]] = {}
        for one in those:
            apart.setdefault(_launch_name(one), []).append(one)
        out += apart.values()
    return _one_world(out)


def _one_world(launches: Iterable[list[RankProcess]]) -> list[list[RankProcess]]:
    """Scripts that start an srun a node make one world of several steps: the same meeting point,
    one size, and no number twice."""
    out: list[list[RankProcess]] = []
    for ranks in launches:
        names = {_launch_name(one) for one in ranks}
        numbers = {one.rank for one in ranks}
        fits = [
            those
            for those in out
            if len(names) == 1
            and None not in (*next(iter(names))[-2:], *numbers)
            and {_launch_name(one) for one in those} == names
            and not {one.rank for one in those} & numbers
        ]
        if len(fits) == 1:
            fits[0].extend(ranks)
        else:
            out.append(list(ranks))
    return out


def _launch_name(one: RankProcess) -> tuple[object, ...]:
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    return (one.world_size, one.attempt, *(one.process.variable(name) for name in names))
