"""At a terminal: what is shown, what counts as a yes, and what a no, a ctrl-c and a change do."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.stand_ins import StandIns, queue_row
from tests.cli.terminal import Terminal
from tests.cli.test_actions import held, log_lines, queue, sent

ONE_NODE = {"NumNodes": "1", "NodeList": "gpu01"}


def at_terminal(slurm: StandIns, home: Path, *arguments: str) -> Terminal:
    return Terminal(slurm.environ(home), *arguments)


def test_what_is_shown_before_the_question(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("Type the id, 4711, to do it:")
        assert sent(slurm) == []
        for words in ("$ scancel 4711", "yours", "2 nodes", "16 GPUs", "in a checkpoint is lost"):
            assert words in terminal.text
        terminal.type("4711\n")
        terminal.wait_for("job 4711: cancelled")
        assert terminal.leave() == 0
    assert sent(slurm) == [["scancel", "4711"]]


@pytest.mark.parametrize("answer", ["\n", "n\n", "4712\n", "\x04", "4711 x\n"])
def test_anything_else_is_a_no(slurm: StandIns, home: Path, answer: str) -> None:
    queue(slurm, queue_row("4711"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("to do it:")
        terminal.type(answer)
        terminal.wait_for("job 4711: not confirmed, nothing was done")
        assert terminal.leave() == 1
    assert sent(slurm) == []
    assert log_lines(home) == []


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("Yes\n", 0), ("\n", 1), ("j\n", 1)])
def test_one_key_where_little_is_lost(
    slurm: StandIns, home: Path, answer: str, status: int
) -> None:
    queue(slurm, queue_row("4711", "PENDING"))
    with at_terminal(slurm, home, "hold", "4711") as terminal:
        terminal.wait_for("[y/N]")
        terminal.type(answer)
        assert terminal.leave() == status
    assert len(sent(slurm)) == 1 - status


def test_what_was_typed_before_the_question_answers_nothing(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", "PENDING"))
    with at_terminal(slurm, home, "hold", "4711") as terminal:
        terminal.type("y\ny")
        terminal.wait_for("Do it? [y/N]")
        terminal.type("\n")
        terminal.wait_for("job 4711: not confirmed, nothing was done")
        assert terminal.leave() == 1
    assert sent(slurm) == []


def test_one_answer_answers_one_question(slurm: StandIns, home: Path) -> None:
    (home / ".local").write_text("in the way")
    queue(slurm, queue_row("4711", "PENDING"))
    with at_terminal(slurm, home, "hold", "4711") as terminal:
        terminal.wait_for("Do it? [y/N]")
        terminal.type("y\ny\n")
        terminal.wait_for("without a line in the log? [y/N]")
        terminal.type("n\n")
        assert terminal.leave() == 1
    assert sent(slurm) == []


def test_several_jobs_are_confirmed_by_their_count(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", **ONE_NODE), queue_row("4712", **ONE_NODE))
    with at_terminal(slurm, home, "cancel", "4711", "4712") as terminal:
        terminal.wait_for("Type the count, 2, to do it:")
        terminal.type("2\n")
        assert terminal.leave() == 0
    assert sent(slurm) == [["scancel", "4711", "4712"]]


def test_a_job_that_is_another_run_by_now_is_left_alone(slurm: StandIns, home: Path) -> None:
    same, other = queue_row("4711", **ONE_NODE), queue_row("4712", **ONE_NODE)
    queue(slurm, same, other)
    with at_terminal(slurm, home, "cancel", "4711", "4712", "--json") as terminal:
        terminal.wait_for("to do it:")
        queue(slurm, same, {**other, "SubmitTime": "2031-05-05T11:30:00"})
        terminal.type("2\n")
        terminal.wait_for("log_trouble")
        assert terminal.leave() == 1
    assert sent(slurm) == [["scancel", "4711"]]
    found = json.loads(terminal.text[terminal.text.index("{") :])
    outcomes = {job["id"]: job["outcome"] for job in found["jobs"]}
    assert outcomes == {"4711": "done", "4712": "not_sent"}


def test_a_job_that_ended_while_the_person_thought(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("to do it:")
        queue(slurm, queue_row("4711", "COMPLETED"))
        terminal.type("4711\n")
        terminal.wait_for("job 4711: already over before the cancel was sent (COMPLETED)")
        assert terminal.leave() == 0
    assert sent(slurm) == []


def test_a_job_that_completed_meanwhile_does_not_run_again(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"), scripts={"4711": "#!/bin/bash\nsrun true\n"})
    with at_terminal(slurm, home, "requeue", "4711") as terminal:
        terminal.wait_for("to do it:")
        queue(slurm, queue_row("4711", "COMPLETED"))
        terminal.type("4711\n")
        terminal.wait_for("not sent: it completed meanwhile")
        assert terminal.leave() == 1
    assert sent(slurm) == []


def test_a_second_look_that_fails_lets_nothing_through(slurm: StandIns, home: Path) -> None:
    """Whatever ails squeue here, it is no controller that is down."""
    queue(slurm, queue_row("4711"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("to do it:")
        queue(
            slurm,
            queue_row("4711"),
            refuse={"squeue": ["squeue: error: a plugin is broken", 1]},
        )
        terminal.type("4711\n")
        terminal.wait_for("could not see whether it is still the job you confirmed")
        assert terminal.leave() == 1
    assert sent(slurm) == []


def test_ctrl_c_at_the_question(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("to do it:")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.leave() == 130
        assert terminal.restored
    assert sent(slurm) == []
    assert log_lines(home) == []


def test_ctrl_c_while_waiting_undoes_nothing_and_says_so(slurm: StandIns, home: Path) -> None:
    # A job that goes on as if nothing had been: the wait for its end would take long.
    queue(slurm, queue_row("4711", **ONE_NODE), scancel={"4711": ["", 0]})
    with at_terminal(slurm, home, "cancel", "4711", "--yes") as terminal:
        terminal.until(lambda: len(sent(slurm)) == 1)
        terminal.wait_for("ctrl-c stops the waiting")
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("not undone")
        assert terminal.leave() == 130
    assert [line["event"] for line in log_lines(home)] == ["asked", "outcome"]


def test_ctrl_c_between_two_commands_tells_how_far_it_came(slurm: StandIns, home: Path) -> None:
    ids = [str(number) for number in range(5_000, 5_250)]
    queue(slurm, *(held(id) for id in ids))
    with at_terminal(slurm, home, "release", *ids, "--yes") as terminal:
        terminal.until(lambda: len(sent(slurm)) == 1)
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("not undone")
        assert terminal.leave() == 130
    done = sent(slurm)
    assert f"stopped after {len(done)} of 5 commands: " in terminal.text
    assert "the other jobs were left alone" in terminal.text
    named = {id for command in done for id in command[-1].split(",")}
    _, outcome = log_lines(home)
    assert outcome["commands"] == done
    told = {job["job"]: job["outcome"] for job in outcome["jobs"]}
    assert {id for id in ids if told[id] == "not sent"} == set(ids) - named


def test_ctrl_c_before_the_first_command(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", **ONE_NODE))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("[y/N]")
        queue(slurm, queue_row("4711", **ONE_NODE), slow_s={"squeue": 20})
        looks = len(slurm.calls)
        terminal.type("y\n")
        terminal.until(lambda: len(slurm.calls) > looks)
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("nothing was done")
        assert terminal.leave() == 130
    assert sent(slurm) == []
    assert log_lines(home) == []


def test_a_log_that_cannot_be_written_is_asked_about_once_more(slurm: StandIns, home: Path) -> None:
    (home / ".local").write_text("in the way")
    for answer, status in (("n\n", 1), ("y\n", 0)):
        queue(slurm, queue_row("4711", "PENDING"))
        with at_terminal(slurm, home, "hold", "4711") as terminal:
            terminal.wait_for("Do it? [y/N]")
            terminal.type("y\n")
            terminal.wait_for("without a line in the log? [y/N]")
            assert len(sent(slurm)) == 0
            terminal.type(answer)
            assert terminal.leave() == status
    assert len(sent(slurm)) == 1


def test_yes_does_not_answer_for_the_log(slurm: StandIns, home: Path) -> None:
    (home / ".local").write_text("in the way")
    queue(slurm, queue_row("4711", "PENDING"))
    with at_terminal(slurm, home, "hold", "4711", "--yes") as terminal:
        terminal.wait_for("--without-log")
        assert terminal.leave() == 1
    assert sent(slurm) == []


def test_hostile_names_move_no_cursor(slurm: StandIns, home: Path) -> None:
    queue(slurm, queue_row("4711", Name="\x1b[2J\u202eevil"))
    with at_terminal(slurm, home, "cancel", "4711") as terminal:
        terminal.wait_for("to do it:")
        assert "\x1b[2J" not in terminal.text
        assert "\u202e" not in terminal.text
        terminal.type("n\n")
        terminal.leave()
