"""What nvidia-smi says of GPUs: cases 001, 003, 004, 016, 031, 033, 034."""

from typing import Any

from slurmtop.model.gpu import Answer, Level, util_text
from slurmtop.parse.gpu.topo import parse_topo
from slurmtop.triage.gpu_work import Work, mean_util, work_of
from slurmtop.triage.gpus import judge_gpu, judge_node, next_look_s, persistence_hint
from tests.cases.gpu_product import judged, node, of, rows
from tests.cases.support import GPU, Case


@GPU.values("001", "003", "004", "016", "031", "034")
def test_values(path: str, wanted: Any) -> None:
    assert GPU.found(path) == wanted


@GPU.product("001")
def answer_001(case: Case) -> Any:
    samples = node(case[1]).samples
    return {
        "gpus": len(samples),
        "rows": rows(
            case,
            lambda gpu: {
                "index": gpu.index,
                "util": gpu.util_percent,
                "mem_used_mib": gpu.mem_used_mib,
                "mem_total_mib": gpu.mem_total_mib,
                "mem_pct": round(gpu.mem_percent or 0, 1),
                "temp": gpu.temp_c,
                "power": gpu.power_w,
                "limit": gpu.power_limit_w,
                "sm": gpu.sm_clock_mhz,
            },
        ),
        "idle": [gpu.index for gpu in samples if work_of(gpu) is Work.IDLE],
    }


@GPU.product("003")
def answer_003(case: Case) -> Any:
    return {
        "rows": rows(
            case,
            lambda gpu: {
                "index": gpu.index,
                "util": gpu.util_percent,
                "util_text": util_text(gpu),
                "power": gpu.power_w,
                "busy": work_of(gpu).value,
            },
        )
    }


@GPU.sentence("003", "0 % for GPU 0")
def test_case_003_must_not_show_nothing_as_zero() -> None:
    gpu = of("003").samples[0]
    assert gpu.util_percent is None
    assert util_text(gpu) == "n/a (MIG)"


@GPU.sentence("003", '"idle GPU" or "wasted allocation" warning for GPU 0')
def test_case_003_must_not_call_a_busy_parent_idle() -> None:
    gpu = of("003").samples[0]
    assert work_of(gpu) is Work.LIKELY_BUSY
    assert judge_gpu(gpu).level is Level.OK


@GPU.sentence("003", "averages that include GPU 0 as 0")
def test_case_003_must_not_average_over_what_is_not_known() -> None:
    assert mean_util(of("003").samples) == 3
    assert mean_util(of("003").samples[:1]) is None


@GPU.product("004")
def answer_004(case: Case) -> Any:
    return {
        "rows": rows(
            case,
            lambda gpu: {
                **judged(gpu),
                "util": gpu.util_percent,
                "temp": gpu.temp_c,
                "mem_used": gpu.mem_used_mib,
                "ecc": gpu.ecc_uncorrected,
                "fan": gpu.fan_percent,
            },
        )
    }


@GPU.sentence("004", 'any [text] is "no number" with its text kept')
def test_case_004_must_keep_the_words() -> None:
    answer = of("004")
    assert (answer.answer, answer.bad) == (Answer.OK, 0)
    last = answer.samples[5]
    assert last.word("ecc_uncorrected") == "[Some Future Error]"
    assert last.word("fan_percent") == "ERR!"
    assert answer.samples[4].word("temp_c") == "[GPU is lost]"


@GPU.sentence("004", "other columns of the row are still used")
def test_case_004_must_use_the_rest_of_the_row() -> None:
    second = of("004").samples[1]
    assert (second.mem_total_mib, second.temp_c, second.pstate) == (81559, 68, "P2")


@GPU.product("016")
def answer_016(case: Case) -> Any:
    return {"rows": rows(case, judged)}


@GPU.prose("016/rows/6/note")
def test_case_016_an_unknown_bit_is_kept_and_is_no_alarm() -> None:
    gpu = of("016").samples[6]
    assert gpu.events == 0x400
    assert [one.says for one in judge_gpu(gpu).findings] == ["unknown throttle reason 0x400"]


@GPU.product("031")
def answer_031(case: Case) -> Any:
    samples = node(case[1]).samples
    return {"rows": {str(gpu.index): judged(gpu, samples) for gpu in samples}}


@GPU.sentence("033", "data is good")
def test_case_033_must_take_the_slow_answer() -> None:
    answer = of("033")
    assert (answer.answer, answer.failure, len(answer.samples)) == (Answer.OK, None, 8)
    assert {gpu.util_percent for gpu in answer.samples} == {0}
    assert {gpu.power_w for gpu in answer.samples} == {62.10}


@GPU.sentence("033", "interval for this node grows (≥ 10 × 14 s)")
def test_case_033_must_ask_a_slow_node_seldom() -> None:
    took_s = of("033").took_s
    assert took_s is not None
    assert next_look_s(took_s, 5.0) >= 140
    assert next_look_s(0.2, 5.0) == 5.0


@GPU.sentence("033", "hint once: persistence mode is off")
def test_case_033_must_hint_at_persistence_mode_once() -> None:
    said = [one.says for one in judge_node(of("033")).findings if "persistence" in one.says]
    assert said == [persistence_hint(of("033"))]
    assert said[0] is not None
    assert "persistence mode is off on gpu05" in said[0]


@GPU.product("034")
def answer_034(case: Case) -> Any:
    devices = parse_topo(case[1].stdout).devices
    return {"matrix": {name: {**one.links, "cpus": one.cpus} for name, one in devices.items()}}


@GPU.sentence("034", "strip ESC[4m / ESC[0m")
def test_case_034_must_strip_the_escapes() -> None:
    found = parse_topo(GPU.load("034")[1].stdout)
    assert b"\x1b[4m" in GPU.load("034")[1].stdout
    assert "\x1b" not in repr(found)
    assert found.nics == {"NIC0": "mlx5_0"}


@GPU.sentence("034", "NIC rows may lack the last columns")
def test_case_034_must_read_rows_of_network_cards() -> None:
    nic = parse_topo(GPU.load("034")[1].stdout).devices["NIC0"]
    assert nic.links == {"GPU0": "PIX", "GPU1": "SYS"}
    assert (nic.cpus, nic.numa) == (None, None)
