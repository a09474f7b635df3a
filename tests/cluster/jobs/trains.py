"""A healthy training: ranks that meet in every step, and a line of progress of the first one."""

import os
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

if "RANK" not in os.environ:
    # Started by srun, one task a rank.
    for name, source in (("RANK", "PROCID"), ("WORLD_SIZE", "NTASKS"), ("LOCAL_RANK", "LOCALID")):
        os.environ[name] = os.environ[f"SLURM_{source}"]
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, step = dist.get_rank(), 0
devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
print(f"rank {rank} on {os.uname().nodename} pid {os.getpid()} sees {devices}", flush=True)
# In a file of its own as well: lines of several ranks may come out mixed.
at = Path(f"rank-{os.environ['SLURM_JOB_ID']}-{rank}")
at.with_suffix(".new").write_text(f"{os.uname().nodename} {os.getpid()} {devices}")
at.with_suffix(".new").replace(at)
while True:
    one = torch.ones(1)
    dist.all_reduce(one)
    step += 1
    if rank == 0:
        print(f"step {step}/1000000 loss={2 + 1 / step:.4f} ranks={int(one)}", flush=True)
    time.sleep(0.5)
