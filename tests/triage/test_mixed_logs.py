"""Whole logs of several runs, jobs and sources: each run is judged by what is its own."""

from collections.abc import Sequence

import pytest

from slurmtop.model.trace import Traces, joined
from slurmtop.model.verdict import State, Verdict
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.judge import explain_traces


def judged(*logs: tuple[str, str]) -> Verdict:
    return explain_traces(read(logs))


def read(logs: Sequence[tuple[str, str]]) -> Traces:
    return joined(read_bytes(name, text.encode()) for name, text in logs)


def steps(day_and_hour: str, first: int = 0, count: int = 60) -> str:
    return "".join(
        f"{day_and_hour}:{at // 60:02d}:{at % 60:02d} INFO step {first + at} loss 2.1\n"
        for at in range(count)
    )


THROWN = """\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/anna/train.py", line 12, in load
[rank2]:     x = d['label']
[rank2]: KeyError: 'label'
"""
TABLE = """\
E0505 12:00:06.000000 4700 torch/distributed/elastic/multiprocessing/api.py:869] failed \
(exitcode: 1) local_rank: 2 (pid: 4711) of binary: /env/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2031-05-05_12:00:05
  host      : gpu03
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 4711)
  error_file: <N/A>
============================================================
"""
SLURM = "slurmstepd: error: *** JOB 55 ON gpu01 CANCELLED AT 2031-05-05T12:10:00 DUE TO"
PREEMPTED = f"""\
{SLURM} PREEMPTION ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
"""
EXITED = """\
srun: error: gpu03: task 2: Exited with exit code 1
srun: Terminating StepId=55.0
"""
RESUMED = "INFO Resuming from checkpoint /ckpt/900\n"
BANNER = "NCCL version 2.21.5+cuda12.4\n"
FINISHED = "2031-05-05 15:59:00 INFO Training finished.\n"
BEFORE, AFTER = steps("2031-05-05 12"), steps("2031-05-05 15", 900)

RUN_AGAIN = {
    "preempted-then-resumed": PREEMPTED + RESUMED + AFTER,
    "preempted-then-a-new-communicator": PREEMPTED + BANNER + AFTER + FINISHED,
    "a-node-lost-then-steps-hours-later": f"{SLURM} NODE FAILURE ***\n{AFTER}",
    "torchrun-gave-up-then-a-new-communicator": THROWN + TABLE + BANNER + AFTER + FINISHED,
    "torchrun-gave-up-then-resumed": THROWN + TABLE + EXITED + RESUMED + AFTER,
    "a-loop-in-the-batch-script": THROWN + EXITED + "try 2 of 3\n" + AFTER + FINISHED,
}
ENDED = {
    "dying-ranks-go-on-for-a-moment": PREEMPTED + steps("2031-05-05 12", 60, 20),
    "others-outlive-a-task": THROWN + EXITED.split("\n")[0] + "\n" + AFTER + FINISHED,
    "it-fails-again": THROWN + TABLE + RESUMED + AFTER + THROWN + TABLE,
    "the-new-run-has-not-moved": PREEMPTED + RESUMED,
}


@pytest.mark.parametrize("name", RUN_AGAIN)
def test_an_end_with_a_run_behind_it_is_history_and_told_beside_the_verdict(name: str) -> None:
    verdict = judged(("train.log", BEFORE + RUN_AGAIN[name]))
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy"), verdict.summary
    assert not verdict.culprits
    assert [one.says for one in verdict.against if "earlier run" in one.says]


@pytest.mark.parametrize("name", ENDED)
def test_an_end_without_a_run_behind_it_stands(name: str) -> None:
    verdict = judged(("train.log", BEFORE + ENDED[name]))
    assert verdict.state is State.FAILED, verdict.summary
