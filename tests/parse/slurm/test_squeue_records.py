"""Single records of squeue: bad ones, hostile ones, any bytes at all."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.model.job import Job
from slurmtop.model.snapshot import BadRecord
from slurmtop.parse.slurm.squeue import (
    LETTERS,
    QUEUE_NAMES,
    TEXT_FIELDS,
    parse_record,
    parse_squeue,
    split_records,
)

_MARK = b"\x1eq7Vd2k"


def _parse(data: bytes, letters: str) -> tuple[Job, ...]:
    fields = tuple(LETTERS[letter] for letter in letters)
    parsed = parse_squeue(data, fields=fields, separator=b"|", record_mark=b"\n")
    assert parsed.bad == 0
    return parsed.rows


def test_bad_records_are_counted_the_first_kept_and_neighbours_stay() -> None:
    data = b"1|RUNNING|a\nno id|RUNNING|b\n2|RUNNING\n3|RUNNING|c\n"
    parsed = parse_squeue(data, fields=("id", "state", "name"), separator=b"|", record_mark=b"\n")
    assert [job.key.id for job in parsed.rows] == ["1", "3"]
    assert parsed.bad == 2
    assert parsed.first_bad == BadRecord(1, "no job id: 'no id'", "no id|RUNNING|b")


def test_too_few_and_impossible_records_say_why() -> None:
    few = parse_record(b"1\x1fRUNNING", fields=("id", "state", "user"), index=7)
    assert few == BadRecord(7, "2 fields where 3 were asked for", "1\x1fRUNNING")
    many = parse_record(b"1\x1fRUNNING\x1fa\x1fb", fields=("id", "state", "user"))
    assert isinstance(many, BadRecord)
    assert isinstance(parse_record(b"4711_1+\x1fRUNNING", fields=("id", "state")), BadRecord)


def test_one_text_field_alone_may_hold_separators() -> None:
    job = parse_record(b"1\x1fx\x1fy\x1fz\x1fRUNNING", fields=("id", "name", "state"))
    assert isinstance(job, Job)
    assert (job.name, job.state.word, job.name_unsure) == ("x\x1fy\x1fz", "RUNNING", False)


def test_names_that_are_not_known_are_skipped() -> None:
    job = parse_record(b"1\x1fwhatever\x1fRUNNING", fields=["id", "moon_phase", "state"])
    assert isinstance(job, Job)
    assert job.state.word == "RUNNING"


def test_gpus_per_node_are_multiplied_and_unknown_without_nodes() -> None:
    rows = _parse(
        b"1|gres:gpu:h100:4|2|gpu[01-02]\n2|gres/gpu:4||gpu[01-03]\n3|gpu:4||\n4|N/A|2|x[1-2]\n",
        "ibDN",
    )
    assert [job.tres.gpus for job in rows] == [8, 12, None, None]


def test_A8_and_A7_long_values_stay_whole() -> None:
    name, nodes = "x" * 250, ",".join(f"n{place}x" for place in range(2_000))
    (job,) = _parse(f"1|{nodes}|RUNNING|{name}\n".encode(), "iNTj")
    assert (job.name, job.nodes) == (name, nodes)


def test_B4_bytes_that_are_no_utf8_hide_no_job() -> None:
    rows = _parse(b"1|RUNNING|f\xfcr\n2|RUNNING|b\xc3\n3|RUNNING|c\n", "iTj")
    assert [job.name for job in rows] == ["f\ufffdr", "b\ufffd", "c"]


@pytest.mark.parametrize("front", [False, True])
def test_records_are_cut_the_same_with_the_mark_in_front_or_behind(front: bool) -> None:
    records = [b"1\x1fa\nb", b"2\x1f", b"3\x1fc\n"]
    if front:
        data = b"".join(_MARK + record + b"\n" for record in records)
    else:
        data = b"".join(record + _MARK + b"\n" for record in records)
    assert split_records(data, _MARK) == records
    assert split_records(b"", _MARK) == []


def test_an_answer_cut_in_the_middle_costs_only_its_last_record() -> None:
    data = b"1\x1fRUNNING\x1fa" + _MARK + b"\n2\x1fRUN"
    parsed = parse_squeue(data, fields=("id", "state", "name"), record_mark=_MARK)
    assert [job.key.id for job in parsed.rows] == ["1"]
    assert parsed.bad == 1


def test_a_banner_before_the_records_is_one_bad_record() -> None:
    data = b"Welcome!\n" + b"1\x1fRUNNING\x1fa" + _MARK + b"\n2\x1fRUNNING\x1fb" + _MARK + b"\n"
    parsed = parse_squeue(data, fields=("id", "state", "name"), record_mark=_MARK)
    assert [job.key.id for job in parsed.rows] == ["2"]
    assert parsed.bad == 1


# --- properties ------------------------------------------------------------------------------

_FIELD_LISTS = st.lists(
    st.sampled_from([*LETTERS.values(), *QUEUE_NAMES, "tres", "nonsense"]), max_size=8
)


@given(
    st.binary(max_size=300),
    _FIELD_LISTS,
    st.sampled_from([b"\x1f", b"|", b" "]),
    st.sampled_from([_MARK, b"\x1e", b"\n"]),
)
@example(b"\x1e" * 5, ["id"], b"\x1f", b"\x1e")
@example(b"1\x1f" + b"9" * 5_000, ["id", "priority"], b"\x1f", b"\n")
def test_any_bytes_never_raise(
    data: bytes, fields: list[str], separator: bytes, mark: bytes
) -> None:
    parsed = parse_squeue(data, fields=fields, separator=separator, record_mark=mark)
    assert (parsed.bad > 0) is (parsed.first_bad is not None)
    assert len({job.key for job in parsed.rows}) == len(parsed.rows)
    assert all(job.id.base for job in parsed.rows)


_HOSTILE = st.lists(
    st.sampled_from([*"ab\x1f\x1e\n|1\x00\x1b[]_", "\u202e", "CLUSTER: x", "PENDING", "q7Vd2"]),
    max_size=20,
).map("".join)
_PLAIN = {
    "state": "RUNNING",
    "reason": "None",
    "partition": "gpu",
    "user": "alice",
    "limit": "1:00:00",
    "nodes": "gpu01",
    "priority": "7",
}


_TEXTS = st.fixed_dictionaries(dict.fromkeys(sorted(TEXT_FIELDS), _HOSTILE))


@given(st.lists(_TEXTS, max_size=4))
def test_no_text_ever_changes_a_plain_value(texts: list[dict[str, str]]) -> None:
    data = b""
    for number, text in enumerate(texts, 1):
        values = {"id": str(number), **_PLAIN, **text}
        record = "\x1f".join(values.get(name, "") for name in QUEUE_NAMES)
        data += record.encode() + _MARK + b"\n"
    parsed = parse_squeue(data, record_mark=_MARK)
    assert parsed.bad == 0
    assert [job.key.id for job in parsed.rows] == [str(n) for n in range(1, len(texts) + 1)]
    for job, text in zip(parsed.rows, texts, strict=True):
        assert (job.user, job.state.word, job.partitions) == ("alice", "RUNNING", ("gpu",))
        assert (job.nodes, job.priority, job.reason) == ("gpu01", 7, None)
        if job.name_unsure:
            assert any("\x1f" in value for value in text.values())
            assert all(value in job.name for value in text.values())
        else:
            assert job.name == text["name"]
