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


def test_what_an_attempt_before_left_is_none_of_the_newest() -> None:
    told = say(TIMED_OUT + _ANEW + "Loading weights\n")
    assert (told.attempt, told.waited_s, told.steps) == (1, None, False)
    assert say(TIMED_OUT + _ANEW + "step 1/1000 loss=9.1\n").steps


def test_a_bar_of_something_that_is_loaded_is_no_step() -> None:
    assert say("step 480/1000 loss=2.1\n").steps
    assert not say("Loading shards:  50%|#####     | 2/4 [00:10<00:10,  5.0s/it]\n").steps
