"""Which command a cancel becomes, whom it reaches, and how it is confirmed."""

import dataclasses
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel, Kind, Refusal
from slurmtop.control.cancel import plan_cancel, plan_cancel_step
from slurmtop.control.commands import (
    IDS_PER_CALL,
    argvs_for,
    check_argv,
    id_allowed,
    merge_ranges,
    task_ids,
)
from slurmtop.control.plan import task_ranges
from slurmtop.model.ids import JobId, JobKey, TaskSet
from slurmtop.model.job import Job, JobState, Tres
from slurmtop.parse.slurm.ids import parse_job_id
from tests.control.builders import (
    NOBODY,
    NOW,
    a_step,
    action,
    any_asker,
    any_job,
    asker,
    job,
    meant,
    named,
    plan,
    refusal,
    sentence,
    stands_for,
    told,
)


def one_argv(action: Action) -> tuple[str, ...]:
    assert len(action.argvs) == 1
    return action.argvs[0]


@pytest.mark.parametrize(
    ("id", "word", "argument"),
    [
        ("4711", "RUNNING", "4711"),
        ("4711", "PENDING", "4711"),
        ("4711_3", "RUNNING", "4711_3"),
        ("4711_[1-5]", "PENDING", "4711_[1-5]"),
        ("4711_[1,3-5%2]", "PENDING", "4711_[1,3-5]"),
        ("4711_[0-8:2%10]", "PENDING", "4711_[0,2,4,6,8]"),
        ("4711_[7]", "PENDING", "4711_7"),
        ("9300+1", "RUNNING", "9300"),
        ("9300+0", "PENDING", "9300"),
        ("67113575", "RUNNING", "67113575"),
    ],
)
def test_the_form_of_the_id(id: str, word: str, argument: str) -> None:
    assert one_argv(plan(job(id, word))) == ("scancel", argument)


def test_the_cluster_is_named() -> None:
    made = plan(job("4711", cluster="beta"), cluster="beta")
    assert one_argv(made) == ("scancel", "-M", "beta", "4711")
    assert "another cluster" in refusal(job("4711", cluster="beta"), cluster="alpha")
    assert "another cluster" in refusal(job("4711"), cluster="alpha")
    assert "not the name of one cluster" in refusal(job("4711", cluster="a,b"), cluster="a,b")


def test_tasks_of_one_array_become_one_argument() -> None:
    jobs = [job(f"4711_{n}") for n in (5, 3, 4, 9)] + [job("4711_[12-20%4]", "PENDING")]
    made = plan(*jobs, job("4712"))
    assert one_argv(made) == ("scancel", "4712", "4711_[3-5,9,12-20]")
    assert made.command_lines == ("scancel 4712 '4711_[3-5,9,12-20]'",)
    assert made.job_count == 4 + 9 + 1
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_COUNT, "14")


def test_both_parts_of_a_het_job_are_one_target() -> None:
    made = plan(job("9300+1"), job("9300+0"))
    assert one_argv(made) == ("scancel", "9300")
    assert [target.key.id for target in made.targets] == ["9300+0"]
    assert [key.id for key in made.targets[0].parts] == ["9300+0", "9300+1"]
    assert made.targets[0].gpus == 16
    assert any("all of its parts" in text for text in made.warnings)
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "9300")


def test_a_het_part_with_a_doubtful_leader_is_refused() -> None:
    assert "leader" in refusal(job("9300+1", het_leader="8000"))


def test_many_ids_are_split() -> None:
    made = plan(*(job(str(1000 + n)) for n in range(120)))
    assert [len(argv) - 1 for argv in made.argvs] == [IDS_PER_CALL, IDS_PER_CALL, 20]
    assert made.expected_text == "120"


def test_a_scattered_array_stays_below_the_size_of_an_argument() -> None:
    made = plan(*(job(f"4711_{2 * n}") for n in range(5_000)))
    assert all(len(word) < 2_100 for argv in made.argvs for word in argv)
    covered = {n for argv in made.argvs for word in argv[1:] for n in _tasks_in(word)}
    assert covered == {2 * n for n in range(5_000)}


def _tasks_in(word: str) -> set[int]:
    out = set()
    for piece in word.split("_", 1)[1].strip("[]").split(","):
        low, _, high = piece.partition("-")
        out |= set(range(int(low), int(high or low) + 1))
    return out


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ((), "no job under the cursor"),
        ((job("4711", "COMPLETED"),), "already over (COMPLETED)"),
        ((job("4711", "CANCELLED"),), "already over (CANCELLED)"),
        ((job("4711", "REVOKED"),), "another cluster of the federation"),
        ((job("4711", "QUANTUM"),), "scontrol show job 4711"),
        ((job("4711", "FAILED"), job("4712", "TIMEOUT")), "already over: 4711, 4712"),
        ((job("4711_[1-3,7,12,...%8]", "PENDING"),), "cut the task list"),
        ((job("4711_[0-1,4,9,16,2", "PENDING"),), "only part of the id"),
    ],
)
def test_nothing_to_cancel(jobs: tuple[Job, ...], says: str) -> None:
    assert says in refusal(*jobs)


def test_read_only_is_a_refusal() -> None:
    assert "read-only" in refusal(job("4711"), read_only=True)


def test_ended_jobs_among_others_are_left_out_and_said() -> None:
    made = plan(job("4711"), job("4712", "COMPLETED"))
    assert one_argv(made) == ("scancel", "4711")
    assert "left out, already over: 4712" in made.warnings


def test_a_job_marked_twice_is_one() -> None:
    assert plan(job("4711"), job("4711")).job_count == 1


@pytest.mark.parametrize(
    ("one", "level", "text"),
    [
        (job("4711", "PENDING"), ConfirmLevel.YES, ""),
        (job("4711"), ConfirmLevel.YES, ""),
        (job("4711", node_count=4, nodes="gpu[01-04]"), ConfirmLevel.TYPE_ID, "4711"),
        (job("4711", "PENDING", node_count=4), ConfirmLevel.YES, ""),
        (job("4711", user="bob"), ConfirmLevel.TYPE_ID, "4711"),
        (job("4711_[1-5]", "PENDING"), ConfirmLevel.TYPE_COUNT, "5"),
        (job("4711_3", user="bob"), ConfirmLevel.TYPE_ID, "4711_3"),
    ],
)
def test_how_hard_it_is_to_say_yes(one: Job, level: ConfirmLevel, text: str) -> None:
    made = plan(one)
    assert (made.confirm, made.expected_text) == (level, text)
    assert made.confirmed_by(f" {text} ")
    assert made.confirmed_by("no") is (level is ConfirmLevel.YES)


def test_what_is_lost_is_said() -> None:
    made = plan(job("4711"), job("4712"))
    assert made.targets[0].gpu_hours_spent == pytest.approx(24.0)
    assert any(text.startswith("48.0 GPU-hours") for text in made.warnings)
    unknown = plan(job("4711", tres=Tres()))
    assert unknown.targets[0].gpu_hours_spent is None
    assert any("what running jobs did not save" in text for text in unknown.warnings)


def test_whose_jobs_is_said() -> None:
    made = plan(job("4711", user="bob"), job("4712", user="\x1b[2Jx"))
    text = next(text for text in made.warnings if "not your jobs" in text)
    assert "bob" in text
    assert "\x1b" not in text


def test_a_completing_job_may_be_cancelled_with_a_word() -> None:
    made = plan(job("4711", "COMPLETING"))
    assert any("already ending" in text for text in made.warnings)


ODD = st.text(max_size=20)
IDS = st.one_of(
    ODD,
    st.sampled_from(
        [
            "4711",
            "4711_3",
            "4711_[1-5]",
            "4711_[0-8:2%2]",
            "9300+1",
            "4711_[*]",
            "4711_*",
            "-1",
            "--help",
            "4711;rm",
            "4711 4712",
            "0",
            "4711_[9-1]",
            "4711_[1-99999999999]",
            "４７１１",
        ]
    ),
)
ALLOWED = re.compile(r"[1-9][0-9]{0,9}(_([0-9]{1,9}|\[[0-9,-]+\]))?")


@st.composite
def odd_jobs(draw: st.DrawFn) -> Job:
    text = draw(IDS)
    parsed = parse_job_id(text)
    if draw(st.booleans()):
        parsed = JobId(
            text, draw(IDS), tasks=TaskSet(draw(ODD), 3) if draw(st.booleans()) else None
        )
    word = draw(st.sampled_from(["RUNNING", "PENDING", "SUSPENDED"]))
    return Job(
        key=JobKey("", parsed.stable),
        id=parsed,
        name=draw(ODD),
        user=draw(ODD),
        state=JobState(word, word),
        het_leader=draw(st.one_of(st.none(), ODD)),
    )


@given(jobs=st.lists(odd_jobs(), max_size=6), me=ODD, cluster=ODD)
def test_nothing_but_ids_reaches_a_command_line(jobs: list[Job], me: str, cluster: str) -> None:
    made = plan_cancel(jobs, Asker(me=me, now=NOW))
    if isinstance(made, Refusal):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
        assert argv[0] == "scancel"
        assert all(ALLOWED.fullmatch(word) for word in argv[1:])
    named = plan_cancel(jobs, Asker(me=me, now=NOW, cluster=cluster))
    if isinstance(named, Action) and cluster:
        assert all(argv[1] == "-M" and not argv[2].startswith("-") for argv in named.argvs)


@given(st.text(max_size=30))
def test_an_id_that_is_allowed_looks_like_one(text: str) -> None:
    if id_allowed(text):
        assert ALLOWED.fullmatch(text)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("scancel",),
        ("rm", "4711"),
        ("scancel", "-M", "beta"),
        ("scancel", "-M", "-x", "4711"),
        ("scancel", "--state=PENDING", "4711"),
        ("scancel", "-v", "4711"),
        ("scancel", "4711", "--signal=KILL"),
        ("scancel", "4711_[*]"),
        ("scancel", "4711_*"),
        ("scancel", "4711.0"),
        ("scancel", "4711\n4712"),
        ("scancel", ""),
    ],
)
def test_other_commands_are_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_argv(argv)


def test_argvs_for_refuses_a_target_that_was_tampered_with() -> None:
    target = dataclasses.replace(plan(job("4711")).targets[0], ids=("4711; rm -rf /",))
    with pytest.raises(ValueError, match="not a job id"):
        argvs_for(Kind.CANCEL, [target], "")


RANGES = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair))),
    min_size=1,
    max_size=20,
)


@given(RANGES)
def test_ranges_keep_their_tasks(ranges: list[tuple[int, int]]) -> None:
    meant = {n for low, high in ranges for n in range(low, high + 1)}
    merged = merge_ranges(ranges)
    assert {n for low, high in merged for n in range(low, high + 1)} == meant
    assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(merged))
    words = task_ids("4711", ranges)
    assert all(id_allowed(word) for word in words)
    assert {n for word in words for n in _tasks_in(word)} == meant


@given(st.text(max_size=20), st.integers(0, 10), st.booleans())
def test_task_ranges_never_raises(text: str, count: int, exact: bool) -> None:
    found = task_ranges(TaskSet(text, count, exact))
    assert found is None or all(low <= high for low, high in found)


def test_the_other_parts_of_a_het_job_count_also_where_one_was_chosen() -> None:
    first = job("4815+0", nodes="gpu01", tres=Tres(gpus=4))
    second = job("4815+1", nodes="gpu[02-03]", node_count=2, tres=Tres(gpus=8))
    other = job("4816+1", nodes="gpu09")
    made = plan_cancel(
        [second], Asker(me="anna", now=NOW), known=[first, second, other, job("4711")]
    )
    assert isinstance(made, Action)
    assert one_argv(made) == ("scancel", "4815")
    (target,) = made.targets
    assert [part.id for part in target.parts] == ["4815+0", "4815+1"]
    assert (target.nodes, target.node_count, target.gpus) == ("gpu[01-03]", 3, 12)
    assert target.gpu_hours_spent == pytest.approx(36.0)
    assert any("the 2 that are known are counted" in text for text in made.warnings)


@pytest.mark.parametrize("id", ["4815+0", "4815+1"])
def test_parts_that_are_not_known_are_said(id: str) -> None:
    made = plan(job(id))
    assert any(f"only {id} is known" in text for text in made.warnings)


@pytest.mark.parametrize(
    ("one", "step", "argument"),
    [
        (job("4711"), "4711.0", "4711.0"),
        (job("4711_3", raw_id="4720"), "4711_3.12", "4711_3.12"),
        (job("9300+1", raw_id="9301"), "9300+1.0", "9301.0"),
    ],
)
def test_one_step_is_cancelled_and_the_job_goes_on(one: Job, step: str, argument: str) -> None:
    made = action(plan_cancel_step(one, a_step(step), asker()))
    assert made.argvs == (("scancel", "--ctld", argument),)
    assert made.confirm is ConfirmLevel.YES
    assert "the job goes on" in told(made)
    others = action(plan_cancel_step(one, a_step(step), asker("bob")))
    assert (others.confirm, others.expected_text) == (ConfirmLevel.TYPE_ID, argument)


@pytest.mark.parametrize(
    ("one", "step", "says"),
    [
        (job("4711"), "4711.batch", "was not started by srun: cancel the job instead"),
        (job("4711", "COMPLETED"), "4711.0", "already over"),
        (job("4711_[1-5]", "PENDING"), "4711_1.0", "have no steps"),
        (job("9300+1", raw_id=None), "9300+1.0", "own number"),
        (job("9300+1", raw_id="; rm"), "9300+1.0", "nothing is done"),
        (job("4711", user="bob"), "4711.0", "not yours"),
    ],
)
def test_a_step_that_is_not_cancelled(one: Job, step: str, says: str) -> None:
    assert says in sentence(plan_cancel_step(one, a_step(step), asker(rights=NOBODY)))


def test_what_others_alone_may_do_is_not_offered() -> None:
    jobs = [job("4711"), job("4712", user="bob"), job("4713", user="\x1b[2Jx")]
    made = action(plan_cancel(jobs, asker(rights=NOBODY)))
    assert one_argv(made) == ("scancel", "4711")
    assert "an operator or a coordinator of account ml may do it: 4712" in told(made)
    assert "\x1b" not in told(made)


@given(jobs=st.lists(any_job(), max_size=6), known=st.lists(any_job(), max_size=4), who=any_asker())
def test_each_job_is_named_once_and_nothing_else(
    jobs: list[Job], known: list[Job], who: Asker
) -> None:
    made = plan_cancel(jobs, who, known=known)
    if not isinstance(made, Action):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
    assert sorted(named(made)) == sorted(set(meant(made)))
    alive = [one for one in jobs if not one.state.ended]
    assert set(named(made)) <= {id for one in alive for id in stands_for(one)}
