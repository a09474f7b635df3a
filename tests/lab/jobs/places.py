"""Who this rank is, which fault is meant, and files by which the driver sees where all stand."""

import os
import time
from pathlib import Path

JOB = os.environ["SLURM_JOB_ID"]
RANK = int(os.environ["RANK"])
FAULT = os.environ.get("FAULT", "steady")
FAULT_RANK = int(os.environ.get("FAULT_RANK", "2"))
STEP = int(os.environ.get("FAULT_STEP", "6"))
QUIET_S = float(os.environ.get("QUIET_S", "75"))
#: The work directory of the job: storage that all nodes share.
SHARED = Path.cwd()
ME = os.getpid()


def mine(step: int) -> bool:
    """Is it this rank, at this step, at which the fault happens?"""
    return RANK == FAULT_RANK and step == STEP


def place(name: str) -> Path:
    return SHARED / f"{name}-{JOB}"


def mark(name: str, step: int) -> None:
    """Tell the driver that something begins: host, pid, rank, step and time."""
    path = place(name)
    path.with_suffix(".new").write_text(f"{os.uname().nodename} {ME} {RANK} {step} {time.time()}")
    path.with_suffix(".new").replace(path)


def here() -> None:
    """Where this rank is."""
    mark(f"rank{RANK}", 0)
