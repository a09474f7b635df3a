"""The commands of each kind: ids in the forms that Slurm takes, few calls, nothing else allowed."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Details, Kind, Recipient, Target
from slurmtop.control.commands import (
    ID_CHARS,
    IDS_PER_CALL,
    argvs_for,
    calls_for,
    check_argv,
    excluded_after,
)
from slurmtop.model.ids import JobKey
from slurmtop.parse.slurm.hostlist import expand_hosts

#: What each kind needs to be complete.
DETAILS = {
    Kind.LIMIT: Details(limit_minutes=30),
    Kind.EXCLUDE: Details(exclude=("gpu05",)),
    Kind.SIGNAL: Details(signal="USR1"),
}


def target(id: str, **more: object) -> Target:
    """``4711``, ``4711_3``, or of more tasks with ``tasks``."""
    task = id.partition("_")[2]
    tasks = ((int(task), int(task)),) if task else ()
    values: dict[str, object] = {
        "key": JobKey("", id),
        "ids": (id,),
        "name": "train",
        "user": "anna",
        "state_word": "PENDING",
        "tasks": tasks,
    }
    return Target(**{**values, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "argv"),
    [
        (Kind.CANCEL, ("scancel", "-M", "beta", "4711")),
        (Kind.REQUEUE, ("scontrol", "-M", "beta", "requeue", "4711")),
        (Kind.REQUEUE_HOLD, ("scontrol", "-M", "beta", "requeuehold", "4711")),
        (Kind.HOLD, ("scontrol", "-M", "beta", "hold", "4711")),
        (Kind.RELEASE, ("scontrol", "-M", "beta", "release", "4711")),
        (Kind.LIMIT, ("scontrol", "-M", "beta", "update", "JobId=4711", "TimeLimit=30")),
        (Kind.EXCLUDE, ("scontrol", "-M", "beta", "update", "JobId=4711", "ExcNodeList=gpu05")),
        (Kind.SIGNAL, ("scancel", "-M", "beta", "--ctld", "--signal=USR1", "4711")),
    ],
)
def test_the_command_of_each_kind(kind: Kind, argv: tuple[str, ...]) -> None:
    assert argvs_for(kind, [target("4711")], "beta", DETAILS.get(kind, Details())) == (argv,)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.CANCEL])
def test_ids_go_together_and_brackets_alone(kind: Kind) -> None:
    many = [target(str(5_000 + n)) for n in range(IDS_PER_CALL + 1)]
    tasks = [target(f"4711_{n}") for n in (1, 2, 3, 7)]
    calls = calls_for(kind, [*many, *tasks], "", DETAILS.get(kind, Details()))
    assert len(calls) == (2 if kind is Kind.SIGNAL else 3)
    words = " ".join(word for call in calls for word in call.argv)
    assert words.count("4711_[1-3,7]") == 1
    reached = [one for call in calls for one in call.targets]
    assert len(reached) == len(set(reached)) == len(many) + len(tasks)


def test_a_call_tells_which_tasks_it_names() -> None:
    scattered = [target(f"4711_{2 * n}") for n in range(2_000)]
    calls = calls_for(Kind.HOLD, scattered, "")
    assert len(calls) > 3
    assert all(len(call.argv[-1]) <= ID_CHARS + 10 for call in calls)
    reached = [one for call in calls for one in call.targets]
    assert len(reached) == len(set(reached)) == len(scattered)


def test_one_call_takes_all_ids_where_scancel_can() -> None:
    many = [target(str(5_000 + n)) for n in range(200)]
    (argv,) = argvs_for(Kind.CANCEL, many, "", Details(one_call=True))
    assert argv[:2] == ("scancel", "--ctld")
    assert len(argv) == 202
    assert len(argvs_for(Kind.CANCEL, many, "")) == 4


def test_a_step_is_named_by_its_own_id() -> None:
    step = target("4711_3", ids=("4711_3.0",), step="0")
    assert argvs_for(Kind.CANCEL, [step], "") == (("scancel", "--ctld", "4711_3.0"),)
    details = Details(signal="HUP", recipient=Recipient.STEP)
    assert argvs_for(Kind.SIGNAL, [step], "", details) == (
        ("scancel", "--ctld", "--signal=HUP", "4711_3.0"),
    )


@pytest.mark.parametrize(
    ("kind", "details", "changed"),
    [
        (Kind.SIGNAL, Details(), {}),
        (Kind.SIGNAL, Details(signal="USR1;rm"), {}),
        (Kind.LIMIT, Details(), {}),
        (Kind.LIMIT, Details(limit_minutes=0), {}),
        (Kind.LIMIT, Details(limit_minutes=525_601), {}),
        (Kind.EXCLUDE, Details(), {}),
        (Kind.EXCLUDE, Details(exclude=("gpu05 Priority=9",)), {}),
        (Kind.EXCLUDE, Details(exclude=("gpu05",)), {"excluded_nodes": "gpu["}),
        (Kind.EXCLUDE, Details(exclude=("gpu05",)), {"excluded_nodes": "gpu03\nPriority=9"}),
        (Kind.HOLD, Details(), {"ids": ("4711 4712",)}),
        (Kind.HOLD, Details(), {"ids": ("4711,--all",)}),
        (Kind.HOLD, Details(), {"ids": ("4711.0",)}),
        (Kind.CANCEL, Details(), {"ids": ("4711.0",)}),
    ],
)
def test_what_fits_no_command(kind: Kind, details: Details, changed: dict[str, object]) -> None:
    bad = dataclasses.replace(target("4711"), **changed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\w"):
        argvs_for(kind, [bad], "", details)


@pytest.mark.parametrize(
    "argv",
    [
        ("scontrol", "requeue"),
        ("scontrol", "requeue", "4711", "4712"),
        ("scontrol", "requeue", "Incomplete", "4711"),
        ("scontrol", "suspend", "4711"),
        ("scontrol", "update", "NodeName=gpu01", "State=DOWN"),
        ("scontrol", "update", "JobId=4711", "Priority=9"),
        ("scontrol", "update", "JobId=4711", "TimeLimit=UNLIMITED"),
        ("scontrol", "update", "JobId=4711", "TimeLimit=+30"),
        ("scontrol", "update", "JobId=4711", "TimeLimit=３0"),
        ("scontrol", "update", "JobId=4711", "ExcNodeList="),
        ("scontrol", "update", "JobId=4711", "ExcNodeList=-x"),
        ("scontrol", "hold", "4711_[1-3"),
        ("scontrol", "hold", "name=train"),
        ("scontrol", "hold", "4711,"),
        ("scontrol", "hold", "4711_*"),
        ("scontrol", "hold", "0"),
        ("scancel", "--ctld"),
        ("scancel", "--signal=USR1", "4711"),
        ("scancel", "--ctld", "--signal=usr1", "4711"),
        ("scancel", "--ctld", "--signal=USR1", "--batch", "--full", "4711"),
        ("scancel", "--ctld", "4711.batch"),
        ("scancel", "--ctld", "4711.٣"),
        ("scancel", "--ctld", "-u", "bob"),
    ],
)
def test_other_commands_are_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_argv(argv)


@given(st.lists(st.text(max_size=20), max_size=5))
def test_the_grammar_says_yes_or_no_and_nothing_else(words: list[str]) -> None:
    for program in ("scancel", "scontrol"):
        try:
            check_argv((program, *words))
        except ValueError:
            continue
        assert all(word.isascii() and " " not in word for word in words)


NAMES = st.lists(st.from_regex(r"[a-z]{1,4}[0-9]{0,3}", fullmatch=True), max_size=8)


@given(NAMES, NAMES.filter(bool))
def test_what_is_excluded_already_is_kept(before: list[str], more: list[str]) -> None:
    one = target("4711", excluded_nodes=",".join(before))
    after = excluded_after(one, more)
    assert set(expand_hosts(after)) == {*expand_hosts(",".join(before)), *more}
    check_argv(("scontrol", "update", "JobId=4711", f"ExcNodeList={after}"))
