"""What ranks of real trainings call: by PyTorch, DeepSpeed, Megatron, Lightning and the rest."""

from tests.triage.live.examined import Do, spins, stack, waits

C10D = "@torch/distributed/distributed_c10d.py"
LOGGER = "@torch/distributed/c10d_logger.py:83 wrapper"
MAIN = ("train.py:340 main", "train.py:402 <module>")
STEP = ("train.py:212 train_step", *MAIN)
NAP = {"wchan": "hrtimer_nanosleep", "cpu": 0.0}

# Under asynchronous CUDA: `.item()` has no frame of its own, so that user code is innermost.
ITEM = spins(*STEP)
SYNC = spins("@torch/cuda/__init__.py:985 synchronize", "train.py:215 train_step", *MAIN)
BARRIER = spins(f"{C10D}:4159 barrier", LOGGER, "train.py:233 evaluate", *MAIN)
END_BARRIER = spins(f"{C10D}:4159 barrier", LOGGER, "train.py:391 main", "train.py:402 <module>")
CLIP = spins("@torch/nn/utils/clip_grad.py:82 clip_grad_norm_", *STEP)
BACKWARD = spins(
    "@torch/autograd/graph.py:825 _engine_run_backward",
    "@torch/autograd/__init__.py:347 backward",
    "@torch/_tensor.py:581 backward",
    "train.py:208 train_step",
    *MAIN,
)
FORWARD = spins(
    "@torch/nn/modules/linear.py:125 forward",
    "@torch/nn/modules/module.py:1747 _call_impl",
    "model.py:88 forward",
    "train.py:205 train_step",
    *MAIN,
)
FSDP_LIMIT = spins(
    "@torch/distributed/fsdp/_runtime_utils.py:291 _unshard",
    "@torch/distributed/fsdp/_runtime_utils.py:421 _pre_forward_unshard",
    "@torch/nn/modules/module.py:1747 _call_impl",
    "train.py:205 train_step",
    *MAIN,
)
HF_LOG = spins(
    "@transformers/trainer.py:3050 _maybe_log_save_evaluate",
    "@transformers/trainer.py:2553 _inner_training_loop",
    "@transformers/trainer.py:2171 train",
    *MAIN,
)
ZERO_NORM = spins(
    "@deepspeed/runtime/zero/stage_1_and_2.py:1989 has_overflow",
    "@deepspeed/runtime/zero/stage_1_and_2.py:1850 step",
    "@deepspeed/runtime/engine.py:2153 _take_model_step",
    "@deepspeed/runtime/engine.py:2259 step",
    *MAIN,
)
ZERO3_FETCH = spins(
    "@deepspeed/runtime/zero/partition_parameters.py:90 wait",
    "@deepspeed/runtime/zero/partitioned_param_coordinator.py:310 fetch_sub_module",
    "@deepspeed/runtime/zero/parameter_offload.py:452 pre_sub_module_forward_function",
    "train.py:205 train_step",
    *MAIN,
)
ZERO3_REDUCE = spins(
    f"{C10D}:4122 reduce_scatter_tensor",
    LOGGER,
    "@deepspeed/comm/torch.py:270 reduce_scatter_tensor",
    "@deepspeed/runtime/zero/stage3.py:1290 __reduce_and_partition_ipg_grads",
    "@torch/autograd/__init__.py:347 backward",
    "train.py:208 train_step",
    *MAIN,
)


def p2p(call: str, line: int, at: str, below: int) -> Do:
    """A stage of Megatron's pipeline that waits for its neighbour."""
    p2p_file = "@megatron/core/pipeline_parallel/p2p_communication.py"
    schedules = "@megatron/core/pipeline_parallel/schedules.py"
    return spins(
        f"{p2p_file}:387 _communicate",
        f"{p2p_file}:{line} {call}",
        f"{schedules}:{below} {at}",
        f"{schedules}:1800 forward_backward_pipelining_without_interleaving",
        "pretrain_gpt.py:270 train_step",
        "pretrain_gpt.py:300 <module>",
    )


RECV_F = p2p("recv_forward", 451, "recv_forward", 1210)
SEND_F_RECV_B = p2p("send_forward_recv_backward", 520, "send_forward_recv_backward", 1260)
SEND_B_RECV_F = p2p("send_backward_recv_forward", 560, "send_backward_recv_forward", 1280)
RECV_B = p2p("recv_backward", 480, "recv_backward", 1230)


def gloo(op: str, line: int = 212, where: str = "train_step") -> Do:
    """A collective of gloo: the process sleeps."""
    return waits(f"{C10D}:2825 {op}", LOGGER, f"train.py:{line} {where}", *MAIN)


REDUCE = gloo("all_reduce")
GLOO_BARRIER = gloo("barrier", 233, "evaluate")

# Elsewhere.
SLEEPS = waits("data.py:41 fetch_shard", "data.py:77 __iter__", *MAIN, **NAP)
PDB = waits(
    "%cmd.py:126 cmdloop",
    "%pdb.py:332 _cmdloop",
    "%bdb.py:88 trace_dispatch",
    "train.py:199 train_step",
    *MAIN,
    wchan="n_tty_read",
    cpu=0.0,
)
SSL_READ = waits(
    "%ssl.py:1166 read",
    "%http/client.py:286 _read_status",
    "@urllib3/connectionpool.py:464 _make_request",
    "@requests/adapters.py:667 send",
    "@huggingface_hub/file_download.py:300 _request_wrapper",
    "model.py:12 load_tokenizer",
    *MAIN,
    wchan="wait_woken",
    cpu=0.0,
)
FILELOCK = waits(
    "@filelock/_api.py:344 acquire",
    "@datasets/builder.py:875 download_and_prepare",
    "data.py:20 load",
    *MAIN,
    **NAP,
)
LOOP = Do(
    calls=stack("data.py:82 pack_sequences", "data.py:60 __next__", *MAIN),
    then=stack("data.py:84 pack_sequences", "data.py:60 __next__", *MAIN),
    state="R",
    wchan="0",
    cpu=1.0,
    gil=True,
)
REGEX = Do(
    calls=stack("%re/__init__.py:185 sub", "data.py:31 clean", "data.py:60 __next__", *MAIN),
    state="R",
    wchan="0",
    cpu=1.0,
    gil=True,
)
LOADER = (
    "@torch/utils/data/dataloader.py:1133 _try_get_data",
    "@torch/utils/data/dataloader.py:1284 _get_data",
    "@torch/utils/data/dataloader.py:1308 _next_data",
    "@torch/utils/data/dataloader.py:631 __next__",
    "train.py:201 train_step",
    *MAIN,
)
FROM_QUEUE = (
    "%selectors.py:415 select",
    "%multiprocessing/connection.py:930 wait",
    "%multiprocessing/connection.py:423 _poll",
    "%multiprocessing/queues.py:113 get",
    *LOADER,
)
WORKER = {"name": "pt_data_worker"}


def loader(*workers: Do, pinned: bool = False) -> Do:
    """Waits for its loader, whose workers are these."""
    calls = ("%threading.py:324 wait", "%queue.py:180 get", *LOADER) if pinned else FROM_QUEUE
    wchan = "futex_wait_queue" if pinned else "poll_schedule_timeout"
    return waits(*calls, wchan=wchan, cpu=0.0, below=workers)


def worker(**how: object) -> Do:
    return waits(
        "data.py:91 __getitem__",
        "@torch/utils/data/_utils/fetch.py:52 fetch",
        "@torch/utils/data/_utils/worker.py:351 _worker_loop",
        "%multiprocessing/process.py:314 _bootstrap",
        **{**WORKER, **how},
    )


IDLE_WORKER = waits(
    "%multiprocessing/queues.py:113 get",
    "@torch/utils/data/_utils/worker.py:330 _worker_loop",
    "%multiprocessing/process.py:314 _bootstrap",
    wchan="poll_schedule_timeout",
    cpu=0.0,
    **WORKER,
)
SAVE = (
    "@torch/serialization.py:1188 _save",
    "@torch/serialization.py:943 save",
    "train.py:290 save_checkpoint",
    *MAIN,
)
SAVES = waits(*SAVE, state="D", wchan="folio_wait_bit_common", cpu=0.4, write=300_000_000)
SAVE_STUCK = waits(*SAVE, wchan="pipe_write", cpu=0.0, file="/ckpt/step981.pt")
DCP = waits(
    "@torch/distributed/checkpoint/filesystem.py:300 _write_item",
    "@torch/distributed/checkpoint/filesystem.py:710 write_data",
    "@torch/distributed/checkpoint/state_dict_saver.py:420 _save_state_dict",
    "train.py:290 save_checkpoint",
    *MAIN,
    state="D",
    wchan="folio_wait_bit_common",
    cpu=0.5,
    write=200_000_000,
)
COMPILE = Do(
    calls=stack(
        "@torch/_inductor/scheduler.py:2011 fuse_nodes",
        "@torch/_inductor/graph.py:2100 compile_to_module",
        "@torch/_inductor/compile_fx.py:700 compile_fx_inner",
        "@torch/_dynamo/convert_frame.py:1000 _compile",
        "train.py:205 train_step",
        *MAIN,
    ),
    then=stack(
        "@torch/_inductor/codegen/triton.py:3011 codegen_kernel",
        "@torch/_inductor/graph.py:2100 compile_to_module",
        "@torch/_inductor/compile_fx.py:700 compile_fx_inner",
        "@torch/_dynamo/convert_frame.py:1000 _compile",
        "train.py:205 train_step",
        *MAIN,
    ),
    state="R",
    wchan="0",
    cpu=1.0,
    gil=True,
)
CPL_WORKER = Do(
    calls=(),
    state="R",
    wchan="0",
    cpu=0.9,
    argv=(
        "python",
        "/opt/conda/lib/python3.11/site-packages/torch/_inductor/compile_worker/__main__.py",
    ),
)
COMPILE_WAITS = waits(
    "%threading.py:324 wait",
    "%concurrent/futures/_base.py:451 result",
    "@torch/_inductor/async_compile.py:510 wait",
    "@torch/_inductor/compile_fx.py:700 compile_fx_inner",
    "train.py:205 train_step",
    *MAIN,
    below=(CPL_WORKER, CPL_WORKER),
)
EVAL = Do(
    calls=stack("model.py:91 forward", "eval.py:30 evaluate", "train.py:230 evaluate", *MAIN),
    then=stack("eval.py:44 score", "eval.py:33 evaluate", "train.py:230 evaluate", *MAIN),
    state="R",
    wchan="0",
    cpu=1.0,
)
EVAL_SAME = spins("eval.py:37 evaluate", "train.py:230 evaluate", *MAIN)
IMPORT = Do(
    calls=stack(
        "%importlib/_bootstrap_external.py:1190 get_data",
        "@torch/__init__.py:40 <module>",
        "train.py:3 <module>",
    ),
    then=stack(
        "%importlib/_bootstrap_external.py:1190 get_data",
        "@sympy/__init__.py:9 <module>",
        "train.py:3 <module>",
    ),
    state="D",
    wchan="rpc_wait_bit_killable",
    cpu=0.2,
    read=2_000_000,
)
STORE = waits(
    "@torch/distributed/rendezvous.py:274 _env_rendezvous_handler",
    f"{C10D}:1714 init_process_group",
    LOGGER,
    "train.py:310 main",
    "train.py:402 <module>",
    wchan="poll_schedule_timeout",
    cpu=0.0,
)
DESTROY = spins(f"{C10D}:2146 destroy_process_group", "train.py:395 main", "train.py:402 <module>")
WANDB_FINISH = waits(
    "%threading.py:324 wait",
    "@wandb/sdk/lib/mailbox.py:131 wait",
    "@wandb/sdk/wandb_run.py:2300 finish",
    "train.py:396 main",
    "train.py:402 <module>",
    cpu=0.0,
)
SHUTDOWN = waits("%threading.py:1590 _shutdown", cpu=0.0)
TOKENISE = waits(
    "%multiprocessing/pool.py:861 next",
    "@datasets/utils/py_utils.py:700 iflatmap_unordered",
    "@datasets/arrow_dataset.py:3171 map",
    "data.py:15 load",
    *MAIN,
    cpu=0.0,
    below=tuple(Do(state="R", wchan="0", cpu=1.0, argv=("python", "train.py")) for _ in range(4)),
)
