"""Which processes are the ranks: trees of processes as data, and who is never one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from slurmtop.model.gpu import GpuProcess, GpuSample, NodeGpus
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess, Rung
from slurmtop.triage.ranks import rank_processes, ranks_by_gpu

AT = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)
PYTHON = "/opt/torch/bin/python"
TORCHRUN = f"{PYTHON} -u /opt/torch/bin/torchrun --nnodes=2 --nproc-per-node=2 train.py"
TRAIN = f"{PYTHON} -u train.py --lr 3e-4"
SPAWNED = (PYTHON, "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--x")
JOB = "77"


def process(pid: int, ppid: int, line: str | tuple[str, ...], **more: object) -> NodeProcess:
    """Names in capitals are its environment, others fields; ``readable=False``: no environment."""
    argv = tuple(line.split()) if isinstance(line, str) else line
    values = tuple(sorted((key, str(value)) for key, value in more.items() if key.isupper()))
    fields = {key: value for key, value in more.items() if not key.isupper()}
    readable = fields.pop("readable", True)
    made = NodeProcess(
        host="gpu01",
        pid=pid,
        start_ticks=1_000 + pid,
        ppid=ppid,
        state="S",
        name=argv[0].rsplit("/", 1)[-1][:15],
        argv=argv,
        job=JOB,
        step="0",
        env=values if readable else None,
        threads=20,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def look(*processes: NodeProcess, host: str = "gpu01") -> NodeProcesses:
    return NodeProcesses(host=host, at=AT, processes=processes)


def ranks(*processes: NodeProcess) -> tuple[RankProcess, ...]:
    hosts = dict.fromkeys(one.host for one in processes)
    looks = [look(*(p for p in processes if p.host == h), host=h) for h in hosts]
    return rank_processes(looks, JOB)


def pids(*processes: NodeProcess) -> list[tuple[int | None, int]]:
    return [(one.rank, one.process.pid) for one in ranks(*processes)]


def worker(
    pid: int, ppid: int, rank: int, line: str | tuple[str, ...] = TRAIN, **more: object
) -> NodeProcess:
    env: dict[str, object] = {
        "RANK": rank,
        "LOCAL_RANK": rank % 2,
        "WORLD_SIZE": 4,
        "TORCHELASTIC_RUN_ID": JOB,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "MASTER_ADDR": "gpu01",
        "MASTER_PORT": 29400,
    }
    return process(pid, ppid, line, **{**env, **more})


def stepd(pid: int = 10, step: str = "0") -> NodeProcess:
    return process(pid, 1, f"slurmstepd: [{JOB}.{step}]", step=step, threads=5, readable=False)


def task(
    pid: int,
    line: str | tuple[str, ...] = TRAIN,
    rank: int = 0,
    ppid: int = 10,
    **more: object,
) -> NodeProcess:
    env: dict[str, object] = {
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank % 4,
        "SLURM_STEP_NUM_TASKS": 4,
        "SLURM_TASK_PID": pid,
    }
    return process(pid, ppid, line, **{**env, **more})


BATCH = process(
    5, 4, "/bin/bash /var/spool/slurmd/job77/slurm_script", step="batch", SLURM_PROCID=0
)
CLIENT = process(6, 5, f"srun {TORCHRUN}", step="batch", SLURM_PROCID=0)


def test_torchrun_workers_and_nobody_else() -> None:
    found = ranks(
        BATCH,
        CLIENT,
        stepd(),
        process(20, 10, ("bash", "-c", "trap '' USR1; torchrun x; true"), SLURM_PROCID=0),
        process(21, 20, TORCHRUN, SLURM_PROCID=0, SLURM_TASK_PID=20),
        worker(30, 21, 0, SLURM_PROCID=0),
        worker(31, 21, 1, SLURM_PROCID=0),
        # Workers of data loaders, forked and spawned; a compile worker; a shell for nvidia-smi.
        worker(40, 30, 0, threads=1),
        worker(41, 30, 0, threads=1, name="pt_data_worker"),
        worker(42, 31, 1, SPAWNED, threads=30),
        worker(43, 31, 1, f"{PYTHON} /x/torch/_inductor/compile_worker/__main__.py", threads=40),
        worker(44, 31, 1, "sh -c nvidia-smi"),
        process(50, 10, ("bash", "-c", "exec torchrun"), host="gpu02", SLURM_PROCID=1),
        process(51, 50, TORCHRUN, host="gpu02", SLURM_PROCID=1),
        worker(60, 51, 2, host="gpu02", SLURM_PROCID=1),
        worker(61, 51, 3, host="gpu02", SLURM_PROCID=1),
    )
    assert [(one.rank, one.local_rank, one.process.key[:2]) for one in found] == [
        (0, 0, ("gpu01", 30)),
        (1, 1, ("gpu01", 31)),
        (2, 0, ("gpu02", 60)),
        (3, 1, ("gpu02", 61)),
    ]
    assert {one.rung for one in found} == {Rung.ENVIRONMENT}
    assert {one.world_size for one in found} == {4}
    assert {one.attempt for one in found} == {0}


def test_an_option_that_names_a_logger_makes_no_helper() -> None:
    line = f"{TRAIN} --logger tensorboard --workers multiprocessing.spawn wandb-core"
    assert pids(stepd(), process(21, 10, TORCHRUN), worker(30, 21, 0, line)) == [(0, 30)]


def test_one_rank_a_task_of_srun_behind_shells() -> None:
    found = ranks(
        BATCH,
        stepd(),
        task(20, ("/bin/bash", "-c", "numactl python train.py | tee log"), 0),
        process(21, 20, "numactl --cpunodebind=0 x", SLURM_PROCID=0),
        task(22, TRAIN, 0, ppid=21, SLURM_TASK_PID=20),
        task(23, "tee log", 0, ppid=20, SLURM_TASK_PID=20),
        task(24, TRAIN, 0, ppid=22, SLURM_TASK_PID=20, threads=1),
        task(30, TRAIN, 1),
    )
    assert [(one.rank, one.local_rank, one.process.pid) for one in found] == [
        (0, 0, 22),
        (1, 1, 30),
    ]
    assert {one.world_size for one in found} == {4}


def test_names_that_a_program_gives_its_helpers_make_them_no_rank() -> None:
    """A program of srun sets RANK for itself; what it executes then bears it, it does not."""
    names: dict[str, object] = {"RANK": 1, "WORLD_SIZE": 4, "MASTER_ADDR": "gpu01"}
    assert pids(
        stepd(),
        task(20, TRAIN, 1, threads=60),
        task(21, SPAWNED, 1, ppid=20, SLURM_TASK_PID=20, threads=80, **names),
        task(22, f"{PYTHON} -m http.server", 1, ppid=20, SLURM_TASK_PID=20, threads=2, **names),
    ) == [(1, 20)]


def test_a_launcher_that_nobody_knows_is_none_of_the_ranks() -> None:
    tree = [stepd(), task(20, f"{PYTHON} launch.py", 0, threads=2)]
    for rank in range(2):
        names: dict[str, object] = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2}
        tree.append(task(30 + rank, TRAIN, 0, ppid=20, SLURM_TASK_PID=20, **names))
    assert pids(*tree) == [(0, 30), (1, 31)]
    assert pids(*tree[:3]) == [(0, 30)], "also with one rank a node"


def test_an_evaluation_that_a_rank_starts_does_not_take_its_place() -> None:
    evaluation = process(40, 30, f"{PYTHON} -m torch.distributed.run eval.py", RANK=0, LOCAL_RANK=0,
                         WORLD_SIZE=4, TORCHELASTIC_RUN_ID=JOB, MASTER_ADDR="gpu01")  # fmt: skip
    assert pids(
        stepd(),
        process(21, 10, TORCHRUN, SLURM_PROCID=0),
        worker(30, 21, 0),
        evaluation,
        worker(41, 40, 0, TORCHELASTIC_RUN_ID="eval", WORLD_SIZE=2),
        worker(42, 40, 1, TORCHELASTIC_RUN_ID="eval", WORLD_SIZE=2),
    ) == [(0, 30)]


def test_a_rank_set_once_for_all_is_none() -> None:
    """``export RANK=0`` above an srun: all tasks inherit it, and it is the rank of none."""
    names: dict[str, object] = {"RANK": 0, "WORLD_SIZE": 8, "MASTER_ADDR": "gpu01"}
    found = ranks(
        process(6, 5, f"srun {TRAIN}", step="batch", SLURM_PROCID=0, **names),
        stepd(),
        *(task(20 + rank, TRAIN, rank, 10, **names) for rank in range(3)),
    )
    assert [(one.rank, one.process.pid, one.world_size) for one in found] == [
        (0, 20, 4),
        (1, 21, 4),
        (2, 22, 4),
    ]


def test_the_number_of_a_node_in_an_agent_is_no_rank() -> None:
    """Some platforms set RANK to the number of the node, for ``torchrun --node_rank``."""
    agent = process(21, 10, TORCHRUN, RANK=1, WORLD_SIZE=2, MASTER_ADDR="gpu01", SLURM_PROCID=1)
    assert pids(stepd(), agent, worker(30, 21, 2), worker(31, 21, 3)) == [(2, 30), (3, 31)]


@pytest.mark.parametrize(
    ("name", "size"),
    [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")],
)
def test_ranks_of_an_mpi(name: str, size: str) -> None:
    of: dict[str, object] = {size: 3}
    found = ranks(
        BATCH,
        process(6, 5, "mpirun -np 2 python train.py", step="batch", SLURM_PROCID=0),
        process(20, 6, TRAIN, step="batch", SLURM_PROCID=0, **{name: 0, **of}),
        process(21, 6, TRAIN, step="batch", SLURM_PROCID=0, **{name: 1, **of}),
        stepd(),
        process(30, 10, "orted -mca ess env", host="gpu02", SLURM_PROCID=0, SLURM_TASK_PID=30),
        process(31, 30, TRAIN, host="gpu02", SLURM_PROCID=0, SLURM_TASK_PID=30, **{name: 2, **of}),
    )
    assert [(one.rank, one.world_size, one.process.pid) for one in found] == [
        (0, 3, 20),
        (1, 3, 21),
        (2, 3, 31),
    ]


def test_containers_hide_nothing() -> None:
    found = ranks(
        stepd(),
        task(20, ("Apptainer runtime parent",), 0, name="starter"),
        replace(task(21, "appinit", 0, ppid=20, SLURM_TASK_PID=20), inner_pids=(1,)),
        replace(task(22, TRAIN, 0, ppid=21, SLURM_TASK_PID=20), inner_pids=(7,)),
        task(30, "unshare -Urmpf --mount-proc x", 1),
        replace(task(31, "bash -c x", 1, ppid=30, SLURM_TASK_PID=30), inner_pids=(1,)),
        replace(task(32, TRAIN, 1, ppid=31, SLURM_TASK_PID=30), inner_pids=(5,)),
    )
    assert [(one.rank, one.process.pid, one.process.inner_pids) for one in found] == [
        (0, 22, (7,)),
        (1, 32, (5,)),
    ]


def test_two_worlds_in_one_job_are_kept_apart() -> None:
    found = ranks(
        stepd(),
        process(21, 10, TORCHRUN),
        worker(30, 21, 0),
        stepd(11, "1"),
        process(22, 11, TORCHRUN, step="1"),
        worker(40, 22, 0, step="1", TORCHELASTIC_RUN_ID="other", WORLD_SIZE=1),
    )
    assert [(one.rank, one.process.step, one.world_size) for one in found] == [
        (0, "0", 4),
        (0, "1", 1),
    ]


def test_of_two_attempts_the_newer_counts() -> None:
    """torchrun restarts its workers; what is still there of the former attempt is no rank."""
    again: dict[str, object] = {"TORCHELASTIC_RESTART_COUNT": 1}
    found = ranks(
        stepd(),
        process(21, 10, TORCHRUN),
        worker(30, 21, 0),
        worker(40, 21, 0, TRAIN, **again),
        worker(41, 21, 1, TRAIN, **again),
    )
    assert [(one.rank, one.attempt, one.process.pid) for one in found] == [(0, 1, 40), (1, 1, 41)]


def test_what_a_dead_rank_left_behind_is_no_rank() -> None:
    orphan = worker(40, 1, 0, threads=1)
    assert pids(stepd(), process(21, 10, TORCHRUN), orphan, worker(31, 21, 1)) == [(1, 31)]
    left = task(24, TRAIN, 0, ppid=1, SLURM_TASK_PID=20, threads=1)
    assert pids(stepd(), left, task(30, TRAIN, 1)) == [(1, 30)]
    dead = worker(30, 21, 0, state="Z")
    assert pids(stepd(), process(21, 10, TORCHRUN), dead, worker(31, 21, 1)) == [(1, 31)]


def test_ranks_live_on_when_their_agent_has_died() -> None:
    first, second = worker(30, 1, 0), worker(31, 1, 1)
    helper = worker(40, 1, 0, threads=1)
    assert pids(stepd(), helper, first, second) == [(0, 30), (1, 31)]


def test_a_program_that_starts_its_own_sisters_is_the_first_of_them() -> None:
    """Lightning: the first process is rank 0 and sets LOCAL_RANK for those that it starts."""
    sisters = [
        process(
            30 + n,
            20,
            TRAIN,
            step="batch",
            LOCAL_RANK=n,
            NODE_RANK=0,
            WORLD_SIZE=3,
            MASTER_ADDR="127.0.0.1",
        )
        for n in (1, 2)
    ]
    assert pids(BATCH, process(20, 5, TRAIN, step="batch", SLURM_PROCID=0), *sisters) == [
        (0, 20),
        (1, 31),
        (2, 32),
    ]


def own_world(host: str, **more: object) -> list[NodeProcess]:
    """Two processes that bear a local rank alone."""
    names: dict[str, object] = {"WORLD_SIZE": 4, "MASTER_ADDR": "gpu01", **more}
    return [
        process(30 + n, 5, TRAIN, step="batch", host=host, LOCAL_RANK=n, **names) for n in (0, 1)
    ]


def test_a_local_rank_is_the_rank_only_where_something_says_so() -> None:
    def told(*processes: NodeProcess) -> list[tuple[int | None, int | None]]:
        return [(one.rank, one.local_rank) for one in ranks(*processes)]

    assert told(*own_world("gpu01")) == [(None, 0), (None, 1)], "the other host may not be seen"
    assert told(*own_world("gpu01"), *own_world("gpu02")) == [(None, 0), (None, 1)] * 2
    first, second = own_world("gpu01", NODE_RANK=0), own_world("gpu02", NODE_RANK=1)
    assert told(*first, *second) == [(0, 0), (1, 1), (None, 0), (None, 1)]
    for name in ("NNODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"):
        assert told(*own_world("gpu01", **{name: 1})) == [(0, 0), (1, 1)]
        assert told(*own_world("gpu01", **{name: 2})) == [(None, 0), (None, 1)]
    assert told(*own_world("gpu01", WORLD_SIZE=2, LOCAL_WORLD_SIZE=2)) == [(0, 0), (1, 1)]
    assert told(*own_world("gpu01", NNODES=2, NODE_RANK=0)) == [(0, 0), (1, 1)]
    # Set once for all nodes.
    same = [one for host in ("gpu01", "gpu02") for one in own_world(host, NODE_RANK=0)]
    assert told(*same) == [(None, 0), (None, 1)] * 2


def test_a_plain_program_has_no_rank_but_is_told() -> None:
    found = ranks(
        BATCH,
        process(20, 5, TRAIN, step="batch", SLURM_PROCID=0),
        process(21, 20, TRAIN, step="batch"),
    )
    assert [(one.rank, one.process.pid, one.rung) for one in found] == [(None, 20, Rung.UNKNOWN)]


def test_watching_steps_and_shells_are_no_ranks_beside_training() -> None:
    assert pids(
        stepd(),
        task(20, TRAIN, 0),
        stepd(11, "1"),
        task(40, "nvidia-smi dmon", 0, ppid=11, step="1"),
        stepd(12, "2"),
        task(50, "/bin/bash", 0, ppid=12, step="2"),
        process(60, 3, "bash -l", step="extern"),
    ) == [(0, 20)]
    assert pids(stepd(), task(20, "sleep 900", 0)) == [(0, 20)], "where nothing else runs it is"


def test_a_shell_may_be_the_work_itself() -> None:
    loop = ("bash", "-c", "trap save USR1; while :; do sleep 900 & wait; done")
    sleeper = task(21, "sleep 900", 0, ppid=20, SLURM_TASK_PID=20)
    assert pids(stepd(), task(20, loop, 0), sleeper) == [(0, 20)]


def test_of_two_programs_nobody_guesses() -> None:
    shell = task(20, ("bash", "-c", "a.py & b.py"), 0)
    one = task(21, f"{PYTHON} a.py", 0, ppid=20, SLURM_TASK_PID=20, threads=5)
    two = task(22, f"{PYTHON} b.py", 0, ppid=20, SLURM_TASK_PID=20, threads=6)
    found = ranks(stepd(), shell, one, two)
    assert {(one.rank, one.rung) for one in found} == {(None, Rung.UNKNOWN)}
    assert {one.process.pid for one in found} == {21, 22}
    much = replace(two, threads=60)
    assert pids(stepd(), shell, one, much) == [(0, 22)], "a training program has many threads"


def test_without_an_environment_the_command_line_may_tell() -> None:
    launch = f"{PYTHON} -m torch.distributed.launch --nproc_per_node=2 --node_rank=1 t.py"
    found = ranks(
        stepd(),
        process(20, 10, launch, readable=False),
        process(30, 20, f"{PYTHON} t.py --local_rank=0", readable=False),
        process(31, 20, f"{PYTHON} t.py --local-rank 1", readable=False),
        process(32, 30, f"{PYTHON} t.py --local_rank=0", readable=False),
    )
    assert [(one.rank, one.local_rank, one.rung, one.process.pid) for one in found] == [
        (2, 0, Rung.ARGV, 30),
        (3, 1, Rung.ARGV, 31),
    ]
    found = ranks(
        stepd(),
        process(20, 10, TORCHRUN, readable=False),
        process(30, 20, TRAIN, readable=False),
        process(31, 20, TRAIN, readable=False),
    )
    assert [(one.rank, one.rung, one.process.pid) for one in found] == [
        (None, Rung.UNKNOWN, 30),
        (None, Rung.UNKNOWN, 31),
    ]


def test_other_jobs_and_failed_looks_add_nothing() -> None:
    other = replace(task(20, TRAIN, 0), job="78")
    assert ranks(stepd(), other) == ()
    assert rank_processes([], JOB) == ()


def spawned(count: int, ppid: int = 20, **more: object) -> list[NodeProcess]:
    """What one task of srun started by itself: all bear its number."""
    return [
        task(30 + n, SPAWNED, 0, ppid=ppid, SLURM_TASK_PID=20, **{"threads": 80, **more})
        for n in range(count)
    ]


def on_gpus(
    tree: list[NodeProcess], *pairs: tuple[int, int]
) -> dict[str, list[tuple[int | None, int]]]:
    """``pairs`` of a GPU's index and a pid on it; rank and pid by GPU."""
    gpus = NodeGpus(
        host="gpu01",
        samples=tuple(GpuSample(index=n, uuid=f"GPU-{n}") for n in range(8)),
        processes=tuple(GpuProcess(pid=pid, gpu_uuid=f"GPU-{n}") for n, pid in pairs),
    )
    seen = look(*tree)
    host = HostLook(host="gpu01", gpus=gpus, processes=seen)
    found = ranks_by_gpu(host, rank_processes([seen], JOB))
    return {uuid: [(one.rank, one.process.pid) for one in those] for uuid, those in found.items()}


def test_one_task_with_a_worker_a_gpu_is_the_rank_of_none() -> None:
    """mp.spawn, plain forks, vLLM: a sick GPU 5 must not read "rank 0"."""
    parent = task(20, TRAIN, 0, threads=4)
    own = {f"GPU-{n}": [(None, 30 + n)] for n in range(8)}
    pairs = [(n, 30 + n) for n in range(8)]
    assert on_gpus([stepd(), parent, *spawned(8)], *pairs) == own
    forked = [replace(one, argv=parent.argv) for one in spawned(8)]
    assert on_gpus([stepd(), parent, *forked], *pairs) == own
    # Also where the number of threads says nothing of them.
    few = [replace(one, threads=2) for one in forked]
    assert on_gpus([stepd(), parent, *few], *pairs) == own
    # Each has a context on GPU 0 as well, as happens.
    found = on_gpus([stepd(), parent, *few], *pairs, *((0, 30 + n) for n in range(1, 8)))
    assert found["GPU-0"] == [(None, 30 + n) for n in range(8)]
    assert found["GPU-5"] == [(None, 35)]
    # The parent is the first of them itself.
    found = on_gpus([stepd(), parent, *few[1:]], (0, 20), *pairs[1:])
    assert found == {"GPU-0": [(None, 20)], **{f"GPU-{n}": [(None, 30 + n)] for n in range(1, 8)}}
    found = on_gpus([stepd(), parent, few[1]], (0, 20), (1, 31))
    assert found == {"GPU-0": [(None, 20)], "GPU-1": [(None, 31)]}


def test_what_a_rank_started_on_its_own_gpus_is_the_rank() -> None:
    parent, few = task(20, TRAIN, 0), spawned(3, threads=2)
    same = [(0, 20), *((0, one.pid) for one in few)]
    assert on_gpus([stepd(), parent, *few], *same) == {"GPU-0": [(0, 20)]}
    assert on_gpus([stepd(), parent, *few], *same[1:]) == {"GPU-0": [(0, 20)]}
    assert on_gpus([stepd(), parent, *few], (3, 31)) == {"GPU-3": [(0, 20)]}
    whole = [(n, 20) for n in range(8)]
    assert on_gpus([stepd(), parent, *few], *whole, (1, 30), (2, 31)) == {
        f"GPU-{n}": [(0, 20)] for n in range(8)
    }
    # What torchrun started is a rank; what it has started elsewhere is not told as that rank.
    tree = [stepd(), process(21, 10, TORCHRUN), worker(30, 21, 0)]
    tree += [worker(40 + n, 30, 0, threads=30) for n in range(2)]
    assert on_gpus(tree, (0, 30), (1, 40), (2, 41)) == {
        "GPU-0": [(0, 30)],
        "GPU-1": [(None, 40)],
        "GPU-2": [(None, 41)],
    }


def doubts(*processes: NodeProcess) -> list[tuple[int | None, int, list[int]]]:
    return [
        (one.rank, one.process.pid, [below.pid for below in one.perhaps])
        for one in ranks(*processes)
    ]


def test_processes_that_may_be_the_ranks_in_its_place_are_told() -> None:
    parent = task(20, TRAIN, 0, threads=4)
    loaders = [task(50 + n, SPAWNED, 0, ppid=30 + n, threads=2) for n in range(4)]
    assert doubts(stepd(), parent, *spawned(4), *loaders) == [(None, 20, [30, 31, 32, 33])]
    forked = [replace(one, argv=parent.argv) for one in spawned(2)]
    assert doubts(stepd(), parent, *forked) == [(None, 20, [30, 31])]
    # Few threads, one alone, or one of another kind: a rank and its helpers.
    assert doubts(stepd(), task(20, TRAIN, 0), *spawned(8, threads=2)) == [(0, 20, [])]
    assert doubts(stepd(), parent, *spawned(1)) == [(0, 20, [])]
    pool = [replace(one, name="pt_data_worker") for one in spawned(4)]
    assert doubts(stepd(), parent, *pool) == [(0, 20, [])]
    tree = [stepd(), process(21, 10, TORCHRUN), worker(30, 21, 0)]
    assert doubts(*tree, *(worker(40 + n, 30, 0) for n in range(3))) == [(0, 30, [])]


def test_workers_of_an_engine_are_looked_for_behind_it() -> None:
    raylet = task(20, "/opt/ray/raylet --node_ip=x", 0, threads=60)
    started = [task(30 + n, ("ray::Worker.run",), 0, ppid=20, threads=9) for n in range(2)]
    idle = task(40, ("ray::IDLE",), 0, ppid=20, threads=9)
    assert doubts(stepd(), raylet, *started, idle) == [(None, 20, [30, 31])]
    assert doubts(stepd(), raylet, idle) == [(0, 20, [])]
    server = task(20, f"{PYTHON} /opt/bin/vllm serve m", 0, threads=30)
    core = task(21, ("EngineCore",), 0, ppid=20, threads=40)
    below = [task(30 + n, SPAWNED, 0, ppid=21, threads=60) for n in range(2)]
    assert doubts(stepd(), server, core, *below) == [(None, 20, [30, 31])]
    assert on_gpus([stepd(), server, core, *below], (0, 30), (1, 31)) == {
        "GPU-0": [(None, 30)],
        "GPU-1": [(None, 31)],
    }


def test_ranks_on_gpus_by_process_and_by_what_a_rank_started() -> None:
    tree = (
        stepd(),
        process(21, 10, TORCHRUN),
        worker(30, 21, 0),
        worker(31, 21, 1),
        worker(40, 31, 1, threads=3),
    )
    seen = look(*tree)
    gpus = NodeGpus(
        host="gpu01",
        samples=(GpuSample(index=0, uuid="GPU-a"), GpuSample(index=1, uuid="GPU-b")),
        processes=(
            GpuProcess(pid=30, gpu_uuid="GPU-a"),
            GpuProcess(pid=31, gpu_index=1),
            GpuProcess(pid=40, gpu_uuid="GPU-b"),
            GpuProcess(pid=40, gpu_uuid="GPU-a"),
            GpuProcess(pid=999, gpu_uuid="GPU-c"),
        ),
    )
    host = HostLook(host="gpu01", gpus=gpus, processes=seen)
    found = ranks_by_gpu(host, rank_processes([seen], JOB))
    assert {uuid: [one.rank for one in those] for uuid, those in found.items()} == {
        "GPU-a": [0, 1],
        "GPU-b": [1],
    }
    assert ranks_by_gpu(HostLook(host="gpu01"), ()) == {}


@pytest.mark.parametrize("readable", [True, False])
def test_shells_below_one_another_in_any_number_hide_no_rank(readable: bool) -> None:
    deep = 2_000
    names = {"RANK": 3, "LOCAL_RANK": 3, "WORLD_SIZE": 8} if readable else {}
    shells = [
        process(100 + at, 99 + at, "/bin/bash job.sh", readable=readable, **names)
        for at in range(deep)
    ]
    work = process(
        100 + deep, 99 + deep, f"{TRAIN} --rank 3 --local_rank 3", readable=readable, **names
    )
    assert pids(*shells, work) == [(3, work.pid)]


def test_a_tree_of_processes_that_goes_in_a_circle_has_an_end() -> None:
    names = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1}
    for more in ({}, names):
        shells = [
            process(100 + at, 100 + (at + 1) % 5, "/bin/bash x.sh", **more) for at in range(5)
        ]
        ranks(*shells, process(200, 102, TRAIN, **more))
