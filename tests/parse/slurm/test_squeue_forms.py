import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.ids import JobKey
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.squeue_forms import parse_squeue_clusters, parse_squeue_default
from tests.parse.slurm.support import (
    LETTER_FIELDS,
    QUEUE_MARKED_FIELDS,
    VERSIONS,
    case,
    expected,
    fixture,
)

_MARK = b"\x1eq7Vd2k"


def _clusters(command: int) -> tuple[dict[JobKey, str], tuple[str, ...], list[str]]:
    answers, silent = parse_squeue_clusters(
        case("054", command), fields=("id", "state"), separator=b"|", record_mark=b"\n"
    )
    assert all(answer.bad == 0 for answer in answers.values())
    states = {job.key: job.state.word for answer in answers.values() for job in answer.rows}
    return states, silent, list(answers)


def test_case_054_D10_two_clusters_in_one_answer() -> None:
    states, silent, answered = _clusters(1)
    rows = expected("054")["first"]["rows"]
    assert states == {JobKey(row["cluster"], row["id"]): row["state"] for row in rows}
    assert (silent, answered) == ((), ["alpha", "beta"])


def test_case_054_a_header_alone_is_no_empty_queue() -> None:
    states, silent, answered = _clusters(3)
    assert states == {JobKey("alpha", "100"): "RUNNING"}
    assert (silent, answered) == (("beta",), ["alpha"])


def test_case_054_nothing_at_all_answers_nothing() -> None:
    assert _clusters(4) == ({}, (), [])


def test_titles_without_records_are_an_empty_queue() -> None:
    answers, silent = parse_squeue_clusters(
        b"CLUSTER: alpha\nJOBID|STATE\n", fields=("id", "state"), separator=b"|", record_mark=b"\n"
    )
    assert (answers["alpha"].rows, answers["alpha"].bad, silent) == ((), 0, ())


def test_real_header_titles_and_marked_records() -> None:
    answers, silent = parse_squeue_clusters(
        fixture("22.05.8", "queue_marked_M"), fields=QUEUE_MARKED_FIELDS, record_mark=_MARK
    )
    plain = parse_squeue(
        fixture("22.05.8", "queue_marked"),
        fields=QUEUE_MARKED_FIELDS,
        record_mark=_MARK,
        cluster="slurmtop",
    )
    assert silent == ()
    assert list(answers) == ["slurmtop"]
    assert answers["slurmtop"].bad == 0
    assert [job.key for job in answers["slurmtop"].rows] == [job.key for job in plain.rows]


def test_two_marked_clusters_and_a_silent_one() -> None:
    title = b"JOBID\x1fNAME" + _MARK + b"\n"
    forged = b"1\x1fx\nCLUSTER: gamma\n2\x1f" + _MARK + b"\n"
    data = (
        b"CLUSTER: alpha\n" + title + forged + b"\nCLUSTER: beta\n" + title + b"\nCLUSTER: delta\n"
    )
    answers, silent = parse_squeue_clusters(data, fields=("id", "name"), record_mark=_MARK)
    assert [job.key for job in answers["alpha"].rows] == [JobKey("alpha", "1")]
    assert answers["beta"].rows == ()
    assert silent == ("delta",)


def test_case_006_the_default_format() -> None:
    parsed = parse_squeue_default(case("006"))
    assert parsed.bad == 0
    rest, task = parsed.rows
    answers = expected("006")["rows"]
    assert rest.key.id == "57829110_[*]"
    assert rest.id.tasks is not None
    assert (rest.id.tasks.throttle, rest.id.tasks.throttle_known) == (None, False)
    assert (rest.reason, rest.nodes, rest.node_count) == (answers[0]["reason"], None, 4)
    assert task.key.id == answers[1]["id"]
    assert (task.state.word, task.used_s) == (answers[1]["state"], answers[1]["used_s"])
    assert (task.nodes, task.reason) == ("gpu[011-014]", None)


def test_case_061_titles_alone_are_an_empty_queue() -> None:
    parsed = parse_squeue_default(case("061", 1))
    assert (parsed.rows, parsed.bad) == ((), 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_default_format_agrees_with_the_fields(version: str) -> None:
    default = parse_squeue_default(fixture(version, "squeue_default"))
    whole = {
        job.key: job
        for job in parse_squeue(
            fixture(version, "squeue_fields"), fields=LETTER_FIELDS, record_mark=b"\n"
        ).rows
    }
    assert default.bad == 0
    assert {job.key for job in default.rows} == set(whole)
    for job in default.rows:
        other = whole[job.key]
        assert (job.user, job.state, job.node_count) == (other.user, other.state, other.node_count)
        assert (job.nodes, job.reason) == (other.nodes, other.reason)
        assert job.used_s is not None
        assert other.name.startswith(job.name)


def test_a_line_that_fits_no_column_is_bad_and_costs_no_neighbour() -> None:
    data = case("006") + b"squeue: something else\n"
    parsed = parse_squeue_default(data)
    assert (len(parsed.rows), parsed.bad) == (2, 1)
    assert parsed.first_bad is not None
    assert parsed.first_bad.excerpt == "squeue: something else"


@given(st.binary(max_size=300) | st.text(alphabet="CLUSTER: \n1|JOBID\x1f").map(str.encode))
def test_any_bytes_never_raise(data: bytes) -> None:
    parse_squeue_default(data)
    answers, silent = parse_squeue_clusters(data, fields=("id", "name"), record_mark=b"\n")
    assert not set(answers) & set(silent)
