"""What a process is by its command line: a launcher, a wrapper, a helper, or the work itself. Pure.

Only names that are known count: whatever is not known is the work.
"""

from enum import StrEnum

from slurmtop.model.process import NodeProcess


class Part(StrEnum):
    """The part that a program plays in a job."""

    AGENT = "agent"
    """Starts ranks, also on other nodes, and is never one: srun, torchrun, mpirun, slurmstepd."""
    WRAPPER = "wrapper"
    """Stands above one program and waits for it: a shell, numactl, a container's first process."""
    HELPER = "helper"
    """Serves a rank: data loader workers that were spawned, compile workers, loggers."""
    TOOL = "tool"
    """Plain or watching programs that train nothing: sleep, tee, nvidia-smi."""
    WORK = "work"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AGENTS = _names(
    "srun slurmstepd slurmd torchrun accelerate deepspeed composer horovodrun colossalai mpirun"
    " mpiexec mpiexec.hydra orterun prterun prun orted prted hydra_pmi_proxy hydra_bstrap_proxy"
    " pmi_proxy aprun pdsh sshd sshd-session ssh sbatch salloc scancel sattach"
)
_AGENT_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic",
    "accelerate.commands",
    "deepspeed.launcher",
    "horovod.runner",
    "colossalai.cli",
    "composer.cli",
)
_WRAPPERS = _names(
    "sh bash dash ash ksh zsh csh tcsh fish env timeout time numactl taskset nice ionice setsid"
    " stdbuf unbuffer script nohup chrt prlimit sudo su runuser conda mamba micromamba uv poetry"
    " pixi pipenv hatch nsys ncu nvprof strace ltrace gdb rocprof perf unshare nsenter chroot"
    " bwrap tini dumb-init catatonit docker-init s6-svscan apptainer singularity starter"
    " starter-suid appinit sinit enroot enroot-exec pyxis podman podman-hpc shifter charliecloud"
    " ch-run sarus hook hydra_nameserver cuda-gdb compute-sanitizer dlprof xargs"
)
_CONTAINER_WORDS = ("apptainer runtime parent", "singularity runtime parent")
#: In the code, the module or the path that is run, never in the options of a training program.
_HELPER_WORDS = (
    "multiprocessing.spawn",
    "multiprocessing.forkserver",
    "multiprocessing.resource_tracker",
    "multiprocessing.semaphore_tracker",
    "torch/_inductor/compile_worker",
    "torch._inductor.compile_worker",
    "torch_shm_manager",
    "wandb-core",
    "wandb-service",
)
_HELPERS = _names("wandb-core wandb-service gpu_stats tensorboard torch_shm_manager aim mlflow")
_AGENT_PATHS = (
    "torch/distributed/run.py",
    "torch/distributed/launch.py",
    "accelerate/commands/launch.py",
    "deepspeed/launcher/launch.py",
    "deepspeed/launcher/runner.py",
)
#: By the kernel's short name, which programs set themselves.
_HELPER_NAMES = frozenset({"pt_data_worker", "pt_data_pin", "wandb-core", "gpu_stats"})
_TOOLS = _names(
    "sleep tee cat tail head grep awk sed ts true yes date hostname nvidia-smi dcgmi nvtop gpustat"
    " nvitop rocm-smi amd-smi top htop btop vmstat iostat iotop sar dstat pidstat mpstat watch"
    " inotifywait rsync cp mv rm tar gzip zstd curl wget aws gsutil rclone tmux screen less vi vim"
    " nano du df find ps lsof free uptime numastat ibstat perfquery sadc collectl telegraf"
    " node_exporter dcgm-exporter ninja nvcc gcc cc1 cc1plus ptxas ldconfig git"
    " squeue sacct sinfo scontrol sstat"
)
#: What multiprocessing starts may be a worker of a data loader, or a rank.
_STARTED_BY_PYTHON = ("multiprocessing.spawn", "multiprocessing.forkserver")
#: Workers that are called so by their engine; an engine's own process has its number of srun.
_ENGINE_WORKERS = ("ray::", "VLLM::Worker")
_IDLE_WORKER = "ray::IDLE"
#: Options of Python that take the next word.
_TAKES_A_WORD = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def part_of(process: NodeProcess) -> Part:
    """What ``process`` is."""
    words = process.argv
    if process.name in _HELPER_NAMES:
        return Part.HELPER
    if not words:
        return Part.AGENT if process.name in _AGENTS else _by_name(process.name)
    first = words[0].lower()
    if first.startswith("slurmstepd:") or process.name.startswith("slurmstepd"):
        return Part.AGENT
    if first.startswith(("sshd:", "sshd-session:")):
        return Part.AGENT
    if first.startswith(_CONTAINER_WORDS):
        return Part.WRAPPER
    what = _what(process)
    if any(word in what for word in _HELPER_WORDS) or program_of(process) in _HELPERS:
        return Part.HELPER
    if what.endswith(_AGENT_PATHS) or what.startswith(_AGENT_MODULES):
        return Part.AGENT
    return _by_name(program_of(process))


def may_be_work(process: NodeProcess) -> bool:
    """Is it work, or what multiprocessing started for some work or other?"""
    if part_of(process) is Part.WORK:
        return True
    if process.name in _HELPER_NAMES or not process.argv:
        return False
    return any(word in _what(process) for word in _STARTED_BY_PYTHON)


def is_engine_worker(process: NodeProcess) -> bool:
    """A worker of Ray or vLLM that has something to do, by the title it gave itself."""
    title = process.argv[0] if process.argv else process.name
    return title.startswith(_ENGINE_WORKERS) and not title.startswith(_IDLE_WORKER)


def program_of(process: NodeProcess) -> str:
    """``train.py`` of ``python -u train.py``, ``torch.distributed.run`` of ``python -m …``.

    The name of the program where nothing runs a script: ``sleep``, ``python3`` for ``python -c``.
    """
    if not process.argv:
        return process.name
    own = _base(process.argv[0])
    return _base(_what(process, code=False)) or own if is_python(process) else own


def _what(process: NodeProcess, *, code: bool = True) -> str:
    """What runs: the path or module behind a Python, with ``code`` also the text of ``-c``."""
    if not is_python(process):
        return process.argv[0]
    words = iter(process.argv[1:])
    for word in words:
        if word == "-m":
            return next(words, "")
        if word == "-c":
            return next(words, "") if code else ""
        if word in _TAKES_A_WORD:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def is_python(process: NodeProcess) -> bool:
    """Does a Python run it?"""
    return bool(process.argv) and _base(process.argv[0]).startswith(("python", "pypy"))


def option_of(process: NodeProcess, *names: str) -> int | None:
    """The number behind ``--rank=3`` or ``--rank 3``; None where there is none."""
    words = process.argv
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.lstrip("-").replace("-", "_") not in names or not name.startswith("-"):
            continue
        if not equals:
            value = words[place + 1] if place + 1 < len(words) else ""
        if value.isascii() and value.isdigit() and len(value) <= 7:
            return int(value)
    return None


def _by_name(name: str) -> Part:
    if name in _AGENTS:
        return Part.AGENT
    if name in _WRAPPERS:
        return Part.WRAPPER
    return Part.TOOL if name in _TOOLS else Part.WORK


def _base(word: str) -> str:
    """The last part of a path; a login shell is called ``-bash``."""
    return word.rsplit("/", 1)[-1].removeprefix("-")
