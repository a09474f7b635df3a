"""Who may change whose job: asked of accounting, unknown where it does not answer."""

import pytest

from slurmtop.collect.cluster_info import scancel_sends_many, takes_many
from slurmtop.collect.rights import read_rights
from slurmtop.collect.who import Who
from slurmtop.model.ports import RunnerError
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from tests.fakes import FakeRunner

ALICE = Who(1001, "alice")
CONFIG = "ClusterName = mini\nSlurmUser = slurm(64030)\nSLURM_VERSION = 22.05.8\n"


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.on("scontrol * config", CONFIG)
    made.on("scontrol show config", CONFIG)
    return made


async def test_root_asks_nobody(runner: FakeRunner) -> None:
    rights = await read_rights(runner, Who(0, "root"), "")
    assert rights.may_change("bob", "ml", "root") is True
    assert runner.calls == []


async def test_a_plain_user_may_change_only_their_own(runner: FakeRunner) -> None:
    runner.on("sacctmgr -n -P show user where name=alice withcoord", "alice|ml|None|\n")
    rights = await read_rights(runner, ALICE, "")
    assert rights == Rights(operator=False, coordinates=frozenset())
    assert rights.may_change("bob", "ml", "alice") is False
    assert rights.may_change("alice", "ml", "alice") is True


async def test_an_operator_needs_no_second_question(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "alice|ml|Operator|\n")
    rights = await read_rights(runner, ALICE, "")
    assert rights.operator is True
    assert len(runner.calls) == 1


async def test_a_coordinator_may_change_the_jobs_of_the_account(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "alice|ml|None|bio\n")
    rights = await read_rights(runner, ALICE, "beta")
    assert rights.may_change("bob", "bio", "alice") is True
    assert rights.may_change("bob", "ml", "alice") is False
    assert runner.calls[-1].argv[:3] == ("scontrol", "-M", "beta")


async def test_the_user_of_the_controller_may_do_anything(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "")
    assert (await read_rights(runner, Who(64030, "slurm"), "")).operator is True


async def test_a_user_that_accounting_does_not_know_is_no_operator(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "")
    assert await read_rights(runner, ALICE, "") == Rights(operator=False, coordinates=frozenset())


@pytest.mark.parametrize(
    ("said", "rc"),
    [
        ("sacctmgr: error: slurm_persist_conn_open_without_init: failed to open", 1),
        ("You are not running a supported accounting_storage plugin", 1),
        ("sacctmgr: error: something", 0),
        ("", None),
    ],
)
async def test_silence_of_accounting_is_not_a_no(
    runner: FakeRunner, said: str, rc: int | None
) -> None:
    runner.on("sacctmgr *", rc=rc, stderr=said)
    assert await read_rights(runner, ALICE, "") == UNKNOWN_RIGHTS


async def test_an_answer_about_somebody_else_is_none(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "bob|ml|Administrator|\n")
    assert await read_rights(runner, ALICE, "") == UNKNOWN_RIGHTS


async def test_no_sacctmgr_here(runner: FakeRunner) -> None:
    runner.on_call("sacctmgr *", RunnerError("there is no sacctmgr"))
    assert await read_rights(runner, ALICE, "") == UNKNOWN_RIGHTS


async def test_without_the_controllers_user_nobody_is_told_no(runner: FakeRunner) -> None:
    runner.on("sacctmgr *", "alice|ml|None|\n")
    runner.on("scontrol show config", rc=1, stderr="Unable to contact slurm controller")
    rights = await read_rights(runner, ALICE, "")
    assert rights.may_change("bob", "ml", "alice") is None


async def test_a_name_that_sacctmgr_would_read_as_more_is_not_asked(runner: FakeRunner) -> None:
    assert await read_rights(runner, Who(1001, "a,b"), "") == UNKNOWN_RIGHTS
    assert all(call.argv[0] != "sacctmgr" for call in runner.calls)


@pytest.mark.parametrize(
    ("version", "many"),
    [
        ("slurm-wlm 22.05.8", False),
        ("slurm 23.02.7", False),
        ("slurm 23.11.0", True),
        ("slurm 24.11.5", True),
        ("slurm 26.05.5", True),
        ("", False),
        ("slurm", False),
    ],
)
def test_versions(version: str, many: bool) -> None:
    assert takes_many(version) is many


async def test_which_scancel_sends_many(runner: FakeRunner) -> None:
    runner.on("scancel --version", "slurm 24.11.5\n")
    assert await scancel_sends_many(runner)
    runner.on("scancel --version", rc=1)
    assert not await scancel_sends_many(runner)
    runner.on_call("scancel --version", RunnerError("none"))
    assert not await scancel_sends_many(runner)
