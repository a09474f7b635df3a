"""Whole logs of several runs, jobs and sources: each run is judged by what is its own."""

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from slurmtop.model.trace import Traces, joined
from slurmtop.model.verdict import Confidence, EndedBy, State, Verdict
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.next_steps import pasted
from slurmtop.triage.timeline import timeline_lines


def judged(*logs: tuple[str, str]) -> Verdict:
    return explain_traces(read(logs))


def read(logs: Sequence[tuple[str, str]]) -> Traces:
    return joined(read_bytes(name, text.encode()) for name, text in logs)


def steps(day_and_hour: str, first: int = 0, count: int = 60) -> str:
    return "".join(
        f"{day_and_hour}:{at // 60:02d}:{at % 60:02d} INFO step {first + at} loss 2.1\n"
        for at in range(count)
    )


THROWN = """\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/anna/train.py", line 12, in load
[rank2]:     x = d['label']
[rank2]: KeyError: 'label'
"""
TABLE = """\
E0505 12:00:06.000000 4700 torch/distributed/elastic/multiprocessing/api.py:869] failed \
(exitcode: 1) local_rank: 2 (pid: 4711) of binary: /env/bin/python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2031-05-05_12:00:05
  host      : gpu03
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 4711)
  error_file: <N/A>
============================================================
"""
SLURM = "slurmstepd: error: *** JOB 55 ON gpu01 CANCELLED AT 2031-05-05T12:10:00 DUE TO"
PREEMPTED = f"""\
{SLURM} PREEMPTION ***
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
"""
EXITED = """\
srun: error: gpu03: task 2: Exited with exit code 1
srun: Terminating StepId=55.0
"""
RESUMED = "INFO Resuming from checkpoint /ckpt/900\n"
BANNER = "NCCL version 2.21.5+cuda12.4\n"
FINISHED = "2031-05-05 15:59:00 INFO Training finished.\n"
BEFORE, AFTER = steps("2031-05-05 12"), steps("2031-05-05 15", 900)

RUN_AGAIN = {
    "preempted-then-resumed": PREEMPTED + RESUMED + AFTER,
    "preempted-then-a-new-communicator": PREEMPTED + BANNER + AFTER + FINISHED,
    "a-node-lost-then-steps-hours-later": f"{SLURM} NODE FAILURE ***\n{AFTER}",
    "torchrun-gave-up-then-a-new-communicator": THROWN + TABLE + BANNER + AFTER + FINISHED,
    "torchrun-gave-up-then-resumed": THROWN + TABLE + EXITED + RESUMED + AFTER,
    "a-loop-in-the-batch-script": THROWN + EXITED + "try 2 of 3\n" + AFTER + FINISHED,
}
ENDED = {
    "dying-ranks-go-on-for-a-moment": PREEMPTED + steps("2031-05-05 12", 60, 20),
    "others-outlive-a-task": THROWN + EXITED.split("\n")[0] + "\n" + AFTER + FINISHED,
    "it-fails-again": THROWN + TABLE + RESUMED + AFTER + THROWN + TABLE,
    "the-new-run-has-not-moved": PREEMPTED + RESUMED,
}


@pytest.mark.parametrize("name", RUN_AGAIN)
def test_an_end_with_a_run_behind_it_is_history_and_told_beside_the_verdict(name: str) -> None:
    verdict = judged(("train.log", BEFORE + RUN_AGAIN[name]))
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy"), verdict.summary
    assert not verdict.culprits
    assert [one.says for one in verdict.against if "earlier run" in one.says]


@pytest.mark.parametrize("name", ENDED)
def test_an_end_without_a_run_behind_it_stands(name: str) -> None:
    verdict = judged(("train.log", BEFORE + ENDED[name]))
    assert verdict.state is State.FAILED, verdict.summary


XID = "kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
KILL = (
    "kernel: Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB, anon-rss:1kB"
)
RUN = steps("2031-05-05 15")
THROWN_IN_TIME = RUN + THROWN.replace("[rank2]: ", "") + EXITED
OTHER_TIMES = {
    "xid-days-after": f"2031-05-09T15:00:10+00:00 gpu03 {XID}\n",
    "xid-a-month-before": f"2031-04-05T15:00:10,123456+00:00 gpu03 {XID}\n",
    "xid-of-dmesg-days-before": f"[Thu May  1 14:30:00 2031] {XID[8:]}\n",
    "memory-a-month-before": f"2031-04-05T15:00:10+00:00 gpu03 {KILL}\n",
}


@pytest.mark.parametrize("name", OTHER_TIMES)
def test_a_kernels_line_of_another_time_blames_nobody_and_is_told_beside(name: str) -> None:
    for log, state, cls in (
        (RUN + FINISHED, State.HEALTHY, "healthy"),
        (THROWN_IN_TIME, State.FAILED, "python-exception"),
    ):
        verdict = judged(("run/train.log", log), ("run/gpu03.dmesg", OTHER_TIMES[name]))
        assert (verdict.state, verdict.cls) == (state, cls), verdict.summary
        assert all(one.host != "gpu03" or one.gpu is None for one in verdict.culprits)
        assert [one.says for one in verdict.against if "another time" in one.says]


@pytest.mark.parametrize(
    "stamp",
    [
        "2031-05-05T15:00:40+00:00 gpu03 ",
        "2031-05-05T08:00:40-07:00 gpu03 ",
        "2031-05-05T21:00:40 gpu03 ",
        "May  5 15:00:40 gpu03 ",
        "[81234.123456] ",
        "",
    ],
    ids=["same-time", "told-zone", "hours-off-without-a-zone", "no-year", "since-boot", "no-time"],
)
def test_a_kernels_line_that_may_be_of_the_run_counts(stamp: str) -> None:
    verdict = judged(("run/train.log", RUN + EXITED), ("run/gpu03.dmesg", f"{stamp}{XID}\n"))
    assert verdict.cls == "gpu-hw-fault", verdict.summary


def test_a_run_whose_log_shows_a_time_only_at_its_beginning_may_have_gone_on_for_days() -> None:
    log = RUN + "still at it\n" * 100 + "srun: error: gpu03: task 2: Exited with exit code 1\n"
    kernel = f"2031-05-09T15:00:10+00:00 gpu03 {XID}\n"
    assert judged(("train.log", log), ("gpu03.dmesg", kernel)).cls == "gpu-hw-fault"


def test_a_kernel_of_a_node_that_no_line_of_the_run_names_blames_nobody() -> None:
    kernel = f"2031-05-05T15:00:40+00:00 gpu77 {XID}\n"
    verdict = judged(("train.log", THROWN_IN_TIME), ("gpu77.dmesg", kernel))
    assert verdict.cls == "python-exception", verdict.summary
    assert all(one.host != "gpu77" for one in verdict.culprits)
    assert "no line of the run names that node" in " ".join(one.says for one in verdict.against)


def timeout(rank: int, op: str) -> str:
    return (
        f"[rank{rank}]:[E505 14:00:00.10000000{rank} ProcessGroupNCCL.cpp:632] [Rank {rank}] "
        f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=500, OpType={op}, "
        "NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600014 milliseconds before "
        "timing out.\n"
    )


ALL_REDUCE = timeout(0, "ALLREDUCE") + timeout(1, "ALLREDUCE")
BROADCAST = timeout(2, "BROADCAST") + timeout(3, "BROADCAST")


def test_operations_of_two_jobs_are_never_compared() -> None:
    verdict = judged(("x/slurm-1.out", ALL_REDUCE), ("x/slurm-2.out", BROADCAST))
    assert verdict.job == "2"
    assert verdict.cls != "collective-op-mismatch"
    assert "job 1" in verdict.missing[0].why
    one = judged(("x/slurm-2.out", ALL_REDUCE), ("x/slurm-2.err", BROADCAST))
    assert (one.job, one.cls) == (None, "collective-op-mismatch")


@pytest.mark.parametrize("failed", ["100", "101"])
def test_the_job_with_a_problem_is_told_by_its_number_and_the_other_beside(failed: str) -> None:
    logs = {"100": RUN + FINISHED, "101": RUN + FINISHED, failed: RUN + THROWN}
    verdict = judged(*((f"x/slurm-{job}.out", log) for job, log in logs.items()))
    assert (verdict.job, verdict.state) == (failed, State.FAILED)
    (other,) = logs.keys() - {failed}
    assert f"job {other}" in verdict.missing[0].why
    assert "healthy" in verdict.missing[0].why


def test_steps_of_two_jobs_inside_the_logs_tell_them_apart_whatever_the_names() -> None:
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0.\n"
    ended = SLURM.replace("DUE TO", "***") + "\n"
    verdict = judged(("x/a.log", ALL_REDUCE + killed), ("x/b.log", BROADCAST + ended))
    assert verdict.job in ("55", "77")
    assert verdict.cls != "collective-op-mismatch"


def test_processes_of_one_communicator_are_one_run_under_two_numbers() -> None:
    init = (
        "n{0}:1{0}:1{0} [0] NCCL INFO ncclCommInitRank comm 0x5{0} rank {0} nranks 2 cudaDev 0 "
        "nvmlDev 0 busId 1000 commId 0xaa12 - Init COMPLETE\n"
    )
    logs = ((f"x/slurm-{rank}.out", init.format(rank) + RUN) for rank in (0, 1))
    assert judged(*logs).job is None


def test_words_of_slurm_without_a_number_of_a_job_tell_no_job() -> None:
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=batch.\n"
    listed = "Reason:       OOMKilled\n"
    assert judged(("x/a.log", ALL_REDUCE + killed), ("x/b.log", BROADCAST + listed)).job is None


def stuck(rank: int, seq: int) -> str:
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    return timeout(rank, "ALLREDUCE").replace("SeqNum=500", f"SeqNum={seq}") + (
        f"[rank{rank}]:[E505 14:00:00.200000000 ProcessGroupNCCL.cpp:2268] {group}  failure "
        f"detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq}, "
        f"last completed work: {seq - 1}\n"
    )


@pytest.mark.parametrize("world", [2, 8])
@pytest.mark.parametrize("seq", [499, 460])
def test_a_rank_that_stands_elsewhere_is_told_and_not_blamed(world: int, seq: int) -> None:
    log = "".join(stuck(rank, 500 if rank != 1 else seq) for rank in range(world))
    verdict = judged(("train.log", log))
    assert f"allreduce {seq} on rank 1" in verdict.summary
    assert "allreduce 500 on rank" in verdict.summary
    assert any(f"SeqNum={seq}" in one.text or f"id: {seq}" in one.text for one in verdict.evidence)
    assert not verdict.culprits


FULL = "CUDA out of memory. Tried to allocate 4.35 GiB. GPU 0 has a total capacity of 79.10 GiB"


@pytest.mark.parametrize(
    "said",
    [
        "RuntimeError: rank 7 sent a bad tensor: CUDA out of memory on rank 7",
        f"RuntimeError: worker on gn09 failed: {FULL}",
        f"my.errors.StageError: the next node broke: {FULL}",
        "torch.OutOfMemoryError: CUDA out of memory on rank 7",
    ],
)
def test_memory_of_another_process_names_not_the_one_that_tells_of_it(said: str) -> None:
    verdict = judged(("train.log", f"step 1/9 loss 2\n[rank0]: KeyError: 'a'\n[rank2]: {said}\n"))
    assert all(one.rank != 2 for one in verdict.culprits)
    alone = judged(("train.log", f"[rank0]: step 1/9 loss 2\n[rank2]: {said}\n"))
    assert not alone.culprits


def test_memory_of_its_own_still_names_the_rank_that_tells_it() -> None:
    log = f"[rank0]: step 1/9 loss 2\n[rank2]: torch.OutOfMemoryError: {FULL}\n"
    assert [one.rank for one in judged(("train.log", log)).culprits] == [2]
    loading = f"[rank0]: step 1/9 loss 2\n[rank2]: RuntimeError: loading the model: {FULL}\n"
    assert [one.rank for one in judged(("train.log", loading)).culprits] == [2]


def test_the_ranks_whose_gpus_were_full_are_told_where_none_is_named() -> None:
    log = "".join(f"[rank{rank}]: torch.OutOfMemoryError: {FULL}\n" for rank in (3, 5))
    verdict = judged(("train.log", log))
    assert verdict.cls == "gpu-oom"
    assert "ranks 3 and 5" in verdict.summary or "ranks 3, 5" in verdict.summary


def test_a_workers_sigkill_alone_is_no_proof_of_lack_of_memory() -> None:
    said = "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed."
    verdict = judged(("train.log", f"[rank0]: step 1/9 loss 2\n[rank3]: {said}\n"))
    assert not verdict.culprits
    assert verdict.confidence is not Confidence.HIGH
    assert "SIGKILL" in verdict.summary


def test_a_job_cancelled_behind_a_timeout_says_both() -> None:
    ended = "slurmstepd: error: *** JOB 55 ON gpu01 CANCELLED AT 2031-05-05T14:10:00 ***\n"
    verdict = judged(("train.log", stuck(0, 500) + stuck(1, 500) + ended))
    assert (verdict.cls, verdict.ended_by) == ("watchdog-timeout-unattributed", EndedBy.USER)
    assert "cancelled" in verdict.summary
    cleared = ended.replace("JOB 55", "STEP 55.0")
    verdict = judged(("train.log", stuck(0, 500) + stuck(1, 500) + cleared))
    assert "cancelled" not in verdict.summary


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("4711", "./4711"),
        ("-rf.log", "./-rf.log"),
        ("my log", "'my log'"),
        ("/logs/4711", "/logs/4711"),
        ("it's\n2", r"$'it\'s\0122'"),
        ("-", "-"),
    ],
)
def test_a_command_for_a_file_can_be_pasted_whatever_the_file_is_called(
    name: str, command: str
) -> None:
    assert pasted(name) == command


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_reads_a_pasted_name_back() -> None:
    name = "4\n\x1b[1m\\'é\udcff$x"
    bash = shutil.which("bash") or ""
    said = subprocess.run(
        [bash, "-c", f"printf %s {pasted(name)}"], capture_output=True, check=True
    )
    assert said.stdout.decode("utf-8", "surrogateescape") == f"./{name}"


def test_a_line_of_the_timeline_is_told_once_and_begins_with_what_was_said() -> None:
    line = (
        "[default0]:[rank12]:[E817 17:40:34.227000000 ProcessGroupNCCL.cpp:1515] "
        "[PG 0 (default_pg) Rank 12] Process group watchdog thread terminated with exception: "
        "CUDA error: uncorrectable ECC error encountered\n"
    )
    other = "[rank1]:[E817 17:40:35.227000000 ProcessGroupNCCL.cpp:1515] [Rank 3] CUDA error: ECC\n"
    lines = timeline_lines(join(read([("train.log", line + other)])), width=160)
    assert [one for one in lines if "rank 12: Process group watchdog thread terminated" in one]
    assert len([one for one in lines if "watchdog thread" in one]) == 1
    narrow = timeline_lines(join(read([("train.log", line)])), width=80)
    assert "rank 12: … CUDA error: uncorrectable ECC error" in narrow[1]
    assert not [one for one in lines if "rank 1: CUDA" in one], "the words name another rank"
