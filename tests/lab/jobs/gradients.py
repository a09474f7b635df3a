"""How ranks meet in a step: in the loop, in the hooks of DDP, or on a helper thread."""

import os
import queue
import threading
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tests.lab.jobs.places import FAULT, FAULT_RANK, RANK, STEP, mark

#: So many steps the main thread runs ahead of the helper thread, and so often it waits for all.
AHEAD, EVERY = 4, 10


@dataclass
class Sync:
    """The model as it is called, and who sums up its gradients."""

    module: torch.nn.Module
    ahead: "Ahead | None" = None


class Ahead:
    """Collectives on a thread of their own: the call comes back before they have ended."""

    def __init__(self) -> None:
        self._wanted: queue.Queue[torch.Tensor] = queue.Queue(maxsize=AHEAD)
        threading.Thread(target=self._run, name="comm-stream", daemon=True).start()

    def all_reduce(self, tensor: torch.Tensor) -> None:
        self._wanted.put(tensor)

    def synchronize(self) -> None:
        self._wanted.join()

    def _run(self) -> None:
        while True:
            dist.all_reduce(self._wanted.get())
            self._wanted.task_done()


def make_sync(net: torch.nn.Module) -> Sync:
    how = os.environ.get("SYNC", "reduce")
    if how == "ddp":
        return Sync(DistributedDataParallel(net))
    return Sync(net, Ahead() if how == "ahead" else None)


def flat(module: torch.nn.Module) -> torch.Tensor:
    parts = [one.grad.flatten() for one in module.parameters() if one.grad is not None]
    return torch.cat(parts)


def average(sync: Sync, step: int) -> None:
    """Sum the gradients up over all ranks; DDP has done so already."""
    whole = flat(sync.module)
    if FAULT == "order-deadlock" and step == STEP:
        crossed(whole)
    elif FAULT == "other-branch" and step == STEP and RANK == FAULT_RANK:
        mark("fault", step)
        log_metrics()
    elif FAULT == "shape-mismatch" and step == STEP and RANK == FAULT_RANK:
        mark("fault", step)
        dist.all_reduce(torch.cat([whole, whole]))
    elif sync.ahead is not None:
        sync.ahead.all_reduce(whole)
        if step % EVERY == 0:
            sync.ahead.synchronize()
    elif isinstance(sync.module, DistributedDataParallel):
        dist.all_reduce(torch.ones(1))
    else:
        dist.all_reduce(whole)


def log_metrics() -> None:
    """What only one rank does: the others never come to this barrier."""
    dist.barrier()


def crossed(whole: torch.Tensor) -> None:
    """Two groups of all ranks; one half goes through them in the other order."""
    tensor_group, data_group = dist.new_group(), dist.new_group()
    if RANK == FAULT_RANK:
        mark("fault", STEP)
    early = range(dist.get_world_size() // 2)
    if RANK in early:
        dist.all_reduce(whole, group=tensor_group)
        dist.all_reduce(whole, group=data_group)
    else:
        dist.all_reduce(whole, group=data_group)
        dist.all_reduce(whole, group=tensor_group)
