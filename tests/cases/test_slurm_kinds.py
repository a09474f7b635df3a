"""Other answers of the same kinds as the cases: other numbers, cuts, spellings and places."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import JobFacts
from slurmtop.model.job import ENDED_STATES, ExitCode, LimitKind, Phase
from slurmtop.model.verdict import EndedBy, State
from slurmtop.parse.slurm.exit_codes import explain_exit
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.sacct import newest_run, parse_sacct
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs, parse_scontrol_nodes
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.squeue_forms import parse_squeue_default
from slurmtop.parse.slurm.squeue_json import parse_squeue_json
from slurmtop.parse.slurm.states import parse_state, parse_state_list
from slurmtop.parse.slurm.times import parse_limit
from slurmtop.parse.slurm.tres import parse_tres
from slurmtop.triage.why import explain_job
from tests.cases.product import squeue
from tests.cases.support import load
from tests.fakes import START

# Ids that are cut somewhere (003, 006)

_TASKS = st.lists(st.integers(0, 99_999), min_size=2, max_size=40, unique=True).map(sorted)


def _spans(tasks: list[int]) -> str:
    """``0-2,7,9-10``, as Slurm writes a list of tasks."""
    out: list[list[int]] = []
    for task in tasks:
        if out and task == out[-1][-1] + 1:
            out[-1].append(task)
        else:
            out.append([task])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in out)


@given(_TASKS, st.integers(1, 99), st.data())
def test_kind_003_a_cut_never_counts_too_many(
    tasks: list[int], throttle: int, data: st.DataObject
) -> None:
    whole = f"4711_[{_spans(tasks)}%{throttle}]"
    full = parse_job_id(whole).tasks
    assert full is not None
    assert (full.count, full.exact, full.throttle) == (len(tasks), True, throttle)
    at = data.draw(st.integers(len("4711_[0"), len(whole) - 1))
    cut = parse_job_id(whole[:at])
    assert cut.cut
    assert cut.base == "4711"
    assert cut.tasks is not None
    assert cut.tasks.count <= len(tasks)
    assert not cut.tasks.throttle_known
    assert cut.tasks.throttle is None


@given(_TASKS, st.integers(1, 99), st.data())
def test_kind_003_dots_never_count_too_many(
    tasks: list[int], throttle: int, data: st.DataObject
) -> None:
    inner = _spans(tasks)
    at = data.draw(st.integers(1, len(inner)))
    dotted = parse_job_id(f"4711_[{inner[:at]}...%{throttle}]").tasks
    assert dotted is not None
    assert not dotted.exact
    assert 1 <= dotted.count <= len(tasks)
    assert (dotted.throttle, dotted.throttle_known) == (throttle, True)


@given(st.integers(1, 9_999_999), st.integers(0, 99_999), st.integers(1, 999))
def test_kind_006_the_default_format_never_gives_a_wrong_throttle(
    job: int, last: int, throttle: int
) -> None:
    id = f"{job}_[0-{last}%{throttle}]"[:18]
    line = f"{id:>18} {'gpu':>9} {'name':>8} {'anna':>8} PD {'0:00':>10} {1:>6} (Priority)\n"
    parsed = parse_squeue_default(line.encode())
    assert len(parsed.rows) + parsed.bad == 1
    for row in parsed.rows:
        tasks = row.id.tasks
        assert row.id.base == str(job)
        if tasks is not None:
            assert tasks.throttle in (None, throttle)
            assert tasks.throttle == throttle or not tasks.throttle_known


# Limits, times, states


@pytest.mark.parametrize("limit", ["1:00:00", "7-00:00:00", "365-00:00:00", "0:30"])
def test_kind_001_past_its_limit_is_no_limit_above_a_year(limit: str) -> None:
    step = load("001")[1]
    (job,) = squeue(step, stdout=f"9|{limit}|INVALID|2:00:00|RUNNING\n".encode()).rows
    assert job.limit.kind is LimitKind.SECONDS
    assert job.left.kind is not LimitKind.OVER_A_YEAR
    assert job.left.seconds is None


@given(st.integers(0, 365 * 86_400))
def test_kind_001_every_limit_of_slurm(seconds: int) -> None:
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    text = f"{minutes}:{secs:02}"
    if days or hours:
        text = f"{hours}:{minutes:02}:{secs:02}"
    if days:
        text = f"{days}-{hours:02}:{minutes:02}:{secs:02}"
    assert parse_limit(text).seconds == seconds


@pytest.mark.parametrize("order", [*itertools.permutations(("COMPLETING", "NEW_FLAG", "FAILED"))])
def test_kind_004_a_list_of_states_in_any_order(order: tuple[str, ...]) -> None:
    state = parse_state_list(order)
    assert state.base == "FAILED"
    assert set(state.flags) == {"COMPLETING", "NEW_FLAG"}
    assert state.word == "COMPLETING"
    assert not state.ended


@pytest.mark.parametrize(
    ("short", "long"),
    [("OOM", "OUT_OF_MEMORY"), ("OO", "OUT_OF_MEMORY"), ("NF", "NODE_FAIL"), ("TO", "TIMEOUT")],
)
def test_kind_004_short_states(short: str, long: str) -> None:
    assert parse_state(short) == parse_state(long)
    assert parse_state(short).phase is Phase.FAILED


@given(st.text(max_size=30))
def test_kind_004_an_unknown_state_is_no_end(word: str) -> None:
    state = parse_state(word)
    assert state.base in {None, "PENDING", "RUNNING", "SUSPENDED", *ENDED_STATES}
    assert not state.ended or state.base in ENDED_STATES


# Exit codes (008, 009)


@pytest.mark.parametrize("signal", [42, 46, 48, 52, 53, 54, 55, 60, 99])
def test_kind_009_no_error_of_slurm_is_called_a_signal(signal: int) -> None:
    for reason in (None, f"RaisedSignal:{signal}(Real-time_signal_{signal - 34})"):
        meaning = explain_exit(parse_state("FAILED"), ExitCode(0, signal), reason=reason)
        told = " ".join((meaning.sentence, meaning.warning or "", *meaning.notes))
        assert meaning.ok is False
        assert f"signal {signal}" not in told.lower()
        assert "real-time" not in told.lower()
    info = explain_reason(f"RaisedSignal:{signal}(Real-time_signal_{signal - 34})")
    assert "real-time" not in (info.meaning + info.advice).lower()
    assert info.kind == "failure"


@pytest.mark.parametrize(("printed", "real"), [(9, 137), (15, 143), (11, 139), (127, 255)])
def test_kind_008_codes_that_sacct_prints_too_small(printed: int, real: int) -> None:
    told = explain_exit(parse_state("FAILED"), ExitCode(printed, 0), from_sacct=True)
    assert any(str(real) in note for note in told.notes)
    sure = explain_exit(parse_state("FAILED"), ExitCode(real, 0))
    assert str(real) in sure.sentence


def test_kind_008_out_of_memory_is_no_signal_125() -> None:
    for state in ("OUT_OF_MEMORY", "FAILED"):
        told = explain_exit(parse_state(state), ExitCode(0, 125)).sentence.lower()
        assert "memory" in told
        assert "125" not in told


@pytest.mark.parametrize(
    ("batch_state", "batch_code"), [("CANCELLED", "0:15"), ("FAILED", "15:0"), ("FAILED", "143:0")]
)
def test_kind_009_the_job_row_decides(batch_state: str, batch_code: str) -> None:
    data = (
        f"77|TIMEOUT|0:0\n77.batch|{batch_state}|{batch_code}\n"
        "77.extern|COMPLETED|0:0\n77.0|CANCELLED|0:15\n"
    )
    rows = parse_sacct(data.encode(), fields=("JobID", "State", "ExitCode"), separator=b"|").rows
    facts = JobFacts(
        asked="77", cluster="", now=START, history=newest_run(rows), accounting_answered=True
    )
    verdict = explain_job(facts)
    assert (verdict.state, verdict.ended_by) == (State.FAILED, EndedBy.SLURM)
    assert "time limit" in verdict.summary


@pytest.mark.parametrize("turned", [False, True])
def test_kind_033_earlier_runs_of_a_requeued_job(turned: bool) -> None:
    rows = [
        "8|REQUEUED|2031-05-05T08:00:00|2031-05-05T08:10:00",
        "8|PREEMPTED|2031-05-05T09:00:00|2031-05-05T09:10:00",
        "8|RUNNING|2031-05-05T10:00:00|2031-05-05T10:10:00",
    ]
    data = "".join(row + "\n" for row in (rows[::-1] if turned else rows)).encode()
    fields = ("JobID", "State", "Submit", "Start")
    records = parse_sacct(data, fields=fields, separator=b"|").rows
    assert [record.state.word for record in newest_run(records)] == ["RUNNING"]


# Resources (014, 018)


@pytest.mark.parametrize(
    "text",
    ["gres:gpu:4", "gres:gpu:h100:4", "gres/gpu:4", "gres/gpu:h100:4", "gpu:4", "gres/gpu=4"],
)
def test_kind_014_every_spelling_of_four_gpus(text: str) -> None:
    assert parse_tres(text).gpus == 4


@pytest.mark.parametrize("text", ["gres:gpu", "gres/gpu", "gpu"])
def test_kind_014_a_missing_count_is_one(text: str) -> None:
    assert parse_tres(text).gpus == 1


@pytest.mark.parametrize("text", ["N/A", "", "(null)"])
def test_kind_014_nothing_said_is_not_zero(text: str) -> None:
    assert parse_tres(text).gpus is None


def test_kind_014_use_of_gpus_is_no_number_of_gpus() -> None:
    tres = parse_tres("cpu=8,gres/gpumem=36266M,gres/gpuutil=200,gres/gpu=2,mem=1G")
    assert tres.gpus == 2
    assert (parse_tres("gres/gpumem=36266M,gres/gpuutil=200").gpus or 0) == 0


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu[08-11]", ["gpu08", "gpu09", "gpu10", "gpu11"]),
        ("gpu[8-11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("login1,gpu[01-02,05]a,cpu9", ["login1", "gpu01a", "gpu02a", "gpu05a", "cpu9"]),
        ("gpu[1-2]-ib", ["gpu1-ib", "gpu2-ib"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("gpu[3]", ["gpu3"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_kind_056_host_lists(text: str, hosts: list[str]) -> None:
    assert list(expand_hosts(text)) == hosts


@pytest.mark.parametrize("text", ["gpu[1-2", "gpu[5-1]", "bgl[000x133]", "gpu[1-]", "gpu[a-b]"])
def test_kind_056_a_broken_host_list_is_refused(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hosts(text)


# Reasons (023)


@pytest.mark.parametrize(
    ("text", "word", "kept"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:gpu[03-05]", "ReqNodeNotAvail", "gpu[03-05]"),
        ("ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail", "maintenance"),
        ("(ReqNodeNotAvail, May be reserved for other job)", "ReqNodeNotAvail", "reserved"),
    ],
)
def test_kind_023_free_text_behind_a_word(text: str, word: str, kept: str) -> None:
    for spelled in (text, text.replace(" ", "_")):
        info = explain_reason(spelled)
        assert info.word == word
        assert info.kind == "site"
        assert info.detail is not None
        assert kept in info.detail


@pytest.mark.parametrize(
    "kind_of", [("JobHeldUser", "held"), ("DependencyNeverSatisfied", "never")]
)
def test_kind_023_words_in_parentheses(kind_of: tuple[str, str]) -> None:
    word, kind = kind_of
    assert explain_reason(f"({word})") == explain_reason(word)
    assert explain_reason(word).kind == kind


@pytest.mark.parametrize(
    "spoof", ["x JobState=COMPLETED Reason=None", "x\n   JobState=COMPLETED y"]
)
@pytest.mark.parametrize("one_line", [True, False])
def test_kind_023_a_name_forges_no_state(spoof: str, one_line: bool) -> None:
    gap = " " if one_line else "\n   "
    fields = ["UserId=anna(20011) GroupId=lab(3000)", "JobState=RUNNING Reason=None", "Requeue=1"]
    data = gap.join([f"JobId=55 JobName={spoof}", *fields, "StartTime=2031-05-05T10:00:00"]) + "\n"
    (detail,) = parse_scontrol_jobs(data.encode(), names={"55": spoof}).rows
    assert detail.job.state.word == "RUNNING"
    assert detail.job.name == spoof
    (bare,) = parse_scontrol_jobs(data.encode()).rows
    assert bare.job.state.word in ("RUNNING", "?")


def test_kind_016_a_reason_of_several_lines() -> None:
    data = (
        "NodeName=n1 Arch=x86_64 CPUTot=8 State=IDLE+DRAIN\n"
        "   Reason=xid 79 fallen off the bus [root@2031-05-05T10:00:00]\n"
        "          State=IDLE see ticket 12\n\n"
    )
    (node,) = parse_scontrol_nodes(data.encode()).rows
    assert "DRAIN" in node.state.flags
    assert node.reason == "xid 79 fallen off the bus\nState=IDLE see ticket 12"
    assert node.reason_user == "root"


# Bytes that are no text (028, 029)


def test_kind_029_bytes_that_are_no_utf8() -> None:
    data = "\x1e5\x1fRUNNING\x1ftrain-é\x1f\n".encode("latin-1")
    (job,) = squeue(load("029")[1], separator=b"\x1f", record_mark=b"\x1e", stdout=data).rows
    assert job.name == "train-�"
    raw = b'{"jobs": [{"job_id": 5, "job_state": ["RUNNING"], "name": "train-\xe9"}], "errors": []}'
    (job,) = parse_squeue_json(raw).rows
    assert job.name == "train-�"


@given(st.text(max_size=40), st.text(max_size=40))
def test_kind_029_no_name_changes_a_plain_value(name: str, comment: str) -> None:
    # The mark is made once a session; no name can know it.
    mark = b"\x1eQmXcVz"
    data = "\x1f".join(["5", "RUNNING", name, comment]).encode("utf-8", "replace") + mark + b"\n"
    data += b"6\x1fPENDING\x1fx\x1fy" + mark + b"\n"
    parsed = parse_squeue(
        data, fields=("id", "state", "name", "comment"), separator=b"\x1f", record_mark=mark
    )
    assert [(job.key.id, job.state.word) for job in parsed.rows] == [
        ("5", "RUNNING"),
        ("6", "PENDING"),
    ]


_NAME = st.text(alphabet=st.sampled_from("ab|\x1f\n 0123"), max_size=20)


@given(st.lists(st.tuples(_NAME, _NAME), min_size=1, max_size=4))
def test_kind_028_no_name_costs_a_job_or_makes_one(names: list[tuple[str, str]]) -> None:
    rows = [
        (str(7_401 + n), "RUNNING", "0:0", name, line, str(7_401 + n))
        for n, (name, line) in enumerate(names)
    ]
    data = "".join("\x1f".join(row) + "\n" for row in rows).encode()
    fields = ("JobID", "State", "ExitCode", "JobName", "SubmitLine", "JobIDRaw")
    parsed = parse_sacct(data, fields=fields)
    found = [record.id.text for record in parsed.rows]
    assert len(found) == len(set(found))
    assert set(found) <= {row[0] for row in rows}
    assert parsed.bad > 0 or len(found) == len(rows)


# Words for nothing (061, 064)


@pytest.mark.parametrize("word", ["(null)", "N/A", "n/a", "none", "None", "", "Unknown"])
def test_kind_064_words_for_nothing(word: str) -> None:
    data = f"5|PENDING|{word}|{word}|{word}|{word}\n".encode()
    fields = ("id", "state", "start", "end", "nodes", "account")
    (job,) = parse_squeue(data, fields=fields, separator=b"|", record_mark=b"\n").rows
    assert (job.start, job.end, job.nodes, job.account) == (None,) * 4
    fields = ("JobID", "State", "Start", "End", "NodeList", "Account")
    (record,) = parse_sacct(data, fields=fields, separator=b"|").rows
    assert (record.start, record.end, record.nodes, record.account) == (None,) * 4


@pytest.mark.parametrize("n", range(1, 4))
def test_kind_034_errors_without_jobs_are_no_empty_queue(n: int) -> None:
    document: dict[str, Any] = json.loads(load("034")[n].stdout)
    document["jobs"] = []
    document["errors"] = [{"error": "Unspecified error", "error_number": -1}]
    parsed = parse_squeue_json(json.dumps(document).encode())
    assert parsed.rows == ()
    assert parsed.bad > 0
    assert parse_squeue_json(replace(load("034")[n]).stdout).bad == 0
