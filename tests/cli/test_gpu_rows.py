"""The GPUs of a job as text and as JSON: nothing unknown is 0, nothing missing is averaged over."""

import json
from dataclasses import replace

import pytest

from slurmtop.cli.gpu_rows import JobGpus, host_words, job_dict, job_lines
from slurmtop.model.job import Tres
from slurmtop.model.process import Rung
from tests.cli.gpu_cases import NOW, answered, gpu, job_on, rank, silent, stuck, two_nodes


def test_a_node_that_does_not_answer_is_named_and_never_averaged_over() -> None:
    lines = job_lines(two_nodes(), NOW)
    assert lines[0] == "4711 llm-pretrain: 1 of 2 hosts answered, 8 of 16 GPUs seen"
    assert lines[1].startswith("  gpu02 refuses connections on port 22")
    assert lines[2].split()[:4] == ["NODE", "GPU", "RANK", "PID"]
    assert len(lines) == 3 + 8
    found = job_dict(two_nodes())
    assert found["mean_util_percent"] is None
    assert (found["hosts_answered"], found["hosts_asked"]) == (1, 2)
    assert found["hosts"][1]["failure"].startswith("gpu02 refuses")
    assert found["hosts"][1]["gpus_seen"] is None
    assert found["hosts"][1]["gpus_allocated"] == 8


def test_the_odd_one_is_marked_in_words() -> None:
    lines = job_lines(two_nodes(), NOW)
    odd = [line for line in lines if "odd one" in line]
    assert len(odd) == 1
    assert odd[0].split()[:6] == ["gpu01", "5", "5", "905", "12", "%"]
    assert odd[0].endswith(
        "odd one: utilisation 12 %, others 97 %; power against limit 20 %, others 87 %"
    )
    gpus = job_dict(two_nodes())["gpus"]
    assert [bool(one["odd"]) for one in gpus].count(True) == 1
    assert gpus[5]["odd"][0] == "utilisation 12 %, others 97 %"


def test_a_whole_job_has_a_mean() -> None:
    one = JobGpus(
        job=job_on(["gpu01"], 4), hosts=(answered("gpu01", [gpu("gpu01", i) for i in range(4)]),)
    )
    assert job_dict(one)["mean_util_percent"] == 97.0
    assert "mean utilisation 97 %" in job_lines(one, NOW)[0]
    # With one GPU fewer than Slurm gave, the rest is not known.
    less = JobGpus(
        job=job_on(["gpu01"], 8),
        hosts=(answered("gpu01", [gpu("gpu01", i) for i in range(4)], held=8),),
    )
    assert job_dict(less)["mean_util_percent"] is None
    assert host_words(less.hosts[0]) == ["4 of 8 allocated GPUs seen: the rest is not known"]


def test_values_that_are_not_there_are_null_and_their_words_are_kept() -> None:
    bare = gpu(
        "gpu01",
        0,
        util_percent=None,
        power_w=None,
        mem_used_mib=None,
        temp_c=None,
        sm_clock_mhz=None,
        words=(("power_w", "[Unknown Error]"),),
    )
    one = JobGpus(job=job_on(["gpu01"], 1), hosts=(answered("gpu01", [bare]),))
    (found,) = job_dict(one)["gpus"]
    assert found["util_percent"] is None
    assert found["power_w"] is None
    assert found["words"] == {"power_w": "[Unknown Error]"}
    assert json.loads(json.dumps(found)) == found
    lines = job_lines(one, NOW)
    assert "CLOCK" not in lines[1]
    assert "power reads Unknown Error" in lines[2]
    assert " 0 %" not in lines[2]
    assert job_dict(one)["mean_util_percent"] is None


def test_full_utilisation_at_low_power_is_not_shown_as_healthy() -> None:
    hung = gpu("gpu01", 0, util_percent=100.0, power_w=140.0)
    one = JobGpus(job=job_on(["gpu01"], 1), hosts=(answered("gpu01", [hung]),))
    assert "it may wait" in job_lines(one, NOW)[-1]
    assert job_dict(one)["gpus"][0]["work"] == "perhaps waits"


def test_a_rank_that_was_told_by_a_weaker_sign_says_so() -> None:
    host = answered("gpu01", [gpu("gpu01", 0)])
    weak = {"GPU-gpu01-0": (rank("gpu01", 3, 77, Rung.ARGV), rank("gpu01", 4, 78, Rung.ARGV))}
    one = JobGpus(
        job=job_on(["gpu01"], 1),
        hosts=(answered("gpu01", [gpu("gpu01", 0)], by_uuid=weak),),
    )
    line = job_lines(one, NOW)[-1]
    assert line.split()[2:4] == ["3,4", "77,78"]
    assert "rank by argv" in line
    assert job_dict(one)["gpus"][0]["ranks"][0]["rung"] == "argv"
    assert host.pids(gpu("gpu01", 0)) == (900,)


def test_a_process_without_a_rank_still_has_its_pid() -> None:
    one = JobGpus(
        job=job_on(["gpu01"], 1), hosts=(answered("gpu01", [gpu("gpu01", 0)], by_uuid={}),)
    )
    assert job_lines(one, NOW)[1].split()[:3] == ["NODE", "GPU", "PID"]
    assert job_lines(one, NOW)[2].split()[:3] == ["gpu01", "0", "900"]


def test_a_driver_that_hangs_is_told() -> None:
    one = JobGpus(job=job_on(["gpu03"], 8), hosts=(stuck("gpu03"),))
    lines = job_lines(one, NOW)
    assert lines[0].endswith("0 of 1 host answered, 0 of 8 GPUs seen")
    assert lines[1] == "  gpu03: nvidia-smi on gpu03 did not answer in 10 s."
    assert len(lines) == 2


def test_gpus_that_cannot_be_told_apart_are_said_to_be_so() -> None:
    host = answered("gpu01", [], gpus=None, says="not told apart from other jobs' GPUs")
    assert "not told apart from other jobs' GPUs" in host_words(host)


def test_nodes_looked_at_by_themselves() -> None:
    one = JobGpus(job=None, hosts=(answered("gpu01", [gpu("gpu01", 0)]), silent("gpu02")))
    assert job_lines(one, NOW)[0] == "nodes: 1 of 2 hosts answered, 1 GPU seen"
    assert job_dict(one)["job"] is None


def test_hostile_text_stays_on_its_line() -> None:
    evil = "x\nY\x1b[2J"
    one = JobGpus(
        job=job_on(["gpu01"], 1, name=evil), hosts=(answered(evil, [gpu(evil, 0)], says=evil),)
    )
    text = "\n".join(job_lines(one, NOW))
    assert "\x1b" not in text
    assert text.count("\n") == len(job_lines(one, NOW)) - 1


@pytest.mark.parametrize(
    ("tres", "says"),
    [
        (Tres(gpus=0, slices_by_type=(("1g.10gb", 2),)), "holds 2 MIG slices, no whole GPU"),
        (Tres(gpus=0, shards=4), "holds 4 GPU shards, no whole GPU"),
        (Tres(gpus=0, mps=50), "holds 50 MPS shares, no whole GPU"),
    ],
)
def test_a_job_with_parts_of_gpus_alone_is_told_by_what_it_holds(tres: Tres, says: str) -> None:
    host = replace(answered("gpu01", [gpu("gpu01", 0)]), gpus=None, held=None)
    one = JobGpus(job=replace(job_on(["gpu01"], 0), tres=tres), hosts=(host,))
    title = job_lines(one, NOW)[0]
    assert says in title
    assert "GPUs seen" not in title
    found = job_dict(one)
    assert found["slices_allocated"] == dict(tres.slices_by_type)
    assert (found["shards_allocated"], found["mps_allocated"]) == (tres.shards, tres.mps)


def test_a_card_that_gives_no_value_is_not_seen() -> None:
    names = ("util_percent", "power_w", "mem_used_mib", "temp_c", "sm_clock_mhz")
    dead = gpu("gpu01", 1, **dict.fromkeys(names), words=tuple((name, "ERR!") for name in names))
    one = JobGpus(job=job_on(["gpu01"], 2), hosts=(answered("gpu01", [gpu("gpu01", 0), dead]),))
    lines = job_lines(one, NOW)
    assert "1 of 2 GPUs seen" in lines[0]
    assert "no value of it can be read (ERR!)" in lines[-1]
    assert job_dict(one)["hosts"][0]["gpus_seen"] == 1
