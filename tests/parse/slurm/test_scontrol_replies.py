"""scontrol's words about jobs and tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.slurm.scontrol_replies import ReplyKind, parse_scontrol_replies
from tests.parse.slurm.support import FIXTURES, VERSIONS, case


def told(rc: int | None, stderr: bytes | str) -> list[tuple[str | None, str]]:
    return [
        (None if said.job is None else said.job.text, said.kind.value)
        for said in parse_scontrol_replies(rc, stderr)
    ]


@pytest.mark.parametrize(
    ("number", "command", "expected"),
    [
        ("049", 1, [("4711_[1-19]", "finished"), ("4711_[20-99]", "taken")]),
        ("049", 2, [("8701", "unknown-job")]),
        ("049", 3, [("8702", "denied")]),
        ("049", 4, [("4711_[1-19]", "finished"), ("4711_[20-99]", "taken")]),
        ("049", 5, [("4711_[0-3]", "taken"), ("4711_[4-5]", "pending")]),
        ("049", 6, [("4711_9", "unknown-job")]),
        ("049", 7, [("8703", "denied")]),
        ("053", 1, [("8901", "disabled")]),
        ("053", 2, [("8902", "batch-only")]),
        ("053", 3, [("8903", "pending")]),
        ("053", 4, [("8904", "unknown-job")]),
        ("053", 5, [("8905", "denied")]),
        ("058", 3, [("9301", "het-part")]),
    ],
)
def test_cases(number: str, command: int, expected: list[tuple[str | None, str]]) -> None:
    assert told(1, case(number, command, "stderr")) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_captures(version: str) -> None:
    def read(name: str) -> bytes:
        path = FIXTURES / version / f"{name}.err"
        return path.read_bytes() if path.exists() else b""

    assert [kind for _, kind in told(1, read("hold_not_mine"))] == ["denied"]
    assert [kind for _, kind in told(1, read("requeue_norequeue"))] == ["disabled"]
    assert [kind for _, kind in told(1, read("requeue_unknown"))] == ["unknown-job"]
    ended = version.startswith("22")
    for name in ("hold", "release", "update_timelimit_up"):
        expected = ["finished"] if ended else ["silent"]
        assert [kind for _, kind in told(int(ended), read(name))] == expected


@pytest.mark.parametrize(
    ("rc", "stderr", "expected"),
    [
        (0, "", (None, "silent")),
        (None, "", (None, "unheard")),
        (1, "", (None, "other")),
        # Measured on 22.05: one task list may stand in a bracket, one job may be a bracket.
        (1, "8_0-1,3-9: Job has already finished\n", ("8_[0-1,3-9]", "finished")),
        (1, "Access/permission denied for job 8_[3-5]\n", ("8_[3-5]", "denied")),
        (1, "Job is no longer pending execution for job 1\n", ("1", "not-pending")),
        (1, "Requested time limit is invalid for job 4\n", ("4", "bad-value")),
        (1, "slurm_suspend error: No error\n", (None, "taken")),
        (
            1,
            "slurm_update error: Unable to contact slurm controller (connect failure)\n",
            (None, "unheard"),
        ),
        (1, "Socket timed out on send/recv operation for job 4\n", ("4", "unheard")),
        (1, "scontrol: error: Munge encode failed: Failed to access\n", (None, "unheard")),
        (1, "something new for job 4\n", ("4", "other")),
    ],
)
def test_other_words(rc: int | None, stderr: str, expected: tuple[str | None, str]) -> None:
    assert told(rc, stderr) == [expected]


def test_the_misleading_line_is_hidden_wherever_a_job_was_told_of() -> None:
    for suspend in ("slurm_suspend error: No error", "slurm_suspend error:No error"):
        stderr = f"Invalid job id specified for job 99999\n{suspend}\n"
        assert told(1, stderr) == [("99999", "unknown-job")]


@given(rc=st.none() | st.integers(-70, 300), stderr=st.binary(max_size=80) | st.text(max_size=80))
def test_there_is_always_an_answer(rc: int | None, stderr: bytes | str) -> None:
    assert parse_scontrol_replies(rc, stderr)


@given(
    base=st.integers(1, 2**31),
    spans=st.lists(st.tuples(st.integers(0, 9_999), st.integers(0, 9)), min_size=1, max_size=5),
    bracket=st.booleans(),
)
def test_tasks_are_the_same_with_and_without_brackets(
    base: int, spans: list[tuple[int, int]], bracket: bool
) -> None:
    text = ",".join(str(low) if not more else f"{low}-{low + more}" for low, more in spans)
    listed = f"[{text}]" if bracket else text
    (said,) = parse_scontrol_replies(1, f"{base}_{listed}: No error\n")
    assert said.kind is ReplyKind.TAKEN
    assert said.job is not None
    assert said.job.base == str(base)
    count = sum(more + 1 for _, more in spans)
    assert (said.job.tasks.count if said.job.tasks is not None else 1) == count
