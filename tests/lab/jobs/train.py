"""A training of the lab: four ranks that meet in every step, and one fault in one of them.

``FAULT`` names the case of ``tests/lab/truth.py``, ``FAULT_RANK`` the rank and ``FAULT_STEP`` the
step at which it happens. ``SYNC`` is how ranks meet: ``reduce`` (all_reduce in the loop), ``ddp``
(in the hooks of DistributedDataParallel) or ``ahead`` (all_reduce on a helper thread, while the
main thread runs several steps ahead: as on CUDA). Faults that come from outside (signals, a frozen
node, a cut cable) are made by the driver; here they are nothing.
"""

import os
import random
import time
import warnings
from datetime import timedelta

warnings.simplefilter("ignore")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from tests.lab.jobs import hooks  # noqa: E402
from tests.lab.jobs.gradients import average, make_sync  # noqa: E402
from tests.lab.jobs.places import FAULT, RANK, STEP, here, mark, mine  # noqa: E402

WIDTH = 128
STEP_S = float(os.environ.get("STEP_S", "0.3"))
TIMEOUT = timedelta(seconds=int(os.environ.get("GROUP_TIMEOUT_S", "120")))
LAST = STEP if FAULT in ("teardown", "idle-shell") else 100000
FLUSH = FAULT != "buffered-log"


class Tokens(Dataset[torch.Tensor]):  # type: ignore[misc]
    """Samples without end; one a step."""

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> torch.Tensor:
        if FAULT == "data-loader" and mine(index + 1):
            self.wait_for_shard(index)
        return torch.full((WIDTH,), (index % 7) / 7)

    def wait_for_shard(self, index: int) -> None:
        """A shard that is being copied in, it is said, and that never comes."""
        mark("fault", index + 1)
        while not os.path.exists(f"/dataset/shard-{index:05}.bin"):  # noqa: PTH110
            time.sleep(3600)


def say(text: str) -> None:
    """A line of the log, with the time and the rank, as trainers print it."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    print(f"[{now}] [rank{RANK}] {text}", flush=FLUSH)


def forward(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    """A little arithmetic, and the time that a GPU would need."""
    until = time.monotonic() + STEP_S * 0.9
    loss = torch.stack([model(batch).square().mean() for _ in range(8)]).mean()
    if FAULT == "uneven-data":
        until += random.Random(f"{RANK} {time.time()}").uniform(0, 1.5)
    time.sleep(max(0.0, until - time.monotonic()))
    return loss


def train() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    say(f"world size {dist.get_world_size()}, host {os.uname().nodename}, pid {os.getpid()}")
    here()
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH))
    sync = make_sync(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    loader = DataLoader(Tokens(), batch_size=1, num_workers=1, prefetch_factor=2)
    begun = time.monotonic()
    for step, batch in enumerate(loader, 1):
        hooks.before(step)
        optimizer.zero_grad()
        loss = forward(sync.module, batch)
        loss.backward()
        average(sync, step)
        optimizer.step()
        hooks.after(step, net)
        if RANK == 0 and (FLUSH or step % 10 == 0):
            took, begun = time.monotonic() - begun, time.monotonic()
            say(f"step {step}/{LAST} | loss {2 + 1 / step:.4f} | lr 1.00e-03 | {took:.2f} s/step")
        if step >= LAST:
            break


def main() -> None:
    dist.init_process_group("gloo", timeout=TIMEOUT)
    train()
    dist.barrier()
    say("training finished, final checkpoint saved")
    hooks.at_end()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
