"""The last words in a log: what Slurm, the program and its launcher say when a run ends."""

from slurmtop.demo.signal_words import death_word
from slurmtop.demo.stories import Teller

_WHY = {
    "CANCELLED": "",
    "TIMEOUT": " DUE TO TIME LIMIT",
    "REQUEUED": " DUE TO JOB REQUEUE",
    "NODE_FAIL": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}


def _killed(teller: Teller, why: str) -> list[str]:
    run, ident = teller.run, teller.job.id
    at = teller.when(run.end_t or 0).strftime("%Y-%m-%dT%H:%M:%S")
    node = run.nodes[0]
    lines = [f"slurmstepd: error: *** JOB {ident} ON {node} CANCELLED AT {at}{why} ***"]
    if teller.job.spec.steps:
        lines += [
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
            f"slurmstepd: error: *** STEP {ident}.0 ON {node} CANCELLED AT {at}{why} ***",
        ]
    return lines


_VIT = (
    "Traceback (most recent call last):",
    '  File "/shared/alice/vit/finetune.py", line 214, in <module>',
    "    main()",
    '  File "/shared/alice/vit/finetune.py", line 187, in main',
    "    loss = step(model, next(batches))",
    '  File "/shared/alice/vit/data.py", line 58, in __next__',
    "    image = decode(self.index[key])",
    "KeyError: 'n02085620/n02085620_7292.JPEG'",
)


#: The other rank, in a gather on the CPU: the first one is gone.
_VIT_PEER = (
    "Traceback (most recent call last):",
    '  File "/shared/alice/vit/finetune.py", line 214, in <module>',
    "    main()",
    '  File "/shared/alice/vit/finetune.py", line 193, in main',
    "    dist.all_gather_object(seen, names, group=on_cpu)",
    '  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 81,'
    " in wrapper",
    "    return func(*args, **kwargs)",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"
    " [10.40.1.5]:38117",
)


def _raised(rank: int, lines: tuple[str, ...]) -> list[str]:
    return [f"[rank{rank}]: {line}" for line in lines]


def _died(teller: Teller) -> list[str]:
    """Killed by a signal that nothing was prepared for: the step, or the batch shell."""
    node, code = teller.run.nodes[0], teller.run.exit[0]
    if code:
        return [f"srun: error: {node}: task 0: {death_word(code - 128)}"]
    if not teller.job.spec.steps:
        return []
    failed = "FAILED (non-zero exit code or other failure mode)"
    return [
        f"slurmstepd: error: *** STEP {teller.job.id}.0 ON {node} {failed} ***",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        f"srun: error: {node}: task 0: Terminated",
    ]


def _failed(teller: Teller) -> list[str]:
    run, ident = teller.run, teller.job.id
    node = run.nodes[0]
    at = teller.when(run.end_t or 0).strftime("%Y-%m-%dT%H:%M:%S")
    if run.exit[0] > 128 or run.exit[1]:
        return _died(teller)
    exit = run.exit if run.step_exit is None else run.step_exit
    if teller.job.spec.error is not None:
        return [
            *_raised(
                0,
                (
                    "Traceback (most recent call last):",
                    f'  File "{teller.job.spec.workdir}/train.py", line 131, in <module>',
                    "    loss.backward()",
                    teller.job.spec.error,
                ),
            ),
            f"srun: error: {node}: task 0: Exited with exit code {exit[0]}",
        ]
    if teller.job.spec.story != "traceback":
        return [
            "Traceback (most recent call last):",
            f'  File "{teller.job.spec.workdir}/train.py", line 96, in <module>',
            '    raise ValueError("the loss is not a number")',
            "ValueError: the loss is not a number",
            f"srun: error: {node}: task 0: Exited with exit code {run.exit[0]}",
        ]
    return [
        *_raised(1, _VIT),
        *_raised(0, _VIT_PEER),
        f"srun: error: {node}: task 1: Exited with exit code {run.exit[0]}",
        f"srun: Terminating StepId={ident}.0",
        f"slurmstepd: error: *** STEP {ident}.0 ON {node} CANCELLED AT {at} ***",
        f"srun: error: {node}: task 0: Terminated",
    ]


def _out_of_memory(teller: Teller) -> list[str]:
    node, ident = teller.run.nodes[0], teller.job.id
    return [
        f"slurmstepd: error: Detected 1 oom_kill event in StepId={ident}.0."
        " Some of the step tasks have been OOM Killed.",
        f"srun: error: {node}: task 0: Out Of Memory",
        f"slurmstepd: error: Detected 1 oom_kill event in StepId={ident}.batch."
        " Some of the step tasks have been OOM Killed.",
    ]


def last_words(teller: Teller) -> tuple[str, str]:
    """(what goes to stdout, what goes to stderr) when the run has ended."""
    state = teller.run.state
    fresh_line = "\n" if teller.job.spec.story == "bar" else ""
    if state == "REQUEUED" and teller.run.step_exit is not None:
        err = [*_failed(teller), *_killed(teller, _WHY[state])[:1]]
    elif state in _WHY:
        err = _killed(teller, _WHY[state])
    elif state == "FAILED":
        err = _failed(teller)
    elif state == "OUT_OF_MEMORY":
        err = _out_of_memory(teller)
    else:
        done = "done" if teller.job.spec.story == "quiet" else "training finished"
        return f"{fresh_line}{teller.stamp(teller.run.end_t or 0)} INFO {done}\n", ""
    return fresh_line, "".join(f"{line}\n" for line in err)
