"""No command line makes the demo raise: it answers, or it says what is wrong."""

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.ports import Command
from tests.demo.kit import Lab, lab

PROGRAMS = ("squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "scancel", "sdiag")
WORDS = (
    "-h", "-a", "-o", "-O", "-t", "-j", "-u", "-M", "-r", "-S", "-n", "-X", "-D", "-P", "-d",
    "-s", "-v", "-l", "--me", "--start", "--version", "--delimiter", "show", "job", "node",
    "config", "partition", "hold", "release", "requeue", "requeuehold", "update", "write",
    "batch_script", "ping", "hostnames", "4811", "4817", "4830", "4830_70", "4830_[1-5,800]",
    "4830_*", "4815+1", "4919", "4826", "99999999", "0", "abc", "all", "R,PD", "aurora", "alice",
    "nosuch", "jobid=4910", "timelimit=10", "ExcNodeList=gpu01", "nodename=gpu01", "USR1", "9",
    "JobID:|,State:.9x", "JobID,State", "%i %T", "%.18i|%R", "now-1hour", "2031-05-05", "-",
    "--ctld", "--signal=USR1", "--batch", "--full", "--local", "-s4811.0", "--steps", "4811.0",
    "4811.batch", "4822", "4807", "4830_[70,72-74]", "4922,4811", "JobId=4830_[80-82],4910",
    "TimeLimit=5", "ExcNodeList=gpu[01-02]", "user", "where", "name=alice", "withcoord",
    "StepID:|,StepName:#", "gpu[01-03]", "a[1", "", "=", "%", "\x1e", "\n",
)  # fmt: skip
arguments = st.one_of(st.sampled_from(WORDS), st.text(max_size=12))


@given(program=st.sampled_from(PROGRAMS), argv=st.lists(arguments, max_size=7))
@settings(max_examples=400, deadline=None)
async def test_any_command_line_is_answered(program: str, argv: list[str]) -> None:
    await _answered(lab(), program, argv)


SHARED = lab()


@given(st.lists(st.tuples(st.sampled_from(PROGRAMS), st.lists(arguments, max_size=5)), max_size=6))
@settings(max_examples=60, deadline=None)
async def test_so_is_any_row_of_them(story: list[tuple[str, list[str]]]) -> None:
    demo = lab()
    for program, argv in story:
        await _answered(demo, program, argv)
        await demo.later(600)
    assert "JOBID" in await demo.ask("squeue")


async def _answered(demo: Lab, program: str, argv: list[str]) -> None:
    done = await demo.patient(program, *argv)
    assert done.rc is not None
    assert done.rc == 0 or done.stderr.strip() or done.stdout.strip()
    assert done.started_at.tzinfo is not None


@given(st.lists(st.text(max_size=10), max_size=3))
@settings(max_examples=50, deadline=None)
async def test_other_programs_are_not_found(argv: list[str]) -> None:
    done = await SHARED.runner.run(Command(("nvidia-smi", *argv)))
    assert done.rc == 127
    assert done.stderr == b"nvidia-smi: command not found\n"


async def test_no_program_and_another_host_are_refused_in_words() -> None:
    done = await SHARED.runner.run(Command(()))
    assert (done.rc, bool(done.stderr)) == (127, True)
    done = await SHARED.runner.run(Command(("squeue",), host="gpu01"))
    assert done.rc == 127
    assert done.stderr == b"squeue: command not found\n"


async def test_output_past_the_limit_is_dropped_and_said() -> None:
    done = await SHARED.runner.run(Command(("squeue",), max_bytes=100))
    assert len(done.stdout) == 100
    assert done.truncated


async def test_a_path_to_a_program_will_do_and_a_stream_gives_the_same() -> None:
    done = await SHARED.runner.run(Command(("/usr/bin/squeue", "-h")))
    assert done.rc == 0
    parts = [part async for part in SHARED.runner.stream(Command(("squeue", "-h")))]
    assert b"".join(parts) == done.stdout


async def test_sdiag_counts_the_calls() -> None:
    demo = lab()
    await demo.ask("squeue")
    text = await demo.ask("sdiag")
    assert text.startswith("*" * 55 + "\nsdiag output at Mon May 05 12:00:00 2031 (")
    assert "REQUEST_JOB_INFO " in text
    assert await demo.refused("sdiag", "-r") == (
        1,
        "slurm_reset_statistics: Access/permission denied\n",
    )
