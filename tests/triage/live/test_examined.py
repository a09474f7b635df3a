"""Situations that were written down before the rules were read, each with what may be said of it.

Who is innocent is not named, what is well is not called hung, and where proof is there somebody is
named.
"""

import pytest

from slurmtop.model.verdict import Culprit, State, Verdict
from slurmtop.triage.why import explain_job
from tests.triage.live.examined_alone import alone
from tests.triage.live.examined_anew import anew
from tests.triage.live.examined_apart import apart
from tests.triage.live.examined_at_work import at_work
from tests.triage.live.examined_bare import without_stacks
from tests.triage.live.examined_case import Case, rank_of
from tests.triage.live.examined_hangs import with_stacks
from tests.triage.live.examined_launches import launched
from tests.triage.live.examined_left import left_behind
from tests.triage.live.examined_less import less
from tests.triage.live.examined_odd import odd
from tests.triage.live.examined_patience import patience
from tests.triage.live.examined_power import power
from tests.triage.live.examined_second import elsewhere
from tests.triage.live.examined_second_well import not_a_fault
from tests.triage.live.examined_signs import signs
from tests.triage.live.examined_signs_of_life import signs_of_life
from tests.triage.live.examined_third import third
from tests.triage.live.examined_threads import threads
from tests.triage.live.examined_well import well

#: How often something is taken away from each.
LOOKS = 4
CASES = (
    *with_stacks(),
    *without_stacks(),
    *well(),
    *odd(),
    *elsewhere(),
    *not_a_fault(),
    *third(),
    *patience(),
    *threads(),
    *at_work(),
    *launched(),
    *alone(),
    *anew(),
    *power(),
    *signs(),
    *signs_of_life(),
    *apart(),
    *left_behind(),
)

#: With more nodes it is the same and takes longer.
SMALL = tuple(case for case in CASES if not case.name.removesuffix("-bare").endswith("-512"))


def wrongly_named(case: Case, verdict: Verdict) -> list[Culprit]:
    facts = case.facts()
    wrong = []
    for one in verdict.culprits:
        ranks = {one.rank, rank_of(facts, one.host, one.pid)} - {None}
        names: set[int | str | None] = {*ranks} or {one.host}
        if not names & case.may:
            wrong.append(one)
    return wrong


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_one_that_may_be_given(case: Case) -> None:
    verdict = explain_job(case.facts())
    assert verdict.state.value in case.states.split(), verdict.summary
    assert case.classes is None or verdict.cls in case.classes, verdict.summary
    assert not wrongly_named(case, verdict), verdict.summary
    assert verdict.culprits or not case.must, verdict.summary
    assert verdict.cls not in case.never, verdict.summary
    assert not [words for words in case.unsaid if words in verdict.summary], verdict.summary
    if verdict.state is not State.HUNG:
        assert not verdict.culprits


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_whatever_is_lost_nobody_innocent_is_named(case: Case) -> None:
    facts = case.facts()
    for nth in range(LOOKS):
        poorer, lost = less(facts, f"{case.name} {nth}")
        verdict = explain_job(poorer)
        assert not wrongly_named(case, verdict), (lost, verdict.summary)
        if "hung" not in case.states:
            assert verdict.state is not State.HUNG, (lost, verdict.summary)
