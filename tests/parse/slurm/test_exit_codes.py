"""Exit codes in words: a state first, then the number, and never a signal that was none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import ExitCode, ExitMeaning
from slurmtop.parse.slurm.exit_codes import (
    explain_exit,
    explain_job_exit,
    raised_signal,
    signal_name,
)
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.states import parse_state, parse_state_list
from slurmtop.parse.slurm.times import parse_limit
from tests.parse.slurm.support import case, fixture


def meaning(
    state: str, code: str = "0:0", derived: str | None = None, **more: object
) -> ExitMeaning:
    def pair(text: str | None) -> ExitCode | None:
        if text is None:
            return None
        left, _, right = text.partition(":")
        return ExitCode(int(left), int(right))

    return explain_exit(parse_state(state), pair(code), pair(derived), **more)  # type: ignore[arg-type]


def test_zero_means_success_with_completed_only() -> None:
    rows = [line.split("|") for line in case("008").decode().splitlines()]
    found = {id: meaning(state, code, derived) for id, state, code, derived in rows}
    assert {id: (said.ok, said.ended_by) for id, said in found.items()} == {
        "6001": (None, None),
        "6002": (None, None),
        "6003": (True, "self"),
        "6004": (False, "user"),
        "6005": (False, "self"),
        "6006": (False, "fault"),
        "6007": (False, "user"),
    }
    warning = found["6003"].warning
    assert warning is not None
    assert warning.startswith("a step ended with 3,")
    assert found["6004"].sentence == "Cancelled by user id 20017."
    assert found["6005"].sentence == "Failed with exit code 1: a general error; the log says which."
    assert found["6005"].warning is None
    assert found["6006"].sentence == "A node of the allocation failed."
    assert found["6007"].sentence == "Cancelled (SIGTERM) by user id 20017."


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("FAILED", None),
        ("FAILED", "RaisedSignal:53(Real-time_signal_19)"),
        ("FAILED", "JobLaunchFailure"),
        ("CANCELLED", None),
    ],
)
def test_an_output_file_that_could_not_be_opened(state: str, reason: str | None) -> None:
    path = "/scratch/anna/run9/logs/6100.out"
    said = meaning(state, "0:53", reason=reason, stdout_path=path)
    assert said.ok is False
    assert said.ended_by == "fault"
    assert "output file or its directory could not be created or opened" in said.sentence
    assert path in said.sentence
    assert "there is no log" in said.notes[0]
    everything = " ".join([said.sentence, *said.notes])
    assert "signal" not in everything
    assert "cancel" not in everything.lower()


def test_the_reason_tells_where_the_code_does_not() -> None:
    said = meaning("FAILED", "0:0", reason="RaisedSignal:53(Real-time signal 19)")
    assert "could not be created or opened" in said.sentence
    assert "could not start it" in meaning("FAILED", reason="JobLaunchFailure").sentence


@pytest.mark.parametrize(
    ("state", "code", "ended_by", "words"),
    [
        ("OUT_OF_MEMORY", "0:125", "fault", "Out of memory"),
        ("FAILED", "0:125", "fault", "Out of memory"),
        ("TIMEOUT", "0:0", "slurm", "time limit was reached"),
        ("PREEMPTED", "0:0", "slurm", "preempted"),
        ("DEADLINE", "0:0", "slurm", "deadline"),
        ("BOOT_FAIL", "0:0", "fault", "did not boot"),
        ("FAILED", "2:0", "self", "wrong usage"),
        ("FAILED", "3:0", "self", "exit code 3."),
        ("FAILED", "126:0", "self", "not executable"),
        ("FAILED", "127:0", "self", "command was not found"),
        ("FAILED", "137:0", None, "a child of the script died of SIGKILL"),
        ("FAILED", "139:0", "fault", "died of SIGSEGV: a segmentation fault"),
        ("FAILED", "143:0", None, "died of SIGTERM"),
        ("FAILED", "255:0", "self", "exit -1; also what a failed ssh"),
        ("FAILED", "0:1", None, "SIGHUP"),
        ("FAILED", "0:2", None, "SIGINT"),
        ("FAILED", "0:6", "fault", "SIGABRT: it aborted itself"),
        ("FAILED", "0:7", "fault", "/dev/shm is full"),
        ("FAILED", "0:9", None, "SIGKILL: killed: scancel after KillWait, the OOM killer"),
        ("FAILED", "0:10", None, "SIGUSR1 was not trapped"),
        ("FAILED", "0:11", "fault", "a segmentation fault"),
        ("FAILED", "0:12", None, "SIGUSR2 was not trapped"),
        ("FAILED", "0:15", None, "SIGTERM"),
        ("FAILED", "0:24", None, "CPU time limit"),
        ("FAILED", "0:42", "fault", "batch directory could not be made"),
        ("FAILED", "0:46", "fault", "environment could not be set up"),
        ("FAILED", "0:48", "fault", "could not become the user"),
        ("FAILED", "0:52", "fault", "could not be executed"),
        ("FAILED", "0:54", "fault", "prolog failed"),
        ("FAILED", "0:55", "fault", "epilog failed"),
        ("FAILED", "0:99", "fault", "Slurm launch error (0:99), see slurmd log"),
    ],
)
def test_each_ending(state: str, code: str, ended_by: str | None, words: str) -> None:
    said = meaning(state, code)
    assert said.ok is False
    assert said.ended_by == ended_by
    assert words in said.sentence


def test_who_cancelled() -> None:
    assert meaning("CANCELLED by 0").sentence == "Cancelled by root (an administrator)."
    unknown = meaning("CANCELLED")
    assert (unknown.ok, unknown.ended_by) == (False, None)
    never = meaning("CANCELLED", reason="DependencyNeverSatisfied")
    assert never.ended_by == "slurm"


def test_codes_that_sacct_may_have_made_smaller() -> None:
    said = meaning("FAILED", "9:0", from_sacct=True)
    assert "9:0 in sacct may be 137" in said.notes[0]
    assert "SIGKILL" in said.notes[0]
    assert meaning("FAILED", "9:0").notes == ()
    assert meaning("FAILED", "1:0", from_sacct=True).notes == ()
    assert "0:0 in sacct may be 128" in meaning("FAILED", "0:0", from_sacct=True).notes[0]
    assert "may be 255" in meaning("FAILED", "127:0", from_sacct=True).notes[0]


def test_a_step_that_ended_worse_than_the_script_is_a_warning() -> None:
    worse = meaning("FAILED", "1:0", "137:0").warning
    assert worse is not None
    assert "137" in worse
    assert meaning("FAILED", "3:0", "3:0").warning is None
    signalled = meaning("COMPLETED", "0:0", "0:9").warning
    assert signalled is not None
    assert "SIGKILL" in signalled


def test_flags_on_top_of_an_ended_state() -> None:
    cleaning = explain_exit(parse_state_list(["COMPLETED", "COMPLETING"]), ExitCode(0, 0))
    assert cleaning.ok is True
    assert cleaning.notes == ("Its nodes are still being cleaned up.",)
    assert explain_exit(parse_state("COMPLETING"), ExitCode(0, 0)).ok is None
    again = explain_exit(parse_state_list(["FAILED", "REQUEUED"]), ExitCode(1, 0))
    assert again.ok is None
    assert "put back in the queue" in meaning("REQUEUED", "0:15").sentence
    assert "not a failure" in meaning("REVOKED").sentence
    assert meaning("NOVELTY").ok is None


def test_completed_with_a_code_is_told_as_it_is() -> None:
    said = meaning("COMPLETED", "5:0")
    assert said.ok is None
    assert "exit code 5" in said.sentence


def test_names() -> None:
    assert signal_name(9) == "SIGKILL"
    assert signal_name(53) == "Slurm error (0:53)"
    assert raised_signal("RaisedSignal:53(Real-time_signal_19)") == 53
    assert raised_signal("None") is None
    assert raised_signal(None) is None


WORDS = [
    "PENDING",
    "RUNNING",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "REVOKED",
]


@given(
    state=st.sampled_from(
        [*WORDS, "COMPLETING", "CANCELLED by 5", "OUT_OF_MEMORY", "PREEMPTED", "?"]
    ),
    code=st.builds(ExitCode, st.integers(0, 4095), st.integers(0, 4095)) | st.none(),
    derived=st.builds(ExitCode, st.integers(0, 4095), st.integers(0, 4095)) | st.none(),
    from_sacct=st.booleans(),
    reason=st.none() | st.text(max_size=20) | st.just("RaisedSignal:53(Real-time signal 19)"),
)
def test_every_ending_has_a_sentence(
    state: str,
    code: ExitCode | None,
    derived: ExitCode | None,
    from_sacct: bool,
    reason: str | None,
) -> None:
    said = explain_exit(parse_state(state), code, derived, from_sacct=from_sacct, reason=reason)
    assert said.sentence.strip()
    assert said.ended_by in (None, "self", "user", "slurm", "fault")
    assert said.ok is not True or (state == "COMPLETED" and code in (None, ExitCode(0, 0)))
    everything = " ".join([said.sentence, said.short, said.warning or "", *said.notes])
    assert said.short
    assert said.short.isprintable()
    assert "signal 53" not in everything
    assert "Real-time" not in everything


def test_launch_failure_as_a_reason_may_hide_a_signal() -> None:
    """Slurm 22.05 prints it for a script that died of SIGSEGV (0:11) as well."""
    unknown = explain_exit(parse_state("FAILED"), None, reason="JobLaunchFailure")
    assert "or a signal ended it" in unknown.sentence
    assert unknown.ended_by is None
    told = meaning("FAILED", "0:11", reason="JobLaunchFailure").sentence
    assert told == "Died of SIGSEGV: a segmentation fault."


@pytest.mark.parametrize(
    ("state", "code", "more", "short"),
    [
        ("COMPLETED", "0:0", {}, "exit 0"),
        ("COMPLETED", "0:0", {"derived": "3:0"}, "a step: exit 3"),
        ("COMPLETED", "0:0", {"derived": "0:11"}, "a step: killed by SIGSEGV"),
        ("COMPLETED", "3:0", {}, "exit 3, yet completed"),
        ("FAILED", "3:0", {}, "exit 3"),
        ("FAILED", "1:0", {"derived": "137:0"}, "exit 1, a step: exit 137 (SIGKILL)"),
        ("FAILED", "127:0", {}, "exit 127, command not found"),
        ("FAILED", "126:0", {}, "exit 126, not executable"),
        ("FAILED", "139:0", {}, "exit 139 (SIGSEGV)"),
        ("FAILED", "9:0", {"from_sacct": True}, "exit 9 or 137"),
        ("FAILED", "9:0", {}, "exit 9"),
        ("FAILED", "0:11", {}, "killed by SIGSEGV"),
        ("FAILED", "0:11", {"reason": "JobLaunchFailure"}, "killed by SIGSEGV"),
        ("FAILED", "0:53", {}, "output file cannot be opened"),
        ("FAILED", "0:54", {}, "not started: Slurm error 54"),
        ("FAILED", "0:125", {}, "out of memory"),
        ("FAILED", "0:0", {}, "failed without an exit code"),
        ("FAILED", "0:0", {"reason": "JobLaunchFailure"}, "Slurm could not start it"),
        ("OUT_OF_MEMORY", "0:125", {}, "out of memory"),
        ("TIMEOUT", "0:15", {}, "time limit reached"),
        ("TIMEOUT", "0:15", {"limit": parse_limit("1:00:00")}, "time limit 1:00:00 reached"),
        ("TIMEOUT", "0:15", {"limit": parse_limit("INVALID")}, "time limit reached"),
        ("NODE_FAIL", "0:0", {}, "a node failed"),
        ("PREEMPTED", "0:15", {}, "preempted"),
        ("CANCELLED", "0:15", {}, "cancelled"),
        ("CANCELLED by 0", "0:15", {}, "cancelled by root"),
        ("CANCELLED by 20017", "0:0", {}, "cancelled by user id 20017"),
        ("PENDING", "0:0", {}, "not over yet"),
        ("REQUEUED", "0:0", {}, "put back in the queue"),
    ],
)
def test_a_row_says_the_essential_first(
    state: str, code: str, more: dict[str, Any], short: str
) -> None:
    assert meaning(state, code, **more).short == short


def test_a_code_that_is_not_known_is_not_the_code_zero() -> None:
    unknown, zero = explain_exit(parse_state("FAILED"), None), meaning("FAILED", "0:0")
    assert "not known here" in unknown.sentence
    assert unknown.short == "exit code not known"
    assert "no exit code was recorded" in zero.sentence


def test_a_record_of_the_queue_explains_itself() -> None:
    parsed = parse_squeue(fixture("22.05.8", "queue_exit_codes"), record_mark=b"\x1eq7Vd2k")
    shorts = {job.name.partition("\x1f")[0]: explain_job_exit(job).short for job in parsed.rows}
    assert shorts == {
        "exit3": "exit 3",
        "exit137": "exit 137 (SIGKILL)",
        "segv": "killed by SIGSEGV",
        "nodir": "output file cannot be opened",
        "stepfails": "a step: exit 1",
        "toolong": "time limit 1:00 reached",
        "cancelme": "cancelled",
        "gone": "cancelled",
        "held": "not over yet",
        "x": "exit 0",
    }
