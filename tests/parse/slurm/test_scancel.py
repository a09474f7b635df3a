"""scancel's few words, job by job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from tests.parse.slurm.support import FIXTURES, VERSIONS, case


def kinds(rc: int | None, stderr: bytes) -> list[tuple[str | None, str]]:
    return [(said.job, said.kind.value) for said in parse_scancel(rc, stderr)]


@pytest.mark.parametrize(
    ("number", "command", "rc", "expected"),
    [
        ("046", 1, 0, [(None, "silent")]),
        ("046", 2, 1, [("99999999", "unknown-job")]),
        ("046", 3, 0, [("99999999", "unknown-job")]),
        ("046", 4, 210, [("8601", "denied")]),
        ("046", 5, 0, [(None, "silent")]),
        ("058", 5, 60, [("9303", "het-component")]),
        ("066", 1, 228, [("9801", "busy")]),
        ("066", 2, 217, [("9802", "no-script")]),
        ("066", 3, 228, [("9801", "busy")]),
    ],
)
def test_cases(number: str, command: int, rc: int, expected: list[tuple[str | None, str]]) -> None:
    assert kinds(rc, case(number, command, "stderr")) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_captures(version: str) -> None:
    def read(name: str) -> bytes:
        return (FIXTURES / version / f"{name}.err").read_bytes()

    assert [kind for _, kind in kinds(210, read("scancel_not_mine"))] == ["denied"]
    assert [kind for _, kind in kinds(0, read("scancel_finished"))] == ["already-over"]
    assert [kind for _, kind in kinds(1, read("scancel_signal_finished"))] == ["unknown-job"]
    assert [kind for _, kind in kinds(228, read("scancel_signal_pending"))] == ["busy"]
    assert kinds(1, read("scancel_badsig")) == [(None, "bad-signal")]


def test_silence_is_never_a_success() -> None:
    (said,) = parse_scancel(0, b"")
    assert said.kind is ScancelKind.SILENT
    assert "proves nothing" in said.sentence


def test_several_jobs_each_get_their_own_word() -> None:
    stderr = (
        b"scancel: Terminating job 1\nscancel: Terminating job 2_[3-4]\n"
        b"scancel: error: Kill job error on job id 2_[3-4]: "
        b"Job/step already completing or completed\n"
        b"scancel: Signal 10 to batch job 5\n"
        b"scancel: error: Kill job error on job step id 7.0: Access/permission denied\n"
    )
    assert kinds(210, stderr) == [
        ("1", "sent"),
        ("2_[3-4]", "already-over"),
        ("5", "sent"),
        ("7.0", "denied"),
    ]


@pytest.mark.parametrize(
    ("rc", "stderr", "expected"),
    [
        (8, b"", (None, "controller-down")),
        (140, b"", (None, "controller-down")),
        (229, b"", (None, "already-over")),
        (225, b"", (None, "unknown-job")),
        (60, b"", (None, "het-component")),
        (217, b"", (None, "no-script")),
        (
            225,
            b"scancel: error: Kill job error on job step id 1: Invalid job id specified\n",
            ("1", "unknown-job"),
        ),
        (
            1,
            b"scancel: error: Kill job error on job step id 59_1.0: Invalid job id specified\n",
            ("59_1.0", "unknown-job"),
        ),
        (None, b"", (None, "other")),
        (1, b"", (None, "other")),
        (1, b"Cannot cancel scrontab jobs without --cron flag.\n", (None, "needs-cron")),
        (1, b"scancel: error: Invalid job id nosuch\n", ("nosuch", "unknown-job")),
        (
            140,
            b"scancel: error: Kill job error on job id 9: Socket timed out on send/recv operation",
            ("9", "controller-down"),
        ),
        (
            8,
            b"scancel: error: Unable to contact slurm controller (connect failure)\n",
            (None, "controller-down"),
        ),
        (239, b"scancel: error: Munge encode failed: Failed to access\n", (None, "other")),
    ],
)
def test_other_words(rc: int | None, stderr: bytes, expected: tuple[str | None, str]) -> None:
    assert kinds(rc, stderr) == [expected]


def test_retries_in_between_are_no_answer() -> None:
    stderr = (
        b"scancel: Terminating job 9\nscancel: Job is in transitional state, retrying\n"
        b"scancel: Job is in transitional state, retrying\n"
    )
    assert kinds(None, stderr) == [("9", "sent")]


@given(rc=st.none() | st.integers(-70, 300), stderr=st.binary(max_size=80) | st.text(max_size=80))
def test_there_is_always_an_answer(rc: int | None, stderr: bytes | str) -> None:
    said = parse_scancel(rc, stderr)
    assert said
    assert all(item.sentence for item in said)
