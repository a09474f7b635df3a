"""Faults that other monitors were reported to have with data: they must not happen here.

Each test carries the id of the collection of such reports. Those that no test names are held by
tests of their rooms that say in words what they hold.
"""

import time
from datetime import timedelta

import pytest

from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job, Phase
from slurmtop.model.units import bytes_text
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs
from slurmtop.parse.slurm.sinfo import parse_sinfo
from slurmtop.parse.slurm.squeue import QUEUE_FIELDS, QUEUE_NAMES, parse_squeue, queue_format
from slurmtop.parse.slurm.states import parse_state
from slurmtop.store.jobs import JobBook
from slurmtop.store.query import parse_query
from slurmtop.store.view import JobView
from slurmtop.triage.why import explain_job
from tests.build import make_job
from tests.fakes import START

MARK = b"\x1eAbCdEf"


def _record(**values: str) -> bytes:
    return "\x1f".join(values.get(name, "N/A") for name in QUEUE_NAMES).encode() + MARK + b"\n"


@pytest.mark.parametrize("name", ["my big run", "  two  blanks ", "tab\there", "x|y", "a,b:c"])
def test_A1_blanks_and_separators_in_a_name_shift_nothing(name: str) -> None:
    data = _record(id="1", state="RUNNING", nodes="gpu[01-02]", name=name, workdir="/my dir/x")
    (job,) = parse_squeue(data, record_mark=MARK).rows
    assert (job.name, job.state.word, job.nodes) == (name, "RUNNING", "gpu[01-02]")
    assert job.workdir == "/my dir/x"


def test_A4_no_field_can_grow_into_the_next_one() -> None:
    form = queue_format(MARK)
    pieces = form.split(",")
    assert len(pieces) == len(QUEUE_FIELDS)
    assert all(piece.endswith(":\x1f") for piece in pieces[:-1])
    assert pieces[-1].endswith(":" + MARK.decode())
    reason = "ReqNodeNotAvail, UnavailableNodes:" + ",".join(f"gpu{n:04}" for n in range(900))
    (job,) = parse_squeue(_record(id="1", state="PENDING", reason=reason), record_mark=MARK).rows
    assert (job.reason, job.state.word) == (reason, "PENDING")


_BLOCK = (
    "JobId=7 JobName=x UserId=anna(1001) GroupId=anna(1001) MCS_label=N/A Priority=1 Nice=0"
    " JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0"
    " ExitCode=0:0 RunTime=00:00:14 TimeLimit=7-00:00:00 TimeMin=N/A"
    " SubmitTime=2031-05-05T08:00:00 EligibleTime=2031-05-05T08:00:00"
    " StartTime=2031-05-05T08:00:00 EndTime=2031-05-12T08:00:00 Deadline=N/A"
    " Partition=gpu AllocNode:Sid=h:42 ReqNodeList=(null) ExcNodeList=(null) NodeList=gpu03"
    " NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*"
    " Command=/w/my job.sh --size 3 WorkDir=/my dir/of runs Comment=two words  here"
    " StdErr=/my dir/e.out StdIn=/dev/null StdOut=/my dir/o.out"
)


def test_A20_keys_with_signs_bound_a_value_and_blanks_stay() -> None:
    (detail,) = parse_scontrol_jobs(_BLOCK.encode()).rows
    assert detail.job.partitions == ("gpu",)
    assert detail.job.command == "/w/my job.sh --size 3"
    assert detail.job.workdir == "/my dir/of runs"
    assert detail.job.comment == "two words  here"
    assert detail.job.stdout == "/my dir/o.out"


def test_A20_a_long_run_of_blanks_costs_linear_time() -> None:
    def cost(blanks: int) -> float:
        data = _BLOCK.replace("two words", "two" + " " * blanks + "words").encode()
        data += b" " * blanks
        began = time.perf_counter()
        (detail,) = parse_scontrol_jobs(data).rows
        assert detail.job.state.word == "RUNNING"
        return time.perf_counter() - began

    assert min(cost(80_000) for _ in range(3)) < 40 * max(min(cost(10_000) for _ in range(3)), 1e-4)


def test_A22_null_is_nothing_and_no_text() -> None:
    (job,) = parse_squeue(
        _record(id="1", state="RUNNING", command="(null)", comment="(null)"), record_mark=MARK
    ).rows
    assert (job.command, job.comment) == (None, None)
    data = _BLOCK.replace("Command=/w/my job.sh --size 3", "Command=(null)").encode()
    (detail,) = parse_scontrol_jobs(data).rows
    assert detail.job.command is None


def test_A23_a_guessed_start_ahead_is_no_run_time() -> None:
    job = make_job("1", "PENDING", start=START + timedelta(hours=2), reason="Resources")
    facts = JobFacts(asked="1", cluster="", now=START, job=job)
    words = explain_job(facts).summary
    assert "-" not in words
    assert "may start in" in words


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1023.99 * 1024**3, "1.0 TiB"),
        (1023.94 * 1024**3, "1023.9 GiB"),
        (1024**3, "1.0 GiB"),
        (1023, "1023 B"),
    ],
)
def test_A25_no_size_of_1024_of_a_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize("word", ["RESIZING", "SIGNALING", "REQUEUED", "STAGE_OUT", "NEW", "?"])
def test_A26_every_state_is_counted_once(word: str) -> None:
    assert parse_state(word).phase in Phase
    book, view = JobBook(), JobView()
    job = make_job("1", "RUNNING")
    book.apply(
        [make_job("2"), job.__class__(key=job.key, id=job.id, state=parse_state(word))], START
    )
    view.update(book, START)
    assert sum(count.count for count in view.totals()) == 2


def test_A17_a_filter_by_user_needs_no_column_of_users() -> None:
    book, view = JobBook(), JobView()
    book.apply([make_job("1", user="anna"), make_job("2", user="bob")], START)
    view.update(book, START)
    view.set_query(parse_query("user:bob"))
    assert [row.job.key.id for row in view.rows] == ["2"]


def test_B3_brackets_in_a_type_of_gpu() -> None:
    data = b"gpu01\x1fidle\x1fgpu:[/red]x[b:8(S:0-1)\n"
    found = parse_sinfo(data, fields=("name", "state", "gres"), record_mark=b"\n")
    (node,) = found.rows
    assert node.gres is not None
    assert [(pool.type, pool.total) for pool in node.gres] == [("[/red]x[b", 8)]


def test_D4_the_rest_of_an_array_keeps_its_key_as_it_shrinks() -> None:
    keys = set()
    for tasks in ("8-5000", "9-5000", "9-4000,4002%5"):
        (job,) = parse_squeue(
            _record(id=f"12345_[{tasks}]", state="PENDING"), record_mark=MARK
        ).rows
        keys.add(job.key)
    assert len(keys) == 1


def test_D12_equal_ids_of_two_clusters_are_two_jobs() -> None:
    jobs: list[Job] = []
    for cluster in ("alpha", "beta"):
        data = _record(id="100", state="RUNNING", name=cluster)
        jobs += parse_squeue(data, record_mark=MARK, cluster=cluster).rows
    book = JobBook()
    book.apply(jobs, START)
    assert len(book.jobs) == 2
    assert {book.get(job.key) for job in jobs} == set(jobs)


@pytest.mark.parametrize("text", ["node[3-1]", "gpu[1-2", "gpu[a-b]"])
def test_D13_a_bad_range_is_refused_and_kept_as_printed(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|bracket"):
        expand_hosts(text)
    (job,) = parse_squeue(_record(id="1", state="RUNNING", nodes=text), record_mark=MARK).rows
    assert job.nodes == text


def test_H2_a_job_without_account_and_user_is_shown() -> None:
    data = _record(id="1", state="FAILED", user="", account="(null)", name="x")
    book, view = JobBook(), JobView()
    book.apply(parse_squeue(data, record_mark=MARK).rows, START)
    view.update(book, START)
    (row,) = view.rows
    assert (row.job.account, row.job.user) == (None, "")
