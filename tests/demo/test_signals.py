"""Whom a signal reaches in the simulated cluster, and what it does to them."""

import pytest

from slurmtop.collect.clock import spawn
from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.script import Fate, Recipient
from tests.demo.kit import MOE_LOG, PRETRAIN_LOG, Lab, capture, lab
from tests.fakes import settle

SFT_LOG = "/shared/alice/sft/logs/sft_4822.log"


async def ended(demo: Lab, job: str) -> str:
    fields = "JobID,State,ExitCode,DerivedExitCode"
    return await demo.ask("sacct", "-n", "-P", "-j", job, "-o", fields)


async def signal(demo: Lab, *argv: str) -> None:
    done = await demo.done("scancel", "--ctld", *argv)
    assert (done.rc, done.stdout, done.stderr) == (0, b"", b"")
    await demo.later(40)


async def test_ranks_that_are_prepared_save_and_go_on() -> None:
    demo = lab()
    script = await demo.ask("scontrol", "write", "batch_script", "4811", "-")
    assert "#SBATCH --signal=USR1@120\n" in script
    assert 'srun bash -c \'trap "" USR1; exec torchrun' in script
    await signal(demo, "--signal=USR1", "4811")
    await demo.later(120)
    log = await demo.log(PRETRAIN_LOG)
    assert "got USR1, saving a checkpoint\n" in log
    assert "\ncheckpoint saved at step 12430\n" in log
    assert "step 12480/72000" in log.split("got USR1")[1], "training goes on behind it"
    assert await demo.state("4811") == "RUNNING"
    await demo.ask("scontrol", "requeue", "4811")
    await demo.later(600)
    assert "resumed from checkpoints/step-012430\n" in await demo.log(PRETRAIN_LOG)


async def test_a_batch_shell_that_is_prepared_saves_and_goes_on() -> None:
    demo = lab()
    script = await demo.ask("scontrol", "write", "batch_script", "4822", "-")
    assert "#SBATCH --signal=B:USR1@120\n" in script
    assert "trap '" in script
    await signal(demo, "--signal=USR1", "--batch", "4822")
    log = await demo.log(SFT_LOG)
    assert "got USR1, saving a checkpoint" in log
    assert "checkpoint saved at step " in log
    assert await demo.state("4822") == "RUNNING"


@pytest.mark.parametrize(
    ("job", "argv", "rows", "says"),
    [
        pytest.param(
            "4817",
            ("--signal=USR1",),
            "|FAILED|10:0|0:10\n|FAILED|10:0|\n|CANCELLED|0:10|\n",
            "srun: error: gpu03: task 0: User defined signal 1\n",
            id="steps of an unprepared job",
        ),
        pytest.param(
            "4817",
            ("--signal=USR1", "--batch"),
            "|FAILED|0:10|0:0\n|CANCELLED|0:10|\n|CANCELLED|0:15|\n",
            "STEP 4817.0 ON gpu03 FAILED (non-zero exit code or other failure mode) ***\n",
            id="batch shell of an unprepared job",
        ),
        pytest.param(
            "4811",
            ("--signal=USR1", "--full"),
            "|FAILED|0:10|0:0\n|CANCELLED|0:10|\n|CANCELLED|0:15|\n",
            "got USR1, saving a checkpoint\n",
            id="the ranks would save, but the shell above them dies",
        ),
        pytest.param(
            "4822",
            ("--signal=USR1",),
            "|FAILED|10:0|0:10\n|FAILED|10:0|\n|CANCELLED|0:10|\n",
            "User defined signal 1",
            id="steps below a prepared shell",
        ),
        pytest.param(
            "4822",
            ("--signal=USR2", "--batch"),
            "|FAILED|0:12|0:0\n|CANCELLED|0:12|\n|CANCELLED|0:15|\n",
            "",
            id="another signal than the one it traps",
        ),
    ],
)
async def test_what_is_not_prepared_dies(
    job: str, argv: tuple[str, ...], rows: str, says: str
) -> None:
    demo = lab()
    logs = {"4817": MOE_LOG, "4811": PRETRAIN_LOG, "4822": SFT_LOG}
    await signal(demo, *argv, job)
    ids = ("", ".batch", ".0")
    told = "".join(f"{job}{id}{row}\n" for id, row in zip(ids, rows.split("\n"), strict=False))
    assert await ended(demo, job) == told
    if "--batch" in argv or "--full" in argv:
        number = told.split("|0:")[1][:2]
        reason = await demo.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%r")
        assert reason.startswith(f"RaisedSignal:{number}(")
    log = await demo.log(logs[job])
    assert says in log
    assert "checkpoint saved" not in log


@pytest.mark.parametrize("job", ["4811", "4822", "4817"])
@pytest.mark.parametrize(
    ("recipient", "flags"),
    [
        (Recipient.STEPS, ()),
        (Recipient.BATCH, ("--batch",)),
        (Recipient.EVERYTHING, ("--full",)),
    ],
)
async def test_what_the_script_lets_expect_is_what_happens(
    job: str, recipient: Recipient, flags: tuple[str, ...]
) -> None:
    demo = lab()
    script = await demo.ask("scontrol", "write", "batch_script", job, "-")
    fates = {one.fate for one in reactions(read_script(script), "USR1", recipient)}
    await signal(demo, "--signal=USR1", *flags, job)
    lives = await demo.state(job) == "RUNNING"
    if Fate.DIES in fates:
        assert not lives
    elif Fate.UNKNOWN not in fates:
        assert lives


async def test_harmless_signals_do_nothing() -> None:
    demo = lab()
    for name in ("CONT", "STOP", "URG"):
        await signal(demo, f"--signal={name}", "--full", "4817")
    assert await demo.state("4817") == "RUNNING"


async def test_a_step_is_cancelled_and_signalled_by_its_id() -> None:
    demo = lab()
    await signal(demo, "--signal=USR1", "4811.0")
    assert "checkpoint saved" in await demo.log(PRETRAIN_LOG)
    assert await demo.state("4811") == "RUNNING"
    await signal(demo, "4811.0")
    assert await ended(demo, "4811") == (
        "4811|FAILED|9:0|0:9\n4811.batch|FAILED|9:0|\n4811.0|CANCELLED|0:9|\n"
    )
    missing = "scancel: error: Kill job error on job step id 4811: Invalid job id specified\n"
    assert await demo.refused("scancel", "--ctld", "4811.0") == (225, missing)
    assert await demo.refused("scancel", "--ctld", "4822.7") == (
        225,
        missing.replace("4811", "4822"),
    )
    assert await demo.refused("scancel", "--ctld", "4826.0") == (
        210,
        "scancel: error: Kill job error on job step id 4826: Access/permission denied\n",
    )


async def test_tasks_of_an_array_in_brackets() -> None:
    demo = lab()
    await signal(demo, "--signal=USR1", "4830_[70,72]")
    assert await demo.state("4830_70") == "FAILED"
    assert await demo.state("4830_71") == "RUNNING"
    assert await demo.state("4830_72") == "FAILED"


async def test_a_job_that_waits_makes_scancel_try_for_95_seconds_of_the_cluster() -> None:
    demo = lab()
    asking = spawn(demo.done("scancel", "--ctld", "--signal=USR1", "4922", "4811"), name="scancel")
    await settle()
    await demo.later(90)
    assert not asking.done()
    assert "got USR1" in await demo.log(PRETRAIN_LOG), "the others got it at once"
    await demo.later(10)
    done = await asking
    assert done.rc == 228
    assert done.stderr.decode() == capture("scancel_signal_pending.err").replace("24", "4922")


async def test_refusals_of_a_signal() -> None:
    demo = lab()
    assert await demo.refused("scancel", "--signal=NOPE", "4811") == (
        1,
        capture("scancel_badsig.err"),
    )
    assert await demo.refused("scancel", "--signal=USR1", "--batch", "4801") == (
        1,
        capture("scancel_signal_finished.err").replace("20", "4801"),
    )
    done = await demo.done("scancel", "--ctld", "--signal=USR1", "99999", "4801")
    assert (done.rc, done.stderr) == (0, b""), "with --ctld nothing is said of them"
    done = await demo.done("scancel", "--ctld", "--signal=USR1", "4826", "4811")
    assert done.rc == 0
    assert b"on job id 4826: Access/permission denied" in done.stderr
    await demo.later(40)
    assert "got USR1" in await demo.log(PRETRAIN_LOG)


async def test_the_steps_that_run() -> None:
    demo = lab()
    form = "StepID:|,StepState:|,StartTime:|,NumTasks:|,Nodes:|,StepName:#"
    asked = ("squeue", "--local", "-h", "-a", "-s", "-j", "4811,4822,4922,99999", "-O", form)
    assert await demo.ask(*asked) == (
        "4811.0|RUNNING|2031-05-05T06:48:01|16|gpu[01-02]|bash#\n"
        "4811.batch|RUNNING|2031-05-05T06:48:00|1|gpu01|batch#\n"
        "4822.0|RUNNING|2031-05-05T11:12:01|4|gpu05|python#\n"
        "4822.batch|RUNNING|2031-05-05T11:12:00|1|gpu05|batch#\n"
    )
    assert await demo.ask("squeue", "-s", "-h", "-j", "99999", "-o", "%i") == ""
    assert await demo.ask("squeue", "-hs4811.0", "-o", "%i %j %u %N") == (
        "4811.0 bash alice gpu[01-02]\n"
    )
    het = await demo.ask("squeue", "-hs", "-j", "4815", "-o", "%i")
    assert het.split() == ["4815+0.0", "4815+0.batch", "4815+1.0"]
    task = await demo.ask("squeue", "--steps", "-h", "-j", "4830_70", "-o", "%i")
    assert task.split() == ["4830_70.0", "4830_70.batch"]
    table = await demo.ask("squeue", "-s", "-j", "4824")
    assert table.splitlines()[0] == (
        "         STEPID     NAME PARTITION     USER      TIME NODELIST"
    )
    bad = await demo.done("squeue", "-s", "-h", "-j", "4811", "-O", "bogus")
    assert bad.stderr == b"squeue: error: Invalid job step format specification: bogus\n"


async def test_who_people_are_to_accounting() -> None:
    demo = lab()
    asked = ("sacctmgr", "-n", "-P", "show", "user", "where")
    assert await demo.ask(*asked, "name=alice", "withcoord") == "alice|ml|None|\n"
    assert await demo.ask(*asked, "name=bob", "withcoord") == "bob|ml|None|ml\n"
    assert await demo.ask(*asked, "name=root") == "root|root|Administrator\n"
    assert await demo.ask(*asked, "name=nobody", "withcoord") == ""
    headed = await demo.ask("sacctmgr", "-P", "show", "user", "where", "name=alice", "withcoord")
    assert headed.startswith("User|Def Acct|Admin|Coord Accounts\n")
    assert (await demo.refused("sacctmgr", "add", "user", "x"))[0] == 1
