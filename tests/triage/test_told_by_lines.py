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


@pytest.mark.parametrize("signal", ["SIGHUP", "SIGTERM", "SIGUSR2"])
def test_a_program_that_says_it_is_preempted_was_not_interrupted_by_a_person(signal: str) -> None:
    text = (
        f"submitit WARNING (2031-01-02 03:04:05,6) - Caught signal {signal} on n7: this job is"
        " preempted.\nsubmitit INFO (2031-01-02 03:04:05,7) - Requeued job 12 (3 remaining)"
    )
    assert told(text) == ("failed", "slurm-preempted")


def test_rays_kill_for_memory_is_read_where_its_line_was_wrapped() -> None:
    text = (
        "(raylet) node_manager.cc:3010: 3 Workers (tasks /\n actors) killed due to memory pressure"
        " (OOM), 0 Workers crashed due to other reasons at node (ID: 7bd4, IP: 10.9.8.7) over"
    )
    assert told(text) == ("failed", "host-oom")


@pytest.mark.parametrize(
    "line",
    [
        "An MPI communication peer process has unexpectedly disconnected.  This",
        "[n7:0123] mca_oob_tcp_msg_recv: readv failed: Connection reset by peer (104)",
        "[n7][[4,1],3][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv"
        " failed: Connection reset by peer (104)",
        "PMIX: lost connection to remote daemon",
    ],
)
def test_a_peer_that_mpi_lost_has_died_and_the_reporter_is_not_named(line: str) -> None:
    text = f"{line}\n  Local host: n7\n  Peer host:  n9"
    assert told(text) == ("failed", "peer-died")
    assert "n7" not in named(text)


def test_a_connect_that_was_tried_until_its_timeout_reached_nobody() -> None:
    text = (
        "n2:12:22 [0] include/socket.h:361 NCCL WARN Call to connect timeout : Connection refused"
    )
    assert told(text) == ("failed", "bootstrap-unreachable")
    assert named(text) == set()


def test_words_of_nccl_are_read_without_their_head() -> None:
    text = "ncclSocketInit: connecting to address with family 0 is neither AF_INET(2) nor"
    assert told(text)[0] == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "Not responding       slurm     2031-11-22T13:25:08 gpu-[1-2]",
        '"cloud_node_fail slurm     2031-11-22T13:27:38 gpu-2",',
        "Kill task failed     root      2031-01-02T00:00:01 gpu-7",
    ],
)
def test_a_list_of_failed_nodes_is_told_and_no_node_of_it_blamed(line: str) -> None:
    assert told(line) == ("unknown", "slurm-node-fail")
    assert named(line) == set()


@pytest.mark.parametrize(
    "line",
    [
        "new firmware         root      2031-11-22T13:25:08 gpu-[1-2]",
        "   2   execute train anna CONFIGUR      28:14 1-00:00:00      1 execute-2",
    ],
)
def test_a_node_that_was_taken_out_for_work_has_not_failed(line: str) -> None:
    assert told(line) == ("unknown", None)


@pytest.mark.parametrize(
    ("line", "cls"),
    [
        ("   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)", "slurm-node-fail"),
        ("   JobState=PREEMPTED Reason=None Dependency=(null)", "slurm-preempted"),
        ("4711         train   gpu   acc   8  PREEMPTED      0:0", "slurm-preempted"),
        ("4711         train   gpu   acc   8    TIMEOUT      0:0", "slurm-time-limit"),
        ("Slurm Job_id=12 Name=x Failed, Run time 01:00:22, NODE_FAIL, ExitCode 0",
         "slurm-node-fail"),
        ("Job 12 (task: 0) has not produced any output (state: NODE_FAIL)", "slurm-node-fail"),
        ("Job '12' failed with status 'TIMEOUT'", "slurm-time-limit"),
    ],
)  # fmt: skip
def test_the_state_that_slurm_gives_a_job_tells_how_it_ended(line: str, cls: str) -> None:
    assert told(line) == ("failed", cls)
    assert named(line) == set()


@pytest.mark.parametrize(
    ("line", "cls"),
    [
        ("Mismatched MPI operations: One rank did an allreduce, but another rank did an allgather.",
         "collective-op-mismatch"),
        ("Error: Mismatched broadcast root ranks: One rank specified root rank 0, but another 1.",
         "collective-op-mismatch"),
        ("Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [3], but another 4",
         "collective-shape-mismatch"),
        ("Mismatched data types: One rank had type float32, but another rank had type float64.",
         "collective-shape-mismatch"),
        ("[enforce fail at x/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 4 vs",
         "collective-shape-mismatch"),
    ],
)  # fmt: skip
def test_calls_that_horovod_or_gloo_found_to_differ_are_told(line: str, cls: str) -> None:
    assert told(line) == ("failed", cls)
    assert named(line) == set()


def test_an_exception_on_exhausted_inputs_is_the_end_of_the_data() -> None:
    text = "RuntimeError: Ranks [2] have exhausted all inputs, while other ranks still have some."
    assert told(text) == ("failed", "data-exhausted")


def test_mpis_first_process_is_named_by_any_of_its_runtimes() -> None:
    text = (
        "prterun detected that one or more processes exited with non-zero status, thus causing\n"
        "the job to be terminated. The first process to do so was:\n\n"
        "   Process name: [prterun-n1-991@1,3] Exit code:    1\n"
    )
    assert told(text) == ("failed", "task-exit")
    assert named(text) == {3}


def test_an_end_of_which_no_process_is_told_names_nobody() -> None:
    text = "Primary job  terminated normally, but 1 process returned\na non-zero exit code."
    assert told(text) == ("failed", "task-exit")
    assert named(text) == set()


@pytest.mark.parametrize(
    "line",
    [
        "4711   train  gpu  acc 8 CANCELLED by 1001  0:0",
        "Slurm Job_id=12 Name=x Ended, Run time 01:00:22, CANCELLED, ExitCode 0",
        "   JobState=CANCELLED Reason=None Dependency=(null)",
    ],
)
def test_a_job_that_slurm_lists_as_cancelled_was_ended_by_a_person(line: str) -> None:
    assert told(line) == ("failed", "user-interrupt")


@pytest.mark.parametrize(
    "line",
    [
        "4711    train  gpu  acc 8  OUT_OF_MEMORY  0:125",
        "4711.0  train  gpu  acc 8  OUT_OF_ME+  0:125",
        "Slurm Job_id=12 Name=x Failed, Run time 01:00:22, OUT_OF_MEMORY",
        "    Reason:       OOMKilled",
    ],
)
def test_a_job_or_container_listed_as_out_of_memory_ran_out_of_host_memory(line: str) -> None:
    assert told(line) == ("failed", "host-oom")
    assert named(line) == set()


def test_a_gpus_memory_is_not_the_jobs() -> None:
    assert told("RuntimeError: CUDA_ERROR_OUT_OF_MEMORY: out of memory") == ("failed", "gpu-oom")


@pytest.mark.parametrize("symbol", ["ncclCommRegister", "pncclMemFree"])
def test_a_missing_function_of_nccl_is_a_difference_of_versions(symbol: str) -> None:
    text = f"ImportError: /x/torch/lib/libtorch_cuda.so: undefined symbol: {symbol}"
    assert told(text) == ("failed", "version-mismatch")


def test_another_missing_function_is_an_ordinary_exception() -> None:
    text = "ImportError: /x/ext.so: undefined symbol: _ZN3c105ErrorC2E"
    assert told(text) == ("failed", "python-exception")
