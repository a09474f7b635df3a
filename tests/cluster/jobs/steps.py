"""Ranks without PyTorch: they make steps until they are ended, and throw when they are told to."""

import os
import signal
import sys
import time

rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])


def told_to_end(number: int, _frame: object) -> None:
    raise RuntimeError(f"rank {rank} cannot save: the loader ended with signal {number}")


signal.signal(signal.SIGTERM, told_to_end)
print(f"rank {rank} of {ranks} on {os.uname().nodename}", flush=True)
step = 0
while True:
    step += 1
    if rank == 0:
        print(f"step {step}/100000 loss={2 + 1 / step:.4f}", flush=True)
    elif step == 1:
        print(f"rank {rank} is at work", file=sys.stderr, flush=True)
    time.sleep(1)
