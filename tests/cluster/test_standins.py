"""What the nodes' GPU tools print is what slurmtop reads, and says where the ranks really are."""

import json
import subprocess
import urllib.request

import pytest

from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.parse.gpu.compute_apps import apps_argv, parse_compute_apps
from slurmtop.parse.gpu.dcgm import newest, parse_discovery, parse_dmon, with_uuids
from slurmtop.parse.gpu.exporter import gpus_of, parse_prometheus
from slurmtop.parse.gpu.fields import CORE_FIELDS, OPTIONAL_FIELDS, fields_after_refusal
from slurmtop.parse.gpu.nvidia_smi import query_argv, read_query
from slurmtop.parse.gpu.nvidia_smi_list import parse_list
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import NODES
from tests.cluster.standins.cards import uuid_of
from tests.cluster.training import Training

#: What is not ours changes seldom.
pytestmark = pytest.mark.long

FIELDS = (*CORE_FIELDS, *OPTIONAL_FIELDS)


def ask(cluster: Cluster, host: str, *argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["ssh", "-o", "BatchMode=yes", host, *argv], capture_output=True, timeout=30, check=False
    )


def query(cluster: Cluster, host: str, fields: tuple[str, ...] = FIELDS) -> NodeGpus:
    done = ask(cluster, host, *query_argv(fields))
    return read_query(host, fields, done.returncode, done.stdout, done.stderr)


def test_the_login_side_has_no_gpu_tools(cluster: Cluster) -> None:
    done = cluster.run("sh", "-c", "command -v nvidia-smi dcgmi", check=False)
    assert not done.stdout


def test_ranks_are_where_they_say(cluster: Cluster, training: Training) -> None:
    uuids = set()
    for host in NODES:
        gpus = query(cluster, host)
        assert gpus.answer is Answer.OK
        assert gpus.bad == 0
        uuids |= {gpu.uuid for gpu in gpus.samples}
        parsed = parse_compute_apps(ask(cluster, host, *apps_argv()).stdout)
        assert parsed.bad == 0
        told = {(one.gpu_uuid, one.pid) for one in parsed.rows}
        assert told == {(rank.uuid, rank.pid) for rank in training.on(host)}
        for gpu in gpus.samples:
            assert gpu.util_percent is not None
            busy = gpu.uuid in {rank.uuid for rank in training.on(host)}
            assert (gpu.util_percent > 90) is busy
            assert gpu.words == ()
    assert len(uuids) == 8 * len(NODES)


def test_dcgm_counts_in_its_own_order(cluster: Cluster, training: Training) -> None:
    host = "gpu02"
    names = parse_discovery(ask(cluster, host, "dcgmi", "discovery", "-l").stdout)
    asked = ("dcgmi", "dmon", "-e", "203,1002,1004,155,230", "-d", "200", "-c", "3")
    parsed = parse_dmon(ask(cluster, host, *asked).stdout)
    assert parsed.bad == 0
    assert len(parsed.rows) == 24
    first, last = parsed.rows[0], with_uuids(newest(parsed.rows), names)
    assert first.sm_active is None
    busy = {gpu.uuid for gpu in last if (gpu.sm_active or 0) > 0.8}
    assert busy == {rank.uuid for rank in training.on(host)}
    assert names[0] != uuid_of(host, 0)


def test_the_exporter_tells_the_job(cluster: Cluster, training: Training) -> None:
    with urllib.request.urlopen("http://gpu03:9400/metrics", timeout=10) as answer:
        series = parse_prometheus(answer.read())
    assert series.bad == 0
    gpus = gpus_of(series.rows, "gpu03")
    assert len(gpus) == 8
    assert {gpu.uuid for gpu in gpus if training.job in gpu.jobs} == {
        rank.uuid for rank in training.on("gpu03")
    }


def test_an_old_driver_takes_what_is_left(cluster: Cluster, faults: Faults) -> None:
    faults.set_gpu("gpu01", "old-driver")
    fields: tuple[str, ...] | None = FIELDS
    refusals = 0
    while fields is not None:
        done = ask(cluster, "gpu01", *query_argv(fields))
        if done.returncode == 0:
            break
        refusals += 1
        fields = fields_after_refusal(fields, done.stdout)
    assert fields is not None
    assert "clocks_throttle_reasons.active" in fields
    assert set(FIELDS) - set(fields) == {
        "gpu_recovery_action",
        "fabric.state",
        "fabric.status",
        "fabric.cliqueId",
        "fabric.clusterUuid",
    }
    assert refusals == 5


def test_a_lost_gpu(cluster: Cluster, faults: Faults) -> None:
    faults.set_gpu("gpu02", "lost", 3)
    gpus = query(cluster, "gpu02")
    assert gpus.answer is Answer.GPU_LOST
    assert gpus.samples == ()
    assert [bus.lower() for bus in gpus.lost] == ["0000:5d:00.0"]
    done = ask(cluster, "gpu02", "nvidia-smi", "-L")
    listed = parse_list("gpu02", done.returncode, done.stdout, done.stderr)
    assert len(listed.samples) == 7
    only = query_argv(("index", "uuid"), only=uuid_of("gpu02", 4))
    assert ask(cluster, "gpu02", *only).stdout.decode().startswith("4, GPU-")


def test_a_parent_of_slices(cluster: Cluster, training: Training, faults: Faults) -> None:
    gpu = training.on("gpu03")[0].gpu
    faults.set_gpu("gpu03", "mig", gpu)
    parent = query(cluster, "gpu03").samples[gpu]
    assert parent.mig is True
    assert parent.util_percent is None


def test_what_hangs_cannot_be_ended_by_its_user(cluster: Cluster, faults: Faults) -> None:
    def stuck() -> list[str]:
        return [one.state for one in faults.processes("gpu04") if one.name == "nvidia-smi"]

    faults.set_gpu("gpu04", "hung")
    with subprocess.Popen(["ssh", "-o", "BatchMode=yes", "gpu04", "nvidia-smi", "-L"]) as asking:
        try:
            cluster.wait_for("a process in state D", lambda: "D" in stuck())
            killed = ask(cluster, "gpu04", "pkill", "-KILL", "-x", "nvidia-smi")
            assert killed.returncode != 0
            assert "D" in stuck()
            faults.set_gpu("gpu04", "normal")
            assert stuck() == []
        finally:
            asking.terminate()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("closed", "Connection refused"),
        ("unknown key", "Host key verification failed"),
        ("other key", "IDENTIFICATION HAS CHANGED"),
        ("refuses", "Permission denied"),
    ],
)
def test_ways_in_which_ssh_fails(cluster: Cluster, faults: Faults, how: str, says: str) -> None:
    faults.set_ssh("gpu02", how)  # type: ignore[arg-type]
    assert says in ask(cluster, "gpu02", "true").stderr.decode()
    assert ask(cluster, "gpu03", "true").returncode == 0


def test_the_next_one_finds_all_mended(cluster: Cluster) -> None:
    for host in NODES:
        done = ask(cluster, host, "cat", "/run/gpus/state.json")
        assert done.returncode in (0, 1), done
        if done.returncode == 0:
            assert json.loads(done.stdout)["mode"] == "normal"
