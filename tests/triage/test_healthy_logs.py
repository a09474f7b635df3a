"""Twenty-odd logs of runs that are well: never failed, never hung, nobody named."""

import pytest

from slurmtop.model.verdict import State
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.judge import explain_traces

W = "2031-05-05 10:00:0"
TORCH = "[rank0]:[W505 10:00:09.125 "

HEALTHY = {
    "lightning-end": """\
Epoch 9: 100%|██████████| 782/782 [01:02<00:00, 12.5it/s, loss=0.123]
`Trainer.fit` stopped: `max_epochs=10` reached.""",
    "transformers-end": """\
{'loss': 0.53, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 2.99}
100%|██████████| 900/900 [10:02<00:00,  1.49it/s]
{'train_runtime': 602.3, 'train_samples_per_second': 47.8, 'train_loss': 0.71, 'epoch': 3.0}""",
    "megatron-steps": """\
 iteration      500/  100000 | consumed samples: 128000 | elapsed time per iteration (ms): 812.1 | \
lm loss: 2.345E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan \
iterations:   0 |
 iteration      600/  100000 | consumed samples: 153600 | elapsed time per iteration (ms): 815.0 | \
lm loss: 2.301E+00 | loss scale: 1.0 | number of skipped iterations:   1 | number of nan \
iterations:   0 |""",
    "torchrun-banner-and-end": """\
W0505 10:00:01.000 1 torch/distributed/run.py:779] *****************************************
W0505 10:00:01.000 1 torch/distributed/run.py:779] Setting OMP_NUM_THREADS environment variable \
for each process to be 1 in default, to avoid your system being overloaded
step 1/10 loss 3.2
step 10/10 loss 1.2
Training completed.""",
    "elastic-success": """\
INFO:torch.distributed.elastic.agent.server.api:[default] worker group successfully finished. \
Waiting 300 seconds for other agents to finish.
INFO:torch.distributed.elastic.agent.server.api:Local worker group finished (SUCCEEDED). Waiting \
300 seconds for other agents to finish
INFO:torch.distributed.elastic.agent.server.api:Done waiting for other agents. Elapsed: 0.0012 \
seconds""",
    "metrics-called-error": """\
epoch 3 step 120 train_error: 0.231 val_error=0.302 mean_squared_error 0.02 error rate: 12.1%
epoch 4 step 160 train_error: 0.201 val_error=0.292 mean_squared_error 0.01 error rate: 11.8%
MeanAbsoluteError: 0.31
word error rate (WER): 8.2""",
    "dump-of-arguments": """\
  --timeout 1800 --exit-signal SIGTERM --abort-on-nan False --oom-retry 3
Namespace(error_bad_chars='error', exit_on_missing_checkpoint=True, timeout_minutes=10, \
kill_switch=None, fail_fast=False)
  exit_signal_handler ............................. False
  exit_duration_in_mins ........................... None
  distributed_timeout_minutes ..................... 10
step 5/10 loss 1.0""",
    "download-retries": """\
WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by \
'ReadTimeoutError("read timed out")': /simple/torch/
Downloading shards: 100%|██████████| 4/4 [00:09<00:00,  2.3s/it]
step 1/2 loss 1.0
step 2/2 loss 0.9""",
    "hub-retry-succeeds": """\
'(ReadTimeoutError("HTTPSConnectionPool: Read timed out. (read timeout=10)"), 'x')' thrown while \
requesting HEAD https://hub/resolve/main/config.json
Retrying in 1s [Retry 1/5].
step 10/100 loss 1.0
step 20/100 loss 0.9""",
    "checkpoints": """\
step 100/1000 loss 2.1
saving checkpoint at iteration     100 to /ckpt
  successfully saved checkpoint at iteration     100 to /ckpt
step 200/1000 loss 2.0""",
    "warnings-of-torch": """\
/env/lib/python3.11/site-packages/torch/nn/parallel/distributed.py:1: UserWarning: Error detected \
in nothing, this is deprecated and may raise an exception in a future release
  warnings.warn(
/env/lib/torch/utils/checkpoint.py:1: FutureWarning: the default will change, pass use_reentrant
step 3/9 loss 0.2
step 4/9 loss 0.1""",
    "nccl-goes-on": """\
n1:10:10 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]
n1:10:10 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.
n1:10:10 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
n1:10:10 [0] NCCL INFO comm 0x5f rank 0 nranks 2 cudaDev 0 busId 1000 commId 0xaa - Init START
n1:11:11 [1] NCCL INFO comm 0x6f rank 1 nranks 2 cudaDev 1 busId 2000 commId 0xaa - Init START
n1:10:10 [0] NCCL INFO comm 0x5f rank 0 nranks 2 cudaDev 0 busId 1000 commId 0xaa - Init COMPLETE
n1:11:11 [1] NCCL INFO comm 0x6f rank 1 nranks 2 cudaDev 1 busId 2000 commId 0xaa - Init COMPLETE
""",
    "retry-of-a-connection-succeeds": """\
n1:10:10 [0] NCCL INFO Call to connect to 10.0.0.2<4242> returned Connection refused, retrying \
(1/34) after sleep for 100 msec
n1:10:10 [0] NCCL INFO comm 0x5f rank 0 nranks 2 cudaDev 0 busId 1000 commId 0xaa - Init COMPLETE
step 1/9 loss 0.3
step 2/9 loss 0.2""",
    "group-not-destroyed": f"""\
step 9/9 loss 0.1
Training finished.
{TORCH}ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we \
destruct ProcessGroupNCCL. On normal program exit, the application should call \
destroy_process_group to ensure that any pending NCCL operations have finished in this process.""",
    "store-leaves-first": """\
step 9/9 loss 0.1
Training completed.
[rank1]:[W505 10:00:09.125 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=51, \
addr=[n1]:40714, remote=[n1]:29500): Broken pipe
[rank1]:[W505 10:00:09.225 ProcessGroupNCCL.cpp:1783] [PG ID 0 PG GUID 0(default_pg) Rank 1] \
Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too \
early), with error: Broken pipe""",
    "service-threads-at-the-end": """\
n1:10:20 [0] NCCL INFO [Service thread] Connection closed by localRank 0
n1:11:21 [1] NCCL INFO [Service thread] Connection closed by localRank 1
n1:10:20 [0] NCCL INFO comm 0x5f rank 0 nranks 2 cudaDev 0 busId 1000 - Destroy COMPLETE
n1:11:21 [1] NCCL INFO comm 0x6f rank 1 nranks 2 cudaDev 1 busId 2000 - Destroy COMPLETE""",
    "overflow-of-the-scaler": """\
[2031-05-05 10:00:01,000] [INFO] [loss_scaler.py:183] [deepspeed] OVERFLOW! Rank 0 Skipping step. \
Attempted loss scale: 65536, reducing to 32768
[2031-05-05 10:00:02,000] [INFO] [logging.py:96] [Rank 0] step=10, skipped=1, lr=[1e-05]""",
    "memory-caught-and-smaller-batch": """\
step 10/100 loss 1.0
WARNING: CUDA out of memory. Tried to allocate 2.00 GiB, skipping batch
step 11/100 loss 1.0
step 60/100 loss 0.8""",
    "exception-ignored-at-exit": """\
step 9/9 loss 0.1
Training done.
Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>
Traceback (most recent call last):
  File "/env/torch/utils/data/dataloader.py", line 1604, in __del__
    self._shutdown_workers()
AssertionError: can only test a child process""",
    "exit-zero": """\
[2031-05-05 10:00:09,000] [INFO] [launch.py:347:main] Process 4242 exits successfully.
[2031-05-05 10:00:09,100] [INFO] [launch.py:347:main] Process 4243 exits successfully.""",
    "table-of-a-test": """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
     1048576        262144     float     sum      -1    113.2   18.53   18.53      0    93.35   \
22.46   22.46      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 20.5""",
    "tensorflow-noise": """\
2031-05-05 10:00:01.0: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to \
register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been \
registered
2031-05-05 10:00:01.1: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: \
Could not find TensorRT
step 1/4 loss 0.9
step 2/4 loss 0.8""",
    "heartbeat-status-alone": """\
[rank0]:[I505 10:00:09.1 ProcessGroupNCCL.cpp:2068] [PG ID 0 PG GUID 0(default_pg) Rank 0] \
NCCL_DEBUG: N/A, last enqueued work: 100, last completed work: 99
step 5/9 loss 0.2
step 6/9 loss 0.2""",
    "signal-handlers-are-set": """\
submitit INFO (2031-05-05 10:00:01,000) - Starting with JobEnvironment(job_id=7, hostname=n1)
Installed handlers for SIGUSR1 and SIGTERM; will checkpoint and requeue when signalled
step 5/9 loss 0.2
step 6/9 loss 0.2""",
    "ray-workers-come-and-go": """\
(raylet) [2031-05-05 10:00:00,117 I 1 1] (raylet) worker_pool.cc:1: Idle worker exit, pid 42
(WorkerDict pid=77) step 3/9 loss 0.1
(WorkerDict pid=77) step 4/9 loss 0.1""",
    "evaluation": """\
Evaluating:  46%|####6     | 31/67 [00:29<00:35,  1.03it/s]
Evaluating: 100%|##########| 67/67 [01:02<00:00,  1.07it/s]
val_loss 1.2 | val_error 0.3 | failures 0 | timeouts 0
step 500/1000 loss 0.9""",
    "ucx-and-mpi-noise": """\
[1735835013.823013] [n7:6471 :async]  ib_device.c:475  UCX  WARN  IB Async event on mlx5_0: GID \
table change on port 1
--------------------------------------------------------------------------
WARNING: There was an error initializing an OpenFabrics device.
  Local host:   n7
--------------------------------------------------------------------------
step 5/9 loss 0.2
step 6/9 loss 0.2""",
    "socket-without-ipv6": """\
[W505 10:00:01.000 socket.cpp:697] [c10d] The client socket cannot be initialized to connect to \
[localhost]:29500 (errno: 97 - Address family not supported by protocol).
step 1/3 loss 0.4
step 2/3 loss 0.3""",
    "wandb-and-others": """\
wandb: WARNING Serializing object of type ndarray that is 100 bytes
wandb: ERROR Error while calling W&B API: upload timed out, retrying
step 1/3 loss 0.4
step 2/3 loss 0.3""",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_run_that_is_well_is_no_failure_and_names_nobody(name: str) -> None:
    verdict = explain_traces(read_bytes("train.log", HEALTHY[name].encode()))
    assert verdict.state in (State.HEALTHY, State.UNKNOWN), verdict.summary
    assert not verdict.culprits
    assert verdict.cls in (None, "healthy", "slow-init"), verdict.summary
    assert verdict.evidence, "somebody wants to see what says so"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_program_that_ends_like_this_after_it_is_still_well(name: str) -> None:
    whole = HEALTHY[name] + "\nstep 998/999 loss 0.1\nstep 999/999 loss 0.1\nTraining completed.\n"
    verdict = explain_traces(read_bytes("train.log", whole.encode()))
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy"), verdict.summary
