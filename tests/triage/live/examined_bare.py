"""The hangs of :mod:`examined_hangs` where stacks are closed."""

from dataclasses import replace

from tests.triage.live.examined_case import Case
from tests.triage.live.examined_hangs import HU, UNSURE, with_stacks

#: What is certain only with stacks: without them nobody needs to be named.
_BLIND = "pdb-8 pdb-wandb-8 download-64 loop-512"
_BLIND += " loop-gloo-8 branch-rank0-8 branch-half-8 pipeline-stage-8"
_BLIND += " loader-pinned-64 checkpoint-8 two-sleep-8 fsdp-sleep-64 sleep-gloo-4"
_LEFT = "mixed-sync-8 pipeline-stuck-4 branch-2 zero3-ahead-8 two-steps-one-hung"


def without_stacks() -> list[Case]:
    """The same with stacks closed: what needs them may be left open."""
    out = []
    for one in with_stacks():
        if one.name in _LEFT.split():
            continue
        blind = one.name in _BLIND.split()
        facts = one.facts.__self__  # type: ignore[attr-defined]
        closed = replace(facts, stacks=False)
        classes = one.classes
        if classes is not None:
            classes = (*classes, None, *UNSURE, "rank-elsewhere", "gil-held")
        states = HU if "unknown" not in one.states else one.states
        out.append(
            replace(
                one,
                name=one.name + "-bare",
                facts=closed.facts,
                states=states,
                classes=classes,
                must=one.must and not blind,
            )
        )
    return out
