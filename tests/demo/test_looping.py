"""Jobs of the demo that were restarted, looked at with what looks at real ones."""

from slurmtop.collect.runs import read_looping
from slurmtop.collect.sacct import Accounting
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job
from slurmtop.parse.slurm.squeue import QUEUE_FIELDS, parse_squeue, queue_format
from tests.demo.kit import Lab, lab


async def read(demo: Lab, number: str) -> str | None:
    mark = b"\x1eQwErTy"
    argv = ("squeue", "-h", "-a", "-t", "all", "-j", number, "-O", queue_format(mark))
    rows = parse_squeue(
        (await demo.done(*argv)).stdout,
        fields=[field for _, field in QUEUE_FIELDS],
        record_mark=mark,
    ).rows
    job: Job = rows[0]
    return await read_looping(demo.runner, demo.clock, Accounting(demo.runner, mark=mark), job)


async def test_the_job_that_requeued_itself_three_times_is_looping() -> None:
    demo = lab()
    script = await demo.ask("scontrol", "write", "batch_script", "4807", "-")
    assert 'scontrol requeue "$SLURM_JOB_ID"' in script
    assert "#SBATCH --open-mode=append\n" in script
    told = await read(demo, "4807")
    assert told is not None
    assert told.startswith(
        "looping: restarted 3 times, each of the last 4 runs ended with the same error, after"
        " 4 min: [rank0]: torch.OutOfMemoryError: CUDA out of memory."
    )


async def test_so_it_is_by_what_is_read_back_before_a_requeue() -> None:
    demo = lab()
    seen = await QueueReadBack(demo.runner).read(["4807"], "", excluded=True)
    (job,) = seen.jobs
    assert job.stdout is None, "this record says nothing of paths"
    told = await read_looping(demo.runner, demo.clock, Accounting(demo.runner), job)
    assert told is not None
    assert "each of the last 4 runs ended with the same error" in told


async def test_it_says_so_again_after_one_more_round() -> None:
    demo = lab()
    await demo.ask("scontrol", "requeue", "4807")
    await demo.later(600)
    assert await demo.state("4807") == "FAILED"
    told = await read(demo, "4807")
    assert told is not None
    assert "restarted 4 times" in told


async def test_a_job_that_is_put_back_by_a_person_is_not() -> None:
    demo = lab()
    for _ in range(3):
        await demo.ask("scontrol", "requeue", "4822")
        await demo.later(900)
    assert await read(demo, "4822") is None
