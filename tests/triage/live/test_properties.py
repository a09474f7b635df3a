"""What must hold for any job: less is seen, less is said; names are names; one look is no hang."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.live import LiveFacts, LogMotion
from slurmtop.model.probe import NodeProbe
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import State, Verdict, verdict_dict
from slurmtop.triage.live.judge import judge_live
from slurmtop.triage.report import report_lines
from slurmtop.triage.why import explain_job
from tests.triage.live.builders import STACKS, Rank, facts, live, ranks_of

SITUATIONS = tuple(sorted(path.name for path in STACKS.iterdir() if path.is_dir()))


@st.composite
def jobs(draw: st.DrawFn) -> list[Rank]:
    """Some ranks that wait as captured, some at one fault, some that work."""
    size, fault = draw(st.integers(2, 8)), draw(st.sampled_from(SITUATIONS))
    parts = st.sampled_from(("waits", "waits", "waits", "waits", "fault", "works"))
    out = []
    for number in range(size):
        part = draw(parts)
        one = ranks_of(fault)[2 if part == "fault" else 1]
        if part == "works":
            one = ranks_of("healthy")[draw(st.integers(0, 3))]
        out.append(replace(one, number=number, size=size))
    return out


def names(verdict: Verdict | None) -> set[tuple[int | None, str | None]]:
    return {(one.rank, one.host) for one in verdict.culprits} if verdict is not None else set()


def without_node(looked: LiveFacts, host: str) -> LiveFacts:
    samples = []
    for sample in looked.samples:
        gone = NodeProbe(
            host=host, at=sample.began_at, failure=Failure(Trouble.TIMEOUT, "It is silent.")
        )
        probes = tuple(gone if one.host == host else one for one in sample.probes)
        stacks = tuple(one for one in sample.stacks if one.host != host)
        samples.append(replace(sample, probes=probes, stacks=stacks))
    return replace(looked, samples=tuple(samples))


def without_stacks(looked: LiveFacts, host: str | None) -> LiveFacts:
    samples = tuple(
        replace(one, stacks=tuple(s for s in one.stacks if host is not None and s.host != host))
        for one in looked.samples
    )
    return replace(looked, samples=samples)


def without_activity(looked: LiveFacts, host: str | None) -> LiveFacts:
    samples = []
    for sample in looked.samples:
        probes = tuple(
            replace(one, activity=()) if host in (None, one.host) else one for one in sample.probes
        )
        samples.append(replace(sample, probes=probes))
    return replace(looked, samples=tuple(samples))


@settings(max_examples=60, deadline=None)
@given(jobs(), st.data())
def test_whoever_is_named_with_less_is_named_with_all(
    ranks: list[Rank], data: st.DataObject
) -> None:
    looked = live(ranks)
    whole = names(judge_live(facts(looked)))
    host = data.draw(st.sampled_from([one.at for one in ranks]))
    for less in (
        without_node(looked, host),
        without_stacks(looked, host),
        without_stacks(looked, None),
        without_activity(looked, host),
        without_activity(looked, None),
        replace(looked, log=LogMotion()),
        without_node(without_stacks(looked, None), host),
        without_stacks(without_activity(looked, host), host),
    ):
        assert names(judge_live(facts(less))) <= whole


@settings(max_examples=40, deadline=None)
@given(jobs(), st.randoms(use_true_random=False))
def test_other_numbers_give_the_same_answer_with_other_numbers(
    ranks: list[Rank], random: object
) -> None:
    order = list(range(len(ranks)))
    random.shuffle(order)  # type: ignore[attr-defined]
    moved = [replace(one, number=order[one.number]) for one in ranks]
    before, after = judge_live(facts(live(ranks))), judge_live(facts(live(moved)))
    assert (before is None) == (after is None)
    if before is None or after is None:
        return
    assert before.state == after.state
    mapped = {
        (None if rank is None else order[rank], None if host is None else _host(order, host))
        for rank, host in names(before)
    }
    assert mapped == names(after)


def _host(order: list[int], host: str) -> str:
    return f"gpu{order[int(host.removeprefix('gpu')) - 1] + 1:02}"


@settings(max_examples=40, deadline=None)
@given(jobs())
def test_one_look_is_never_a_hang_and_names_nobody(ranks: list[Rank]) -> None:
    verdict = judge_live(facts(live(ranks, samples=1)))
    assert verdict is None or verdict.state is not State.HUNG
    assert not names(verdict)


@settings(max_examples=40, deadline=None)
@given(jobs(), st.booleans())
def test_only_a_hang_names_somebody_and_every_verdict_can_be_shown(
    ranks: list[Rank], stacks: bool
) -> None:
    verdict = explain_job(facts(live(ranks, stacks=stacks)))
    assert not verdict.culprits or verdict.state is State.HUNG
    assert verdict_dict(verdict)["schema"] == "slurmtop.verdict/1"
    assert report_lines(verdict)
    effects = [one.effect for one in verdict.next]
    assert effects == sorted(effects)
