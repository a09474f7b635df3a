"""The smaller sources: scontrol, sinfo, the cluster's settings."""

import pytest

from slurmtop.collect.cluster_info import ClusterInfo, cluster_info, read_cluster_info
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.scontrol import fetch_job_detail
from slurmtop.collect.sinfo import NodeSource
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.sinfo import sinfo_format
from tests.collect.slurm_forms import MARK, fixture
from tests.fakes import START, FakeRunner

VERSIONS = ("22.05.8", "24.11.5", "26.05.5")
UNKNOWN = "slurm_load_jobs error: Invalid job id specified\n"


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.mark.parametrize("version", VERSIONS)
async def test_details_of_a_job(runner: FakeRunner, version: str) -> None:
    runner.on("scontrol*", fixture(version, "scontrol_job.out"))
    (detail,) = await fetch_job_detail(runner, "2", "alpha")
    assert detail.job.name == "llm-pretrain"
    assert detail.job.key.cluster == "alpha"
    assert detail.job.stdout is not None
    assert runner.calls[0].argv == (
        "scontrol",
        "-M",
        "alpha",
        "--local",
        "-d",
        "show",
        "job",
        "2",
    )


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [("", UNKNOWN), ("Job 98_99 not found\n", ""), ("", "Job 98_99 not found\n")],
)
async def test_031_an_unknown_job_is_told_apart(
    runner: FakeRunner, stdout: str, stderr: str
) -> None:
    runner.on("scontrol*", stdout, rc=1, stderr=stderr)
    with pytest.raises(SourceFailed) as failed:
        await fetch_job_detail(runner, "98_99")
    assert failed.value.failure.trouble is Trouble.UNKNOWN_JOB


async def test_nodes_come_once_each(runner: FakeRunner) -> None:
    runner.on("sinfo*", fixture("22.05.8", "nodes_marked.out"))
    source = NodeSource(runner, cluster="alpha", mark=b"\x1eq7Vd2k")
    nodes = await source.fetch()
    assert len(nodes.rows) > 1
    assert len({node.name for node in nodes.rows}) == len(nodes.rows)
    assert nodes.bad == 0
    assert runner.calls[0].argv[:6] == ("sinfo", "-h", "-a", "-N", "-M", "alpha")
    assert runner.calls[0].argv[-1] == sinfo_format(b"\x1eq7Vd2k")


async def test_A10_a_field_that_sinfo_does_not_know_is_dropped(runner: FakeRunner) -> None:
    def answer(command: Command) -> Completed:
        if "GresUsed" in command.argv[-1]:
            error = b"sinfo: error: Invalid node format specification: GresUsed\n"
            return Completed(0, b"x", error, START, 0.1)
        row = "gpu01|idle|gpu:8|0/8/0/8|100|50|0.1|root|Unknown|gpu*|none".replace("|", "\x1f")
        return Completed(0, row.encode() + MARK + b"\n", b"", START, 0.1)

    runner.on_call("sinfo*", answer)
    source = NodeSource(runner, mark=MARK)
    nodes = await source.fetch()
    assert [node.name for node in nodes.rows] == ["gpu01"]
    assert nodes.rows[0].gpus()[1] is None
    await source.fetch()
    assert len(runner.calls) == 3


async def test_C4_sinfo_that_fails_is_no_empty_cluster(runner: FakeRunner) -> None:
    error = "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n"
    runner.on("sinfo*", "", rc=1, stderr=error)
    with pytest.raises(SourceFailed) as failed:
        await NodeSource(runner).fetch()
    assert failed.value.failure.trouble is Trouble.DOWN


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("22.05.8", "mini"),
        ("24.11.5", "trixie"),
        ("26.05.5", "sid"),
    ],
)
async def test_settings_of_real_clusters(runner: FakeRunner, version: str, name: str) -> None:
    runner.on("scontrol*show config", fixture(version, "scontrol_config.out"))
    info = await read_cluster_info(runner, cluster="alpha")
    assert info == ClusterInfo(
        name=name,
        version=version,
        min_job_age_s=300,
        kill_wait_s=5,
        requeues_by_default=True,
        private_data=(),
        accounting="accounting_storage/slurmdbd",
        has_accounting=True,
        slurm_user="slurm",
    )
    assert not info.hides_jobs
    assert runner.calls[0].argv == ("scontrol", "-M", "alpha", "show", "config")


def test_settings_that_are_missing_are_unknown() -> None:
    assert cluster_info({}) == ClusterInfo()


def test_settings_of_other_clusters() -> None:
    info = cluster_info(
        {
            "AccountingStorageType": "accounting_storage/none",
            "PrivateData": "jobs,Usage",
            "JobRequeue": "0",
            "KillWait": "30 sec",
            "MinJobAge": "strange",
        }
    )
    assert info.has_accounting is False
    assert info.hides_jobs
    assert info.private_data == ("jobs", "usage")
    assert info.requeues_by_default is False
    assert (info.kill_wait_s, info.min_job_age_s) == (30, None)
    assert cluster_info({"AccountingStorageType": "(null)"}).has_accounting is False
