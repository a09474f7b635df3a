"""Which jobs a command line names, in every form that Slurm prints or takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.cli.errors import UsageError
from slurmtop.cli.named import Chosen, Named, choose, parse_named
from slurmtop.control.actions import Kind
from slurmtop.model.job import Job
from tests.build import make_job


def names(*texts: str) -> tuple[Named, ...]:
    return parse_named(texts, None)[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("4711", {"base": "4711"}),
        ("4711_3", {"base": "4711", "tasks": ((3, 3),)}),
        ("4711_[3,5-7]", {"base": "4711", "tasks": ((3, 3), (5, 7))}),
        ("4711_[0-6:2]", {"base": "4711", "tasks": ((0, 0), (2, 2), (4, 4), (6, 6))}),
        ("4711_[0-9%4]", {"base": "4711", "tasks": ((0, 9),)}),
        ("4711_[*]", {"base": "4711", "waiting": True}),
        ("4711+1", {"base": "4711", "het_offset": 1}),
        ("4711.0", {"base": "4711", "step": "0"}),
        ("4711_3.12", {"base": "4711", "tasks": ((3, 3),), "step": "12"}),
        ("4711+1.0", {"base": "4711", "het_offset": 1, "step": "0"}),
        ("4711.batch", {"base": "4711", "step": "batch"}),
    ],
)
def test_forms(text: str, wanted: dict[str, object]) -> None:
    assert names(text) == (Named(text=text, **wanted),)  # type: ignore[arg-type]


def test_several_in_one_argument() -> None:
    assert [one.base for one in names("1,2_[3,4],5", "6")] == ["1", "2", "5", "6"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "4711,",
        "04711",
        "0",
        "4294967295",
        "4711_",
        "4711_*",
        "4711_[",
        "4711_[]",
        "4711_[1-3",
        "4711_[3-1]",
        "4711_[1-2].0",
        "4711_[*].0",
        "4711.",
        "4711.x",
        "4711+",
        "4711 4712",
        "--signal=KILL",
        "-u",
        "./4711",
        "４７１１",
    ],
)
def test_what_is_no_job(text: str) -> None:
    with pytest.raises(UsageError, match="no job id"):
        names(text)


def test_the_cluster_of_sbatch_parsable() -> None:
    assert parse_named(["4711;beta", "4712"], None)[1] == "beta"
    assert parse_named(["4711"], "beta")[1] == "beta"
    for texts, option in ((["1;a", "2;b"], None), (["1;a"], "b")):
        with pytest.raises(UsageError, match="one cluster at a time"):
            parse_named(texts, option)


@given(st.text(alphabet="0123456789_[]*,-:%+.;a\n\0 ", max_size=20))
def test_any_text_is_a_job_or_wrong_usage(text: str) -> None:
    try:
        named, _ = parse_named([text], None)
    except UsageError:
        return
    assert all(one.base.isdigit() for one in named)


ARRAY = (
    make_job("4711_0", "COMPLETED"),
    make_job("4711_1", "FAILED"),
    make_job("4711_2", "RUNNING"),
    make_job("4711_3", "TIMEOUT"),
    make_job("4711_4", "CANCELLED"),
    make_job("4711_[5-9]", "PENDING"),
)


def ids(jobs: tuple[Job, ...]) -> list[str]:
    return [job.id.text if job.id.tasks is None else job.id.tasks.text for job in jobs]


def chosen(kind: Kind, *texts: str, rows: tuple[Job, ...] = ARRAY) -> Chosen:
    return choose(names(*texts), rows, kind)


@pytest.mark.parametrize("kind", [Kind.CANCEL, Kind.HOLD, Kind.RELEASE, Kind.SIGNAL])
def test_a_whole_array_is_what_lives_of_it(kind: Kind) -> None:
    found = chosen(kind, "4711")
    assert found.jobs == ()
    ((number, jobs),) = found.swept
    assert number == "4711"
    assert ids(jobs) == ["4711_2", "5-9"]


def test_a_task_beside_its_whole_array_is_named_and_counts_once() -> None:
    found = chosen(Kind.CANCEL, "4711", "4711_0", "4711_[2,7]", "4711_77", "4711_77")
    assert ids(found.all_jobs) == ["4711_0", "4711_2", "5-9"]
    assert [one.text for one in found.absent] == ["4711_77"]
    assert not found.absent[0].known


@pytest.mark.parametrize("kind", [Kind.CANCEL, Kind.REQUEUE])
def test_a_task_of_a_job_that_is_no_array(kind: Kind) -> None:
    found = chosen(kind, "60", "60_3", rows=(make_job("60"),))
    assert ids(found.all_jobs) == ["60"]
    assert [one.text for one in found.absent] == ["60_3"]


def test_a_whole_array_that_is_over_is_named_all_the_same() -> None:
    found = chosen(Kind.CANCEL, "4711", rows=ARRAY[:2])
    assert ids(found.all_jobs) == ["4711_0", "4711_1"]


@pytest.mark.parametrize("kind", [Kind.REQUEUE, Kind.REQUEUE_HOLD])
def test_a_requeue_of_an_array_means_its_failed_tasks(kind: Kind) -> None:
    found = chosen(kind, "4711")
    assert ids(found.jobs) == ["4711_1", "4711_3"]
    assert found.swept == ()
    assert found.notes == (
        "array 4711: only its 2 failed tasks, as far as Slurm remembers;"
        " left as they are: 1 cancelled, 1 completed, 5 pending, 1 running",
    )


def test_tasks_are_told_in_the_order_in_which_people_count() -> None:
    rows = tuple(reversed(ARRAY))
    assert ids(chosen(Kind.REQUEUE, "4711", rows=rows).jobs) == ["4711_1", "4711_3"]
    assert ids(chosen(Kind.CANCEL, "4711", rows=rows).all_jobs) == ["4711_2", "5-9"]
    assert ids(chosen(Kind.CANCEL, "4711_[2-3,6]", rows=rows).jobs) == ["4711_2", "4711_3", "6"]


def test_other_tasks_can_be_requeued_by_name() -> None:
    found = chosen(Kind.REQUEUE, "4711", "4711_2")
    assert ids(found.jobs) == ["4711_1", "4711_3", "4711_2"]


def test_an_array_without_a_failed_task_is_not_requeued() -> None:
    found = chosen(Kind.REQUEUE, "4711", rows=(ARRAY[0], ARRAY[2], ARRAY[5]))
    assert found.all_jobs == ()
    assert found.absent[0].known
    assert "no task of it has failed" in found.absent[0].sentence


def test_some_tasks_of_the_waiting_rest() -> None:
    found = chosen(Kind.CANCEL, "4711_[1-2,6,8-12]", "4711_6")
    assert ids(found.jobs) == ["4711_1", "4711_2", "6,8-9"]
    assert [one.text for one in found.absent] == ["4711_[10-12]"]
    assert not found.absent[0].known


def test_the_waiting_rest_by_its_own_name() -> None:
    found = chosen(Kind.CANCEL, "4711_[*]", "4711_7", "4711_2")
    assert ids(found.jobs) == ["5-9", "4711_2"]
    assert found.absent == ()


def test_a_list_of_tasks_that_slurm_cut() -> None:
    from slurmtop.parse.slurm.ids import parse_job_id

    cut = make_job("4711_[5-9]", "PENDING", id=parse_job_id("4711_[5,7,9,..."))
    found = chosen(Kind.CANCEL, "4711_7", rows=(cut,))
    assert found.all_jobs == ()
    assert found.absent[0].known
    assert "cut the list" in found.absent[0].sentence


HET = (make_job("50+0", raw_id="50"), make_job("50+1", raw_id="51"))


def test_het_jobs() -> None:
    assert ids(chosen(Kind.CANCEL, "50", rows=HET).jobs) == ["50+0", "50+1"]
    assert ids(chosen(Kind.HOLD, "50+1", rows=HET).jobs) == ["50+1"]
    assert [one.text for one in chosen(Kind.CANCEL, "50+2", rows=HET).absent] == ["50+2"]


def test_the_own_number_of_a_task_names_it() -> None:
    task = make_job("4711_3", raw_id="4715")
    assert ids(chosen(Kind.CANCEL, "4715", rows=(task,)).jobs) == ["4711_3"]
    found = chosen(Kind.CANCEL, "4715", "4715_3", rows=(task,))
    assert ids(found.jobs) == ["4711_3"]
    assert [one.text for one in found.absent] == ["4715_3"]


def test_steps() -> None:
    rows = (*ARRAY, *HET, make_job("60"))
    found = chosen(Kind.CANCEL, "60.0", "4711_2.1", "50.0", "50+1.0", rows=rows)
    assert [(job.key.id, step) for job, step, _ in found.steps] == [
        ("60", "0"),
        ("4711_2", "1"),
        ("50+0", "0"),
        ("50+1", "0"),
    ]
    assert found.all_jobs == ()


def test_a_step_of_a_whole_array_is_not_guessed() -> None:
    (absent,) = chosen(Kind.CANCEL, "4711.0").absent
    assert absent.known
    assert "name a task, like 4711_3.0" in absent.sentence


def test_an_unknown_job_costs_no_other() -> None:
    found = chosen(Kind.CANCEL, "99999", "60", "99999.0", rows=(make_job("60"),))
    assert ids(found.jobs) == ["60"]
    assert [one.text for one in found.absent] == ["99999.0", "99999"]
    assert "sacct -j 99999 tells" in found.absent[1].sentence


def test_each_job_once() -> None:
    assert len(chosen(Kind.CANCEL, "9.0", "9.0", "50+7", "50+7", "9", "9", rows=HET).absent) == 3
    assert ids(chosen(Kind.HOLD, "60", "60", "60", rows=(make_job("60"),)).jobs) == ["60"]
