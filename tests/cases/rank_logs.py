"""Small made-up sets of one log a rank, in the forms that PyTorch and NCCL write, with one fault.

Generated, not captured: they hold what the known cases lack, a file of every rank.
"""

from collections.abc import Callable

WORLD = 6
FAULTY = 3


def _head(rank: int) -> list[str]:
    host, pid = f"gn{rank // 2:02}", 41_000 + rank
    here = f"{host}:{pid}:{pid} [{rank % 2}] NCCL INFO"
    ident = f"rank {rank} nranks {WORLD} cudaDev {rank % 2} nvmlDev {rank % 2} busId 1{rank}000"
    ident += " commId 0x9a7be1c2d3f40516"
    return [
        f"{here} Bootstrap : Using eth0:10.4.0.{rank // 2 + 10}<0>",
        f"{here} ncclCommInitRank comm 0x55{rank}1f00 {ident} - Init START",
        f"{here} ncclCommInitRank comm 0x55{rank}1f00 {ident} - Init COMPLETE",
        *(f"[rank{rank}]: step {step}/400 loss {3 - step / 100:.3f}" for step in range(1, 6)),
    ]  # fmt: skip


def _work(seq: int, op: str, numel: int) -> str:
    return (
        f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel},"
        " Timeout(ms)=600000)"
    )


def _watchdog(rank: int, seq: int, op: str, numel: int, done: int) -> list[str]:
    c10 = f"[rank{rank}]:[E612 11:4{rank}:07.118342917 ProcessGroupNCCL.cpp:"
    return [
        f"{c10}616] [Rank {rank}] Watchdog caught collective operation timeout:"
        f" {_work(seq, op, numel)} ran for 600021 milliseconds before timing out.",
        f"{c10}1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or"
        f" timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {seq},"
        f" last completed NCCL work: {done}.",
        f"{c10}630] [Rank {rank}] To avoid data inconsistency, we are taking the entire process"
        " down.",
    ]


def out_of_memory(rank: int) -> list[str]:
    """One rank runs out of GPU memory, the others wait until their time is up."""
    if rank != FAULTY:
        return [*_head(rank), *_watchdog(rank, 41, "ALLREDUCE", 4096, 40)]
    return [
        *_head(rank),
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/w/train.py", line 88, in step',
        f"[rank{rank}]:     loss.backward()",
        f"[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
        " GPU 1 has a total capacity of 79.11 GiB of which 1.02 GiB is free.",
    ]


def exception(rank: int) -> list[str]:
    """One rank fails in its own code."""
    if rank != FAULTY:
        return [*_head(rank), *_watchdog(rank, 41, "ALLREDUCE", 4096, 40)]
    return [
        *_head(rank),
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/w/data.py", line 12, in __getitem__',
        f"[rank{rank}]:     return self.rows[index]",
        f"[rank{rank}]: IndexError: list index out of range",
    ]


def other_size(rank: int) -> list[str]:
    """One rank calls the same operation with another number of elements."""
    numel = 4099 if rank == FAULTY else 4096
    return [*_head(rank), *_watchdog(rank, 41, "ALLREDUCE", numel, 40)]


def other_operation(rank: int) -> list[str]:
    """One rank is in another operation at the same place."""
    op = "BROADCAST" if rank == FAULTY else "ALLREDUCE"
    return [*_head(rank), *_watchdog(rank, 41, op, 4096, 40)]


def one_behind(rank: int) -> list[str]:
    """One rank is an operation behind."""
    seq = 40 if rank == FAULTY else 41
    return [*_head(rank), *_watchdog(rank, seq, "ALLREDUCE", 4096, seq - 1)]


def silent(rank: int) -> list[str]:
    """One rank says nothing any more: nobody knows why, and silence is no guilt."""
    if rank == FAULTY:
        return _head(rank)
    return [*_head(rank), *_watchdog(rank, 41, "ALLREDUCE", 4096, 40)]


def all_alike(rank: int) -> list[str]:
    """All time out alike."""
    return [*_head(rank), *_watchdog(rank, 41, "ALLREDUCE", 4096, 40)]


def healthy(rank: int) -> list[str]:
    return [*_head(rank), f"[rank{rank}]: Training completed."]


FAULTS: dict[str, Callable[[int], list[str]]] = {
    one.__name__: one
    for one in (
        out_of_memory, exception, other_size, other_operation, one_behind, silent, all_alike,
        healthy,
    )
}  # fmt: skip


def files_of(fault: str) -> dict[str, bytes]:
    """{file name: its bytes}, one a rank."""
    lines = FAULTS[fault]
    return {f"rank{rank}.log": ("\n".join(lines(rank)) + "\n").encode() for rank in range(WORLD)}
