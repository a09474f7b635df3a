"""What the frames of a Python stack mean: a table by path and function, for the usual libraries.

A row counts where the path of a frame's file holds its part. Paths are those of torch 2.x,
DeepSpeed, Megatron, Lightning, Accelerate, Transformers, Horovod and JAX. A library that the table
does not know is read as the program's own code: it is somewhere, and nothing more is said.
"""

import re
from enum import StrEnum
from functools import lru_cache

from slurmtop.model.stacks import Frame


class Act(StrEnum):
    """What the innermost call of a thread does."""

    COLLECTIVE = "waits in a collective"
    P2P = "waits for a send or receive"
    STORE = "waits at the meeting point"
    DEVICE = "waits for its GPU"
    BACKWARD = "is in the backward pass"
    SLEEP = "sleeps"
    LOCK = "waits for a lock or an event of its own process"
    READ = "is blocked in a read or write"
    SOCKET = "waits for the network"
    POLL = "waits until something can be read"
    CHILD = "waits for a child process"
    BUSY = "computes"
    GIL = "holds the interpreter and does not come back"
    STOPPED = "is stopped"
    DISK = "waits in the kernel and cannot be interrupted"
    OWN = "is in its own code"
    UNKNOWN = "does something that cannot be seen"


class Phase(StrEnum):
    """What the calls further out are about."""

    LOADER = "data loading"
    CHECKPOINT = "a checkpoint"
    COMPILE = "compiling"
    EVALUATION = "evaluation"
    TEARDOWN = "closing down"
    STARTUP = "starting up"


#: What may well take long at one place, and is no loop because of that.
LONG_WORK = frozenset(
    {Phase.EVALUATION, Phase.COMPILE, Phase.CHECKPOINT, Phase.STARTUP, Phase.LOADER}
)
_ALL = "*"
_C10D = "torch/distributed/distributed_c10d.py"

#: Frames that only pass a call on, so that the next one out tells what it is.
_TRANSPARENT = (
    "torch/distributed/c10d_logger.py",
    "torch/distributed/logging_handlers.py",
    "torch/_dynamo/eval_frame.py",
    "torch/_dynamo/external_utils.py",
    "torch/utils/_contextlib.py",
    "torch/_ops.py",
    "torch/_library/",
    "torch/overrides.py",
    "functools.py",
    "contextlib.py",
    "deepspeed/comm/torch.py",
    "deepspeed/utils/nvtx.py",
    "deepspeed/utils/logging.py",
)

#: (part of the path, functions, act): the first row that fits a frame counts.
_ACTS: tuple[tuple[str, str, Act], ...] = (
    (_C10D, "send recv isend irecv batch_isend_irecv send_object_list recv_object_list", Act.P2P),
    (
        _C10D,
        "init_process_group new_group new_subgroups _new_group_with_tag _new_process_group_helper"
        " split_group _store_based_barrier new_subgroups_by_enumeration",
        Act.STORE,
    ),
    (_C10D, "destroy_process_group _shutdown_backend _abort_process_group", Act.LOCK),
    (
        _C10D,
        "all_reduce reduce broadcast barrier monitored_barrier all_gather all_gather_object"
        " all_gather_into_tensor _all_gather_base all_gather_coalesced reduce_scatter"
        " reduce_scatter_tensor _reduce_scatter_base all_to_all all_to_all_single gather scatter"
        " gather_object scatter_object_list broadcast_object_list all_reduce_coalesced"
        " _object_to_tensor",
        Act.COLLECTIVE,
    ),
    ("torch/distributed/_functional_collectives.py", _ALL, Act.COLLECTIVE),
    ("torch/distributed/nn/functional.py", _ALL, Act.COLLECTIVE),
    ("torch/distributed/rpc/", _ALL, Act.P2P),
    (
        "torch/distributed/utils.py",
        "_sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes"
        " _broadcast_coalesced",
        Act.COLLECTIVE,
    ),
    (
        "torch/nn/parallel/distributed.py",
        "_sync_buffers _sync_module_buffers _default_broadcast_coalesced"
        " _distributed_broadcast_coalesced _sync_module_states",
        Act.COLLECTIVE,
    ),
    ("torch/distributed/rendezvous.py", _ALL, Act.STORE),
    ("torch/distributed/elastic/rendezvous/", _ALL, Act.STORE),
    ("torch/distributed/elastic/utils/store.py", _ALL, Act.STORE),
    ("torch/distributed/elastic/agent/", _ALL, Act.CHILD),
    ("torch/cuda/streams.py", "synchronize wait wait_stream wait_event query", Act.DEVICE),
    ("torch/cuda/__init__.py", "synchronize", Act.DEVICE),
    ("torch/xpu/", "synchronize", Act.DEVICE),
    ("torch/accelerator/__init__.py", "synchronize", Act.DEVICE),
    ("torch/nn/utils/clip_grad.py", _ALL, Act.DEVICE),
    ("torch/amp/grad_scaler.py", _ALL, Act.DEVICE),
    ("torch/cuda/amp/grad_scaler.py", _ALL, Act.DEVICE),
    ("torch/autograd/graph.py", "_engine_run_backward", Act.BACKWARD),
    ("torch/autograd/__init__.py", "backward grad", Act.BACKWARD),
    ("torch/distributed/pipelining/", "recv send wait _wait_batch_p2p", Act.P2P),
    ("megatron/core/pipeline_parallel/p2p_communication.py", _ALL, Act.P2P),
    ("deepspeed/runtime/pipe/p2p.py", _ALL, Act.P2P),
    ("deepspeed/comm/comm.py", "send recv isend irecv", Act.P2P),
    ("deepspeed/comm/comm.py", "init_distributed", Act.STORE),
    ("deepspeed/comm/comm.py", _ALL, Act.COLLECTIVE),
    ("horovod/torch/mpi_ops.py", "synchronize wait poll _synchronize", Act.COLLECTIVE),
    ("horovod/", "synchronize barrier allreduce allgather broadcast", Act.COLLECTIVE),
    ("jax/_src/distributed.py", "initialize", Act.STORE),
    ("jax/experimental/multihost_utils.py", _ALL, Act.COLLECTIVE),
    ("jax/_src/array.py", "block_until_ready _value __array__", Act.DEVICE),
    ("jax/_src/api.py", "block_until_ready device_get", Act.DEVICE),
    ("mpi4py/", _ALL, Act.COLLECTIVE),
    ("torch/utils/file_baton.py", "wait", Act.LOCK),
    ("filelock/", _ALL, Act.LOCK),
    ("portalocker/", _ALL, Act.LOCK),
    ("threading.py", "wait acquire join _wait_for_tstate_lock _acquire_restore", Act.LOCK),
    ("concurrent/futures/", "result wait shutdown exception", Act.LOCK),
    ("multiprocessing/synchronize.py", "acquire wait __enter__", Act.LOCK),
    ("asyncio/", "run_forever _run_once run_until_complete select", Act.POLL),
    ("queue.py", "get put join", Act.LOCK),
    ("subprocess.py", "wait _wait _try_wait communicate _communicate run", Act.CHILD),
    ("multiprocessing/popen_fork.py", "poll wait", Act.CHILD),
    ("multiprocessing/connection.py", "wait poll _poll", Act.POLL),
    ("multiprocessing/connection.py", _ALL, Act.READ),
    ("selectors.py", "select", Act.POLL),
    ("socket.py", "readinto accept create_connection connect", Act.SOCKET),
    ("ssl.py", "read recv recv_into", Act.SOCKET),
    ("http/client.py", _ALL, Act.SOCKET),
    ("urllib3/", _ALL, Act.SOCKET),
    ("botocore/", _ALL, Act.SOCKET),
    ("pdb.py", _ALL, Act.READ),
    ("bdb.py", _ALL, Act.READ),
)

#: (part of the path, functions, phase).
_PHASES: tuple[tuple[str, str, Phase], ...] = (
    ("torch/utils/data/", _ALL, Phase.LOADER),
    ("torchdata/", _ALL, Phase.LOADER),
    ("webdataset/", _ALL, Phase.LOADER),
    ("streaming/base/", _ALL, Phase.LOADER),
    ("nvidia/dali/", _ALL, Phase.LOADER),
    ("grain/", "__next__ read", Phase.LOADER),
    ("torch/serialization.py", _ALL, Phase.CHECKPOINT),
    ("torch/distributed/checkpoint/", _ALL, Phase.CHECKPOINT),
    ("safetensors/", _ALL, Phase.CHECKPOINT),
    ("megatron/training/checkpointing.py", _ALL, Phase.CHECKPOINT),
    ("megatron/core/dist_checkpointing/", _ALL, Phase.CHECKPOINT),
    ("deepspeed/runtime/checkpoint_engine/", _ALL, Phase.CHECKPOINT),
    ("deepspeed/runtime/engine.py", "save_checkpoint load_checkpoint", Phase.CHECKPOINT),
    (
        "transformers/trainer.py",
        "_save_checkpoint save_model _load_from_checkpoint",
        Phase.CHECKPOINT,
    ),
    ("transformers/trainer.py", "evaluate evaluation_loop prediction_loop", Phase.EVALUATION),
    ("accelerate/", "save_state load_state save_model", Phase.CHECKPOINT),
    ("lightning", "save_checkpoint dump_checkpoint restore", Phase.CHECKPOINT),
    ("lightning", "run_evaluation validate _evaluation_step validation_step", Phase.EVALUATION),
    ("orbax/", _ALL, Phase.CHECKPOINT),
    ("torch/_inductor/", _ALL, Phase.COMPILE),
    ("torch/_dynamo/", "compile _compile transform _convert_frame convert_frame", Phase.COMPILE),
    ("torch/_functorch/", "aot_module_simplified create_aot_dispatcher_function", Phase.COMPILE),
    ("torch/utils/cpp_extension.py", _ALL, Phase.COMPILE),
    ("triton/compiler/", _ALL, Phase.COMPILE),
    ("triton/runtime/", "_bench do_bench autotune", Phase.COMPILE),
    ("jax/_src/compiler.py", _ALL, Phase.COMPILE),
    (_C10D, "destroy_process_group _shutdown_backend _abort_process_group", Phase.TEARDOWN),
    ("threading.py", "_shutdown", Phase.TEARDOWN),
    ("multiprocessing/util.py", "_exit_function", Phase.TEARDOWN),
    ("concurrent/futures/", "_python_exit", Phase.TEARDOWN),
    ("wandb/", "finish _atexit_cleanup _on_finish", Phase.TEARDOWN),
    ("atexit", _ALL, Phase.TEARDOWN),
    (_C10D, "init_process_group", Phase.STARTUP),
    ("importlib", "_find_and_load _load_unlocked import_module exec_module", Phase.STARTUP),
)

#: Whole names of functions of the program itself. Weaker than any row above: a word within a name
#: (``cleanup_text``, ``checkpoint_forward``, ``validate_batch``) tells nothing.
_OWN_PHASES: tuple[tuple[str, Phase], ...] = (
    (
        r"_*(?:\w+_)?(?:save|load|write|restore|resume|dump)_(?:\w+_)?(?:checkpoints?|ckpts?)",
        Phase.CHECKPOINT,
    ),
    (r"_*(?:save|load)_(?:model|state)", Phase.CHECKPOINT),
    (
        r"_*(?:run_|do_)?(?:evaluate|evaluation|eval|validate|validation)"
        r"(?:_(?:model|loop|epoch|one_epoch|all))?",
        Phase.EVALUATION,
    ),
    (r"_*(?:compile(?:_(?:model|kernels?|graph))?|autotune)", Phase.COMPILE),
    (r"_*(?:get|next|fetch)_(?:next_)?batch|_*__getitem__", Phase.LOADER),
)
#: Closing down, where nothing but the program's own code has called them.
_OWN_ENDS = re.compile(r"_*(?:tear_?down|clean_?up|at_?exit)")

#: Libraries that make collectives of sub-groups by themselves: whose call sites differ by design.
_FRAMEWORKS = (
    "torch/distributed/fsdp/",
    "torch/distributed/_composable/",
    "torch/distributed/tensor/",
    "torch/distributed/_tensor/",
    "torch/distributed/pipelining/",
    "torch/distributed/optim/",
    "torch/distributed/checkpoint/",
    "torch/nn/parallel/",
    "deepspeed/",
    "megatron/",
    "fairscale/",
    "colossalai/",
    "horovod/",
    "nemo/",
    "lightning",
    "accelerate/",
    "transformers/",
)
#: Code that only runs where ranks talk to each other.
_AMONG_SEVERAL = (
    "torch/nn/parallel/distributed.py",
    "torch/distributed/fsdp/",
    "deepspeed/runtime/zero/",
    "megatron/core/",
)
#: Words in the names of functions, and libraries, that try something again and again.
_AGAIN = ("retry", "retries", "backoff", "wait_for", "wait_until", "poll")
_TRYING = ("tenacity/", "backoff/", "urllib3/util/retry", "botocore/retr")
_LIBRARY = ("/site-packages/", "/dist-packages/")


def _split(rows: tuple[tuple[str, str, object], ...]) -> list[tuple[str, frozenset[str], object]]:
    return [(part, frozenset(names.split()), what) for part, names, what in rows]


#: Thousands of ranks stand in a few places: each frame is looked up once.
_FRAMES_KEPT = 8_192
_ACT_ROWS = _split(_ACTS)
_PHASE_ROWS = _split(_PHASES)
_OWN_ROWS = tuple((re.compile(names), phase) for names, phase in _OWN_PHASES)


@lru_cache(_FRAMES_KEPT)
def act_of(frame: Frame) -> Act | None:
    """What a call of ``frame`` waits for; None where the table does not know it."""
    found = _row(frame, _ACT_ROWS)
    return found if isinstance(found, Act) else None


@lru_cache(_FRAMES_KEPT)
def phase_of(frame: Frame) -> Phase | None:
    """What a call of ``frame`` is about, also by the name of a function of the program's own."""
    found = _row(frame, _PHASE_ROWS)
    if isinstance(found, Phase):
        return found
    if is_own(frame):
        name = plain_name(frame).lower()
        return next((phase for names, phase in _OWN_ROWS if names.fullmatch(name)), None)
    return None


def closes_down(frame: Frame) -> bool:
    """Does a function of the program's own close it down, by its name?"""
    return is_own(frame) and _OWN_ENDS.fullmatch(plain_name(frame).lower()) is not None


def _row(frame: Frame, rows: list[tuple[str, frozenset[str], object]]) -> object | None:
    path = "/" + library_path(frame.file)
    for part, names, what in rows:
        if (names == {_ALL} or plain_name(frame) in names) and f"/{part}" in path:
            return what
    return None


def plain_name(frame: Frame) -> str:
    """``__next__`` of ``_BaseDataLoaderIter.__next__``, as newer interpreters tell it."""
    return frame.function.rsplit(".", 1)[-1]


def library_path(path: str) -> str:
    """``torch/cuda/streams.py`` of a path below site-packages; the path itself for others."""
    for mark in _LIBRARY:
        before, found, rest = path.rpartition(mark)
        if found and before:
            return rest
    return path.lstrip("/")


@lru_cache(_FRAMES_KEPT)
def passes_on(frame: Frame) -> bool:
    """Does the frame only pass a call on?"""
    path = "/" + library_path(frame.file)
    return any(f"/{part}" in path for part in _TRANSPARENT)


@lru_cache(_FRAMES_KEPT)
def of_framework(frame: Frame) -> bool:
    """Does a library that talks in sub-groups by itself stand here?"""
    path = "/" + library_path(frame.file)
    return any(f"/{part}" in path for part in _FRAMEWORKS)


@lru_cache(_FRAMES_KEPT)
def among_several(frame: Frame) -> bool:
    """Does the frame stand in code that only runs where ranks talk to each other?"""
    path = library_path(frame.file)
    return any(part in path for part in _AMONG_SEVERAL)


@lru_cache(_FRAMES_KEPT)
def is_own(frame: Frame) -> bool:
    """Is it the program's own code, and neither a library nor the interpreter's?"""
    path = frame.file
    if not path or path.startswith("<") or any(mark in path for mark in _LIBRARY):
        return False
    if of_framework(frame):
        return False
    folder, found, rest = path.rpartition("/lib/python3")
    return not (found and folder is not None and "/" in rest)


@lru_cache(_FRAMES_KEPT)
def tries_again(frame: Frame) -> bool:
    """Is it a call that tries something again and again, by its name?"""
    name = plain_name(frame).lower()
    if is_own(frame):
        return any(word in name for word in _AGAIN)
    return "retry" in name or library_path(frame.file).startswith(_TRYING)


def in_library(frame: Frame) -> bool:
    """Does it stand in a package that was installed?"""
    return any(mark in frame.file for mark in _LIBRARY)


def own_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame of the program's own code."""
    return next((one for one in frames if is_own(one)), None)
