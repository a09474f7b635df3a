"""What happens beside the steps: faults of a rank itself, and silences in which nothing is wrong.

Each is what a program really does; none looks at who watches it.
"""

import atexit
import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from tests.lab.jobs.places import (
    FAULT,
    QUIET_S,
    RANK,
    SHARED,
    STEP,
    mark,
    mine,
    place,
)

#: Not more than so much of a CPU: the machine is small.
SHARE = 0.25
_libc = ctypes.CDLL(None)


def before(step: int) -> None:
    """Whatever happens before a step is computed."""
    if step == 1 and FAULT == "long-first-step":
        warm_up()
    if step == STEP and FAULT == "compile":
        compile_kernels()
    if RANK_FAULTS.get(FAULT) is not None and mine(step) and not over():
        mark("fault", step)
        RANK_FAULTS[FAULT]()
    if FAULT == "slow-rank" and step >= STEP and mine(STEP):
        if step == STEP:
            mark("fault", step)
        normalise_text()


def after(step: int, net: torch.nn.Module) -> None:
    """Whatever happens between two steps."""
    if step != STEP:
        return
    if FAULT == "evaluation":
        evaluate(net)
    elif FAULT == "slow-checkpoint":
        save_slowly()
    elif FAULT == "checkpoint":
        save_shard(net)


def at_end() -> None:
    """After the last step."""
    if FAULT == "teardown" and mine(STEP):
        mark("fault", STEP)
        atexit.register(flush_tracker)


# Faults of one rank.


def read_schedule() -> None:
    """Read the learning rates of a scheduler that never writes them."""
    path = fifo("schedule")
    print(Path(path).read_text())


def deduplicate() -> None:
    """Python code that does not come to an end."""
    seen, number = set[int](), 1
    while number not in seen:
        number = (number * 48271 + 11) % 2147483647
        if number < 0:
            seen.add(number)


def tokenize_natively() -> None:
    """A C function that keeps the interpreter's lock."""
    ctypes.PyDLL(None).sleep(3600)


def open_on_dead_server() -> None:
    """Wait in the kernel, uninterruptibly: for a child of vfork that waits for a FIFO.

    As with a file server that went away, the lock of the interpreter is free meanwhile.
    """
    path = fifo("server")
    actions = ctypes.create_string_buffer(512)
    _libc.posix_spawn_file_actions_init(actions)
    _libc.posix_spawn_file_actions_addopen(actions, 0, os.fsencode(path), os.O_RDONLY, 0)
    argv = (ctypes.c_char_p * 2)(b"/bin/true", None)
    child = ctypes.c_int()
    _libc.posix_spawn(ctypes.byref(child), b"/bin/true", actions, None, argv, None)


def raise_error() -> None:
    raise ValueError(f"shard data-{RANK:02} is empty")


def over() -> bool:
    """Did the fault happen in an earlier attempt? After a restart the rank may be elsewhere."""
    return FAULT in ("max-restarts", "requeue-appended") and place("fault").exists()


def crash() -> None:
    ctypes.string_at(0)


def eat_memory() -> None:
    """Wait until its memory is limited; then take more than that."""
    while not place("limited").exists():
        time.sleep(0.1)
    eaten = [bytearray(16 * 2**20) for _ in range(1000)]
    print(f"ate {len(eaten)}", flush=True)


RANK_FAULTS: dict[str, Callable[[], None]] = {
    "fifo": read_schedule,
    "busy-loop": deduplicate,
    "gil": tokenize_natively,
    "d-state": open_on_dead_server,
    "exception": raise_error,
    "max-restarts": raise_error,
    "requeue-appended": raise_error,
    "segfault": crash,
    "host-oom": eat_memory,
}


def fifo(name: str) -> str:
    path = place(f"{name}.fifo")
    os.mkfifo(path)
    return str(path)


def normalise_text() -> None:
    """Two seconds a step that the others do not need; partly on the CPU, partly not."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        sum(range(200_000))
        time.sleep(0.005)


def save_shard(net: torch.nn.Module) -> None:
    """Every rank saves its part; where one of them writes to, nobody takes it."""
    path = place(f"checkpoint-{STEP}") / f"rank{RANK}.pt"
    path.parent.mkdir(exist_ok=True)
    if mine(STEP):
        os.mkfifo(path)
        mark("fault", STEP)
    torch.save(net.state_dict(), path)
    dist.barrier()


def flush_tracker() -> None:
    """The end of an experiment tracker that waits for a server which does not answer."""
    sender = threading.Thread(target=time.sleep, args=(3600,), name="tracker", daemon=True)
    sender.start()
    sender.join()


# Nothing is wrong.


def work(until: float) -> None:
    """Use a share of a CPU for so long."""
    matrix = torch.rand(200, 200)
    while (now := time.monotonic()) < until:
        while time.monotonic() < now + 0.1 * SHARE:
            matrix = matrix @ matrix
            matrix /= matrix.norm()
        time.sleep(0.1 * (1 - SHARE))


def quiet() -> float:
    """Tell that a silence begins; when it ends."""
    if RANK == 0:
        mark("quiet", STEP)
    return time.monotonic() + QUIET_S


def warm_up() -> None:
    work(quiet())


def compile_kernels() -> None:
    """A compiler for each rank, as torch.compile starts it, one file after the other."""
    until = quiet()
    compiler = SHARED / "cc1plus"
    code = (
        "import time\nend = time.monotonic() + 5\n"
        "while time.monotonic() < end: sum(range(100000)); time.sleep(0.03)"
    )
    while time.monotonic() < until:
        subprocess.run([compiler, "-S", "-c", code], check=True)


def evaluate(net: torch.nn.Module) -> None:
    """The first rank evaluates, the others wait for it."""
    until = quiet()
    if RANK == 0:
        with torch.no_grad():
            net.eval()
            work(until)
            net.train()
    dist.barrier()


def save_slowly() -> None:
    """The first rank writes a large file to slow storage, the others wait for it."""
    until = quiet()
    if RANK == 0:
        with place("consolidated").open("wb") as stream:
            while time.monotonic() < until:
                stream.write(os.urandom(2**18))
                stream.flush()
                os.fsync(stream.fileno())
                time.sleep(0.3)
    dist.barrier()
