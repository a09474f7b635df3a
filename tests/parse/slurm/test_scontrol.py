"""scontrol's text: real captures, user text that forges fields, nodes, settings, ping."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import ExitCode, JobDetail, LimitKind, Phase, TimeLimit
from slurmtop.model.node import Usable
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.scontrol import (
    parse_ping,
    parse_scontrol_config,
    parse_scontrol_jobs,
    parse_scontrol_nodes,
)
from tests.parse.slurm.support import VERSIONS, case, expected, fixture

WEIRD = '[bold red]we|rd, "ünï" [/] $(x)'


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def jobs(version: str, name: str) -> tuple[JobDetail, ...]:
    parsed = parse_scontrol_jobs(fixture(version, name))
    assert (parsed.bad, parsed.first_bad) == (0, None)
    return parsed.rows


def one(data: bytes, **more: object) -> JobDetail:
    parsed = parse_scontrol_jobs(data, **more)  # type: ignore[arg-type]
    assert (len(parsed.rows), parsed.bad) == (1, 0), parsed.first_bad
    return parsed.rows[0]


# --- real captures --------------------------------------------------------------------------


def test_a_running_job_of_22_05_with_details() -> None:
    (detail,) = jobs("22.05.8", "scontrol_job")
    job = detail.job
    assert (job.key.id, job.raw_id, job.name, job.user, detail.user_id) == (
        *("2", "2", "llm-pretrain", "alice", 1001),
    )
    assert (job.state.base, job.reason, job.dependency) == ("RUNNING", None, None)
    assert (job.account, job.qos, job.partitions) == ("ml", "normal", ("gpu-large",))
    assert (job.priority, job.restarts) == (4_294_901_758, 0)
    assert (detail.requeueable, detail.batch, detail.batch_host) == (True, True, "gpu01")
    assert (detail.exit_code, detail.derived_exit_code) == (ExitCode(0, 0), ExitCode(0, 0))
    assert detail.run_time_s == 14
    assert job.limit == TimeLimit(LimitKind.SECONDS, 3_600)
    assert job.start == utc(2026, 11, 30, 4, 47, 44)
    assert job.end == utc(2026, 11, 30, 5, 47, 44)
    assert (job.nodes, job.node_count, detail.nodes_max) == ("gpu[01-02]", 2, None)
    assert (job.tres.gpus, job.tres.cpus, job.tres.mem_bytes) == (16, 16, 1600 * 1024**2)
    assert (detail.excluded_nodes, detail.requested_nodes) == (None, None)
    assert job.command == "/shared/alice/w/train2.sh"
    assert job.workdir == "/shared/alice/w"
    assert job.stdout == job.stderr == "/shared/alice/w/logs/pretrain_2.log"
    assert job.comment is None
    fields = dict(detail.fields)
    assert fields["AllocNode:Sid"] == "localhost:1454"
    assert fields["CPUs/Task"] == "1"
    assert fields["ReqB:S:C:T"] == "0:0:*:*"
    assert fields["MinMemoryCPU"] == "100M"
    assert fields["JOB_GRES"] == "gpu:h100:16"
    assert fields["GRES"] == "gpu:h100:8(IDX:0-7)"
    assert fields["Nodes"] == "gpu[01-02]"
    assert fields["TresPerNode"] == "gres:gpu:h100:8"


@pytest.mark.parametrize(
    ("version", "id", "stdout"), [("24.11.5", "18", "_18.log"), ("26.05.5", "65", "_65.log")]
)
def test_a_running_job_of_newer_releases(version: str, id: str, stdout: str) -> None:
    (detail,) = jobs(version, "scontrol_job")
    job = detail.job
    assert (job.key.id, job.name, job.state.base) == (id, "llm-pretrain", "RUNNING")
    assert detail.requested.gpus == detail.allocated.gpus == job.tres.gpus == 4
    assert job.stdout == job.stderr == f"/shared/alice/w/logs/pretrain{stdout}"
    assert dict(detail.fields)["MinMemoryNode"] == "1000M"
    line = "sbatch --parsable train1.sh" if version == "26.05.5" else None
    assert detail.submit_line == line


@pytest.mark.parametrize(
    ("version", "base"), [("22.05.8", "3"), ("24.11.5", "19"), ("26.05.5", "66")]
)
def test_arrays(version: str, base: str) -> None:
    rest, *tasks = jobs(version, "scontrol_job_array")
    assert rest.job.key.id == f"{base}_[*]"
    assert rest.job.id.tasks is not None
    assert (rest.job.id.tasks.count, rest.job.id.tasks.throttle) == (16, 4)
    assert (rest.job.state.base, rest.job.reason) == ("PENDING", "JobArrayTaskLimit")
    assert rest.job.stdout == f"/shared/alice/w/slurm-{base}_%a.out"
    assert (rest.job.eligible, rest.job.start, rest.job.nodes) == (None, None, None)
    assert sorted(task.job.key.id for task in tasks) == [f"{base}_{n}" for n in range(4)]
    assert {task.job.array_id for task in tasks} == {base}
    assert {task.job.tres.gpus for task in tasks} == {1}
    assert all(task.job.stdout == f"/shared/alice/w/slurm-{task.job.id.text}.out" for task in tasks)


@pytest.mark.parametrize(
    ("version", "leader", "state"),
    [("22.05.8", 11, "RUNNING"), ("24.11.5", 27, "PENDING"), ("26.05.5", 74, "PENDING")],
)
def test_het_jobs(version: str, leader: int, state: str) -> None:
    first, second = jobs(version, "scontrol_job_het")
    assert [first.job.key.id, second.job.key.id] == [f"{leader}+0", f"{leader}+1"]
    assert [first.job.raw_id, second.job.raw_id] == [str(leader), str(leader + 1)]
    assert {first.job.het_leader, second.job.het_leader} == {str(leader)}
    assert {first.job.name, second.job.name} == {"het"}
    assert {first.job.state.base, second.job.state.base} == {state}
    assert dict(first.fields).get("HetJobIdSet") is None
    assert (first.job.node_count, first.nodes_max) == (1, None)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["scontrol_job_weird", "scontrol_job_requeuehold"])
def test_odd_user_text(version: str, name: str) -> None:
    (detail,) = jobs(version, name)
    assert detail.job.name == WEIRD
    assert detail.job.comment == "multi\nline | comment"
    assert detail.job.workdir == "/shared/alice/w"
    assert detail.job.stdout == f"/shared/alice/w/slurm-{detail.job.raw_id}.out"
    assert (detail.submit_line is not None) == (version == "26.05.5")
    if detail.submit_line is not None:
        assert detail.submit_line.endswith("--comment multi\nline | comment --wrap sleep 600")
    if name.endswith("requeuehold"):
        assert (detail.job.state.base, detail.job.priority) == ("PENDING", 0)
        assert detail.job.reason == "job requeued in held state"
        assert detail.job.restarts == 1


@pytest.mark.parametrize(
    ("version", "reason", "exit_code"),
    [
        ("22.05.8", None, ExitCode(0, 15)),
        ("24.11.5", "BeginTime", ExitCode(0, 0)),
        ("26.05.5", "BeginTime", ExitCode(0, 0)),
    ],
)
def test_a_requeued_job(version: str, reason: str | None, exit_code: ExitCode) -> None:
    (detail,) = jobs(version, "scontrol_job_requeued")
    assert (detail.job.state.base, detail.job.reason) == ("PENDING", reason)
    assert (detail.job.restarts, detail.exit_code) == (1, exit_code)
    assert detail.job.nodes is None
    assert detail.job.tres.gpus == (16 if version == "22.05.8" else 4)
    assert detail.allocated.gpus is None


@pytest.mark.parametrize(("version", "count"), [("22.05.8", 20), ("24.11.5", 35), ("26.05.5", 20)])
def test_one_line_form(version: str, count: int) -> None:
    rows = jobs(version, "scontrol_jobs_oneline")
    assert len(rows) == count
    by_name = {row.job.name: row for row in rows}
    assert by_name["llm-pretrain"].job.command == (
        f"/shared/alice/w/train{2 if version == '22.05.8' else 1}.sh"
    )
    assert by_name[WEIRD].job.comment == "multi\nline | comment"
    assert by_name[WEIRD].job.state.base == "RUNNING"
    assert by_name["norequeue"].requeueable is False
    assert by_name["too-big"].job.state.base in ("PENDING", "FAILED")
    assert by_name["too-big"].requested.gpus == 512
    # A block and a line of the same job say the same.
    for name in ("scontrol_job_weird", "scontrol_job_array", "scontrol_job_het"):
        for block in jobs(version, name):
            line = next(row for row in rows if row.job.raw_id == block.job.raw_id)
            assert line.job == block.job
            assert line.fields == block.fields


# --- cases ----------------------------------------------------------------------------------


def test_case_023_reasons_and_values_with_blanks() -> None:
    answer = expected("023")["job"]
    detail = one(case("023"))
    job = detail.job
    assert (job.key.id, job.state.base, job.reason) == (
        *(answer["id"], answer["state"], answer["reason"]),
    )
    assert (job.nodes, job.start) == (None, None)
    assert list(job.partitions) == answer["partitions"]
    assert job.tres.gpus == answer["gpus"]
    assert (job.command, job.workdir) == (answer["command"], answer["workdir"])
    assert (job.node_count, detail.nodes_max) == (4, None)
    assert explain_reason(job.reason or "") == explain_reason(f"({answer['reason']})")


def test_case_009_part_of_a_block_is_enough() -> None:
    detail = one(case("009", 2))
    assert (detail.job.name, detail.job.state.base) == ("prep", "FAILED")
    assert detail.exit_code == ExitCode(0, 53)
    assert detail.job.reason == "RaisedSignal:53(Real-time signal 19)"
    assert detail.job.stdout == "/scratch/anna/run9/logs/6100.out"
    assert detail.job.stderr == "/scratch/anna/run9/logs/6100.err"


def test_a_range_of_nodes() -> None:
    detail = one(case("023").replace(b"NumNodes=4-4", b"NumNodes=2-8"))
    assert (detail.job.node_count, detail.nodes_max) == (2, 8)


# --- text that forges -----------------------------------------------------------------------

PARTIAL = "x\n   JobState=COMPLETED Reason=None Dependency=(null)\n   ExitCode=0:0"
SOME_MORE = "x\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   JobState=COMPLETED Reason=None"
WHOLE = (
    "x\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   Priority=1 Nice=0 Account=a QOS=q\n"
    "   JobState=COMPLETED Reason=None Dependency=(null)\n   Requeue=0 Restarts=7 ExitCode=0:0\n"
    "   RunTime=00:00:00 SubmitTime=2026-11-30T04:47:44\n   StartTime=Unknown EndTime=Unknown\n"
    "   Partition=p NumNodes=1\n   Command=/bin/true"
)
TAIL = "\n   WorkDir=/evil\n   Comment=x"


def forged(version: str, name: str, *, in_line: bool = False, comment: str = "c") -> bytes:
    """A real record with another name and comment; 26.05 repeats both in SubmitLine."""
    text = fixture(version, "scontrol_job_weird").decode()
    text = text.replace("multi\nline | comment", comment).replace(WEIRD, "\0")
    if in_line:
        lines = [line.removeprefix("   ") for line in text.rstrip().split("\n")]
        text = " ".join(lines) + "\n"
    return text.replace("\0", name).encode("utf-8", "surrogatepass")


def raw_id(version: str) -> str:
    return {"22.05.8": "6", "24.11.5": "22", "26.05.5": "69"}[version]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("in_line", [False, True])
@pytest.mark.parametrize("name", [PARTIAL, SOME_MORE, WHOLE, WHOLE + TAIL, "x JobState=COMPLETED"])
def test_with_the_name_known_nothing_can_be_forged(version: str, in_line: bool, name: str) -> None:
    data = forged(version, name, in_line=in_line)
    detail = one(data, names={raw_id(version): name})
    assert (detail.job.name, detail.job.name_unsure) == (name, False)
    assert (detail.job.state.base, detail.job.user) == ("RUNNING", "alice")
    assert (detail.requeueable, detail.job.restarts) == (True, 0)
    assert detail.job.workdir == "/shared/alice/w"
    assert detail.job.stdout == f"/shared/alice/w/slurm-{raw_id(version)}.out"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("in_line", [False, True])
@pytest.mark.parametrize("name", [PARTIAL, SOME_MORE, "x JobState=COMPLETED Partition=[/]"])
def test_lines_in_a_name_lose_even_where_it_is_not_known(
    version: str, in_line: bool, name: str
) -> None:
    detail = one(forged(version, name, in_line=in_line))
    assert detail.job.name == name
    assert (detail.job.state.base, detail.job.user) == ("RUNNING", "alice")
    assert detail.job.partitions == ("gpu-large",)
    assert detail.job.nodes is not None


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5"])
def test_a_whole_section_in_a_name_loses_where_it_can_be_told(version: str) -> None:
    detail = one(forged(version, WHOLE))
    assert (detail.job.state.base, detail.job.user) == ("RUNNING", "alice")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("in_line", [False, True])
def test_what_cannot_be_told_is_unknown_and_never_the_forgery(version: str, in_line: bool) -> None:
    for data in (
        forged(version, WHOLE + TAIL, in_line=in_line),
        forged(version, "n", comment=WHOLE, in_line=in_line),
    ):
        detail = one(data)
        assert detail.job.name_unsure
        assert detail.job.state.base is None
        assert detail.job.state.phase is Phase.UNKNOWN
        assert (detail.job.restarts, detail.requeueable) == (None, None)
        # What all copies agree on is still known.
        assert detail.exit_code == ExitCode(0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_in_a_comment_lose(version: str) -> None:
    comment = "c\n   JobState=COMPLETED Reason=None\n   WorkDir=/evil\n   StdOut=/evil\n   QOS=x"
    detail = one(forged(version, "n", comment=comment))
    assert detail.job.state.base == "RUNNING"
    assert detail.job.qos == "normal"
    assert detail.job.stdout == f"/shared/alice/w/slurm-{raw_id(version)}.out"
    # The comment stands in SubmitLine too since 26.05, in front of the real work directory.
    assert detail.job.workdir == (None if version == "26.05.5" else "/shared/alice/w")


def test_a_network_option_forges_nothing() -> None:
    data = fixture("24.11.5", "scontrol_job_requeued").replace(
        b"Network=(null)", b"Network=x BatchHost=evil JobState=COMPLETED DerivedExitCode=9:0"
    )
    detail = one(data)
    assert (detail.job.state.base, detail.batch_host) == ("PENDING", None)
    assert detail.derived_exit_code is None
    assert detail.job.command == "/shared/alice/w/train1.sh"


def test_a_record_in_a_name_is_no_record() -> None:
    name = "x\n\nJobId=99 JobName=evil\n   JobState=COMPLETED"
    data = forged("24.11.5", name)
    assert one(data, names={"22": name}).job.name == name
    detail = one(data)
    assert (detail.job.key.id, detail.job.state.base) == ("22", "RUNNING")


def test_the_same_id_twice_leaves_what_differs_unknown() -> None:
    first = fixture("24.11.5", "scontrol_job")
    detail = one(first + b"\n" + first.replace(b"JobState=RUNNING", b"JobState=FAILED"))
    assert detail.job.state.base is None
    assert detail.job.user == "alice"


# fmt: off
PIECES = st.sampled_from([
    PARTIAL, SOME_MORE, WHOLE, TAIL, "\n   ", "\n", " ", "JobState=COMPLETED", "Command=", "a=b",
    "SubmitLine=", "WorkDir=/e", "UserId=root(0) GroupId=root(0)", "JobState=", "\ud800", "ü", "x",
])
# fmt: on
SOUP = st.lists(PIECES | st.text(max_size=4), max_size=6).map("".join)


@given(
    version=st.sampled_from(VERSIONS),
    in_line=st.booleans(),
    name=SOUP,
    comment=SOUP,
)
def test_no_text_ever_makes_a_running_job_completed(
    version: str, in_line: bool, name: str, comment: str
) -> None:
    data = forged(version, name, in_line=in_line, comment=comment)
    for names in (
        None,
        {raw_id(version): name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")},
    ):
        parsed = parse_scontrol_jobs(data, names=names)
        assert len(parsed.rows) == 1
        allowed = ("RUNNING",) if names else ("RUNNING", None)
        assert parsed.rows[0].job.state.base in allowed
        assert parsed.rows[0].job.user in (("alice",) if names else ("alice", ""))


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    for text in (data, b"JobId=1 JobName=" + data, b"NodeName=" + data):
        assert parse_scontrol_jobs(text).rows is not None
        assert parse_scontrol_nodes(text).rows is not None
        parse_scontrol_config(text)
        parse_ping(text)


@given(
    st.lists(
        st.sampled_from(
            ["JobId=7 ", "JobName=x", "\n   ", "UserId=a(1) GroupId=a(1)", "JobState=FAILED"]
        )
        | st.sampled_from(
            ["ArrayJobId=7 ", "ArrayTaskId=", "1-3%2 ", "Reason=", "StdOut=", "=", "\n"]
        )
        | st.sampled_from(["NodeName=n1 ", "State=", "IDLE+DRAIN", "Gres=gpu:8(S:0", "TRES=cpu=1,"])
        | st.text(max_size=3),
        max_size=30,
    ).map("".join)
)
def test_any_mixture_of_known_pieces(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    for detail in parse_scontrol_jobs(data).rows:
        assert detail.job.id.base
    for node in parse_scontrol_nodes(data).rows:
        assert node.name


def test_work_grows_with_the_bytes_only() -> None:
    # Ten thousand blanks behind a value once took a peer's pattern for minutes.
    base = fixture("26.05.5", "scontrol_job_weird")
    blanks = b" " * 10_000
    for data in (
        base.replace(b"\n", blanks + b"\n"),
        base + b"JobId=9 JobName=" * 10_000,
        base + (b"\n   UserId=a(1) GroupId=a(1)" * 5_000),
        base.replace(b"WorkDir=", b"WorkDir=x\n   SubmitLine=" * 5_000),
        b"NodeName=n State=IDLE Reason=" + b"[a@" * 30_000,
    ):
        parse_scontrol_jobs(data)
        parse_scontrol_jobs(data, names={"69": WEIRD})
        parse_scontrol_nodes(data)
    spaced = one(base.replace(b"\n   ", blanks + b"\n   "))
    assert (spaced.job.state.base, spaced.job.workdir) == ("RUNNING", "/shared/alice/w")


def test_a_record_without_fields_is_counted_and_costs_no_neighbour() -> None:
    good = fixture("24.11.5", "scontrol_job")
    parsed = parse_scontrol_jobs(good + b"\nJobId=98 JobName=cut\n")
    assert [row.job.key.id for row in parsed.rows] == ["18"]
    assert parsed.bad == 1
    assert parsed.first_bad is not None
    assert parsed.first_bad.excerpt.startswith("JobId=98")
    for data in (b"", b"No jobs in the system\n", b"Job 98_99 not found\n"):
        empty = parse_scontrol_jobs(data)
        assert (empty.rows, empty.bad) == ((), 0)


# --- nodes, settings, ping ------------------------------------------------------------------


def test_nodes_of_22_05() -> None:
    parsed = parse_scontrol_nodes(fixture("22.05.8", "scontrol_node"))
    assert [node.name for node in parsed.rows] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    node = parsed.rows[0]
    assert (node.state.base, node.partitions) == ("ALLOCATED", ("gpu-large", "preempt"))
    assert node.gpus() == (8, 8)
    assert (node.cpus_alloc, node.cpus_total, node.cpus_idle) == (8, 8, None)
    assert (node.mem_total_mib, node.mem_free_mib, node.cpu_load) == (16_000, 20_080, 1.26)
    assert (node.reason, node.reason_user, node.reason_at) == (None, None, None)
    assert dict(node.fields)["OS"] == "Linux 6.18.44-fc-v657 #1 SMP PREEMPT_DYNAMIC @0"


@pytest.mark.parametrize("version", ["24.11.5", "26.05.5"])
@pytest.mark.parametrize("name", ["scontrol_node", "scontrol_node_oneline"])
def test_nodes_of_newer_releases(version: str, name: str) -> None:
    first, second, *_ = parse_scontrol_nodes(fixture(version, name)).rows
    assert (first.state.base, first.gpus(), first.reason) == ("MIXED", (8, 8), None)
    assert (second.state.base, second.state.flags) == ("DOWN", ("NOT_RESPONDING",))
    assert second.reason == "xid 79 fallen off the bus"
    assert (second.mem_free_mib, second.cpu_load) == (None, None)
    assert second.gpus() == (8, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drained_node(version: str) -> None:
    (node,) = parse_scontrol_nodes(fixture(version, "scontrol_node_drained")).rows
    assert "DRAIN" in node.state.flags
    assert node.state.usable is Usable.NO
    assert (node.reason, node.reason_user) == ("slurmtop: hung job", "root")
    assert node.reason_at is not None
    assert node.reason_at.date() == utc(2026, 11, 30).date()


@pytest.mark.parametrize("version", VERSIONS)
def test_block_and_line_of_a_node_say_the_same(version: str) -> None:
    blocks = parse_scontrol_nodes(fixture(version, "scontrol_node")).rows
    lines = parse_scontrol_nodes(fixture(version, "scontrol_node_oneline")).rows
    assert blocks == lines


def test_a_reason_over_several_lines_and_gres_in_use() -> None:
    (node,) = parse_scontrol_nodes(
        b"NodeName=gpu07 Arch=x86_64 CoresPerSocket=64\n"
        b"   CPUAlloc=8 CPUTot=64 CPULoad=N/A\n   Gres=gpu:h100:8(S:0-1)\n"
        b"   GresUsed=gpu:h100:3(IDX:0-1,5)\n   FreeMem=N/A\n   State=IDLE+DRAIN+NEWFLAG\n"
        b"   Partitions=a,b \n   Reason=xid 79 State=FAKE [root@2031-05-05T10:00:00]\n"
        b"          see ticket 12\n          and call\n   Comment=rack 7\n\n"
    ).rows
    assert node.reason == "xid 79 State=FAKE\nsee ticket 12\nand call"
    assert (node.reason_user, node.reason_at) == ("root", utc(2031, 5, 5, 10))
    assert node.gres is not None
    assert node.gres[0].index == (0, 1, 5)
    assert node.gpus() == (8, 3)
    assert node.state.base == "IDLE"
    assert node.state.unknown_flags == ("NEWFLAG",)
    assert dict(node.fields)["Comment"] == "rack 7"
    assert node.cpu_load is None


def test_a_node_without_state_is_counted() -> None:
    parsed = parse_scontrol_nodes(b"NodeName=a Arch=x\n\nNodeName=b State=IDLE\n")
    assert [node.name for node in parsed.rows] == ["b"]
    assert parsed.bad == 1
    assert parse_scontrol_nodes(b"Node nosuch not found\n").rows == ()


@pytest.mark.parametrize(
    ("version", "cluster"), [("22.05.8", "mini"), ("24.11.5", "trixie"), ("26.05.5", "sid")]
)
def test_settings(version: str, cluster: str) -> None:
    found = parse_scontrol_config(fixture(version, "scontrol_config"))
    assert found["ClusterName"] == cluster
    assert found["MessageTimeout"] == "10 sec"
    assert found["MinJobAge"].endswith(" sec")
    assert len(found) > 190


def test_ping() -> None:
    for version in VERSIONS:
        assert parse_ping(fixture(version, "scontrol_ping")) == (("primary", "login1", True),)
    assert parse_ping(case("043", 3)) == (("primary", "ctl1", False),)
    assert parse_ping(b"Slurmctld(primary) at ctl1 is UP\nSlurmctld(backup) at ctl2 is DOWN\n") == (
        ("primary", "ctl1", True),
        ("backup", "ctl2", False),
    )
    assert parse_ping(b"Slurmctld(primary/backup) at ctl1/ctl2 are UP/DOWN\n") == (
        *(("primary", "ctl1", True), ("backup", "ctl2", False)),
    )
    assert parse_ping(b"") == ()
