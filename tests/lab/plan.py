"""Which runs a lab consists of."""

from dataclasses import dataclass

from tests.lab.rows import key_of
from tests.lab.truth import TRUTH

#: Four ranks; where nothing else is said, one in the middle has the fault.
WORLD, MIDDLE = 4, 2
#: The step at which it happens.
STEP = 6
#: The faults that are tried at the first and the last rank as well.
AT_ENDS = ("fifo", "sigstop", "data-loader", "other-branch")
SYNCS = ("reduce", "ddp", "ahead")
#: A minute and a half of nothing but a shell, and the other cases without a rank of their own.
NO_RANK = frozenset({"time-limit", "preemption"})
#: What a change must not break: four faults and two healthy runs.
SMALL = ("sigstop", "fifo", "other-branch", "data-loader", "evaluation", "steady")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One run to be made."""

    case: str
    rank: int = MIDDLE
    sync: str = "reduce"
    mode: str = "stacks"
    seed: int = 1

    @property
    def key(self) -> str:
        return key_of(self.case, self.rank, self.sync, self.mode, self.seed)


def usual(mode: str, seed: int) -> list[Planned]:
    """``make lab``: each case once, four of them at the ends, and the helper thread twice."""
    plan = [Planned(case=case, mode=mode, seed=seed) for case in TRUTH]
    plan += [
        Planned(case=case, rank=rank, mode=mode, seed=seed)
        for case in AT_ENDS
        for rank in (0, WORLD - 1)
    ]
    plan += [Planned(case=case, sync="ahead", mode=mode, seed=seed) for case in ("fifo", "steady")]
    return plan


def full(mode: str, seed: int) -> list[Planned]:
    """``make lab-full``: every case, at every rank, in every way to meet."""
    return [
        Planned(case=case, rank=rank, sync=sync, mode=mode, seed=seed)
        for sync in SYNCS
        for case, truth in TRUTH.items()
        for rank in ([MIDDLE] if truth.healthy or case in NO_RANK else range(WORLD))
    ]


def small(mode: str = "stacks", seed: int = 1) -> list[Planned]:
    return [Planned(case=case, mode=mode, seed=seed) for case in SMALL]
