"""The job of ``step_time.py``: steps of some work, a wait as for a GPU, and a collective.

Rank 0 writes the time of each step's end (seconds since 1970) and its length to ``STEPS``.
"""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

for name, source in (("RANK", "PROCID"), ("WORLD_SIZE", "NTASKS"), ("LOCAL_RANK", "LOCALID")):
    os.environ.setdefault(name, os.environ[f"SLURM_{source}"])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
batch = torch.randn(96, 96)
with Path(os.environ["STEPS"]).open("a", buffering=1, encoding="ascii") as out:
    step, before = 0, time.monotonic()
    while True:
        for _ in range(20):
            batch = torch.tanh(batch @ batch)
        time.sleep(0.08)
        one = torch.ones(1)
        dist.all_reduce(one)
        now = time.monotonic()
        step += 1
        if rank == 0:
            out.write(f"{time.time():.3f} {now - before:.6f}\n")
            if step % 20 == 0:
                print(f"step {step}/1000000 loss={2 + 1 / step:.4f}", flush=True)
        before = now
