"""Nodes that do not answer as asked: cases 006, 008, 009, 011, 036."""

from datetime import timedelta
from typing import Any

from slurmtop.model.gpu import Answer, Level, NodeGpus
from slurmtop.parse.gpu.fields import CORE_FIELDS, OPTIONAL_FIELDS, fields_after_refusal
from slurmtop.parse.gpu.nvidia_smi import query_argv, read_query
from slurmtop.parse.gpu.nvidia_smi_list import parse_list
from slurmtop.triage.gpu_work import JobLook, JobWork, judge_work, summarise
from slurmtop.triage.gpus import judge_node, stuck_text
from tests.cases.gpu_product import UUID, fields, node, of
from tests.cases.support import GPU, Case
from tests.fakes import START


@GPU.values("006", "008", "009", "036")
def test_values(path: str, wanted: Any) -> None:
    assert GPU.found(path) == wanted


@GPU.product("006")
def answer_006(case: Case) -> Any:
    return {"node_state": node(case[1]).answer.value}


@GPU.sentence("006", "text comes on stdout, not stderr")
def test_case_006_must_read_the_error_from_stdout() -> None:
    assert GPU.load("006")[1].stderr == b""
    failure = of("006").failure
    assert failure is not None
    assert "driver on gpu05 is not loaded" in failure.sentence


@GPU.sentence("006", "one message per node")
def test_case_006_must_say_it_once() -> None:
    assert len(judge_node(of("006")).findings) == 1


@GPU.sentence("006", "comma in the text must not make a 2-field row")
def test_case_006_must_make_no_row_of_a_sentence() -> None:
    step = GPU.load("006")[1]
    for text in (step.stdout, b"NVIDIA-SMI has failed, call the admins.\n", b"oh, no\n"):
        for rc in (9, 0):
            answer = read_query("gpu05", ("index", "uuid"), rc, text)
            assert answer.samples == ()
            assert answer.failure is not None


def _lost() -> tuple[NodeGpus, ...]:
    listed = GPU.load("008")[3]
    return of("008", 1), of("008", 2), parse_list("gpu05", listed.exit, listed.stdout)


@GPU.product("008")
def answer_008(case: Case) -> Any:
    del case
    return {"lost": list(dict.fromkeys(bus for answer in _lost() for bus in answer.lost))}


@GPU.sentence(
    "008", "critical: a GPU fell off, bus id shown in both spellings (with and without blank)"
)
def test_case_008_must_call_a_lost_gpu_critical_and_name_it() -> None:
    for answer, bus in zip(_lost(), ("0000:0B:00.0", "0000:65:00.0", "0000:0B:00.0"), strict=True):
        worst = judge_node(answer)
        assert worst.level is Level.CRITICAL
        assert worst.says is not None
        assert "a GPU fell off the bus" in worst.says
        assert bus in worst.says


@GPU.sentence("008", 'other GPUs are "unknown", not "gone" and not 0 %')
def test_case_008_must_leave_the_others_unknown() -> None:
    for answer in _lost()[:2]:
        assert (answer.answer, answer.samples, answer.answered) == (Answer.GPU_LOST, (), False)
        assert answer.failure is not None
        assert "other GPUs are unknown" in answer.failure.sentence
        assert summarise([answer]).mean_util_percent is None


@GPU.sentence("008", "may ask the others one by one by UUID")
def test_case_008_may_ask_one_gpu_by_its_uuid() -> None:
    step = GPU.load("008")[4]
    assert list(query_argv(fields(step), only=UUID.format(0))) == step.argv[2].split()
    (gpu,) = node(step).samples
    assert (gpu.index, gpu.util_percent) == (0, 98)


@GPU.sentence("008", "third: two healthy and one lost")
def test_case_008_must_list_two_and_one_lost() -> None:
    listed = _lost()[2]
    assert [gpu.index for gpu in listed.samples] == [0, 2]
    assert [gpu.uuid for gpu in listed.samples] == [UUID.format(0), UUID.format(2)]
    assert listed.lost == ("0000:0B:00.0",)


@GPU.sentence("008", "job shown with fewer GPUs and no warning")
def test_case_008_must_not_lose_a_gpu_without_a_word() -> None:
    for answer in _lost():
        (warning,) = summarise([answer]).warnings
        assert "is lost" in warning


@GPU.product("009")
def answer_009(case: Case) -> Any:
    masks = [node(step).samples for step in case.steps]
    return {"masks": [found[0].events if found else None for found in masks]}


def _asked_until_known(known: set[str]) -> list[tuple[str, ...]]:
    """The queries that a driver which knows ``known`` gets, to the one that it answers."""
    asked: list[tuple[str, ...]] = []
    now: tuple[str, ...] | None = CORE_FIELDS + OPTIONAL_FIELDS
    while now is not None:
        asked.append(now)
        refused = next((name for name in now if name not in known), None)
        if refused is None:
            return asked
        text = f'Field "{refused}" is not a valid field to query.\n\n'
        now = fields_after_refusal(now, text.encode())
    raise AssertionError("nothing left to ask for")


_OLD = "clocks_throttle_reasons.active"
_NEW = "clocks_event_reasons.active"


@GPU.sentence("009", "use the old name first or fall back")
def test_case_009_must_get_the_mask_by_either_name() -> None:
    assert _OLD in _asked_until_known({*CORE_FIELDS, _OLD})[-1]
    assert _NEW in _asked_until_known({*CORE_FIELDS, _NEW})[-1]
    assert of("009", 2).answer is Answer.BAD_FIELD


@GPU.sentence(
    "009",
    "one bad field must not lose all telemetry: retry with the core set and remember per host",
)
def test_case_009_must_keep_all_that_the_driver_knows() -> None:
    known = {*CORE_FIELDS, "persistence_mode", "memory.reserved"}
    assert set(_asked_until_known(known)[-1]) == known
    step = GPU.load("009")[4]
    assert fields_after_refusal(fields(step), step.stdout) == ("index", "fabric.state")
    unnamed = b'Field "what" is not a valid field to query.\n'
    assert fields_after_refusal(CORE_FIELDS + OPTIONAL_FIELDS, unnamed) == CORE_FIELDS


@GPU.sentence("009", "retry the same bad query each cycle")
def test_case_009_must_not_ask_the_same_twice() -> None:
    asked = _asked_until_known(set(CORE_FIELDS))
    assert len(asked) == len(set(asked))
    assert fields_after_refusal(CORE_FIELDS, b"no field is named here") is None


def _stuck() -> NodeGpus:
    return node(GPU.load("011")[1], rc=None)


@GPU.sentence(
    "011",
    'after the time limit: "GPU driver on gpu05 does not answer" with age of the last data',
)
def test_case_011_must_say_so_and_how_old_the_values_are() -> None:
    says = stuck_text(_stuck(), START, START + timedelta(minutes=4))
    assert says == "GPU driver on gpu05 does not answer; values are 4 min old"
    assert "nothing was read yet" in stuck_text(_stuck(), None, START)


@GPU.sentence("011", "retry at most every few minutes")
def test_case_011_must_wait_long_before_the_next_try() -> None:
    failure = _stuck().failure
    assert failure is not None
    assert failure.retry_after_s is not None
    assert failure.retry_after_s >= 180


@GPU.sentence("011", "0 %")
def test_case_011_must_not_show_zero() -> None:
    assert (_stuck().answer, _stuck().samples) == (Answer.NO_ANSWER, ())
    assert summarise([_stuck()]).mean_util_percent is None


def _job() -> tuple[NodeGpus, ...]:
    return tuple(node(step) for step in GPU.load("036").steps)


@GPU.product("036")
def answer_036(case: Case) -> Any:
    del case
    made = {one.host: one.answer.value for one in _job()}
    last = _job()[3]
    made["gpu04"] = f"{len(last.samples)} good row, {last.bad} cut row dropped"
    return {"hosts": made}


@GPU.sentence(
    "036",
    'job summary says "2 of 4 hosts answered" and gives no average over missing ones',
)
def test_case_036_must_count_who_answered() -> None:
    summary = summarise(_job())
    assert summary.says == "2 of 4 hosts answered"
    assert summary.mean_util_percent is None
    assert [warning.partition(":")[0] for warning in summary.warnings] == [
        "gpu02",
        "gpu03",
        "gpu04",
    ]


@GPU.sentence("036", "hang rule stays off when fewer than 80 % of the GPUs are known")
def test_case_036_must_not_judge_a_job_of_which_little_is_known() -> None:
    looks = [JobLook(START + timedelta(minutes=at), _job(), 4) for at in (0, 10)]
    verdict = judge_work(looks, log_silent_s=3_600)
    assert (verdict.state, verdict.odd) == (JobWork.UNKNOWN, ())
    assert verdict.says == "2 of 4 GPUs known: too few to tell"
