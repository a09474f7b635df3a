"""Logs of runs that failed: never called healthy, whatever stands behind the failure."""

import pytest

from slurmtop.model.trace import joined
from slurmtop.model.verdict import State, Verdict
from slurmtop.parse.logs.reading import SourceReader, read_bytes
from slurmtop.triage.judge import explain_traces

STEPS = "".join(f"INFO step {n}00 loss 1.{n}\n" for n in range(1, 6))
TRACE = """\
Traceback (most recent call last):
  File "train.py", line 41, in <module>
    main()
ValueError: bad batch
"""
BAR = "train:  40%|####      | 40/100 [00:10<00:15,  4.00it/s]"
BAR_ON = "train:  41%|####1     | 41/100 [00:10<00:15,  4.00it/s]"

FAILED = {
    "bar-redrawn": f"\r{BAR}\n{TRACE}\n{BAR}\n",
    "bar-redrawn-in-place": f"{BAR}\r{BAR}\n{TRACE}\r{BAR}\n",
    "bar-redrawn-one-higher": f"{BAR}\n{TRACE}{BAR_ON}\n",
    "bars-within-each-other": f"epoch:   0%|  | 0/3 [00:00<?, ?it/s]\n{BAR}\n{TRACE}{BAR}\n"
    "epoch:   0%|  | 0/3 [00:10<?, ?it/s]\n",
    "bars-of-two-ranks": f"{BAR_ON}\n{BAR}\n{TRACE}{BAR}\n{BAR_ON}\n{BAR}\n{BAR_ON}\n",
    "bar-was-at-its-end": "100%|#####| 9/9 [00:10<00:00, 1.0it/s]\n"
    + TRACE
    + "100%|#####| 9/9 [00:11<00:00, 1.0it/s]\n",
    "summary-of-wandb": STEPS + TRACE + "wandb: Run summary:\nwandb: train/global_step 600\n"
    "wandb: train/loss 1.6\nwandb: train/loss_min 1.6\n",
    "summary-of-the-script": STEPS + TRACE + "INFO last step 500 of 1000, loss 1.9\n",
    "closing-words": STEPS + TRACE + "Training finished with exit code 1\n",
    "closing-words-of-a-wrapper": STEPS + TRACE + "Training completed in 3 s\n",
    "one-step-more-then-an-end": STEPS + TRACE + "INFO step 501 loss 1.9\nTraining done.\n",
}

#: Lines that may stand right in front of any traceback, and say nothing of it.
BEFORE = {
    "warning": "WARNING: low disk",
    "logging": "WARNING:root:slow batch",
    "brackets": "[WARNING] slow batch",
    "stamped": "2026-01-01 15:00:05 WARNING slow batch",
    "accelerate": "2026-01-01 15:00:05,123 - accelerate - WARNING - slow batch",
    "another-try": "INFO will retry the upload later",
}


def _verdict(text: str) -> Verdict:
    return explain_traces(read_bytes("train.log", text.encode()))


@pytest.mark.parametrize("name", FAILED)
def test_an_exception_that_ends_a_process_is_got_over_by_new_steps_only(name: str) -> None:
    verdict = _verdict(FAILED[name])
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception"), verdict.summary
    assert not verdict.culprits


@pytest.mark.parametrize("behind", ["", "saving checkpoint to /ckpt\n"])
def test_an_error_that_steps_follow_was_got_over(behind: str) -> None:
    later = "".join(f"INFO step {n}00 loss 1.0\n" for n in range(6, 9))
    verdict = _verdict(STEPS + TRACE + later + behind)
    assert verdict.state is State.HEALTHY, verdict.summary


def test_an_error_that_an_earlier_state_of_the_run_follows_was_got_over() -> None:
    later = "".join(f"INFO step {n}0 loss 1.0\n" for n in range(20, 60))
    verdict = _verdict(STEPS + TRACE + "resuming from step 190\n" + later)
    assert verdict.state is State.HEALTHY, verdict.summary


@pytest.mark.parametrize(
    "line",
    ["FloatingPointError: loss is nan at step 5", "RuntimeError: step 100: bad batch"],
)
def test_an_exception_that_speaks_of_a_step_is_no_step(line: str) -> None:
    verdict = _verdict(STEPS + TRACE.replace("ValueError: bad batch", line))
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception")
    assert line in verdict.summary


def test_a_warning_of_python_in_front_of_the_last_traceback_takes_nothing_from_it() -> None:
    verdict = _verdict(f"{STEPS}/env/a.py:1: UserWarning: this is deprecated\n{TRACE}")
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception"), verdict.summary


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("behind", ["", "wandb: Run summary:\n"])
def test_a_warning_in_front_of_the_last_traceback_takes_nothing_from_it(
    name: str, behind: str
) -> None:
    verdict = _verdict(f"{STEPS}{BEFORE[name]}\n{TRACE}{behind}")
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception"), verdict.summary
    assert "bad batch" in verdict.summary


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("behind", ["INFO step 600 loss 1.0\n", "INFO next shard is opened\n"])
def test_a_warned_traceback_that_its_writer_speaks_on_from_was_got_over(
    name: str, behind: str
) -> None:
    verdict = _verdict(f"{STEPS}{BEFORE[name]}\n{TRACE}{behind}")
    assert verdict.state is State.HEALTHY, verdict.summary


def test_a_warning_does_not_hide_who_threw_first() -> None:
    text = f"""\
[rank2]: WARNING: slow batch
[rank2]: {TRACE.rstrip().replace(chr(10), chr(10) + "[rank2]: ")}
gn01:815:864 [0] misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by remote peer \
gn02<50112>
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 41, in <module>
[rank0]:     main()
[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited
"""
    verdict = _verdict(text)
    assert verdict.cls == "python-exception", verdict.summary
    assert {one.rank for one in verdict.culprits} <= {2}
    assert not {one.host for one in verdict.culprits} - {None}


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 122] Disk quota exceeded: '/ckpt/a.pt'",
        "RuntimeError: can't start new thread",
    ],
)
def test_an_exception_by_a_full_disk_is_told_as_what_ended_the_program(line: str) -> None:
    verdict = _verdict(STEPS + TRACE.replace("ValueError: bad batch", line))
    assert (verdict.state, verdict.cls) == (State.FAILED, "python-exception")
    assert line in verdict.summary


def test_a_task_that_ended_alone_is_told_and_its_host_is_not_blamed() -> None:
    end = "srun: error: gn01: task 3: Exited with exit code 1\n"
    verdict = _verdict(f"{STEPS}Training finished\n{end}")
    assert (verdict.state, verdict.cls) == (State.FAILED, "task-exit")
    assert "task 3 on gn01" in verdict.summary
    assert not verdict.culprits


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: training failed, exiting with status 1",
        "[2031-05-05 10:00:01,000] [ERROR] [train.py:41] the batch has a wrong shape",
        "main: run failed after 500 steps",
        "CRITICAL:root:no more credits",
    ],
)
def test_a_log_that_closes_with_an_error_is_not_called_healthy(line: str) -> None:
    verdict = _verdict(f"{STEPS}{line}\n")
    assert verdict.state is State.UNKNOWN
    assert any(line in one.text for one in verdict.evidence)


def test_an_error_line_that_steps_follow_takes_nothing_from_a_healthy_run() -> None:
    assert _verdict(f"ERROR: no cache, it is built anew\n{STEPS}").state is State.HEALTHY


def test_a_good_sign_in_front_of_what_was_not_read_does_not_show_a_healthy_run() -> None:
    reader = SourceReader("train.log")
    reader.feed(STEPS.encode())
    reader.skip(5_000_000)
    reader.feed(b"WARNING: the queue is full\n" * 50)
    verdict = explain_traces(reader.finish(size=6_000_000))
    assert verdict.state is State.UNKNOWN
    assert "INFO step 500" in verdict.evidence[0].text


def test_another_log_that_closes_with_a_failure_is_not_called_healthy() -> None:
    well = read_bytes("rank0.log", STEPS.encode())
    badly = read_bytes("rank1.log", f"{STEPS}training failed, exiting with status 1\n".encode())
    assert explain_traces(joined([badly, well])).state is State.UNKNOWN


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf", "tensor(nan, device='cuda:0')"])
def test_a_loss_that_is_no_number_is_told_against_a_healthy_run(loss: str) -> None:
    lost = "".join(f"INFO step {n} loss: {loss}\n" for n in range(10, 90))
    verdict = _verdict(f"INFO step 8 loss: 1.0\nINFO step 9 loss: 1.0\n{lost}")
    assert "loss" in verdict.summary
    assert ["INFO step 10 loss" in one.text for one in verdict.against] == [True]


def test_a_loss_that_became_a_number_again_is_not_told() -> None:
    verdict = _verdict("INFO step 1 loss nan\nINFO step 2 loss nan\nINFO step 3 loss 2.1\n")
    assert (verdict.state, verdict.against) == (State.HEALTHY, ())


ASIDE = (
    "slurm_script: line 12: 4711 Killed   nvidia-smi dmon > /tmp/dmon.log",
    "./run.sh: line 12: 4711 Segmentation fault      (core dumped) ./bench_nic",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=55.extern. Some of the step tasks "
    "have been OOM Killed.",
    "/var/spool/slurmd/job00012/slurm_script: line 5: module: command not found",
)
NEEDED = (
    "slurm_script: line 12: 4711 Killed   python train.py",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=55.0. Some of the step tasks have "
    "been OOM Killed.",
)


@pytest.mark.parametrize("line", ASIDE)
@pytest.mark.parametrize("rank", ["", "[rank0]: "])
def test_what_ended_beside_a_run_that_goes_on_did_not_fail_it(line: str, rank: str) -> None:
    steps = "".join(f"{rank}{one}\n" for one in STEPS.splitlines())
    verdict = _verdict(f"{line}\n{steps}Training finished\n")
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy"), verdict.summary


@pytest.mark.parametrize("line", ASIDE + NEEDED)
def test_what_ended_beside_a_run_and_nothing_follows_failed_it(line: str) -> None:
    verdict = _verdict(f"{STEPS}{line}\n")
    cleaning = "not found" in line
    assert verdict.state is (State.UNKNOWN if cleaning else State.FAILED), verdict.summary
    assert not verdict.culprits


def test_a_command_that_is_not_found_behind_the_end_of_the_training_changes_nothing() -> None:
    line = "slurm_script: line 40: /opt/clean.sh: No such file or directory"
    verdict = _verdict(f"{STEPS}Training finished\n{line}\n")
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy")


@pytest.mark.parametrize("line", NEEDED)
def test_the_end_of_the_work_itself_is_not_got_over(line: str) -> None:
    assert _verdict(f"{line}\n{STEPS}").state is State.FAILED


def test_a_program_that_was_not_found_is_told() -> None:
    verdict = _verdict("/var/spool/slurmd/job1/slurm_script: line 5: python3: command not found\n")
    assert (verdict.state, verdict.cls) == (State.FAILED, "task-exit")
    assert "127" in verdict.summary


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
PASSED = (
    "======================= 12 passed, 3 warnings in 3.21s ========================",
    "3 passed in 0.12s",
    "----------------------------------------------------------------------\n"
    "Ran 30 tests in 1.204s\n\nOK (skipped=2)",
)
NOT_PASSED = (
    "=================== 1 failed, 11 passed in 3.21s ====================",
    "11 passed, 1 error in 3.21s",
    "Ran 30 tests in 1.204s\n\nFAILED (failures=1)",
    "no tests ran in 0.01s",
)


@pytest.mark.parametrize("end", PASSED)
@pytest.mark.parametrize("thrown", [TRACE, OUT_OF_MEMORY, f"{TRACE}Segmentation fault\n"])
def test_a_suite_of_tests_that_passed_was_meant_to_fail_inside(end: str, thrown: str) -> None:
    verdict = _verdict(f"test_one ... ok\n{thrown}test_two ... ok\n{end}\n")
    assert (verdict.state, verdict.cls) == (State.HEALTHY, "healthy"), verdict.summary


@pytest.mark.parametrize("end", NOT_PASSED)
def test_a_suite_of_tests_that_did_not_pass_is_not_healthy(end: str) -> None:
    assert _verdict(f"test_one ... ok\n{TRACE}{end}\n").state is State.FAILED


@pytest.mark.parametrize("end", PASSED)
def test_what_fails_behind_a_suite_of_tests_is_told(end: str) -> None:
    assert _verdict(f"{end}\n{STEPS}{TRACE}").state is State.FAILED


WATCHDOG = (
    "[rank3]:[E505 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600051 milliseconds before timing out."
)
EXITED = "srun: error: gn01: task 2: Exited with exit code 1"


@pytest.mark.parametrize(
    "line",
    [
        f"INFO previous run failed with:\n> {EXITED}",
        f"> {WATCHDOG}",
        f"Generated: {WATCHDOG}",
        f"2031-05-05 10:00:00 INFO generated text 3: {WATCHDOG}",
    ],
)
def test_a_line_that_is_quoted_or_that_a_model_wrote_fails_no_run_that_goes_on(line: str) -> None:
    later = "".join(f"INFO step {n}00 loss 1.0\n" for n in range(6, 9))
    verdict = _verdict(f"{STEPS}{line}\n{later}Training finished\n")
    assert (verdict.state, verdict.culprits) == (State.HEALTHY, ()), verdict.summary


@pytest.mark.parametrize("line", [EXITED, WATCHDOG])
def test_a_quoted_log_alone_is_read(line: str) -> None:
    assert _verdict(f"my run ends with this:\n> {line}\n").state is State.FAILED
    assert _verdict(f"{line}\n{STEPS}Training finished\n").state is State.FAILED
