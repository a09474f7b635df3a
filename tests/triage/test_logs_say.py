"""What the logs say of waits in vain and of steps, by attempt."""

from tests.triage.logs_told import CRASHED, STALL, TIMED_OUT, say

_ANEW = (
    "I1201 03:10:20.100000 700 torch/distributed/elastic/agent/server/api.py:900] [default] worker"
    " group FAILED. 2/3 attempts left; will restart worker group\nLoading dataset\n"
)


def test_a_wait_in_vain_is_told_with_its_seconds() -> None:
    assert say(TIMED_OUT).waited_s == 600.014
    assert say(STALL).waited_s == 60.0
    assert say(CRASHED).waited_s is None


def test_who_only_warns_has_not_given_up() -> None:
    assert say(STALL).warned
    assert not say(TIMED_OUT).warned
    assert not say(CRASHED).warned


def test_a_warning_that_comes_anew_tells_how_long_the_wait_lasts() -> None:
    report = STALL.split("\n", 1)[1]
    times = (report.replace("03:10", f"03:{minute}") for minute in (10, 11, 12))
    assert say("".join(times)).waited_s == 180.0
    # An hour later it is another wait.
    assert say(STALL + report.replace("03:10", "04:10")).waited_s == 60.0


def test_who_ended_behind_a_wait_in_vain_is_told() -> None:
    ends = (
        "srun: error: gpu01: tasks 0-2: Aborted (core dumped)\n"
        "srun: error: gpu01: task 3: Aborted (core dumped)\n"
    )
    assert say(TIMED_OUT + ends).ended == {0, 1, 2, 3}
    assert not say(ends + TIMED_OUT).ended
    assert not say(ends).ended


def test_what_an_attempt_before_left_is_none_of_the_newest() -> None:
    told = say(TIMED_OUT + _ANEW + "Loading weights\n")
    assert (told.attempt, told.waited_s, told.steps) == (1, None, False)
    assert say(TIMED_OUT + _ANEW + "step 1/1000 loss=9.1\n").steps


def test_a_bar_of_something_that_is_loaded_is_no_step() -> None:
    assert say("step 480/1000 loss=2.1\n").steps
    assert not say("Loading shards:  50%|#####     | 2/4 [00:10<00:10,  5.0s/it]\n").steps
