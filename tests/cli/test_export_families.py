"""The metrics: read by the official client, with units in their names and no invented values."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from slurmtop.cli.export_families import MOST_JOBS, OLDEST_S, Exported, families
from slurmtop.cli.gpu_rows import HostGpus, JobGpus
from slurmtop.cli.prometheus_text import LONGEST_LABEL, render
from slurmtop.model.facts import LogFacts, LogLine, LogStatus, Progress
from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.process import RankProcess
from tests.build import make_job
from tests.cli.gpu_cases import NOW, answered, gpu, job_on, rank, two_nodes
from tests.fakes import START

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def told(found: Exported) -> Series:
    text = render(families(found))
    out: Series = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in out
            out[key] = sample.value
    return out


def value(series: Series, metric: str, /, **labels: str) -> float | None:
    found = [
        number
        for (sample, own), number in series.items()
        if sample == metric and labels.items() <= dict(own).items()
    ]
    assert len(found) < 2
    return found[0] if found else None


def export(**fields: Any) -> Exported:
    return Exported(**{"now": NOW, "jobs": (), **fields})


def test_a_queue_that_does_not_answer_is_down_and_not_empty() -> None:
    series = told(export(jobs=None))
    assert value(series, "slurmtop_up") == 0
    assert not [name for name, _ in series if name.startswith(("slurmtop_queue", "slurmtop_job"))]
    series = told(export())
    assert value(series, "slurmtop_up") == 1
    assert value(series, "slurmtop_queue_jobs", phase="running", scope="own") == 0


def test_a_job() -> None:
    job = make_job("4711", ran_s=600, limit_s=3600, gpus=16, restarts=2)
    line = LogLine(text="step 120/1000", offset=0, number=3)
    log = LogFacts(
        label="stdout",
        path="/w/1",
        status=LogStatus.READ,
        mtime=START - timedelta(seconds=9),
        progress=Progress(120, 1000, line),
    )
    series = told(export(now=START, jobs=(job,), logs={job.key: log}))
    assert value(series, "slurmtop_job_info", job="4711", name="train", nodes="gpu01") == 1
    assert value(series, "slurmtop_job_state", job="4711", state="RUNNING") == 1
    assert value(series, "slurmtop_job_gpus", job="4711") == 16
    assert value(series, "slurmtop_job_elapsed_seconds", job="4711") == 600
    assert value(series, "slurmtop_job_limit_seconds", job="4711") == 3600
    assert value(series, "slurmtop_job_restarts", job="4711") == 2
    assert value(series, "slurmtop_job_progress_step", job="4711") == 120
    assert value(series, "slurmtop_job_progress_steps", job="4711") == 1000
    written = value(series, "slurmtop_job_output_timestamp_seconds", job="4711")
    assert written == (START - timedelta(seconds=9)).timestamp()
    assert value(series, "slurmtop_queue_gpus", phase="running") == 16


def test_what_is_not_known_of_a_job_has_no_series() -> None:
    job = make_job("4711", "PENDING", gpus=None, restarts=None)
    series = told(export(jobs=(job,)))
    for name in ("gpus", "restarts", "elapsed_seconds", "progress_step"):
        assert value(series, f"slurmtop_job_{name}", job="4711") is None


@pytest.mark.parametrize(
    ("state", "held"),
    [
        ("RUNNING", 16),
        ("SUSPENDED", 16),
        ("COMPLETING", 16),
        ("PENDING", 16),
        ("CANCELLED", None),
        ("COMPLETED", None),
        ("FAILED", None),
        ("TIMEOUT", None),
        ("NODE_FAIL", None),
        ("OUT_OF_MEMORY", None),
        ("REVOKED", None),
    ],
)
def test_a_job_that_is_over_holds_nothing(state: str, held: int | None) -> None:
    series = told(export(jobs=(make_job("4711", state, gpus=16, node_count=2),)))
    assert value(series, "slurmtop_job_state", job="4711", state=state) == 1
    assert value(series, "slurmtop_job_gpus", job="4711") == held
    assert value(series, "slurmtop_job_nodes", job="4711") == (None if held is None else 2)


def test_everybodys_jobs_are_counted_and_only_own_ones_have_series() -> None:
    mine, rest = make_job("1"), make_job("7_[1-50]", "PENDING", user="bob", gpus=8)
    series = told(export(jobs=(mine,), everybody=(mine, rest)))
    assert value(series, "slurmtop_queue_jobs", phase="pending", scope="all") == 50
    assert value(series, "slurmtop_queue_gpus", phase="pending", scope="all") == 400
    assert value(series, "slurmtop_queue_jobs", phase="pending", scope="own") is None
    assert value(series, "slurmtop_job_info", job="1") == 1
    assert value(series, "slurmtop_job_info", user="bob") is None


def test_the_number_of_series_is_bounded() -> None:
    jobs = [make_job(f"9_{task}") for task in range(MOST_JOBS + 30)]
    series = told(export(jobs=jobs))
    assert len([1 for name, _ in series if name == "slurmtop_job_info"]) == MOST_JOBS
    assert value(series, "slurmtop_jobs_left_out") == 30


def test_gpus() -> None:
    one = two_nodes()
    assert isinstance(one.job, Job)
    series = told(export(jobs=(one.job,), gpus=(one,)))
    labels = {"job": "4711", "host": "gpu01", "gpu": "5", "rank": "5", "uuid": "GPU-gpu01-5"}
    assert value(series, "slurmtop_gpu_utilization_ratio", **labels) == 0.12
    assert value(series, "slurmtop_gpu_power_watts", **labels) == 140.0
    assert value(series, "slurmtop_gpu_memory_used_bytes", **labels) == 61440 * 2**20
    assert value(series, "slurmtop_gpu_sm_clock_hertz", **labels) == 1.755e9
    assert value(series, "slurmtop_gpu_sm_active_ratio", **labels) is None
    assert value(series, "slurmtop_gpu_healthy", **labels) == 1
    assert value(series, "slurmtop_node_reachable", host="gpu01") == 1
    assert value(series, "slurmtop_node_reachable", host="gpu02") == 0
    assert value(series, "slurmtop_job_gpus_seen", job="4711") == 8
    at = value(series, "slurmtop_gpu_sample_timestamp_seconds", host="gpu01")
    assert at == START.timestamp()
    assert value(series, "slurmtop_gpu_sample_timestamp_seconds", host="gpu02") is None
    assert not [1 for _, own in series if ("host", "gpu02") in own and ("gpu", "0") in own]


def test_a_rank_beside_one_that_is_not_known_is_no_label() -> None:
    one = gpu("gpu01", 0)
    first = rank("gpu01", 0, 900)
    other = RankProcess(process=rank("gpu01", 1, 901).process)
    for ranks, label in (((first,), "0"), ((first, other), ""), ((other,), "")):
        host = answered("gpu01", [one], by_uuid={one.uuid or "": ranks})
        found = told(export(gpus=[JobGpus(job=job_on(["gpu01"], 1), hosts=(host,))]))
        power = [dict(own) for name, own in found if name == "slurmtop_gpu_power_watts"]
        assert [own.get("rank", "") for own in power] == [label]


def test_values_of_an_earlier_look_do_not_pass_for_those_of_now() -> None:
    host = answered("gpu01", [gpu("gpu01", 0)], age_s=OLDEST_S + 1)
    one = JobGpus(job=job_on(["gpu01"], 1), hosts=(host,))
    series = told(export(gpus=(one,)))
    assert value(series, "slurmtop_node_reachable", host="gpu01") == 0
    assert value(series, "slurmtop_gpu_power_watts") is None


def test_every_name_carries_its_unit() -> None:
    found = families(export(gpus=(two_nodes(),)))
    names = [family.name for family in found]
    assert len(names) == len(set(names))
    for family in found:
        assert re.fullmatch(r"slurmtop_[a-z][a-z0-9_]*[a-z]", family.name)
        assert family.kind == "gauge"
        assert not family.name.endswith(("_ms", "_mib", "_mhz", "_percent", "_total"))


@given(st.text(max_size=200), st.text(max_size=60), st.text(max_size=60))
def test_any_names_are_accepted_and_come_back(name: str, nodes: str, user: str) -> None:
    series = told(export(jobs=(make_job("4711", name=name, nodes=nodes, user=user),)))
    (labels,) = [dict(own) for sample, own in series if sample == "slurmtop_job_info"]
    plain = name.isprintable() and len(name.encode("utf-8", "replace")) <= LONGEST_LABEL
    assert not plain or labels["name"] == name
    assert labels["job"] == "4711"


def test_a_card_that_is_lost_is_not_healthy() -> None:
    """It has no row, so nothing but its bus id is known of it."""
    seen = [gpu("gpu01", index) for index in range(7)]
    host = answered("gpu01", seen, held=None)
    look = replace(host.look, gpus=replace(host.node, lost=("0000:02:00.0",)))
    one = JobGpus(job=job_on(["gpu01"], 8), hosts=(replace(host, look=look),))
    series = told(export(gpus=(one,)))
    lost = {"host": "gpu01", "bus_id": "0000:02:00.0"}
    assert value(series, "slurmtop_gpu_healthy", job="4711", **lost) == 0
    assert value(series, "slurmtop_gpu_healthy", gpu="0") == 1
    smaller = JobGpus(job=job_on(["gpu01"], 7), hosts=one.hosts)
    series = told(export(gpus=(smaller, replace(smaller, job=None))))
    assert value(series, "slurmtop_gpu_healthy", job="", **lost) == 0, "whose it was nobody knows"


def test_a_node_that_tells_nothing_but_lost_cards() -> None:
    node = NodeGpus(host="gpu01", answer=Answer.GPU_LOST, lost=("0000:02:00.0",))
    look = HostLook(host="gpu01", gpus=node, gpus_at=START)
    host = HostGpus(look=look, gpus=None, held=1, age_s=3.0)
    series = told(export(gpus=(JobGpus(job=job_on(["gpu01"], 1), hosts=(host,)),)))
    assert value(series, "slurmtop_gpu_healthy", bus_id="0000:02:00.0", job="4711") == 0
    assert value(series, "slurmtop_node_reachable", host="gpu01") == 0


@pytest.mark.parametrize("word", ["[Unknown Error]", "ERR!", "[GPU is lost]", "Unknown Error"])
def test_a_card_of_which_no_value_can_be_read_is_neither_healthy_nor_seen(word: str) -> None:
    names = ("util_percent", "power_w", "mem_used_mib", "temp_c", "sm_clock_mhz")
    dead = gpu("gpu01", 1, **dict.fromkeys(names), words=tuple((name, word) for name in names))
    one = JobGpus(job=job_on(["gpu01"], 2), hosts=(answered("gpu01", [gpu("gpu01", 0), dead]),))
    series = told(export(gpus=(one,)))
    assert value(series, "slurmtop_gpu_healthy", gpu="1") == 0
    assert value(series, "slurmtop_gpu_healthy", gpu="0") == 1
    assert value(series, "slurmtop_job_gpus_seen") == 1


def test_a_card_of_which_nothing_may_be_read_is_neither_healthy_nor_ill() -> None:
    names = ("util_percent", "power_w", "mem_used_mib", "temp_c", "sm_clock_mhz")
    for word in ("[Insufficient Permissions]", "[N/A]"):
        shut = gpu("gpu01", 1, **dict.fromkeys(names), words=tuple((name, word) for name in names))
        series = told(export(gpus=(JobGpus(job=None, hosts=(answered("gpu01", [shut]),)),)))
        assert value(series, "slurmtop_gpu_healthy") is None
    ill_sensor = gpu("gpu01", 1, power_w=None, words=(("power_w", "[Unknown Error]"),))
    series = told(export(gpus=(JobGpus(job=None, hosts=(answered("gpu01", [ill_sensor]),)),)))
    assert value(series, "slurmtop_gpu_healthy") == 1, "a warning, and its other values are there"


def test_nodes_that_were_not_asked_are_told_by_the_number_of_those_that_were() -> None:
    one = JobGpus(job=job_on(["gpu01"], 8), hosts=two_nodes().hosts, not_asked=("gpu03",))
    series = told(export(gpus=(one,)))
    assert value(series, "slurmtop_job_nodes_asked", job="4711") == 2
    unknown = JobGpus(job=job_on(["gpu01"], 8), hosts=())
    series = told(export(gpus=(unknown,)))
    assert value(series, "slurmtop_job_nodes_asked", job="4711") == 0
    assert value(series, "slurmtop_job_gpus_seen", job="4711") is None
