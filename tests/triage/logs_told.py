"""Logs of one training, each with what went wrong in it, and what they are judged to tell."""

import dataclasses

from slurmtop.model.facts import LogsSay
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.join import join
from slurmtop.triage.logs_say import logs_say

LOG = "/scratch/anna/run9/4711.out"
PEER = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer"
    " [10.1.2.3]:48279"
)
RAISED = f"""\
step 1/60 loss=2.5
step 2/60 loss=2.4
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/anna/train.py", line 41, in step
[rank2]:     batch = load(number)
[rank2]: ValueError: shard data-02 is empty
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/anna/train.py", line 52, in step
[rank1]:     dist.all_reduce(batch)
[rank1]: {PEER}
srun: error: gpu03: task 2: Exited with exit code 1
srun: error: gpu02: task 1: Exited with exit code 1
"""
CRASHED = f"""\
step 2/60 loss=2.4
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/anna/train.py", line 52, in step
[rank1]: {PEER}
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/anna/train.py", line 52, in step
[rank0]: {PEER}
[rank3]: Traceback (most recent call last):
[rank3]:   File "/home/anna/train.py", line 52, in step
[rank3]: {PEER}
srun: error: gpu03: task 2: Segmentation fault (core dumped)
srun: error: gpu02: task 1: Exited with exit code 1
srun: error: gpu01: task 0: Exited with exit code 1
"""
KILLED = CRASHED.replace("Segmentation fault (core dumped)", "Killed")
TIMED_OUT = """\
step 480/1000 loss=2.1
[rank3]:[E1201 03:10:11.120000 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective \
operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, \
Timeout(ms)=600000) ran for 600014 milliseconds before timing out.
"""
STALL = """\
step 480/1000 loss=2.1
[2026-12-01 03:10:11.120000: W horovod/common/stall_inspector.cc:107] One or more tensors were \
submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder \
of ranks for more than 60 seconds.
Missing ranks:
2: [allreduce.grad_0]
"""
SURVIVED = """\
Traceback (most recent call last):
  File "/home/anna/train.py", line 12, in fetch
ValueError: mirror answers nonsense
trying the next mirror
step 1/60 loss=2.5
step 2/60 loss=2.4
step 3/60 loss=2.3
"""
LIMIT = """\
slurmstepd: error: *** JOB 4711 ON gpu01 CANCELLED AT 2031-05-05T11:50:00 DUE TO TIME LIMIT ***
"""


def say(text: str, **changes: object) -> LogsSay:
    said = logs_say(join(read_bytes(LOG, text.encode())))
    assert said is not None
    return dataclasses.replace(said, **changes)  # type: ignore[arg-type]
