"""The batch script and the ways in which there is none, as scontrol really says them."""

from pathlib import Path

import pytest

from slurmtop.collect.batch_script import read_batch_script, script_number
from slurmtop.model.ports import RunnerError
from slurmtop.model.script import ScriptStatus
from tests.build import make_job
from tests.fakes import FakeRunner

SCRIPTS = {
    path.parent.name: path.read_bytes()
    for path in (Path(__file__).resolve().parents[2] / "fixtures/slurm").glob("*/batch_script.out")
}


@pytest.mark.parametrize("release", ["22.05.8", "24.11.5", "26.05.5"])
async def test_a_script_comes_whole(release: str) -> None:
    runner = FakeRunner()
    runner.on("scontrol write batch_script 2 -", SCRIPTS[release])
    script = await read_batch_script(runner, "2")
    assert script.status is ScriptStatus.READ
    assert script.text == SCRIPTS[release].decode()
    assert not script.cut


@pytest.mark.parametrize("rc", [0, 1])
@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Job script not specified", ScriptStatus.NONE),
        ("Invalid job id specified", ScriptStatus.FORGOTTEN),
        ("Invalid user id", ScriptStatus.DENIED),
        ("Access/permission denied", ScriptStatus.DENIED),
        ("Unable to contact slurm controller (connect failure)", ScriptStatus.FAILED),
    ],
)
async def test_a_refusal_is_known_by_its_words(rc: int, said: str, status: ScriptStatus) -> None:
    """Release 22.05 ends with exit code 0 also where it refuses."""
    runner = FakeRunner()
    runner.on("scontrol *", rc=rc, stderr=f"job script retrieval failed: {said}\n")
    script = await read_batch_script(runner, "4711")
    assert script.status is status
    assert script.text == ""
    assert script.why


async def test_silence_of_the_controller_and_of_this_machine_are_sentences() -> None:
    runner = FakeRunner()
    runner.on("scontrol *", rc=None, took_s=35.0)
    assert (await read_batch_script(runner, "4711")).why == "the controller did not answer in 35 s"
    runner.on_call("scontrol *", RunnerError("scontrol is not here"))
    assert (await read_batch_script(runner, "4711")).why == "scontrol is not here"


async def test_latin_1_in_a_script_costs_a_sign_and_not_the_script() -> None:
    runner = FakeRunner()
    runner.on("scontrol *", b"#!/bin/sh\n# f\xfcr\n")
    assert (await read_batch_script(runner, "1")).text == "#!/bin/sh\n# f�r\n"


@pytest.mark.parametrize("number", ["", "4711_3", "--help", "1 2", "٣"])
async def test_only_a_plain_number_is_put_on_the_command_line(number: str) -> None:
    runner = FakeRunner()
    assert (await read_batch_script(runner, number)).status is ScriptStatus.FAILED
    assert runner.calls == []


async def test_another_cluster_is_named() -> None:
    runner = FakeRunner()
    runner.on("scontrol -M hpc2 write batch_script 5 -", "#!/bin/sh\n")
    assert (await read_batch_script(runner, "5", cluster="hpc2")).status is ScriptStatus.READ


def test_a_task_is_asked_for_by_its_own_number_and_a_het_part_by_its_leader() -> None:
    assert script_number(make_job("4711_3", raw_id="4715")) == "4715"
    assert script_number(make_job("4711+1", raw_id="4712")) == "4711"
    assert script_number(make_job("4711", raw_id=None)) == "4711"
