import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.model.job import Job, LimitKind, Phase, TimeLimit
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.squeue_json import number_of, parse_squeue_json, time_of, whole_of
from tests.parse.slurm.support import LETTER_FIELDS, VERSIONS, case, expected, fixture


def _rows(number: str, command: int) -> dict[str, Job]:
    parsed = parse_squeue_json(case(number, command), cluster="alpha")
    assert parsed.bad == 0
    return {str(job.raw_id): job for job in parsed.rows}


def test_case_034_number_objects() -> None:
    jobs = _rows("034", 1)
    answers = {row["id"]: row for row in expected("034")["first"]["jobs"]}
    assert jobs["1"].limit == TimeLimit(LimitKind.UNLIMITED)
    assert (jobs["1"].start, jobs["1"].id.task) == (None, None)
    assert jobs["2"].limit == TimeLimit(LimitKind.SECONDS, answers["2"]["limit_s"])
    assert jobs["2"].key.id == answers["2"]["array"]
    assert jobs["2"].priority == 0
    assert jobs["3"].limit == TimeLimit(LimitKind.UNLIMITED)
    assert (jobs["3"].het_leader, jobs["3"].id.het_offset) == ("3", None)


@pytest.mark.parametrize("command", [2, 3])
def test_case_034_complex_mode_and_the_dialect_of_22_05(command: int) -> None:
    (job,) = _rows("034", command).values()
    assert job.limit == TimeLimit(LimitKind.UNLIMITED)
    assert (job.start, job.id.task, job.array_id) == (None, None, None)
    assert job.state.phase is Phase.PENDING


@pytest.mark.parametrize("command", [1, 2, 3])
def test_case_056_nodes_stand_at_the_top(command: int) -> None:
    (job,) = _rows("056", command).values()
    answer = expected("056")["rows"][command - 1]
    assert job.key.id == answer["id"]
    assert list(expand_hosts(job.nodes or "")) == answer["nodes"]


@pytest.mark.parametrize("version", VERSIONS)
def test_real_json_agrees_with_the_text(version: str) -> None:
    parsed = parse_squeue_json(fixture(version, "squeue_json"))
    assert parsed.bad == 0
    text = parse_squeue(fixture(version, "squeue_fields"), fields=LETTER_FIELDS, record_mark=b"\n")
    by_key = {job.key: job for job in parsed.rows}
    assert len(by_key) == {"22.05.8": 20, "24.11.5": 15, "26.05.5": 16}[version]
    for job in text.rows:
        other = by_key.pop(job.key)
        assert (job.id, job.raw_id, job.array_id) == (other.id, other.raw_id, other.array_id)
        assert (job.user, job.account, job.qos) == (other.user, other.account, other.qos)
        assert (job.partitions, job.limit) == (other.partitions, other.limit)
        assert (job.state.word, job.reason) == (other.state.word, other.reason)
        assert (job.submit, job.start, job.name) == (other.submit, other.start, other.name)
        assert (job.nodes, job.node_count) == (other.nodes, other.node_count)
        assert (job.priority, job.workdir) == (other.priority, other.workdir)
        # squeue writes the state of the dependency behind it, JSON does too.
        assert job.dependency == other.dependency
    # 22.05 lists finished jobs too and obeys no filter; the later ones do neither.
    assert {job.state.ended for job in by_key.values()} <= {True}
    assert len(by_key) == (4 if version == "22.05.8" else 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_json_counts_gpus_of_waiting_jobs(version: str) -> None:
    jobs = {job.key.id: job for job in parse_squeue_json(fixture(version, "squeue_json")).rows}
    rest = next(job for id, job in jobs.items() if id.endswith("_[*]"))
    assert rest.tres.gpus == 1
    assert rest.id.tasks is not None
    assert (rest.id.tasks.count, rest.id.tasks.throttle) == (16, 4)
    weird = next(job for job in jobs.values() if job.name.startswith("[bold red]"))
    assert weird.comment == "multi\nline | comment"


def test_A13_plain_ints_and_number_objects_are_both_taken() -> None:
    data = {"jobs": [{"job_id": 16, "array_job_id": 3, "array_task_id": 0, "job_state": "RUNNING"}]}
    (job,) = parse_squeue_json(json.dumps(data).encode()).rows
    assert job.key.id == "3_0"


def test_A14_a_list_of_states_keeps_base_and_flag() -> None:
    data = b'{"jobs": [{"job_id": 1, "job_state": ["RUNNING", "COMPLETING"]}]}'
    (job,) = parse_squeue_json(data).rows
    assert (job.state.base, job.state.flags) == ("RUNNING", ("COMPLETING",))


def test_numbers_near_the_markers() -> None:
    assert whole_of(65_535) == 65_535
    assert whole_of(4_294_967_294) is None
    assert number_of(4_294_967_295) == float("inf")
    assert whole_of({"set": False, "infinite": False, "number": 0}) is None
    assert whole_of({"set": True, "infinite": False, "number": 0}) == 0
    assert number_of({"set": False, "infinite": True, "number": 0}) == float("inf")
    assert whole_of(True) is None
    assert time_of(0) is None
    assert time_of(10**18) is None


def test_free_text_replaces_the_reason_word() -> None:
    text = "ReqNodeNotAvail, UnavailableNodes:gpu[03-05]"
    data = {"jobs": [{"job_id": 1, "state_reason": "ReqNodeNotAvail", "state_description": text}]}
    (job,) = parse_squeue_json(json.dumps(data).encode()).rows
    assert job.reason == text


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"jobs": [], "errors": [{"error": "Unspecified error"}]}', "Unspecified error"),
        (b'{"errors": [{"description": "no controller"}]}', "no controller"),
        (b'{"meta": {}}', "no list of jobs"),
        (b"[]", "no list of jobs"),
        (b"", "no JSON"),
        (b"squeue: error", "no JSON"),
        (b'{"jobs": [', "no JSON"),
    ],
)
def test_case_045_an_outage_is_never_an_empty_queue(data: bytes, why: str) -> None:
    parsed = parse_squeue_json(data)
    assert (parsed.rows, parsed.bad) == ((), 1)
    assert parsed.first_bad is not None
    assert why in parsed.first_bad.why


def test_an_empty_queue_is_good() -> None:
    parsed = parse_squeue_json(b'{"jobs": [], "errors": [], "warnings": []}')
    assert (parsed.rows, parsed.bad) == ((), 0)


def test_bad_jobs_are_counted_and_cost_no_neighbour() -> None:
    data = b'{"jobs": [7, {"job_id": null}, {"job_id": 5, "job_state": ["RUNNING"]}, {}]}'
    parsed = parse_squeue_json(data)
    assert [job.key.id for job in parsed.rows] == ["5"]
    assert parsed.bad == 3
    assert parsed.first_bad is not None
    assert (parsed.first_bad.index, parsed.first_bad.why) == (0, "not an object")


def test_case_030_a_raw_byte_in_a_name_hides_no_job() -> None:
    data = b'{"jobs": [{"job_id": 5, "name": "f\xfcr"}, {"job_id": 6, "name": "x"}]}'
    assert [job.name for job in parse_squeue_json(data).rows] == ["f\ufffdr", "x"]


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["Infinity", "RUNNING", 4294967295, 2**64 - 1]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["set", "infinite", "number", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    [
        "job_id", "job_state", "time_limit", "start_time", "submit_time", "array_job_id",
        "array_task_id", "array_task_string", "het_job_id", "het_job_offset", "node_count",
        "priority", "restart_cnt", "name", "user_name", "partition", "tres_alloc_str",
        "tres_per_node", "comment", "nodes", "state_reason",
    ]
)  # fmt: skip


@given(st.lists(st.dictionaries(_KEYS, _JSON, max_size=8), max_size=3), _JSON)
def test_any_json_never_raises(jobs: list[dict[str, object]], errors: object) -> None:
    data = json.dumps({"jobs": jobs, "errors": errors}).encode()
    parsed = parse_squeue_json(data)
    assert all(job.id.base for job in parsed.rows)


@given(st.binary(max_size=200))
@example(b'{"jobs": [{"job_id": ' + b"9" * 5_000 + b"}]}")
@example(b"[" * 100_000)
@example(b'{"jobs": [{"job_id": 1e400, "start_time": NaN}]}')
def test_any_bytes_never_raise(data: bytes) -> None:
    parsed = parse_squeue_json(data)
    assert parsed.rows or parsed.bad
