"""Pure judgements about GPUs: health, work, who stands out, whose they are, Xids."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.gpu import Answer, GpuProcess, GpuSample, Level, NodeGpus, ratio_text
from slurmtop.model.job import Tres
from slurmtop.triage.gpu_share import (
    NOT_TOLD,
    NOT_VISIBLE,
    JobShare,
    attribute_gpus,
    share_of,
)
from slurmtop.triage.gpu_work import (
    JobLook,
    JobWork,
    Work,
    WorkVerdict,
    judge_work,
    odd_ones,
    ref_of,
    summarise,
    work_of,
)
from slurmtop.triage.gpus import judge_gpu, judge_node, measured
from slurmtop.triage.xid import XidClass, look_at_xids, xid_meaning
from tests.fakes import START

SPIN: dict[str, Any] = {
    "util_percent": 100.0,
    "power_w": 160.0,
    "power_limit_w": 700.0,
    "sm_active": 0.13,
    "tensor_active": 0.0,
    "dram_active": 0.002,
    "nvlink_tx_bytes_s": 0.0,
    "mem_used_mib": 70_000.0,
    "name": "NVIDIA H100 80GB HBM3",
}
IDLE = {**SPIN, "util_percent": 0.0, "power_w": 118.0, "sm_active": 0.0}
WORKING = {**SPIN, "power_w": 600.0, "sm_active": 0.9, "tensor_active": 0.28, "dram_active": 0.2}


def gpu(number: int = 0, **values: Any) -> GpuSample:
    return GpuSample(index=number, uuid=f"GPU-{number}", **values)


def node(*kinds: dict[str, Any], **more: Any) -> NodeGpus:
    return NodeGpus(
        host="gpu01", samples=tuple(gpu(n, **kind) for n, kind in enumerate(kinds)), **more
    )


def verdict(
    *nodes: NodeGpus, gpus: int | None = None, silent: float | None = 600, minutes: float = 5
) -> WorkVerdict:
    """Two looks at the same picture."""
    held = sum(len(one.samples) for one in nodes) if gpus is None else gpus
    looks = [JobLook(START + timedelta(minutes=at), nodes, held) for at in (0, minutes)]
    return judge_work(looks, log_silent_s=silent)


def test_one_look_is_never_a_hang() -> None:
    look = JobLook(START, (node(*[SPIN] * 8),), 8)
    assert judge_work([look], log_silent_s=3_600).state is JobWork.UNKNOWN
    assert judge_work([]).state is JobWork.UNKNOWN
    assert verdict(node(*[SPIN] * 8), minutes=2).state is JobWork.UNKNOWN


def test_work_between_the_looks_ends_the_suspicion() -> None:
    pictures = (SPIN, WORKING, SPIN)
    looks = [
        JobLook(START + timedelta(minutes=5 * at), (node(*[kind] * 8),), 8)
        for at, kind in enumerate(pictures)
    ]
    assert judge_work(looks, log_silent_s=3_600).state is JobWork.UNKNOWN


def test_all_alike_names_nobody() -> None:
    found = verdict(node(*[SPIN] * 8))
    assert (found.state, found.odd, found.says) == (JobWork.HANG, (), "no GPU stands out")


@pytest.mark.parametrize("silent", [None, 30.0])
def test_a_log_that_goes_on_or_was_not_read_takes_the_certainty(silent: float | None) -> None:
    state = verdict(node(*[SPIN] * 8), silent=silent).state
    assert state is (JobWork.POSSIBLE_HANG if silent is None else JobWork.UNKNOWN)


def test_the_gpu_without_a_process_is_named() -> None:
    kinds = [SPIN] * 3 + [IDLE]
    others = tuple(GpuProcess(pid=7, gpu_uuid=f"GPU-{n}") for n in range(3))
    found = verdict(node(*kinds, processes=others))
    assert found.says == "GPU 3 is the odd one: its process is gone"
    assert [(one.host, one.number, one.uuid) for one in found.odd] == [("gpu01", 3, "GPU-3")]
    assert verdict(node(*kinds)).says == "GPU 3 is the odd one: it does nothing"
    assert verdict(node(*kinds, processes=())).says == "GPU 3 is the odd one: it does nothing"


@pytest.mark.parametrize("kinds", [[SPIN, IDLE], [SPIN] * 2 + [IDLE] * 2, [SPIN] * 5 + [IDLE] * 3])
def test_too_many_idle_ones_are_no_hang(kinds: list[dict[str, Any]]) -> None:
    found = verdict(node(*kinds))
    assert (found.state, found.odd) == (JobWork.UNKNOWN, ())


def test_gpus_of_hosts_that_did_not_answer_count_as_not_known() -> None:
    found = verdict(node(*[SPIN] * 4), NodeGpus(host="gpu02", answer=Answer.NO_ANSWER), gpus=8)
    assert (found.state, found.says) == (
        JobWork.UNKNOWN,
        "4 of 8 GPUs known: too few to tell",
    )


def test_without_profiling_the_memory_must_not_move() -> None:
    weak = {**SPIN, "sm_active": None, "tensor_active": None, "dram_active": None}
    assert verdict(node(*[weak] * 4)).state is JobWork.POSSIBLE_HANG
    looks = [
        JobLook(START + timedelta(minutes=5 * at), (node(*[{**weak, "mem_used_mib": at}] * 4),), 4)
        for at in range(2)
    ]
    assert judge_work(looks, log_silent_s=600).state is JobWork.UNKNOWN


def test_full_utilisation_alone_is_not_called_healthy() -> None:
    bare: dict[str, Any] = {"util_percent": 100.0}
    assert work_of(gpu(**bare)) is Work.FULL
    assert verdict(node(*[bare] * 4)).state is JobWork.UNKNOWN
    quarter: dict[str, Any] = {"util_percent": 100.0, "power_w": 175.0, "power_limit_w": 700.0}
    assert verdict(node(*[quarter] * 4)).state is JobWork.UNKNOWN


def test_idle_gpus_are_counted_not_called_healthy() -> None:
    found = verdict(node(*[IDLE] * 4))
    assert (found.state, found.says) == (JobWork.UNKNOWN, "4 of 4 GPUs idle")


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({}, Work.UNKNOWN),
        ({"power_w": 80.0}, Work.UNKNOWN),
        ({"power_w": 80.0, "power_limit_w": 0.0}, Work.UNKNOWN),
        ({"mig": True, "power_w": 438.0, "power_limit_w": 700.0}, Work.LIKELY_BUSY),
        ({"mig": True, "power_w": 80.0, "power_limit_w": 700.0}, Work.UNKNOWN),
        ({"util_percent": 50.0}, Work.BUSY),
        (SPIN, Work.WAITS),
        ({**SPIN, "nvlink_tx_bytes_s": 5e9}, Work.COMPUTES),
        ({**SPIN, "sm_active": 0.9}, Work.COMPUTES),
        ({**SPIN, "dram_active": 0.6}, Work.COMPUTES),
        ({**SPIN, "power_w": 400.0}, Work.COMPUTES),
        ({**SPIN, "dram_active": None}, Work.PERHAPS_WAITS),
    ],
)
def test_work_of_one_gpu(values: dict[str, Any], wanted: Work) -> None:
    assert work_of(gpu(**values)) is wanted


def temperature(one: GpuSample) -> float | None:
    return one.temp_c


def odd(temps: list[float | None], least: float = 5, **values: Any) -> list[int | None]:
    refs = [
        (ref_of("gpu01", one), one)
        for one in (gpu(n, temp_c=temp, **values) for n, temp in enumerate(temps))
    ]
    return [found.gpu.number for found in odd_ones(refs, temperature, least=least)]


def test_the_odd_one_out() -> None:
    assert odd([60, 61, 60, 62, 95, 61, 60, 61]) == [4]
    assert odd([60, 60, 60, 60, 60, 60, 60, 64]) == [], "within what counts as a difference"
    assert odd([60, 60, 60, 60, 90, 90, 90, 90]) == [], "equal halves have no odd one"
    assert odd([60, 60, 60, 60, 60, 90, 90, 90]) == [], "three of eight are a pattern"
    assert odd([60, 60, 90]) == [], "too few to compare"
    assert odd([60, 60, 60, None, None, 90]) == [5]
    assert odd([]) == []


def test_other_models_and_limits_are_not_compared() -> None:
    kinds = [("H100", 700.0)] * 4 + [("L40S", 350.0)] + [("H100", 500.0)]
    gpus = [
        gpu(n, name=name, power_limit_w=limit, temp_c=60.0 if limit == 700 else 90.0)
        for n, (name, limit) in enumerate(kinds)
    ]
    assert odd_ones([(ref_of("gpu01", one), one) for one in gpus], temperature, least=5) == ()


def test_notes_are_no_alarm_and_the_worst_comes_first() -> None:
    words = (("fan_percent", "[N/A]"), ("power_w", "[Unknown Error]"))
    found = judge_gpu(gpu(words=words, events=0x40 | 0x04, ecc_uncorrected=2.0))
    assert [one.level for one in found.findings] == [
        Level.CRITICAL,
        Level.WARNING,
        Level.WARNING,
        Level.OK,
    ]
    assert judge_gpu(gpu()).findings == ()
    assert "2 uncorrected memory errors" in " ".join(one.says for one in found.findings)


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ({"remapped_failure": True}, Level.CRITICAL),
        ({"remapped_pending": True}, Level.WARNING),
        ({"remapped_pending": False, "ecc_uncorrected": 0.0}, Level.OK),
        ({"recovery_action": "None"}, Level.OK),
        ({"recovery_action": "Drain P2P"}, Level.CRITICAL),
        ({"events": 0x08}, Level.CRITICAL),
        ({"hw_thermal": True}, Level.CRITICAL),
        ({"hw_thermal": False}, Level.OK),
        ({"events": 0x100 | 0x10 | 0x02}, Level.OK),
        ({"fabric_state": "Not Started"}, Level.WARNING),
        ({"fabric_state": "Completed", "fabric_status": "Success"}, Level.OK),
    ],
)
def test_levels(values: dict[str, Any], level: Level) -> None:
    assert judge_gpu(gpu(**values)).level is level


@pytest.mark.parametrize(("cliques", "alarmed"), [([0, 0, 1], [2]), ([0, 0, 1, 1], []), ([0], [])])
def test_only_the_minority_is_in_another_clique(cliques: list[int], alarmed: list[int]) -> None:
    gpus = [
        gpu(n, fabric_state="Completed", fabric_status="Success", fabric_clique=clique)
        for n, clique in enumerate(cliques)
    ]
    found = [one.index for one in gpus if judge_gpu(one, gpus).level is Level.WARNING]
    assert found == alarmed


def test_one_reason_told_twice_is_said_once() -> None:
    found = judge_gpu(gpu(events=0x40, hw_thermal=True)).findings
    assert [one.says for one in found] == ["hardware thermal slowdown"]


def test_words_of_a_gpu_cannot_paint() -> None:
    found = judge_gpu(gpu(words=(("power_w", "[\x1b[2J]"),), recovery_action="\x1b[2J"))
    assert "\x1b" not in "".join(one.says for one in found.findings)


def test_a_node_tells_its_gpus_apart() -> None:
    found = judge_node(node({"events": 0}, {"events": 0x40}, remarks=("WARNING: x",)))
    assert found.says == "GPU 1: hardware thermal slowdown"
    assert (found.level, len(found.findings)) == (Level.CRITICAL, 2)


def test_the_average_is_of_all_or_not_at_all() -> None:
    whole = summarise([node({"util_percent": 90.0}, {"util_percent": 70.0})])
    assert (whole.mean_util_percent, whole.says) == (80, "1 of 1 host answered")
    part = summarise([node({"util_percent": 90.0}), NodeGpus(host="gpu02", answer=Answer.OTHER)])
    assert (part.mean_util_percent, part.known_gpus) == (None, 1)
    cut = summarise([node({"util_percent": 90.0}, bad=1)])
    assert (cut.mean_util_percent, cut.warnings) == (None, ("gpu01: 1 row could not be read",))


def shares(seen: int, *jobs: tuple[str, int | None, int | None], **more: Any) -> dict[str, str]:
    found = attribute_gpus(
        [gpu(n) for n in range(seen)],
        [
            JobShare(job, gpus, None if day is None else START + timedelta(days=day))
            for job, gpus, day in jobs
        ],
        **more,
    )
    return {one.job: one.says if one.gpus is None else f"{len(one.gpus)} seen" for one in found}


def test_a_cgroup_that_parts_nothing_tells_nothing() -> None:
    # No ConstrainDevices: a login inside job 1 sees all eight, of which it holds two.
    assert shares(8, ("1", 2, None), inside="1", node_gpus=8) == {"1": NOT_TOLD}
    two = shares(8, ("1", 8, None), ("2", 1, None), inside="1", node_gpus=8)
    assert two == {"1": NOT_TOLD, "2": NOT_TOLD}
    assert shares(2, ("1", 2, None), ("2", 4, None), inside="1", node_gpus=8) == {
        "1": "2 seen",
        "2": NOT_VISIBLE,
    }


def test_a_share_that_is_not_known_makes_nobody_elses_gpus_the_jobs() -> None:
    """3 GPUs on 2 nodes: how many are here Slurm does not say, and all 8 may be seen."""
    assert shares(8, ("7", None, None), inside="7", node_gpus=8) == {"7": NOT_TOLD}
    assert shares(8, ("7", None, None), inside="7") == {"7": NOT_TOLD}
    assert shares(2, ("7", None, None), inside="7") == {"7": NOT_TOLD}
    # Fewer than the node has: the cgroup parts.
    assert shares(2, ("7", None, None), inside="7", node_gpus=8) == {"7": "2 seen"}
    # Without a cgroup's word another one's may be what is seen.
    two = shares(2, ("7", None, 0), ("8", 2, 1), ("9", 4, 2))
    assert set(two.values()) == {NOT_TOLD}


def test_an_even_share_is_believed_only_where_as_many_are_seen() -> None:
    uneven, even = share_of("7", Tres(gpus=3), 2), share_of("7", Tres(gpus=16), 2)
    assert (uneven.gpus, uneven.even, uneven.most) == (None, None, 3)
    assert (even.gpus, even.even, even.most) == (None, 8, 16)
    assert share_of("7", Tres(gpus=8), 1).gpus == 8
    assert share_of("7", Tres(), 1).gpus is None
    assert share_of("7", Tres(gpus=8), None).gpus is None
    slices = share_of("7", Tres(gpus=0, slices_by_type=(("1g.10gb", 2),)), 1)
    assert (slices.gpus, slices.most) == (0, 2)

    def told(seen: int, *jobs: JobShare, **more: Any) -> list[bool]:
        found = attribute_gpus([gpu(n) for n in range(seen)], jobs, **more)
        return [one.gpus is not None for one in found]

    assert told(8, even, inside="7") == [True]
    assert told(8, even) == [True]
    assert told(4, even, inside="7") == [False]
    assert told(4, even, inside="7", node_gpus=8) == [True]
    assert told(8, even, JobShare("8", 8, START)) == [False, False], "either may be here"
    assert told(4, uneven, inside="7", node_gpus=8) == [False], "it holds 3 at most"
    assert told(2, slices, inside="7") == [True]
    assert told(8, slices, inside="7") == [False]


def test_whose_gpus_are_seen() -> None:
    assert shares(8, ("1", 8, None), node_gpus=8) == {"1": "8 seen"}
    assert shares(4, ("1", 4, 0), ("2", 4, 1)) == {"1": NOT_VISIBLE, "2": "4 seen"}
    assert shares(4, ("1", 4, None), ("2", 4, 1)) == {"1": NOT_TOLD, "2": NOT_TOLD}
    assert shares(8, ("1", 4, 0), ("2", 4, 1)) == {"1": NOT_TOLD, "2": NOT_TOLD}
    assert shares(8, ("1", 8, 0), ("2", 4, 1), node_gpus=8) == {"1": NOT_TOLD, "2": NOT_TOLD}
    assert shares(3, ("1", 4, 0), ("2", 2, 1)) == {"1": NOT_TOLD, "2": NOT_TOLD}
    assert shares(2, ("1", 4, 0), ("2", 2, 1), inside="1") == {"1": "2 seen", "2": NOT_VISIBLE}
    assert shares(0, ("1", 4, 0)) == {"1": NOT_TOLD}
    assert shares(4) == {}


def test_a_code_that_went_away_and_came_back_is_new() -> None:
    def look(code: int | None, day: int, before: Any = None) -> Any:
        return look_at_xids([gpu(xid=code)], START + timedelta(days=day), before)

    first = look(0, 0)
    second = look(31, 1, first)
    silent = look(None, 2, second)
    gone = look(0, 3, silent)
    again = look(31, 4, gone)
    assert [len(one.new) for one in (first, second, silent, gone, again)] == [0, 1, 0, 0, 1]
    assert (silent.seen, gone.seen) == (second.seen, ())
    assert second.new[0].says == "Xid 31: GPU memory page fault"
    assert again.new[0].during(START + timedelta(days=2)) is True


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (13, XidClass.APPLICATION),
        (45, XidClass.INFO),
        (48, XidClass.HARDWARE),
        (74, XidClass.LINK),
        (109, XidClass.DRIVER),
        (173, XidClass.UNKNOWN),
    ],
)
def test_classes_of_codes(code: int, cls: XidClass) -> None:
    assert xid_meaning(code).cls is cls


def test_shares_as_text() -> None:
    assert [ratio_text(value) for value in (None, 0.0, 0.912, 1.0, 1.01)] == [
        "n/a",
        "0 %",
        "91 %",
        "100 %",
        "100 %+",
    ]


_NUMBERS = [
    field.name
    for field in fields(GpuSample)
    if field.name.endswith(("_percent", "_w", "_active", "_bytes_s", "_mib"))
]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(_NUMBERS), st.none() | st.floats(0, 1e12)), max_size=6
    ),
    st.none() | st.floats(0, 1e6),
)
def test_any_values_are_judged(kinds: list[dict[str, Any]], silent: float | None) -> None:
    one = node(*kinds)
    found = verdict(one, silent=silent)
    if found.state is JobWork.HANG:
        assert all(
            gpu.tensor_active is not None for gpu in one.samples if work_of(gpu) is Work.WAITS
        )
    judge_node(one)
    missing = tuple(replace(gpu, util_percent=None) for gpu in one.samples)
    assert all(work_of(gpu) is not Work.IDLE for gpu in missing)


@pytest.mark.parametrize("word", ["[Unknown Error]", "ERR!"])
def test_a_card_of_which_no_value_can_be_read_is_in_trouble(word: str) -> None:
    names = ("util_percent", "mem_used_mib", "power_w", "temp_c")
    words = tuple((name, word) for name in names)
    found = judge_gpu(gpu(words=words, mem_total_mib=81_559.0))
    assert found.level is Level.CRITICAL
    assert "no value of it can be read" in (found.says or "")
    assert judge_gpu(gpu(words=words[:3], temp_c=40.0)).level is Level.WARNING
    denied = tuple((name, "[Insufficient Permissions]") for name in names)
    assert judge_gpu(gpu(words=denied)).level is Level.OK
    assert not measured(gpu(words=denied))


def test_slices_of_one_card_are_each_their_own_and_compared_within_their_profile() -> None:
    def part(number: int, share: float, profile: str = "1g.10gb") -> GpuSample:
        return GpuSample(
            uuid="GPU-0", dcgm_id=0, slice_id=str(number), slice_profile=profile, sm_active=share
        )

    parts = [part(number, 0.9) for number in range(4)] + [part(4, 0.1)]
    larger = [part(number, 0.3, "3g.40gb") for number in (8, 9)]
    known = [(ref_of("gpu01", one), one) for one in (*parts, *larger)]
    assert len({ref for ref, _ in known}) == 7
    (odd,) = odd_ones(known, lambda one: one.sm_active, least=0.1)
    assert (odd.gpu.slice, odd.gpu.name) == ("4", "GPU 0 slice 4")
