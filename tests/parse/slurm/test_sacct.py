"""sacct's rows: real captures, user text that breaks lines, odd numbers, runs and re-used ids."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import AccountingRecord, ExitCode, JobState, LimitKind, Phase
from slurmtop.model.snapshot import Parsed
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.parse.slurm.sacct import (
    SACCT_FIELDS,
    SACCT_NAMES,
    SACCT_OPTIONAL,
    newest_run,
    parse_sacct,
    parse_sacct_padded,
)
from tests.parse.slurm.support import VERSIONS, case, expected, fixture

MIB = 1024**2
GIB = 1024**3


def columns(text: str) -> list[str]:
    return text.split(",")


CAPTURED = columns(
    "JobID,JobIDRaw,JobName,User,Account,Partition,QOS,State,ExitCode,DerivedExitCode,Submit,"
    "Eligible,Start,End,Elapsed,ElapsedRaw,Timelimit,TimelimitRaw,NNodes,NodeList,AllocTRES,"
    "ReqTRES,TRESUsageInTot,MaxRSS,MaxRSSNode,AveCPU,TotalCPU,CPUTimeRAW,WorkDir,Reason,Comment,"
    "SubmitLine"
)
LATE = columns(
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Start,End,Elapsed,Timelimit,NodeList,"
    "AllocTRES,Reason"
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def whole(parsed: Parsed[AccountingRecord]) -> tuple[AccountingRecord, ...]:
    assert (parsed.bad, parsed.first_bad) == (0, None)
    return parsed.rows


def bars(number: str, fields: str, command: int = 1) -> tuple[AccountingRecord, ...]:
    data = case(number, command)
    return whole(parse_sacct(data, fields=fields.split(","), separator=b"|"))


def by_id(rows: tuple[AccountingRecord, ...]) -> dict[str, AccountingRecord]:
    return {row.id.text: row for row in rows}


# --- what is asked for ----------------------------------------------------------------------


def test_text_stands_behind_plain_values_and_the_raw_id_ends_the_row() -> None:
    text = {"name", "workdir", "comment", "submit_line", "stdout", "stderr"}
    places = [place for place, name in enumerate(SACCT_NAMES) if name in text]
    assert places == list(range(len(SACCT_NAMES) - 7, len(SACCT_NAMES) - 1))
    assert (SACCT_FIELDS[0], SACCT_FIELDS[-1]) == (("JobID", "id"), ("JobIDRaw", "raw_id"))
    assert len(set(SACCT_NAMES)) == len(SACCT_NAMES)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_exists_or_is_optional(version: str) -> None:
    known = {name.lower() for name in fixture(version, "sacct_helpformat").decode().split()}
    optional = {name for name, _ in SACCT_OPTIONAL}
    missing = {name for name, _ in SACCT_FIELDS if name.lower() not in known}
    assert missing <= optional
    assert missing == ({"StdOut", "StdErr", "Restarts"} if version == "22.05.8" else set())
    assert set(SACCT_OPTIONAL) <= set(SACCT_FIELDS)


# --- real captures --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "count", "late"), [("22.05.8", 29, 43), ("24.11.5", 36, 53), ("26.05.5", 91, 107)]
)
def test_captures_lose_no_row(version: str, count: int, late: int) -> None:
    early = whole(parse_sacct(fixture(version, "sacct_fields"), fields=CAPTURED))
    assert len(early) == count
    assert len(whole(parse_sacct(fixture(version, "sacct_fields_late"), fields=LATE))) == late
    assert len(whole(parse_sacct_padded(fixture(version, "sacct_default")))) == count
    weird = [row for row in early if row.name.startswith("[bold red]")]
    assert weird
    for row in weird:
        assert row.name == "[bold red]we|rd, `ünï` [/] $(x)"
        assert row.submit_line is not None
        assert row.submit_line.endswith("--comment multi\nline | comment --wrap sleep 600")
        # Accounting is told the comment when the job ends.
        assert row.comment == ("multi\nline | comment" if row.state.ended else None)
        assert not row.name_unsure


def test_a_running_job_and_its_steps() -> None:
    rows = by_id(whole(parse_sacct(fixture("22.05.8", "sacct_fields"), fields=CAPTURED)))
    job, batch, step = rows["2"], rows["2.batch"], rows["2.0"]
    assert (job.name, job.user, job.account, job.partition) == (
        *("llm-pretrain", "alice", "ml", "gpu-large"),
    )
    assert (job.state.base, job.exit_code) == ("RUNNING", ExitCode(0, 0))
    assert (job.start, job.end, job.never_started) == (utc(2026, 11, 30, 4, 47, 44), None, False)
    assert (job.elapsed_s, job.cpu_time_s, job.total_cpu_s) == (13, 208, 0.0)
    assert (job.limit.kind, job.limit.seconds) == (LimitKind.SECONDS, 3_600)
    assert (job.nodes, job.node_count) == ("gpu[01-02]", 2)
    assert (job.allocated.gpus, job.requested.gpus) == (16, 16)
    assert (job.workdir, job.submit_line) == ("/shared/alice/w", "sbatch --parsable train2.sh")
    assert job.reason is None
    assert (batch.id.step, batch.raw_id, batch.user, batch.derived_exit_code) == (
        *("batch", "2.batch", None, None),
    )
    assert (step.id.step, step.name, step.allocated.gpus) == ("0", "bash", 16)
    assert rows["4"].exit_code == ExitCode(3, 0)
    assert rows["5"].exit_code == ExitCode(0, 11)
    assert rows["4"].total_cpu_s == 0.001
    assert (rows["13"].state.base, rows["13"].state.by_uid) == ("CANCELLED", 1001)
    assert (rows["10"].start, rows["10"].nodes, rows["10"].reason) == (
        None,
        None,
        "PartitionConfig",
    )
    assert rows["10"].limit.kind is LimitKind.PARTITION_DEFAULT
    assert (rows["11+1"].raw_id, rows["11+1"].id.het_offset) == ("12", 1)
    assert (rows["3_2"].raw_id, rows["3_2"].id.task) == ("18", 2)


def test_usage_of_steps() -> None:
    rows = by_id(whole(parse_sacct(fixture("24.11.5", "sacct_fields"), fields=CAPTURED)))
    assert rows["2_0.batch"].max_rss_bytes == 3540 * 1024
    assert rows["2_0.batch"].ave_cpu_s == 0.0
    assert rows["2_0"].max_rss_bytes is None
    assert rows["2_[1-19%4]"].id.tasks is not None
    assert (rows["5"].never_started, rows["5"].start) == (True, None)


def test_a_header_is_no_row() -> None:
    fields = columns("JobID,State,ExitCode,Start,End,NodeList")
    for version, count in (("22.05.8", 29), ("24.11.5", 40), ("26.05.5", 114)):
        rows = whole(parse_sacct(fixture(version, "sacct_dup"), fields=fields, separator=b"|"))
        assert len(rows) == count
    data = b"JobID|State|JobIDRaw\n7|RUNNING|7\n"
    rows = whole(parse_sacct(data, fields=["JobID", "State", "JobIDRaw"], separator=b"|"))
    assert [row.id.text for row in rows] == ["7"]
    assert parse_sacct(case("061", 3), fields=["JobID", "State"], separator=b"|").rows == ()
    assert parse_sacct(b"").rows == ()


# --- cases ----------------------------------------------------------------------------------


def test_case_008_states_and_codes() -> None:
    rows = by_id(bars("008", "JobID,State,ExitCode,DerivedExitCode"))
    assert rows["6003"].derived_exit_code == ExitCode(3, 0)
    assert rows["6004"].state == JobState("CANCELLED", "CANCELLED", by_uid=20017)
    assert rows["6007"].exit_code == ExitCode(0, 15)
    assert rows["6001"].state.base == "PENDING"


@pytest.mark.parametrize(("command", "answer"), [(1, "first"), (2, "second")])
def test_case_011_memory_asked_for(command: int, answer: str) -> None:
    rows = by_id(bars("011", "JobID,ReqMem,ReqCPUS,ReqNodes,AllocTRES", command))
    for want in expected("011")[answer]["rows"]:
        row = rows[want["id"]]
        total = want["mem_total_gib"]
        assert row.req_mem_bytes == (None if total is None else total * GIB), want
        if "per" in want:
            assert row.req_mem_per == want["per"]
            assert row.req_mem_each_bytes == want["each_gib"] * GIB
    assert rows["6302"].req_mem_each_bytes is None


def test_case_024_odd_numbers() -> None:
    rows = by_id(
        bars(
            "024",
            "JobID,TotalCPU,UserCPU,CPUTime,Elapsed,MaxRSS,AveDiskRead,AveCPU,ConsumedEnergy",
        )
    )
    for want in expected("024")["rows"]:
        row: Any = rows[str(want.pop("id"))]
        want.pop("note", None)
        for field, value in want.items():
            assert getattr(row, field) == value, field
    assert rows["7101.batch"].ave_cpu_s == 3.0
    assert rows["7101"].max_rss_bytes is None
    assert rows["7101"].energy_j == 0
    assert rows["7103"].energy_j is None


def test_case_026_padded_columns() -> None:
    rows = whole(parse_sacct_padded(case("026")))
    assert [row.state.base for row in rows] == [
        *("CANCELLED", "CANCELLED", "COMPLETED", "OUT_OF_MEMORY", "RUNNING"),
    ]
    assert [row.id.cut for row in rows] == [False, False, False, True, False]
    assert rows[4].id.het_offset == 0
    assert rows[1].id.step == "batch"
    assert (rows[0].name, rows[0].name_unsure) == ("train-lla+", True)
    assert (rows[3].name, rows[3].name_unsure) == ("sweep", False)
    assert (rows[0].allocated.cpus, rows[3].exit_code) == (64, ExitCode(0, 125))
    bare = case("026").split(b"\n", 2)[2]
    assert whole(parse_sacct_padded(bare)) == rows


def test_case_028_no_text_drops_or_splits_a_job() -> None:
    fields = columns("JobID,State,ExitCode,JobName,SubmitLine,JobIDRaw")
    rows = whole(parse_sacct(case("028", 2), fields=fields))
    wanted = expected("028")["second_command"]["rows"]
    assert [(row.id.text, row.name, row.state.base) for row in rows] == [
        (want["id"], want["name"], want["state"]) for want in wanted
    ]
    assert not any(row.name_unsure for row in rows)
    assert rows[0].submit_line is not None
    assert rows[0].submit_line.endswith('"echo hello &&\necho goodbye"')


def test_case_028_the_ambiguous_form_still_finds_all_jobs() -> None:
    rows = bars("028", "JobID,State,JobName,SubmitLine")
    assert [(row.id.text, row.state.base, row.name_unsure) for row in rows] == [
        ("7401", "RUNNING", True),
        ("7402", "COMPLETED", False),
        ("7403", "FAILED", False),
    ]
    assert rows[0].name.startswith("crazy|name")
    assert rows[1].name == "two\nlines"


def test_case_033_an_id_used_again() -> None:
    rows = bars("033", "JobID,JobName,User,State,Submit,End")
    assert len(rows) == 2
    answer = expected("033")["job"]
    for order in (rows, rows[::-1]):
        (row,) = newest_run(order)
        assert (row.id.text, row.user, row.state.base) == (
            *(answer["id"], answer["user"], answer["state"]),
        )


def test_case_036_a_row_that_lags_behind_is_read_as_it_stands() -> None:
    rows = bars("036", "JobID,State,End", 2)
    assert [(row.id.text, row.state.base, row.end) for row in rows] == [("8001", "RUNNING", None)]
    later = by_id(bars("036", "JobID,State,End", 3))
    assert later["8001"].state.phase is Phase.COMPLETED


def test_case_058_het_jobs() -> None:
    rows = bars("058", "JobID,JobIDRaw,State", 2)
    assert [(row.id.het_offset, row.raw_id) for row in rows] == [(0, "9300"), (1, "9301")]
    steps = bars("058", "JobID,State", 4)
    assert [row.id.step for row in steps] == [None, "batch", "0", None, "0"]
    assert newest_run(steps) == steps
    (waiting,) = bars("058", "JobID,JobIDRaw,State", 7)
    assert (waiting.id.text, waiting.id.het_offset) == ("9302", None)


def test_case_059_federation_siblings_are_jobs_of_their_own() -> None:
    rows = bars("059", "JobID,Cluster,State", 2)
    assert [(row.cluster, row.state.phase) for row in rows] == [
        ("fed1", Phase.RUNNING),
        ("fed2", Phase.ELSEWHERE),
        ("fed3", Phase.CANCELLED),
    ]
    assert newest_run(rows) == rows


def test_case_064_no_start_and_no_nodes() -> None:
    rows = by_id(bars("064", "JobID,State,Start,End,Elapsed,NodeList,NNodes"))
    for want in expected("064")["rows"]:
        row: Any = rows[want["id"]]
        if "nodes" in want:
            assert list(expand_hosts(row.nodes or "")) == want["nodes"]
        if "ended" in want:
            assert row.state.ended is want["ended"]
        for field in ("start", "end", "elapsed_s", "never_started"):
            if field in want:
                assert getattr(row, field) == want[field]
    assert rows["9602"].never_started is False
    assert rows["9601"].end == utc(2031, 11, 2, 10, 37, 4)


# --- runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_newest_run_of_a_requeued_job(version: str) -> None:
    job = {"22.05.8": "2", "24.11.5": "18", "26.05.5": "65"}[version]
    fields = columns("JobID,State,ExitCode,Start,End,NodeList")
    data = (
        fixture(version, "sacct_dup")
        + f"{job}|RUNNING|0:0|2026-11-30T06:00:00|Unknown|n9\n".encode()
    )
    rows = whole(parse_sacct(data, fields=fields, separator=b"|"))
    newest = [row for row in newest_run(rows) if row.id.base == job]
    assert [(row.id.text, row.nodes) for row in newest][-1] == (job, "n9")
    assert [row.id.step for row in newest] == [None]
    assert len([row for row in rows if row.id.base == job]) > 1


def test_steps_stay_with_their_run() -> None:
    data = (
        b"5|REQUEUED|2031-05-05T10:00:00\n5.batch|CANCELLED|2031-05-05T10:00:01\n"
        b"5|RUNNING|2031-05-05T11:00:00\n5.batch|RUNNING|2031-05-05T11:00:01\n5.0|RUNNING|Unknown\n"
    )
    rows = whole(parse_sacct(data, fields=["JobID", "State", "Submit"], separator=b"|"))
    assert newest_run(rows) == rows[2:]
    assert newest_run(rows[1:2]) == rows[1:2]
    assert newest_run(()) == ()


# --- user text that breaks rows -------------------------------------------------------------

PIECES = ["\n", "\x1f", "|", "7401", "7402\n", "FAILED", "\x1f7401\n", "0:0", "x", "ü"]
TEXT = st.text(max_size=12) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
SECRET = "\x1fQz7\x1f"


def rows_with(names: list[str], lines: list[str], separator: str) -> Parsed[AccountingRecord]:
    data = "".join(
        separator.join([str(7401 + place), "RUNNING", "0:0", name, lines[place], str(7401 + place)])
        + "\n"
        for place, name in enumerate(names)
    ).encode("utf-8", "replace")
    parsed = parse_sacct(
        data,
        fields=["JobID", "State", "ExitCode", "JobName", "SubmitLine", "JobIDRaw"],
        separator=separator.encode(),
    )
    assert [row.id.text for row in parsed.rows] == [str(7401 + n) for n in range(len(names))]
    assert {row.state.base for row in parsed.rows} == {"RUNNING"}
    assert {row.exit_code for row in parsed.rows} == {ExitCode(0, 0)}
    assert parsed.bad == 0
    return parsed


@given(
    names=st.lists(TEXT, min_size=1, max_size=5),
    lines=st.lists(TEXT, min_size=5, max_size=5),
    separator=st.sampled_from([SECRET, "\x1f"]),
)
def test_a_separator_that_a_name_does_not_hold(
    names: list[str], lines: list[str], separator: str
) -> None:
    if separator == "\x1f":
        names = [name.replace("\x1f", "~") for name in names]
        lines = [line.replace("\x1f", "~") for line in lines]
    parsed = rows_with(names, lines, separator)
    shown = [name.encode("utf-8", "replace").decode() for name in names]
    assert [row.name for row in parsed.rows] == shown
    assert not any(row.name_unsure for row in parsed.rows)


@given(names=st.lists(TEXT, min_size=1, max_size=5), lines=st.lists(TEXT, min_size=5, max_size=5))
def test_a_separator_in_a_name_shifts_no_plain_value(names: list[str], lines: list[str]) -> None:
    names = [name.replace("\n", "~") for name in names]
    lines = [line.replace("\n", "~") for line in lines]
    for row, name, line in zip(rows_with(names, lines, "\x1f").rows, names, lines, strict=False):
        assert row.name_unsure == ("\x1f" in name + line)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    for fields in (SACCT_NAMES, ("id", "state", "name"), ("id",), ("id", "name", "raw_id")):
        for row in parse_sacct(data, fields=fields, separator=b"|").rows:
            assert row.id.base
    parse_sacct_padded(data)


@given(
    st.lists(
        st.sampled_from(
            ["7401", "|", "\n", "RUNNING", "7401.batch", "JobID", "4Gc", "0:0", "+", "?"]
        )
        | st.text(max_size=3),
        max_size=40,
    ).map("".join)
)
def test_any_mixture_of_known_pieces(text: str) -> None:
    data = text.encode("utf-8", "replace")
    fields = ("id", "state", "req_mem", "disk_read_mib", "energy_j", "max_rss_bytes", "raw_id")
    for row in newest_run(parse_sacct(data, fields=fields, separator=b"|").rows):
        assert row.id.base
    assert parse_sacct_padded(data).rows is not None


def test_a_bad_row_costs_no_neighbour() -> None:
    fields = ["JobID", "State", "JobName", "JobIDRaw"]
    data = b"7|RUNNING|a|7\n8|RUNNING\n9|FAILED|c|9\n"
    parsed = parse_sacct(data, fields=fields, separator=b"|")
    assert [row.id.text for row in parsed.rows] == ["7", "9"]
    assert parsed.bad == 1
    assert parsed.first_bad is not None
    assert parsed.first_bad.excerpt.startswith("8|RUNNING")
