"""DCGM and its exporter: cases 018, 019, 021, 023, 026, 028; processes: 013, 014."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slurmtop.model.gpu import QUIET_ANSWERS, Answer, GpuSample, NodeGpus, ratio_text
from slurmtop.parse.gpu.compute_apps import parse_compute_apps, parse_pmon
from slurmtop.parse.gpu.dcgm import newest, parse_dmon, with_uuids, without_profiling
from slurmtop.parse.gpu.exporter import parse_prometheus, read_exporter
from slurmtop.parse.gpu.failures import explain_gpu_failure
from slurmtop.triage.gpu_work import JobLook, JobWork, WorkVerdict, judge_work
from slurmtop.triage.xid import XidLook, XidSeen, look_at_xids, xid_meaning
from tests.cases.gpu_product import UUID, fields
from tests.cases.support import GPU, Case, Step
from tests.fakes import START


@GPU.values("013", "014", "019", "021", "023", "026", "028")
def test_values(path: str, wanted: Any) -> None:
    assert GPU.found(path) == wanted


def _number(uuid: str | None) -> int | None:
    return next((n for n in range(8) if UUID.format(n) == uuid), None)


@GPU.product("013")
def answer_013(case: Case) -> Any:
    found = parse_compute_apps(case[1].stdout, fields(case[1]))
    assert found.bad == 0
    return {
        "processes": {
            str(place): {
                "gpu": _number(one.gpu_uuid),
                "pid": one.pid,
                "name": one.name,
                "mem_mib": one.mem_mib,
            }
            for place, one in enumerate(found.rows, 1)
        }
    }


@GPU.sentence("013", "split 2 fields from the left and 1 from the right")
def test_case_013_must_split_from_both_ends() -> None:
    line = f"{UUID.format(0)}, 7, a, b,, c, 9, 512\n".encode()
    (one,) = parse_compute_apps(line).rows
    assert (one.pid, one.name, one.mem_mib) == (7, "a, b,, c, 9", 512)


@GPU.product("014")
def answer_014(case: Case) -> Any:
    header_only = parse_compute_apps(case[1].stdout, fields(case[1]), header=True)
    nothing = parse_compute_apps(case[2].stdout, fields(case[2]))
    first, second = parse_pmon(case[3].stdout).rows
    assert (header_only.bad, nothing.bad) == (0, 0)
    return {
        "results": [
            list(header_only.rows),
            list(nothing.rows),
            [
                {"gpu": first.gpu_index, "pid": first.pid, "sm": first.sm_percent}
                | {"name": first.name},
                {"gpu": second.gpu_index, "pid": second.pid, "sm": second.sm_percent},
            ],
        ]
    }


def _explained(step: Step) -> Any:
    return explain_gpu_failure("dcgmi", step.argv[1], step.exit, step.stdout, step.stderr)


@GPU.sentence("018", "no error banner for the user")
@pytest.mark.parametrize("n", [1, 2])
def test_case_018_must_be_quiet(n: int) -> None:
    answer, _ = _explained(GPU.load("018")[n])
    assert answer in (Answer.NO_ENGINE, Answer.NO_TOOL)
    assert answer in QUIET_ANSWERS


@GPU.sentence("018", "retry dcgmi each cycle")
@pytest.mark.parametrize("n", [1, 2])
def test_case_018_must_not_try_again(n: int) -> None:
    _, failure = _explained(GPU.load("018")[n])
    assert failure.retry_after_s == math.inf


@GPU.product("019")
def answer_019(case: Case) -> Any:
    (gpu,) = parse_dmon(case[3].stdout).rows
    return {"third": {"gpu": gpu.dcgm_id, "util": gpu.util_percent, "power": gpu.power_w}}


@GPU.sentence("019", "drop the 1001–1012 fields and keep 203/155")
@pytest.mark.parametrize("n", [1, 2])
def test_case_019_must_ask_for_the_rest(n: int) -> None:
    answer, _ = _explained(GPU.load("019")[n])
    assert answer is Answer.NO_PROFILING
    assert without_profiling((203, 1001, 1002, 1004, 1012, 155)) == (203, 155)


@GPU.sentence("019", 'say "no profiling counters on this node" once')
@pytest.mark.parametrize("n", [1, 2])
def test_case_019_must_say_it_once(n: int) -> None:
    answer, failure = _explained(GPU.load("019")[n])
    assert "no profiling counters on gpu05" in failure.sentence
    assert (answer in QUIET_ANSWERS, failure.retry_after_s) == (True, math.inf)


def _verdict(nodes: list[NodeGpus], gpus: int, log_silent_s: float | None) -> WorkVerdict:
    looks = [JobLook(START + timedelta(minutes=at), tuple(nodes), gpus) for at in (0, 5)]
    return judge_work(looks, log_silent_s=log_silent_s)


@GPU.sentence("019", "hang rule uses the weaker form")
def test_case_019_must_only_suspect_without_profiling() -> None:
    weak = [
        GpuSample(index=n, util_percent=100, power_w=150, power_limit_w=700, mem_used_mib=70_000)
        for n in range(4)
    ]
    node = NodeGpus(host="gpu05", samples=tuple(weak))
    assert _verdict([node], 4, 600).state is JobWork.POSSIBLE_HANG
    assert _verdict([node], 4, None).state is JobWork.UNKNOWN


def _looks() -> tuple[XidLook, XidLook]:
    case = GPU.load("021")
    first = look_at_xids(read_exporter("gpu05", case[1].stdout).samples, START)
    later = START + timedelta(days=2)
    return first, look_at_xids(read_exporter("gpu05", case[2].stdout).samples, later, first)


def _xids(found: tuple[XidSeen, ...]) -> dict[str, Any]:
    return {
        str(place): {
            "gpu": _number(one.gpu),
            "xid": one.code,
            "cls": xid_meaning(one.code).cls.value,
        }
        for place, one in enumerate(found, 1)
    }


@GPU.product("021")
def answer_021(case: Case) -> Any:
    del case
    first, later = _looks()
    assert first.old == ()
    return {
        "t0": {"new": _xids(first.new)},
        "t2d": {"new": _xids(later.new), "old": _xids(later.old)},
    }


@GPU.sentence("021", 'first sight of a non-zero value: "last Xid 31, time unknown"')
def test_case_021_must_not_date_what_stood_there() -> None:
    assert [one.says for one in _looks()[0].new] == ["last Xid 31, time unknown"]


@GPU.sentence("021", "unchanged value = no new event")
def test_case_021_must_not_tell_the_same_again() -> None:
    later = _looks()[1]
    same = read_exporter("gpu05", GPU.load("021")[2].stdout).samples
    again = look_at_xids(same, later.at + timedelta(minutes=1), later)
    assert (again.new, again.seen) == ((), later.seen)


@GPU.sentence("021", "the value is a code, not a count")
def test_case_021_must_read_a_code() -> None:
    assert [one.code for one in _looks()[1].seen] == [31, 79]
    assert all(isinstance(one.code, int) for one in _looks()[1].seen)


@GPU.sentence("021", "blame the present job for a value seen before it started")
def test_case_021_must_not_blame_a_later_job() -> None:
    later = _looks()[1]
    started = later.at - timedelta(hours=1)
    (old,) = later.old
    (new,) = later.new
    assert old.during(started) is False
    assert new.during(started) is None, "it may have come before this job"
    assert new.during(START) is True


@GPU.product("023")
def answer_023(case: Case) -> Any:
    gpus = {gpu.dcgm_id: gpu for gpu in read_exporter("gpu05", case[1].stdout).samples}
    return {
        "values": {
            "fb_used gpu0": gpus[0].mem_used_mib,
            "fb_used gpu1": gpus[1].mem_used_mib,
            "temp gpu0": gpus[0].temp_c,
            "sm_active gpu0": gpus[0].sm_active,
            "sm_active gpu1": gpus[1].sm_active,
            "pcie_rx gpu0": gpus[0].pcie_rx_bytes_s,
            "power gpu0": gpus[0].power_w,
            "power gpu1": gpus[1].power_w,
        }
    }


@GPU.prose("023/values/sm_active gpu2")
def test_case_023_marks_a_counter_above_its_range() -> None:
    samples = read_exporter("gpu05", GPU.load("023")[1].stdout).samples
    assert [gpu.sm_active for gpu in samples] == [None, None, 1.23]
    assert ratio_text(samples[2].sm_active) == "100 %+"


@GPU.prose("023/second")
def test_case_023_an_empty_answer_is_no_zero() -> None:
    answer = read_exporter("gpu06", GPU.load("023")[2].stdout)
    assert (answer.answer, answer.samples) == (Answer.NO_DATA, ())
    assert answer.failure is not None
    assert "exporter on gpu06 answers but has no data" in answer.failure.sentence


@GPU.prose("023/third")
def test_case_023_no_exporter_is_said() -> None:
    assert GPU.load("023")[3].exit == 7, "curl: nothing listens"
    answer = read_exporter("gpu07", None)
    assert (answer.answer, answer.samples) == (Answer.NOT_THERE, ())
    assert answer.failure is not None
    assert answer.failure.sentence == "There is no GPU exporter on gpu07."


@GPU.sentence("023", "a broken line costs only that line")
def test_case_023_must_read_around_a_broken_line() -> None:
    parsed = parse_prometheus(GPU.load("023")[1].stdout)
    assert (len(parsed.rows), parsed.bad) == (9, 1)
    assert parsed.first_bad is not None
    assert parsed.first_bad.excerpt == "this line is broken"
    assert parsed.rows[7].labels["note"] == 'a "q" , } b'


def _dmon(case: str, n: int) -> tuple[GpuSample, ...]:
    parsed = parse_dmon(GPU.load(case)[n].stdout)
    assert parsed.bad == 0
    return newest(parsed.rows)


def _work_026(n: int) -> WorkVerdict:
    gpus = _dmon("026", n)
    return _verdict([NodeGpus(host="gpu05", samples=gpus)], len(gpus), 600)


@GPU.product("026")
def answer_026(case: Case) -> Any:
    del case
    found = [_work_026(n) for n in (1, 2, 3)]
    return {"verdicts": [f"{one.state} ({one.says})" if one.says else one.state for one in found]}


@GPU.sentence("026", "hang warning in any of the three")
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("limit", [None, 700.0, 1_400.0])
def test_case_026_must_not_warn(n: int, limit: float | None) -> None:
    gpus = tuple(replace(gpu, power_limit_w=limit) for gpu in _dmon("026", n))
    verdict = _verdict([NodeGpus(host="gpu05", samples=gpus)], len(gpus), 3_600)
    assert verdict.state is JobWork.HEALTHY


def _work_028(*, log_silent_s: float | None = 600) -> WorkVerdict:
    case = GPU.load("028")
    gpus = with_uuids(_dmon("028", 1), {n: UUID.format(n) for n in range(8)})
    apps = parse_compute_apps(case[2].stdout, fields(case[2]))
    node = NodeGpus(host="gpu05", samples=gpus, processes=apps.rows)
    return _verdict([node], 8, log_silent_s)


@GPU.product("028")
def answer_028(case: Case) -> Any:
    del case
    verdict = _work_028()
    (odd,) = verdict.odd
    return {
        "verdict": f"{verdict.state}; {verdict.says}",
        "suspect": {"host": odd.host, "gpu": odd.number},
    }
