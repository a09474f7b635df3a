"""A few lines of a log and what triage makes of them, from the bytes to the verdict."""

import pytest

from slurmtop.model.verdict import Verdict
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.judge import explain_traces


def verdict(text: str) -> Verdict:
    return explain_traces(read_bytes("job.log", text.encode()))


def told(text: str) -> tuple[str, str | None]:
    found = verdict(text)
    return found.state.value, found.cls


def named(text: str) -> set[str | int | None]:
    return {c.host or c.rank for c in verdict(text).culprits}


RAS_NONSENSE = """\
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         4         8         7   RUNNING  INCOMPLETE
    1         2         0         0         0         0    NOCOMM  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 771 on node 10.3.0.9 managing GPU 2

#1-0 (5be0000100000002) INCOMPLETE
  Missing communicator data from 31 ranks
  Rank {rank} --{rest}
"""


@pytest.mark.parametrize("rank", ["1934112280", "-1204", "18446744073709551615"])
@pytest.mark.parametrize("rest", ["", " [process information not found]"])
def test_a_ras_report_with_ranks_that_cannot_exist_tells_nothing_of_the_job(
    rank: str, rest: str
) -> None:
    text = RAS_NONSENSE.format(rank=rank, rest=rest)
    assert told(text) == ("unknown", "nccl-bug")
    assert named(text) == set()


def test_a_ras_report_with_ordinary_ranks_is_still_believed() -> None:
    text = RAS_NONSENSE.format(rank=11, rest=" [process information not found]")
    assert told(text) == ("hung", "missing-rank")


@pytest.mark.parametrize(
    "line",
    [
        "[E ProcessGroupNCCL.cpp:607] Failed to retrieve NCCL_DESYNC_DEBUG report.  Please file an"
        " issue. Error: found != end INTERNAL ASSERT FAILED. Timeout rank [3] last trace item",
        "[PG 0 Rank 5] Failed to retrieve TORCH_NCCL_DESYNC_DEBUG report.  Please file an issue.",
    ],
)
def test_a_desync_report_that_broke_is_an_artifact_after_a_timeout(line: str) -> None:
    assert told(line) == ("failed", "debug-tool-artifact")
    assert named(line) == set()


@pytest.mark.parametrize(
    "line",
    [
        "INFO:torch.distributed.elastic.agent.server.api:Local worker group finished (SUCCEEDED)."
        " Waiting 300 seconds for other agents to finish",
        "I0301 10:00:00.100 71 api.py:870] [default] worker group successfully finished. Waiting",
        "Local worker group finished (WorkerState.SUCCEEDED). Waiting 300 seconds",
        '{"name": "torchelastic.worker.status.SUCCEEDED", "source": "WORKER", "metadata": {}}',
    ],
)
def test_workers_that_an_agent_saw_succeed_are_healthy(line: str) -> None:
    assert told(line) == ("healthy", "healthy")


@pytest.mark.parametrize(
    "frame",
    [
        "#4  0x00007f1c0a in ncclCommAbort () from /usr/lib/libnccl.so.2",
        "#2 0x7f22 in c10d::ProcessGroupNCCL::abortCommsFromMap(std::map<int>) at x.cpp:9",
        "    destroy_process_group (torch/distributed/distributed_c10d.py:2168)",
        "    ncclCommDestroy (libnccl.so.2)",
    ],
)
def test_a_stack_in_the_closing_of_a_communicator_is_a_teardown_hang(frame: str) -> None:
    assert told(f"Thread 88 (idle): MainThread\n{frame}\n    main (train.py:40)") == (
        "hung",
        "teardown-hang",
    )


def test_the_stack_of_a_crash_is_no_wait() -> None:
    text = "Fatal Python error: Segmentation fault\n#4  0x00007f1c0a in ncclCommAbort () at init"
    assert told(text)[1] != "teardown-hang"
