"""Whose nodes are looked at, which GPUs are a job's, and what is asked of each node."""

from typing import Any

import pytest

from slurmtop.cli.errors import CannotWork, UsageError
from slurmtop.cli.gpu_gather import MOST_HOSTS, hosts_of, look_at, named_jobs, on_nodes
from slurmtop.cli.gpu_rows import job_lines
from slurmtop.cli.wiring import Wiring
from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.who import Who
from slurmtop.config import Config
from slurmtop.model.job import Job, Tres
from slurmtop.model.ports import Command, Completed, NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.triage.gpu_share import NOT_TOLD
from tests.build import make_job
from tests.collect.nodes.gpu_fakes import begun, ended, rows
from tests.collect.slurm_forms import MARK, queue_record
from tests.fakes import START, FakeRunner

DOWN = Failure(Trouble.DOWN, "gpu02 refuses connections on port 22: no sshd is running there.")


class Nodes(FakeRunner):
    """Slurm by patterns; each node answers the GPU script with so many GPUs, or not at all."""

    def __init__(self, gpus: dict[str, int]) -> None:
        super().__init__()
        self.gpus = gpus

    async def run(self, command: Command) -> Completed:
        if command.host is None:
            return await super().run(command)
        self.calls.append(command)
        if command.host not in self.gpus:
            raise NodeUnreachable(command.host, DOWN)
        if command.argv[3] != "slurmtop-gpus":
            return Completed(0, b"", b"", START, 0.1)
        fields = next(word for word in command.argv if word.startswith("index,"))
        utils = [97] * self.gpus[command.host]
        return Completed(0, begun() + rows(fields, *utils) + ended(0), b"", START, 0.1)

    def asked(self, name: str) -> list[str]:
        return [call.host for call in self.calls if call.host and call.argv[3] == name]


def wiring(runner: FakeRunner, uid: int = 1001) -> Wiring:
    return Wiring(
        runner=MeteredRunner(runner, runner.clock),
        clock=runner.clock,
        who=Who(uid, "anna"),
        cluster="",
        mark=MARK,
        live=True,
    )


def slurm(owner: str, state: str = "RUNNING") -> FakeRunner:
    runner = FakeRunner()
    runner.on("squeue *", queue_record(user=owner, state=state))
    runner.on("sacctmgr *", "anna|ml|None|\n")
    runner.on("scontrol *", "SlurmUser = slurm(64030)\n")
    return runner


async def test_the_nodes_of_somebody_elses_job_are_not_for_everybody() -> None:
    runner = slurm("bob")
    with pytest.raises(CannotWork) as caught:
        await named_jobs(wiring(runner), "4711", command="doctor")
    assert str(caught.value) == (
        "job 4711 is bob's, and only bob and operators may look at its nodes:"
        " bob can run slurmtop doctor 4711 and show you what it says"
    )
    runner.on("sacctmgr *", "anna|ml|Operator|\n")
    (job,) = await named_jobs(wiring(runner), "4711")
    assert job.user == "bob"
    assert len(await named_jobs(wiring(slurm("bob"), uid=0), "4711")) == 1
    assert len(await named_jobs(wiring(slurm("anna")), "4711")) == 1


async def test_a_job_that_holds_no_nodes() -> None:
    with pytest.raises(CannotWork, match=r"holds no nodes now \(PENDING\)"):
        await named_jobs(wiring(slurm("anna", state="PENDING")), "4711")
    with pytest.raises(UsageError):
        await named_jobs(wiring(FakeRunner()), "gpu01")


def job(id: str, nodes: str, count: int, gpus: int, **fields: Any) -> Job:
    return make_job(id, nodes=nodes, node_count=count, tres=Tres(gpus=gpus), **fields)


async def test_each_node_is_looked_at_once_and_failures_are_its_own() -> None:
    runner = Nodes({"gpu01": 8})
    one = job("1", "gpu[01-02]", 2, 16)
    (seen,) = await look_at(wiring(runner), Config(), [one])
    assert [host.look.host for host in seen.hosts] == ["gpu01", "gpu02"]
    assert [host.held for host in seen.hosts] == [None, None], "Slurm tells the sum alone"
    assert seen.hosts[0].gpus is not None
    assert len(seen.hosts[0].gpus) == 8
    assert seen.hosts[0].age_s == 0
    assert seen.hosts[1].gpus is None
    assert seen.hosts[1].look.failure == DOWN
    assert sorted(runner.asked("slurmtop-processes")) == ["gpu01", "gpu02"]


async def test_how_many_each_node_holds_is_known_once_all_are_seen() -> None:
    one = job("1", "gpu[01-02]", 2, 16)
    (seen,) = await look_at(wiring(Nodes({"gpu01": 8, "gpu02": 8})), Config(), [one])
    assert [host.held for host in seen.hosts] == [8, 8]
    # 3 GPUs on 2 nodes: the 8 that a login sees are not all the job's.
    odd = job("1", "gpu[01-02]", 2, 3)
    (seen,) = await look_at(wiring(Nodes({"gpu01": 8, "gpu02": 8})), Config(), [odd])
    assert [(host.gpus, host.says, host.held) for host in seen.hosts] == [
        (None, NOT_TOLD, None)
    ] * 2


async def test_two_jobs_on_one_node_cost_one_look_and_are_told_apart() -> None:
    runner = Nodes({"gpu01": 4})
    small, big = job("1", "gpu01", 1, 2), job("2", "gpu01", 1, 4)
    first, second = await look_at(wiring(runner), Config(), [small, big])
    # A cgroup shows four: those of the one job that holds four.
    assert first.hosts[0].gpus is None
    assert "not visible" in first.hosts[0].says
    assert second.hosts[0].gpus is not None
    assert runner.asked("slurmtop-gpus").count("gpu01") == 1
    assert runner.asked("slurmtop-processes") == ["gpu01"]


async def test_only_the_nodes_that_were_named() -> None:
    runner = Nodes({"gpu01": 8, "gpu07": 8})
    one = job("1", "gpu[01-02]", 2, 16)
    seen, alone = await look_at(wiring(runner), Config(), [one], hosts=("gpu01", "gpu07"))
    assert [host.look.host for host in seen.hosts] == ["gpu01"]
    assert seen.not_asked == ("gpu02",)
    assert alone.job is None
    assert [len(host.gpus or ()) for host in alone.hosts] == [8]
    assert set(runner.asked("slurmtop-gpus")) == {"gpu01", "gpu07"}


async def test_of_a_job_on_very_many_nodes_the_first_are_asked_and_the_rest_are_told() -> None:
    runner = Nodes({f"n{number:04d}": 8 for number in range(1, 4)})
    one = job("1", "n[0001-1500]", 1500, 12_000)
    two = job("2", "m[01-02]", 2, 16)
    first, second = await look_at(wiring(runner), Config(), [one, two])
    assert len(first.hosts) == MOST_HOSTS
    assert len(first.not_asked) == 1500 - MOST_HOSTS
    assert [len(host.gpus or ()) for host in first.hosts[:3]] == [8, 8, 8]
    assert second.not_asked == ("m01", "m02")
    title = job_lines(first, START)[0]
    assert f"{1500 - MOST_HOSTS} nodes not asked" in title
    assert "24 of 12000 GPUs seen" in title


async def test_a_list_of_nodes_that_cannot_be_read_is_told() -> None:
    (seen,) = await look_at(wiring(Nodes({})), Config(), [job("1", "gpu[01", 2, 16)])
    assert seen.nodes_unknown
    lines = job_lines(seen, START)
    assert "its nodes are not known" in lines[0]
    assert "Slurm's list of its nodes cannot be read: gpu[01" in lines[1]


def test_which_jobs_may_have_gpus() -> None:
    assert on_nodes(make_job(gpus=8))
    assert on_nodes(make_job(gpus=None)), "Slurm did not say"
    assert not on_nodes(make_job(gpus=0))
    assert on_nodes(make_job(tres=Tres(gpus=0, slices_by_type=(("1g.10gb", 2),))))
    assert not on_nodes(make_job("1", "PENDING", gpus=8))


@pytest.mark.parametrize("text", ["-oProxyCommand=x", "a;b", "gpu[1", "gpu01,-x", "é"])
def test_a_name_that_ssh_would_take_for_an_option_is_no_node(text: str) -> None:
    with pytest.raises(UsageError):
        hosts_of(text)


def test_lists_of_nodes() -> None:
    assert hosts_of("gpu01,gpu[03-04],gpu01") == ("gpu01", "gpu03", "gpu04")
