"""``slurmtop nodes``: the table and the JSON, where a wish fits, and how it ends."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from slurmtop.model.text import cell_width
from tests.cli.stand_ins import StandIns, node_row, queue_row, slurmtop

LONG = (
    "gres/gpu count reported lower than configured (7 < 8), \x1b[31mticket\u202e 4411 " + "x" * 90
)


def a_cluster(slurm: StandIns) -> None:
    slurm.say(
        jobs=[queue_row("4711", NodeList="gpu[1-2]")],
        nodes=[
            node_row("gpu10"),
            node_row("gpu2", "mixed", 3),
            node_row("gpu1", "mixed", 8),
            node_row("gpu1", "mixed", 8, Partition="long"),
            node_row("gpu3", "drained*", Reason=LONG, User="root", Timestamp="2031-05-05T10:00:00"),
            node_row("gpu4", "mixed", GresUsed="N/A"),
            node_row("a-node-with-a-rather-long-name", "idle", Partition="a-long-partition-name"),
        ],
    )


def test_an_output_without_signs_tells_an_idle_node_from_an_unknown_one(
    slurm: StandIns, home: Path
) -> None:
    slurm.say(jobs=[], nodes=[node_row("gpu1", "idle"), node_row("gpu2", "odd")])
    environ = {**slurm.environ(home), "PYTHONIOENCODING": "latin-1"}
    lines = slurmtop(environ, "nodes").stdout.splitlines()
    states = {line.split()[0]: line.split()[1:3] for line in lines if line.startswith("gpu")}
    assert states == {"gpu1": ["o", "idle"], "gpu2": ["?", "unknown"]}


def test_the_table_fits_80_columns_and_cuts_no_reason(slurm: StandIns, home: Path) -> None:
    a_cluster(slurm)
    done = slurmtop(slurm.environ(home), "nodes")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    whole = " ".join(done.stdout.split())
    head = (
        "6 nodes: 1 broken; 11 of 48 GPUs used, 21 free, 7 idle not to be had, 1 lost; 1 node told"
    )
    assert whole.startswith(head)
    names = [line.split()[0] for line in lines if "/8" in line]
    assert names == [
        "gpu3",
        *("a-node-with-a-rather-long-name", "gpu1", "gpu2", "gpu4", "gpu10"),
    ]
    assert max(map(cell_width, lines)) <= 100, "a name is never cut"
    assert "reported lower than configured (7 < 8), ␛[31mticket‹202E› 4411" in whole
    assert "\x1b" not in done.stdout
    gpu4 = next(line for line in lines if line.startswith("gpu4"))
    assert "?/8" in gpu4
    gpu3 = next(line for line in lines if line.startswith("gpu3"))
    assert gpu3.split()[1:6] == ["✗", "drained*", "0/8", "(7)", "1"]


def test_80_columns(slurm: StandIns, home: Path) -> None:
    nodes = [
        node_row("gpu-rack07-12", "draining@", 8, Partition="gpu-large*", Reason=LONG),
        node_row("gpu-rack07-12", "draining@", 8, Partition="preempt", Reason=LONG),
    ]
    slurm.say(jobs=[queue_row("12345678_999", NodeList="gpu-rack07-12")], nodes=nodes)
    done = slurmtop(slurm.environ(home), "nodes", "--fit", "4x8 h100 gpu-large")
    assert done.returncode == 0
    assert max(cell_width(line) for line in done.stdout.splitlines()) <= 80


def test_json(slurm: StandIns, home: Path) -> None:
    a_cluster(slurm)
    done = slurmtop(slurm.environ(home), "nodes", "--json")
    found = json.loads(done.stdout)
    assert found["schema"] == "slurmtop.nodes/1"
    assert found["age_s"] >= 0
    assert datetime.fromisoformat(found["sampled_at"]).tzinfo is not None
    nodes = {node["name"]: node for node in found["nodes"]}
    assert nodes["gpu1"]["partitions"] == ["gpu", "long"]
    assert [job["id"] for job in nodes["gpu1"]["jobs"]] == ["4711"]
    assert nodes["gpu2"]["gpus"] == {
        "total": 8,
        "used": 3,
        "free": 5,
        "lost": None,
        "shared": 0,
        "types": ["h100"],
    }
    assert nodes["gpu4"]["gpus"]["used"] is None
    assert nodes["gpu4"]["gpus"]["free"] is None
    broken = nodes["gpu3"]
    assert (broken["usable"], broken["in_trouble"], broken["gpus"]["lost"]) == ("no", True, 1)
    assert broken["reason"] == LONG
    assert datetime.fromisoformat(broken["reason_at"]).utcoffset() is not None
    assert found["fit"] is None


def test_filter_and_fit(slurm: StandIns, home: Path) -> None:
    a_cluster(slurm)
    done = slurmtop(slurm.environ(home), "nodes", "free:>=8", "part:gpu", "--fit", "1x8 h100")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("1 of 6 nodes")
    assert lines[1].startswith("1 node of 8 h100 GPUs would fit now in gpu")
    assert lines[2].strip() == "for example gpu10"
    assert lines[-1].startswith("gpu10")
    done = slurmtop(slurm.environ(home), "nodes", "--json", "--fit", "3x8")
    assert done.returncode == 0, "that it does not fit is an answer"
    fit = json.loads(done.stdout)["fit"]
    assert (fit["fits_now"], fit["wish"]["nodes"]) == (False, 3)
    best = fit["partitions"][0]
    assert (best["partition"], best["now"]) == ("gpu", ["gpu10"])
    assert {one["node"]: one["why"] for one in best["later"]} == {
        "gpu2": "5 of 8 GPUs free",
        "gpu1": "0 of 8 GPUs free",
    }
    assert [one["node"] for one in best["unknown"]] == ["gpu4"]
    assert datetime.fromisoformat(best["by_at_latest"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("colour:red",), "filter: no filter key 'colour'"),
        (("--fit", "many"), "--fit: nodes x GPUs a node is wanted"),
        (("--fit", "4x8 h1o0"), "did you mean 'h100'?"),
        (("--what",), "--what"),
    ],
)
def test_wrong_usage(slurm: StandIns, home: Path, arguments: tuple[str, ...], words: str) -> None:
    a_cluster(slurm)
    done = slurmtop(slurm.environ(home), "nodes", *arguments)
    assert done.returncode == 64
    assert done.stdout == ""
    assert words in done.stderr


def test_an_outage_is_one_line_and_not_an_empty_table(slurm: StandIns, home: Path) -> None:
    words = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"sinfo": [words, 1]}, jobs=[])
    done = slurmtop(slurm.environ(home), "nodes")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("slurmtop: the nodes cannot be read: ")
    assert done.stderr.count("\n") == 1


def test_without_the_queue_the_nodes_are_still_told(slurm: StandIns, home: Path) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"squeue": [words, 1]}, nodes=[node_row("gpu1", "mixed", 3)])
    done = slurmtop(slurm.environ(home), "nodes")
    assert done.returncode == 0
    assert "the jobs on the nodes are not known" in done.stderr
    assert done.stdout.splitlines()[-1].endswith("?")
    done = slurmtop(slurm.environ(home), "nodes", "--json")
    assert json.loads(done.stdout)["nodes"][0]["jobs"] is None


def test_each_is_asked_once(slurm: StandIns, home: Path) -> None:
    a_cluster(slurm)
    slurmtop(slurm.environ(home), "nodes", "--fit", "1x8")
    assert sorted(call[0] for call in slurm.calls) == ["sinfo", "squeue"]
