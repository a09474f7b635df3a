"""Runs with a log a rank: one that is lost makes nobody a culprit who was none with it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.trace import Traces, joined
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.rules import (
    call_lines,
    collectives,
    endpoints,
    exits,
    interrupt,
    missing,
    misuse,
    program,
    slurm_end,
    timeouts,
)

RULES = (
    call_lines.find,
    collectives.find,
    endpoints.find,
    exits.find,
    interrupt.find,
    misuse.find,
    missing.find,
    program.find,
    slurm_end.find,
    timeouts.find,
)
RANKS = 6
HEAD = "[rank{rank}]: "
GLOG = "[rank{rank}]:[E505 10:0{n}:00.1 ProcessGroupNCCL.cpp:607] "
LINES = {
    "world": "initialized host n{node} as rank {rank}\nworld_size: 6",
    "step": "[rank{rank}] step {n}/9 loss 0.5",
    "evaluates": "Evaluating:  46%|####6     | 31/67 [00:29<00:35,  1.03it/s]",
    "saves": "saving checkpoint at iteration 5 to /ckpt",
    "throws": (
        HEAD + "Traceback (most recent call last):\n"
        '{head}  File "/code/train.py", line 4{n}, in step\n{head}ValueError: bad shape {n}'
    ),
    "throws-another": (
        HEAD + "Traceback (most recent call last):\n"
        "{head}  File \"/code/data.py\", line 7, in load\n{head}KeyError: 'text'"
    ),
    "cut": HEAD + 'Traceback (most recent call last):\n{head}  File "/code/train.py", line 4, in x',
    "assert": HEAD + "RuntimeError: CUDA error: device-side assert triggered",
    "timeout": (
        GLOG + "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, "
        "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds "
        "before timing out."
    ),
    "other-timeout": (
        GLOG + "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
        "OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds "
        "before timing out."
    ),
    "progress": (
        GLOG + "[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Timeout at NCCL work: {n}, last "
        "enqueued NCCL work: {n}, last completed NCCL work: 3."
    ),
    "heartbeat": (
        GLOG + "[PG ID 0 PG GUID 0(default_pg) Rank {rank}] ProcessGroupNCCL's watchdog got stuck "
        "for 480 seconds without making progress in monitoring enqueued collectives."
    ),
    "closed": (
        "n{node}:4{rank}:9 [{rank}] misc/socket.cc:54 NCCL WARN socketProgress: Connection closed "
        "by remote peer n{peer}<4242>"
    ),
    "service": (
        "n1:4{rank}:9 [{rank}] NCCL INFO [Service thread] Connection closed by localRank {peer}"
    ),
    "store": (
        "[rank{rank}]: torch.distributed.DistBackendError: [{rank}] is setting up NCCL "
        "communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', "
        "but store->get('0') got error: Connection reset by peer"
    ),
    "gloo": (
        HEAD + "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer "
        "[10.0.0.{peer}]:4242"
    ),
    "system": (
        HEAD + "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system "
        "error, NCCL version 2.21.5"
    ),
    "abort": "terminate called after throwing an instance of 'c10::DistBackendError'",
    "done": "Training completed.",
    "interrupt": HEAD + "KeyboardInterrupt",
}
SRUN = (
    "srun: error: n1: task {peer}: Exited with exit code 1",
    "srun: error: n2: task {peer}: Killed",
    "srun: error: n1: tasks 0-2: Exited with exit code 1",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
    "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 ***",
    "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TIME LIMIT ***",
    "W0505 10:00:01.0 1 api.py:1] Sending process 4{peer} closing signal SIGTERM",
    "E0505 10:00:01.0 1 api.py:1] failed (exitcode: 1) local_rank: {peer} (pid: 4{peer}) of binary",
)
NUMBERS = st.integers(0, RANKS - 1)


@st.composite
def rank_logs(draw: st.DrawFn) -> dict[str, Traces]:
    """What each rank wrote into its own log, and what the launcher wrote into another one."""
    alike = draw(st.lists(st.sampled_from(sorted(LINES)), max_size=3))
    logs = {}
    for rank in range(RANKS):
        told = draw(st.one_of(st.just(alike), st.lists(st.sampled_from(sorted(LINES)), max_size=3)))
        text = "\n".join(
            LINES[one].format(
                rank=rank,
                n=draw(st.sampled_from([7, 7, 6])),
                node=1 + rank // 3,
                peer=draw(NUMBERS),
                head=HEAD.format(rank=rank),
            )
            for one in told
        )
        name = f"rank{rank}.log"
        logs[name] = read_bytes(name, text.encode())
    srun = "\n".join(one.format(peer=draw(NUMBERS)) for one in draw(st.sets(st.sampled_from(SRUN))))
    logs["slurm.out"] = read_bytes("slurm.out", srun.encode())
    return logs


def blamed(logs: dict[str, Traces]) -> set[tuple[int | None, str | None]]:
    """Everybody whom any rule, or the verdict, names."""
    traces = joined(logs.values())
    picture = join(traces)
    named = [one for rule in RULES for found in rule(picture) for one in found.culprits]
    named += explain_traces(traces).culprits
    return {(one.rank, None) for one in named if one.rank is not None} | {
        (None, one.host) for one in named if one.host is not None
    }


@settings(max_examples=60, deadline=None)
@given(rank_logs(), st.sets(NUMBERS, min_size=1, max_size=RANKS - 1))
def test_logs_of_ranks_that_are_lost_add_no_culprit(
    logs: dict[str, Traces], lost: set[int]
) -> None:
    kept = {name: one for name, one in logs.items() if name not in {f"rank{r}.log" for r in lost}}
    assert blamed(kept) <= blamed(logs)
