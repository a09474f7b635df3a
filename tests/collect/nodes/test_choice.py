"""Which way is tried on which node, and what condemns a way."""

import pytest

from slurmtop.collect.nodes.choice import Choice, summed_up
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble

ORDER = (Way.SSH, Way.OPENSSH, Way.SRUN)
DOWN = Failure(Trouble.DOWN, "it does not answer.", "refused", 10.0)
DENIED = Failure(Trouble.DENIED, "no key of yours is accepted.", "denied", 300.0)


@pytest.fixture
def choice() -> Choice:
    return Choice(ORDER)


def test_a_node_goes_on_to_the_next_way_and_two_condemn_one(choice: Choice) -> None:
    assert choice.next("a", (), 0.0) == (Way.SSH, False)
    choice.failed(Way.SSH, "a", DOWN, 0.0)
    assert choice.next("a", (Way.SSH,), 0.0) == (Way.OPENSSH, False)
    assert choice.next("b", (), 0.0) == (Way.SSH, False)
    choice.failed(Way.SSH, "b", DENIED, 0.0)
    assert choice.next("c", (), 0.0) == (Way.OPENSSH, False)
    # After some minutes it is tried again.
    assert choice.next("c", (), 301.0) == (Way.SSH, False)


def test_where_a_way_is_proven_a_failure_is_the_nodes_own(choice: Choice) -> None:
    choice.failed(Way.SSH, "a", DOWN, 0.0)
    assert choice.answered(Way.SSH, "b", 1.0)
    assert not choice.answered(Way.SSH, "c", 1.0)
    assert choice.proven(1.0) is Way.SSH
    for host in ("d", "e", "f"):
        assert choice.next(host, (), 2.0) == (Way.SSH, True)
        choice.failed(Way.SSH, host, DENIED, 2.0)
        assert choice.next(host, (Way.SSH,), 2.0) == (None, True)
    assert choice.next("b", (), 3.0) == (Way.SSH, True)


def test_a_proven_way_that_fails_everywhere_is_proven_no_more(choice: Choice) -> None:
    choice.answered(Way.SSH, "a", 0.0)
    choice.answered(Way.SSH, "b", 0.0)
    choice.failed(Way.SSH, "a", DOWN, 5.0)
    assert choice.next("a", (Way.SSH,), 5.0) == (None, True)
    choice.failed(Way.SSH, "b", DOWN, 5.0)
    assert choice.next("b", (Way.SSH,), 5.0) == (Way.OPENSSH, False)
    choice.answered(Way.SRUN, "b", 6.0)
    assert choice.next("a", (), 6.0) == (Way.SRUN, True)


def test_an_old_answer_proves_nothing(choice: Choice) -> None:
    choice.answered(Way.SSH, "a", 0.0)
    assert choice.proven(599.0) is Way.SSH
    assert choice.proven(601.0) is None


def test_one_node_is_enough_where_the_way_itself_is_missing(choice: Choice) -> None:
    gone = Failure(Trouble.NO_SLURM, "srun is not here.")
    choice.failed(Way.SSH, "a", gone, 0.0)
    assert choice.next("b", (), 0.0) == (Way.OPENSSH, False)


def test_srun_without_a_job_on_a_node_says_nothing_of_the_way(choice: Choice) -> None:
    none = Failure(Trouble.UNKNOWN_JOB, "no job there.")
    for host in ("a", "b", "c"):
        choice.failed(Way.SSH, host, none, 0.0)
    assert choice.next("d", (), 0.0) == (Way.SSH, False)


def test_where_all_are_condemned_each_is_tried_again_in_order(choice: Choice) -> None:
    for way in ORDER:
        for host in ("a", "b"):
            choice.failed(way, host, DOWN, 0.0)
    assert choice.next("a", (), 1.0) == (Way.SSH, False)
    assert choice.next("a", ORDER, 1.0) == (None, False)


def test_what_answered_the_last_time_comes_first(choice: Choice) -> None:
    choice.prefer(Way.SRUN)
    assert choice.order == (Way.SRUN, Way.SSH, Way.OPENSSH)
    choice.prefer(Way.HERE)
    assert choice.order == (Way.SRUN, Way.SSH, Way.OPENSSH)


def test_reach_tells_what_was_tried(choice: Choice) -> None:
    assert choice.reach("a") is None
    choice.failed(Way.SSH, "a", DENIED, 0.0)
    choice.failed(Way.OPENSSH, "a", DOWN, 0.0)
    reach = choice.reach("a")
    assert reach is not None
    assert reach.way is None
    assert reach.failure is not None
    assert "By ssh: no key of yours is accepted. By the ssh command:" in reach.failure.sentence
    assert reach.failure.retry_after_s == 10.0
    choice.answered(Way.SRUN, "a", 1.0)
    reach = choice.reach("a")
    assert reach is not None
    assert (reach.way, reach.failure) == (Way.SRUN, None)
    assert [way for way, _ in reach.refused] == [Way.SSH, Way.OPENSSH]
    choice.forget(["a"])
    assert choice.reach("a") is None


def test_one_failure_is_told_as_it_is() -> None:
    assert summed_up("a", [(Way.SSH, DENIED)]) is DENIED
