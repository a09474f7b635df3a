"""scontrol show of the demo against the captures, field by field."""

import re

import pytest

from tests.demo.kit import blocks_of, capture, keys_of, lab


async def test_a_running_block_has_the_fields_of_the_capture_in_their_order() -> None:
    text = await lab().ask("scontrol", "show", "job", "-d", "4817")
    assert keys_of(text.replace("gpu04 ", "")) != []
    real = capture("scontrol_job.out")
    one_node = re.sub(r"\n {5}Nodes=gpu04.*", "", text)
    assert keys_of(one_node) == keys_of(real)
    assert text.endswith("\n   \n\n")
    indents = [len(line) - len(line.lstrip()) for line in one_node.splitlines()]
    assert indents == [len(line) - len(line.lstrip()) for line in real.splitlines()]


async def test_a_running_block_says_what_the_world_holds() -> None:
    text = await lab().ask("scontrol", "show", "job", "4817")
    for line in (
        "   JobState=RUNNING Reason=None Dependency=(null)\n",
        "   RunTime=02:03:00 TimeLimit=1-00:00:00 TimeMin=N/A\n",
        "   NodeList=gpu[03-04]\n   BatchHost=gpu03\n",
        "   StdOut=/shared/alice/moe/logs/moe_4817.log\n",
        "   TresPerNode=gres/gpu:h100:8\n",
    ):
        assert line in text
    assert "DerivedExitCode" not in text


async def test_the_array_prints_a_block_a_record_the_rest_first() -> None:
    text = await lab().ask("scontrol", "show", "job", "4830")
    blocks = blocks_of(text)
    real = blocks_of(capture("scontrol_job_array.out").replace("MinMemoryCPU", "MinMemoryNode"))
    assert keys_of(blocks[0]) == keys_of(real[0])
    assert keys_of(blocks[-1]) == keys_of(real[1])
    assert blocks[0].startswith("JobId=4830 ArrayJobId=4830 ArrayTaskId=76-999%8 ")
    assert "StdOut=/shared/alice/sweep/logs/4830_4294967294.out" in blocks[0]
    assert len(blocks) == 77


async def test_one_task_is_found_running_or_waiting() -> None:
    demo = lab()
    running = await demo.ask("scontrol", "show", "job", "4830_70")
    assert len(blocks_of(running)) == 1
    assert "ArrayTaskId=70 " in running
    assert "ArrayTaskId=76-999%8 " in await demo.ask("scontrol", "show", "job", "4830_500")
    assert await demo.ask("scontrol", "show", "job", "4830_5000", rc=1) == (
        "Job 4830_5000 not found\n"
    )


async def test_a_het_job_prints_its_parts() -> None:
    demo = lab()
    real = blocks_of(capture("scontrol_job_het.out"))
    blocks = blocks_of(await demo.ask("scontrol", "show", "job", "4918"))
    assert [keys_of(block) for block in blocks] == [keys_of(real[0])] * 2
    assert "HetJobIdSet=4918-4919" in blocks[1]
    only = await demo.ask("scontrol", "show", "job", "4918+1")
    assert only.startswith("JobId=4919 HetJobId=4918 HetJobOffset=1 ")


async def test_one_line_is_the_block_joined() -> None:
    demo = lab()
    block = await demo.ask("scontrol", "show", "job", "4811")
    line = await demo.ask("scontrol", "-o", "show", "job", "4811")
    assert line == block.removesuffix("\n\n").replace("\n   ", " ") + "\n"
    real = capture("scontrol_jobs_oneline.out").splitlines()
    assert keys_of(line) == keys_of(next(one for one in real if one.startswith("JobId=18 ")))


async def test_ended_jobs_tell_how() -> None:
    demo = lab()
    failed = await demo.ask("scontrol", "show", "job", "4801")
    assert "JobState=FAILED Reason=NonZeroExitCode" in failed
    assert " ExitCode=1:0\n" in failed
    killed = await demo.ask("scontrol", "show", "job", "-d", "4803")
    assert "JobState=OUT_OF_MEMORY Reason=OutOfMemory" in killed
    assert "   DerivedExitCode=0:125\n" in killed
    assert "StdErr=/shared/alice/data/logs/laion_4803.err" in killed
    assert "JobState=TIMEOUT Reason=TimeLimit" in await demo.ask("scontrol", "show", "job", "4805")


async def test_blanks_of_a_reason_become_underscores() -> None:
    text = await lab().ask("scontrol", "show", "job", "4916")
    assert "Reason=ReqNodeNotAvail,_UnavailableNodes:gpu07 Dependency" in text
    assert "ReqNodeList=gpu07 " in text


async def test_a_requeued_job_counts_its_restarts() -> None:
    assert " Restarts=1 " in await lab().ask("scontrol", "show", "job", "4822")


async def test_what_the_controller_has_forgotten_is_invalid() -> None:
    demo = lab()
    invalid = (1, "slurm_load_jobs error: Invalid job id specified\n")
    assert await demo.refused("scontrol", "show", "job", "4702") == invalid
    assert await demo.refused("scontrol", "show", "job", "99999999") == invalid
    assert await demo.refused("scontrol", "show", "job", "abc") == (
        1,
        "scontrol_print_job error: Invalid job id specified\n",
    )


async def test_nodes_have_the_fields_of_the_capture() -> None:
    demo = lab()
    real = blocks_of(capture("scontrol_node.out"))
    blocks = blocks_of(await demo.ask("scontrol", "show", "node"))
    assert len(blocks) == 8
    assert keys_of(blocks[0]) == keys_of(real[0])
    assert keys_of(blocks[7]) == keys_of(real[1])
    assert "State=IDLE+DRAIN " in blocks[6]
    assert "   Reason=Xid 79 on gpu 3 [root@2031-05-05T03:00:00]" in blocks[6]
    assert "State=DOWN+NOT_RESPONDING " in blocks[7]
    one = await demo.ask("scontrol", "-o", "show", "node", "gpu[07-08]")
    assert len(one.splitlines()) == 2
    assert "  Reason=" in one


async def test_config_and_partitions_have_the_fields_of_the_captures() -> None:
    demo = lab()
    config = await demo.ask("scontrol", "show", "config")
    names = [line.split("=")[0].strip() for line in config.splitlines()]
    assert names[1:] == [
        line.split("=")[0].strip() for line in capture("scontrol_config.out").splitlines()[1:]
    ]
    assert "\nClusterName             = aurora\n" in config
    assert "@" not in config
    blocks = blocks_of(await demo.ask("scontrol", "show", "partition"))
    assert [keys_of(block) for block in blocks] == [keys_of(capture("scontrol_partition.out"))] * 2
    assert await demo.ask("scontrol", "show", "partition", "nosuch", rc=1) == (
        "Partition nosuch not found\n"
    )


async def test_ping_hostnames_and_version() -> None:
    demo = lab()
    assert await demo.ask("scontrol", "ping") == "Slurmctld(primary) at login1 is UP\n"
    out = await demo.ask("scontrol", "show", "hostnames", "gpu[01-03,07],login1")
    assert out == capture("scontrol_hostnames.out")
    for program in ("squeue", "sinfo", "scontrol", "sacct", "scancel"):
        assert await demo.ask(program, "--version") == capture("version.out")


async def test_the_batch_script_is_the_owners() -> None:
    demo = lab()
    script = await demo.ask("scontrol", "write", "batch_script", "4817", "-")
    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=moe-8x7b\n")
    assert "#SBATCH --output=logs/moe_%j.log\n" in script
    array = await demo.ask("scontrol", "write", "batch_script", "4830", "-")
    assert "#SBATCH --array=0-999%8\n" in array
    rc, text = await demo.refused("scontrol", "write", "batch_script", "4826", "-")
    assert rc == 1
    assert text == "job script retrieval failed: Access/permission denied\n"
    rc, text = await demo.refused("scontrol", "write", "batch_script", "4817")
    assert rc == 1
    assert "Read-only file system" in text


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("bogus",), "invalid keyword: bogus\n"),
        (("show",), "too few arguments for keyword:show\n"),
        (("show", "bogus"), "invalid entity:bogus for keyword:show \n"),
        (("hold",), "too few arguments for keyword:hold\n"),
        (("--bogus",), "scontrol: unrecognized option '--bogus'\n"),
    ],
)
async def test_complaints_are_the_real_ones(argv: tuple[str, ...], complaint: str) -> None:
    rc, text = await lab().refused("scontrol", *argv)
    assert rc == 1
    assert text.startswith(complaint)
