"""A training of which one rank fails in its third step, in the way that FAILS names."""

import ctypes
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
print(f"rank {rank} of {dist.get_world_size()} on {os.uname().nodename}", flush=True)
HERE = Path(f"{os.environ['FAILS']}-{os.environ['SLURM_JOB_ID']}")


def load_shard(number: int) -> torch.Tensor:
    if rank == 2 and step == 3:
        fail(os.environ["FAILS"])
    return torch.ones(1) * number


def fail(how: str) -> None:
    if how == "raise":
        raise ValueError(f"shard data-{rank:02} is empty")
    if how == "segv":
        ctypes.string_at(0)
    if how == "eat":
        HERE.write_text(f"{os.uname().nodename} {os.getpid()}")
        # Until its memory is limited; then more than it may have.
        while not HERE.with_suffix(".limited").exists():
            time.sleep(0.1)
        eaten = [bytearray(16 * 2**20) for _ in range(1000)]
        print(f"ate {len(eaten)}", flush=True)


while step < 60:
    step += 1
    batch = load_shard(step)
    dist.all_reduce(batch)
    if rank == 0:
        print(f"step {step}/60 loss={2 + 1 / step:.4f}", flush=True)
    time.sleep(0.2)
