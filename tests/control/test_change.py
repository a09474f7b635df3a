"""A new time limit and excluded nodes: what is offered, what it costs, what is kept."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel
from slurmtop.control.change import plan_exclude, plan_limit, read_hosts
from slurmtop.control.commands import check_argv
from slurmtop.model.job import UNKNOWN_LIMIT, Job, LimitKind, Phase, TimeLimit
from slurmtop.parse.slurm.hostlist import expand_hosts
from tests.control.builders import (
    NOBODY,
    NOW,
    OPERATOR,
    action,
    any_asker,
    any_job,
    asker,
    job,
    meant,
    named,
    sentence,
    stands_for,
    told,
)


def test_a_limit_is_lowered_with_a_warning_that_it_stays_so() -> None:
    made = action(plan_limit([job("4711")], asker(), minutes=600))
    assert made.argvs == (("scontrol", "update", "JobId=4711", "TimeLimit=600"),)
    assert made.confirm is ConfirmLevel.YES
    assert "only an operator can raise it again" in told(made)
    assert "only an operator" not in told(
        plan_limit([job("4711")], asker(rights=OPERATOR), minutes=600)
    )


def test_ids_of_every_form() -> None:
    jobs = [job("4711", "PENDING"), job("4712_[1-5%2]", "PENDING"), job("9300+1", "PENDING")]
    made = action(plan_limit(jobs, asker(), minutes=5))
    assert made.argvs == (
        ("scontrol", "update", "JobId=4712_[1-5]", "TimeLimit=5"),
        ("scontrol", "update", "JobId=4711,9300", "TimeLimit=5"),
    )


@pytest.mark.parametrize("minutes", [0, -5, 525_601])
def test_a_limit_is_a_minute_to_a_year(minutes: int) -> None:
    assert "1 to 525,600 minutes" in sentence(plan_limit([job("1")], asker(), minutes=minutes))
    assert action(plan_limit([job("1", "PENDING")], asker(), minutes=525_600)).argvs


def test_a_user_raises_the_limit_of_a_waiting_job_only() -> None:
    two_days = 2 * 24 * 60
    says = "a user may lower the limit of a job that has started, not raise it"
    assert says in sentence(plan_limit([job("4711")], asker(rights=NOBODY), minutes=two_days))
    waiting = action(plan_limit([job("4711", "PENDING")], asker(rights=NOBODY), minutes=two_days))
    assert "above what its partition or QOS allows" in told(waiting)
    unknown = plan_limit([job("4711")], asker(), minutes=two_days)
    assert "only Slurm can tell whether you may" in told(unknown)
    free = action(plan_limit([job("4711")], asker(rights=OPERATOR), minutes=two_days))
    assert free.warnings == ()


def test_the_limit_it_has_is_no_change() -> None:
    assert "it has this limit already" in sentence(
        plan_limit([job("4711")], asker(), minutes=24 * 60)
    )


@pytest.mark.parametrize("kind", [LimitKind.UNLIMITED, LimitKind.OVER_A_YEAR])
def test_below_no_limit_is_no_raise(kind: LimitKind) -> None:
    made = plan_limit([job("4711", limit=TimeLimit(kind))], asker(rights=NOBODY), minutes=500_000)
    assert "only Slurm" not in told(made)
    assert action(made).argvs


def test_an_unknown_limit_is_said() -> None:
    made = plan_limit([job("4711", limit=UNKNOWN_LIMIT)], asker(rights=NOBODY), minutes=600)
    assert "its limit now is not known; Slurm refuses to raise it: 4711" in told(made)


@pytest.mark.parametrize("minutes", [180, 5])
def test_a_limit_that_is_used_up_ends_the_job_and_takes_its_id_typed(minutes: int) -> None:
    made = action(plan_limit([job("4711"), job("4712", "PENDING")], asker(), minutes=minutes))
    assert "is not longer than it has run already, so Slurm ends it at once: 4711" in told(made)
    assert any(text.startswith("24.0 GPU-hours") for text in made.warnings)
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_COUNT, "2")
    alone = action(plan_limit([job("4711")], asker(rights=OPERATOR), minutes=minutes))
    assert (alone.confirm, alone.expected_text) == (ConfirmLevel.TYPE_ID, "4711")
    longer = action(plan_limit([job("4711")], asker(), minutes=181))
    assert longer.confirm is ConfirmLevel.YES


def test_an_unknown_start_may_mean_the_end() -> None:
    made = action(plan_limit([job("4711", start=None)], asker(), minutes=600))
    assert "it may end at once: 4711" in told(made)
    assert made.confirm is ConfirmLevel.TYPE_ID


def test_the_part_that_has_run_longest_counts() -> None:
    parts = [job("9300+0"), job("9300+1", start=NOW - timedelta(hours=12))]
    made = action(plan_limit([parts[0]], asker(), minutes=600, known=parts))
    assert "Slurm ends it at once: 9300+1" in told(made)
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "9300")


@given(
    jobs=st.lists(any_job(), max_size=6),
    known=st.lists(any_job(), max_size=4),
    who=any_asker(),
    minutes=st.integers(-10, 600_000),
)
def test_a_limit_names_each_target_once_and_nothing_else(
    jobs: list[Job], known: list[Job], who: Asker, minutes: int
) -> None:
    made = plan_limit(jobs, who, minutes=minutes, known=known)
    if isinstance(made, Action):
        _well_formed(made, [one for one in jobs if not one.state.ended])
    else:
        assert made.sentence


def test_nodes_are_added_to_what_is_excluded() -> None:
    one = job("4711", "PENDING", excluded_nodes="gpu[03-04]")
    made = action(plan_exclude([one], asker(), hosts=["gpu[04-05]", "node7"]))
    assert made.argvs == (("scontrol", "update", "JobId=4711", "ExcNodeList=gpu[03-05],node7"),)
    assert made.details.exclude == ("gpu04", "gpu05", "node7")
    assert "gpu04 is excluded already: 4711" in made.warnings
    assert "what they exclude already stays excluded: gpu[03-05],node7" in made.warnings
    assert made.confirm is ConfirmLevel.YES


def test_jobs_with_other_lists_get_calls_of_their_own() -> None:
    jobs = [
        job("4711", "PENDING"),
        job("4712", "PENDING", excluded_nodes="gpu03"),
        job("4713_[1-4]", "PENDING", reason="JobHeldUser", priority=0),
    ]
    made = action(plan_exclude(jobs, asker(), hosts=["gpu05"]))
    assert made.argvs == (
        ("scontrol", "update", "JobId=4713_[1-4]", "ExcNodeList=gpu05"),
        ("scontrol", "update", "JobId=4711", "ExcNodeList=gpu05"),
        ("scontrol", "update", "JobId=4712", "ExcNodeList=gpu[03,05]"),
    )


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (job("4711"), "keeps its nodes: requeue and hold it, exclude, release it"),
        (job("4711", "COMPLETED"), "already over"),
        (job("4711", "PENDING", excluded_nodes=None), "that list would be lost"),
        (job("4711", "PENDING", excluded_nodes="gpu["), "that list would be lost"),
        (job("4711", "PENDING", excluded_nodes="gpu[01-09]"), "it excludes them already"),
    ],
)
def test_where_nodes_cannot_be_excluded(one: Job, says: str) -> None:
    assert says in sentence(plan_exclude([one], asker(), hosts=["gpu05"]))


def test_one_list_must_not_replace_that_of_another_part() -> None:
    first = job("9300+0", "PENDING", excluded_nodes="gpu03")
    for other, says in [("gpu04", "exclude different nodes"), ("gpu[", "would be lost")]:
        second = job("9300+1", "PENDING", excluded_nodes=other)
        made = plan_exclude([first], asker(), hosts=["gpu05"], known=[first, second])
        assert says in sentence(made)
    same = job("9300+1", "PENDING", excluded_nodes="gpu03")
    made = plan_exclude([same], asker(), hosts=["gpu05"], known=[first, same])
    assert action(made).argvs == (("scontrol", "update", "JobId=9300", "ExcNodeList=gpu[03,05]"),)


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ([], "no node is named"),
        (["  "], "no node is named"),
        (["gpu["], "no list of hosts"),
        (["gpu05;rm"], "not the name of a node"),
        (["-x"], "not the name of a node"),
        (["gpu[1-999999]"], "no list of hosts"),
        (["a[1-900]", "b[1-900]"], "more than 1,024 nodes"),
    ],
)
def test_what_is_no_node(hosts: list[str], says: str) -> None:
    assert says in sentence(plan_exclude([job("4711", "PENDING")], asker(), hosts=hosts))


@given(st.lists(st.text(max_size=12), max_size=4))
def test_hosts_are_plain_names_or_refused(hosts: list[str]) -> None:
    found = read_hosts(hosts)
    if isinstance(found, tuple):
        assert found
        assert all(name.isascii() and not name.startswith("-") for name in found)


@given(
    jobs=st.lists(any_job(), max_size=6),
    known=st.lists(any_job(), max_size=4),
    who=any_asker(),
    hosts=st.lists(st.sampled_from(["gpu01", "gpu[03-05]", "a-b.c", "x["]), max_size=3),
)
def test_an_exclusion_keeps_what_is_excluded(
    jobs: list[Job], known: list[Job], who: Asker, hosts: list[str]
) -> None:
    made = plan_exclude(jobs, who, hosts=hosts, known=known)
    if not isinstance(made, Action):
        assert made.sentence
        return
    _well_formed(made, [one for one in jobs if one.state.phase is Phase.PENDING])
    for argv in made.argvs:
        after = set(expand_hosts(argv[-1].removeprefix("ExcNodeList=")))
        assert after >= set(made.details.exclude)
        for target in made.targets:
            if any(text in argv[-2] for text in target.ids):
                assert after >= set(expand_hosts(target.excluded_nodes or ""))


def _well_formed(made: Action, allowed: list[Job]) -> None:
    for argv in made.argvs:
        check_argv(argv)
    assert sorted(named(made)) == sorted(set(meant(made)))
    assert set(named(made)) <= {id for one in allowed for id in stands_for(one)}
