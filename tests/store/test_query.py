"""The filter language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.ids import JobId, JobKey
from slurmtop.model.job import Job, LimitKind, TimeLimit, Tres
from slurmtop.store.query import parse_query
from slurmtop.store.query_keys import QUERY_KEYS, Seen, search_text
from tests.build import make_job
from tests.fakes import START


def hosts(text: str) -> tuple[str, ...]:
    return {"gpu[01-02]": ("gpu01", "gpu02")}.get(text, (text,))


def holds(text: str, job: Job, *, gone: bool = False) -> bool:
    query = parse_query(text)
    assert query.error is None
    return query.matches(Seen(job, search_text(job), START, gone, hosts))


JOB = make_job(
    "4711",
    name="My Big Run:lr=0.1",
    user="anna",
    account="ml",
    partitions=("gpu", "gpu-long"),
    nodes="gpu[01-02]",
    node_count=2,
    tres=Tres(gpus=8, gpus_by_type=(("h100", 8),)),
    priority=1_200,
    ran_s=3 * 3_600,
    limit_s=36 * 3_600,
    reason="None",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("big", True),
        ("BIG RUN", True),
        ('"big run"', True),
        ('"run big"', False),
        ("big small", False),
        ("-small", True),
        ("!big", False),
        ("lr=0.1", True),
        ("user:anna", True),
        ("user:ann", False),
        ("user:ann*", True),
        ("user:bob,anna", True),
        ("-user:anna", False),
        ("u:anna", True),
        ("state:running", True),
        ("state:r", True),
        ("state:run", True),
        ("state:failed", False),
        ("state:failed,running", True),
        ("state:active", True),
        ("-state:active", False),
        ("state:gone", False),
        ("part:gpu-long", True),
        ("part:cpu", False),
        ("acct:ml", True),
        ("qos:normal", True),
        ("node:gpu02", True),
        ("node:gpu03", False),
        ("name:big", True),
        ('name:"my big"', True),
        ("name:'my big' anna", True),
        ("reason:none", True),
        ("id:4711", True),
        ("id:471", False),
        ("gpu:>0", True),
        ("gpus>=8", True),
        ("gpu:8", True),
        ("gpu:<8", False),
        ("gpu:h100", True),
        ("gpu:a100", False),
        ("nodes:>1", True),
        ("nodes:=2", True),
        ("time:>2h", True),
        ("time:>1d", False),
        ("time:<=3:00:00", True),
        ("time:>170", True),
        ("limit:1d12h", True),
        ("limit:1-12:00:00", True),
        ("prio:>1k", True),
        ("user:", True),
    ],
)
def test_what_a_filter_finds(text: str, expected: bool) -> None:
    assert holds(text, JOB) is expected


def test_groups_of_states() -> None:
    for word in ("TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "FAILED"):
        assert holds("state:failed", make_job(state=word))
    assert holds("state:timeout", make_job(state="TIMEOUT"))
    assert not holds("state:timeout", make_job(state="FAILED"))
    assert holds("state:oom", make_job(state="OUT_OF_MEMORY"))
    assert holds("state:ended", make_job(state="COMPLETED"))
    assert holds("state:completing", make_job(state="COMPLETING"))


def test_a_job_that_left_is_found_by_gone_only() -> None:
    assert holds("state:gone", make_job(), gone=True)
    assert not holds("state:running", make_job(), gone=True)


def test_unknown_numbers_are_neither_above_nor_below() -> None:
    job = make_job(tres=Tres(), node_count=None, priority=None)
    for text in ("gpu:>0", "gpu:<1", "gpu:0", "nodes:>0", "nodes:<9", "prio:>0"):
        assert not holds(text, job), text


def test_a_pending_job_has_not_run() -> None:
    assert not holds("time:>0", make_job(state="PENDING", ran_s=-600))


def test_no_limit_is_above_every_limit() -> None:
    assert holds("limit:>300d", make_job(limit=TimeLimit(LimitKind.UNLIMITED)))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("usr:anna", "did you mean 'user'?"),
        ("stat:failed", "did you mean 'state'?"),
        ("zzz:1", "there are user"),
        ("state:faild", "did you mean 'failed'?"),
        ("nodes:>many", "'many' is no number"),
        ("time:>soon", "no time"),
    ],
)
def test_an_error_is_a_sentence_that_helps(text: str, hint: str) -> None:
    error = parse_query(text).error
    assert error is not None
    assert hint in error


def test_the_rest_of_a_filter_counts_beside_an_error() -> None:
    query = parse_query("usr:anna big")
    assert query.error is not None
    assert query.words == ("big",)


def test_every_key_has_a_meaning() -> None:
    for key in QUERY_KEYS:
        assert parse_query(f"{key}:1").error is None or key == "state"


@given(st.text())
def test_any_text_is_a_filter(text: str) -> None:
    query = parse_query(text)
    query.matches(Seen(JOB, search_text(JOB), START))


@given(st.text(alphabet="usergpu:<>=,-!\"'0.*hd ", max_size=20))
def test_any_near_miss_is_a_filter(text: str) -> None:
    query = parse_query(text)
    query.matches(Seen(JOB, search_text(JOB), START))


def test_the_search_text_does_not_depend_on_columns() -> None:
    job = Job(key=JobKey("", "1"), id=JobId("1", "1"), qos="Fast", account="ACME", nodes="n9")
    text = search_text(job)
    assert all(word in text for word in ("fast", "acme", "n9", "1"))
