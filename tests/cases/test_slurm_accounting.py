"""What sacct prints: cases 008, 011, 024, 026."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.sacct import Accounting
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import AccountingRecord, ExitMeaning
from slurmtop.parse.slurm.exit_codes import explain_exit
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.sacct import newest_run, parse_sacct_padded
from slurmtop.parse.slurm.states import parse_state
from slurmtop.parse.slurm.times import parse_duration
from slurmtop.parse.slurm.tres import parse_count, parse_mem
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import four_lines
from tests.cases.product import GIB, sacct, squeue
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import START, FakeRunner


@values("008", "011", "024", "026")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


def _by_text(case: str, n: int = 1) -> dict[str, AccountingRecord]:
    parsed = sacct(load(case)[n])
    assert parsed.bad == 0
    return {record.id.text: record for record in parsed.rows}


# 008: 0:0 before the end


def _meaning(job: str) -> ExitMeaning:
    record = _by_text("008")[job]
    return explain_exit(record.state, record.exit_code, record.derived_exit_code, from_sacct=True)


@product("008")
def answer_008(case: Case) -> Any:
    return {
        "rows": {
            key: {"id": record.id.base, "by_uid": record.state.by_uid}
            for key, record in _by_text("008").items()
        }
    }


@prose("008/rows/6001/result", "008/rows/6002/result")
def test_case_008_no_result_before_the_end() -> None:
    for job in ("6001", "6002"):
        assert _meaning(job).ok is None
        assert _meaning(job).ended_by is None


@prose("008/rows/6003/result")
def test_case_008_success_with_a_failed_step() -> None:
    meaning = _meaning("6003")
    assert meaning.ok is True
    assert meaning.warning is not None
    assert "step" in meaning.warning
    assert "3" in meaning.warning


@prose("008/rows/6004/result")
def test_case_008_cancelled() -> None:
    meaning = _meaning("6004")
    assert (meaning.ok, meaning.ended_by) == (False, "user")
    assert "cancelled" in meaning.sentence.lower()
    assert "20017" in meaning.sentence


@prose("008/rows/6005/result")
def test_case_008_failed_with_code_1() -> None:
    meaning = _meaning("6005")
    assert meaning.ok is False
    assert "exit code 1" in meaning.sentence.lower()
    assert "failed" in meaning.sentence.lower()


@prose("008/rows/6006/result")
def test_case_008_node_failure() -> None:
    meaning = _meaning("6006")
    assert (meaning.ok, meaning.ended_by) == (False, "fault")
    assert "node" in meaning.sentence.lower()
    assert "failed" in meaning.sentence.lower()


@prose("008/rows/6007/result")
def test_case_008_cancelled_with_a_signal() -> None:
    meaning = _meaning("6007")
    assert (meaning.ok, meaning.ended_by) == (False, "user")
    assert "cancelled" in meaning.sentence.lower()
    assert "SIGTERM" in meaning.sentence


@sentence("008", "0:0 counts as success only with COMPLETED")
@pytest.mark.parametrize(
    "word",
    [
        *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "CANCELLED"),
        *("FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE"),
        *("OUT_OF_MEMORY", "REVOKED", "SOMETHING_NEW"),
    ],
)
def test_case_008_must_not_take_0_0_for_success(word: str) -> None:
    code = _by_text("008")["6001"].exit_code
    assert code is not None
    assert (code.code, code.signal) == (0, 0)
    for from_sacct in (True, False):
        assert explain_exit(parse_state(word), code, code, from_sacct=from_sacct).ok is not True
        done = explain_exit(parse_state("COMPLETED"), code, code, from_sacct=from_sacct)
        assert done.ok is True


@sentence("008", "warn on 6003 (derived exit code above the script's)")
def test_case_008_must_warn_of_a_failed_step() -> None:
    warned = [job for job in _by_text("008") if _meaning(job).warning]
    assert warned == ["6003"]


@sentence("008", 'state text is split at " by "')
def test_case_008_must_split_the_state_at_by() -> None:
    state = _by_text("008")["6004"].state
    assert (state.word, state.base, state.by_uid) == ("CANCELLED", "CANCELLED", 20_017)


# 011: ReqMem


def _memory(record: AccountingRecord) -> dict[str, Any]:
    total, each = record.req_mem_bytes, record.req_mem_each_bytes
    return {
        "id": record.id.text,
        "mem_total_gib": None if total is None else total / GIB,
        "per": record.req_mem_per,
        "each_gib": None if each is None else each / GIB,
    }


@product("011")
def answer_011(case: Case) -> Any:
    return {
        name: {"rows": {key: _memory(record) for key, record in _by_text("011", n).items()}}
        for n, name in enumerate(("first", "second"), 1)
    }


@prose("011/first/rows/6302/note")
def test_case_011_zero_is_the_whole_node() -> None:
    record = _by_text("011", 1)["6302"]
    assert record.allocated.mem_bytes == 500 * GIB
    assert record.req_mem_bytes == record.allocated.mem_bytes


@pytest.mark.parametrize("each", [1, 4, 120])
@pytest.mark.parametrize(("suffix", "count"), [("c", 16), ("n", 2)])
def test_kind_011_old_memory_is_multiplied(each: int, suffix: str, count: int) -> None:
    row = f"9|{each}G{suffix}|16|2|cpu=16,mem={each * count}G,node=2\n".encode()
    (record,) = sacct(load("011")[1], stdout=row).rows
    assert record.req_mem_bytes == each * count * GIB
    assert record.req_mem_per == {"c": "cpu", "n": "node"}[suffix]


# 024: odd numbers


@product("024")
def answer_024(case: Case) -> Any:
    return {
        "rows": {
            key: {
                "id": record.id.text,
                "total_cpu_s": record.total_cpu_s,
                "cpu_time_s": record.cpu_time_s,
                "elapsed_s": record.elapsed_s,
                "max_rss_bytes": record.max_rss_bytes,
                "disk_read_mib": record.disk_read_mib,
                "energy_j": record.energy_j,
            }
            for key, record in _by_text("024").items()
        }
    }


@prose("024/rows/7102.extern/note")
def test_case_024_zero_peak_memory_is_not_told() -> None:
    rows = _by_text("024")
    job = replace(rows["7102"], state=parse_state("OUT_OF_MEMORY"))
    facts = JobFacts(
        asked="7102",
        cluster="",
        now=START,
        history=(job, rows["7102.extern"]),
        accounting_answered=True,
    )
    told = "\n".join(four_lines(explain_job(facts), 200))
    assert "memory" in told
    assert "0 B" not in told
    assert "0.0" not in told


@sentence("024", "read 00:03.042 as 3 minutes")
def test_case_024_must_not_read_seconds_as_minutes() -> None:
    assert _by_text("024")["7101"].total_cpu_s == pytest.approx(3.042)


@sentence("024", "read 58:12.500 as hours")
def test_case_024_must_not_read_minutes_as_hours() -> None:
    assert _by_text("024")["7103"].total_cpu_s == pytest.approx(58 * 60 + 12.5)


@sentence("024", "use base 1024 for ConsumedEnergy (it is base 1000)")
def test_case_024_must_not_count_joules_in_1024() -> None:
    assert _by_text("024")["7102"].energy_j == 1_200_000
    row = b"1|00:01|00:01|00:01|00:01||||2.50K\n"
    assert sacct(load("024")[1], stdout=row).rows[0].energy_j == 2_500


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999))
def test_kind_024_durations(days: int, hours: int, minutes: int, millis: int) -> None:
    seconds, rest = divmod(millis, 1_000)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}.{rest:03}"
    total = days * 86_400 + hours * 3_600 + minutes * 60 + millis / 1_000
    assert parse_duration(f"{days}-{clock}") == pytest.approx(total)
    short = f"{minutes:02}:{seconds:02}.{rest:03}"
    assert parse_duration(short) == pytest.approx(minutes * 60 + millis / 1_000)


@pytest.mark.parametrize(("unit", "power"), [("K", 1), ("M", 2), ("G", 3), ("T", 4)])
def test_kind_024_units(unit: str, power: int) -> None:
    assert parse_mem(f"8.50{unit}") == round(8.5 * 1_024**power)
    assert parse_count(f"1.20{unit}", 1_000) == pytest.approx(1.2 * 1_000**power)


# 026: the padded form


@product("026")
def answer_026(case: Case) -> Any:
    parsed = parse_sacct_padded(case[1].stdout)
    printed = [line.split() for line in case[1].stdout.decode().splitlines()[2:]]
    assert (len(parsed.rows), parsed.bad) == (len(printed), 0)
    rows = {}
    for record, words in zip(parsed.rows, printed, strict=True):
        id = record.id
        shown = id.text.removesuffix("+") + "?" if id.cut else id.text
        rows[shown] = {
            "id": shown,
            "id_is_cut": id.cut,
            "het_offset": id.het_offset,
            "state": record.state.word,
            # The word was completed where Slurm had cut it.
            "cut": record.state.word != words[-2],
        }
    return {"rows": rows}


@sentence(
    "026",
    "do not use the padded form; if it is all there is: a trailing + without digits is a cut,"
    " +digits is a het component",
)
async def test_case_026_must_never_ask_for_the_padded_form() -> None:
    runner = FakeRunner()
    runner.on("sacct *", b"")
    accounting = Accounting(runner)
    await accounting.history("7301")
    await accounting.history("7301", since=START, duplicates=True)
    for call in runner.calls:
        assert {"-P", "-n"} <= set(call.argv)
    assert parse_job_id("12345678_10+").cut
    assert parse_job_id("7302+0").het_offset == 0
    assert not parse_job_id("7302+0").cut
    assert parse_job_id("7302+").cut


@sentence("026", "a cut id is not used as a key")
def test_case_026_must_not_use_a_cut_id_as_a_key() -> None:
    parsed = squeue(
        replace(load("001")[1], argv=("squeue", "-o", "%i|%T")),
        stdout=b"12345678_10+|RUNNING\n7301|RUNNING\n",
    )
    assert [job.key.id for job in parsed.rows] == ["7301"]
    assert parsed.bad == 1
    records = sacct(
        replace(load("008")[1], argv=("sacct", "-o", "JobID,State")),
        stdout=b"12345678_10+|FAILED\n12345678_10|RUNNING\n",
    )
    wanted = [r for r in newest_run(records.rows) if not r.id.cut]
    assert [record.state.word for record in wanted] == ["RUNNING"]
