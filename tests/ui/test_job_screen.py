"""The Job screen: header, Why and Script, and when Slurm is asked."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurmtop.collect.log_facts import read_log_facts
from slurmtop.control.actions import Action, Kind
from slurmtop.control.outcome import JobOutcome, Outcome, Result
from slurmtop.model.ids import JobKey
from slurmtop.model.job import AccountingRecord
from slurmtop.model.verdict import (
    Confidence,
    Culprit,
    EndedBy,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.ui.actions_flow import Selection, act
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.present.spans import line_width, plain
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.job import TABS, JobScreen
from slurmtop.ui.screens.leave import LeaveScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.widgets.tab_bar import TabBar
from tests.build import make_id, make_job, make_state
from tests.fakes import START
from tests.ui.golden import Golden, screen_text
from tests.ui.job_bench import ERR, JOB, OUT, JobBench, judge_as, part_text

SIZE = (80, 24)
SCRIPT = Path(__file__).resolve().parents[2] / "fixtures/slurm/24.11.5/batch_script.out"

PENDING = Verdict(
    job="4711",
    state=State.PENDING,
    cls="waits-for-priority",
    confidence=Confidence.HIGH,
    summary="Waits its turn: 14 jobs of higher priority want the same partition",
    evidence=(
        Evidence(
            family="slurm",
            source="scontrol show job 4711",
            text="JobState=PENDING Reason=Priority Dependency=(null)",
            says="the scheduler has looked at it and put others first",
        ),
    ),
    missing=(Missing("slurm", "when it may start was not asked", "squeue --start -j 4711"),),
    next=(NextStep("when may it start", "squeue --start -j 4711", "read", "one call"),),
    made_at=START,
)
RUNNING = Verdict(
    job="4711",
    state=State.HEALTHY,
    confidence=Confidence.MEDIUM,
    summary="Makes progress: step 48,213 of 100,000, last written 12 s ago",
    since=START - timedelta(seconds=12),
    evidence=(
        Evidence(
            family="log",
            source="/home/anna/run/train-4711.out",
            line=48_290,
            text="step 48213/100000 loss 2.41",
            says="a step counter that grows",
        ),
    ),
    made_at=START,
)
FAILED = Verdict(
    job="4711",
    state=State.FAILED,
    cls="cuda-out-of-memory",
    ended_by=EndedBy.FAULT,
    confidence=Confidence.HIGH,
    summary="Rank 3 on gpu02 ran out of GPU memory; the others lost it",
    since=START - timedelta(minutes=30),
    culprits=(
        Culprit(rank=3, host="gpu02", gpu="GPU-3f", pid=811, step="0", reason="no GPU memory"),
    ),
    evidence=(
        Evidence(
            family="log",
            source=ERR,
            line=1_042,
            host="gpu02",
            time=START - timedelta(minutes=30),
            text="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB",
            says="the earliest error that is not a consequence of another",
        ),
    ),
    against=(
        Evidence(
            family="log", source=ERR, line=1_050, text="NCCL WARN timeout [/bold]", says="a cascade"
        ),
    ),
    missing=(Missing("kernel", "dmesg of gpu02 may not be read", "ssh gpu02 sudo -n dmesg"),),
    next=(
        NextStep("see it", f"sed -n 1042p {ERR}", "read", "the whole message"),
        NextStep("run again", "scontrol requeue 4711", "write", "from the last checkpoint"),
    ),
    made_at=START,
)


@pytest.mark.parametrize(
    ("name", "job", "verdict"),
    [
        ("job_why_pending", make_job("4711", "PENDING", name="llm-pretrain", gpus=8), PENDING),
        ("job_why_running", JOB, RUNNING),
        (
            "job_why_failed",
            replace(JOB, state=make_state("FAILED"), end=START - timedelta(minutes=29)),
            FAILED,
        ),
    ],
)
async def test_why_at_80_by_24(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, name: str, job: object, verdict: Verdict
) -> None:
    judge_as(monkeypatch, verdict)
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, job)  # type: ignore[arg-type]
        golden(name, app)


def header_of(app: SlurmtopApp) -> list[str]:
    """The lines above the tabs."""
    return screen_text(app).splitlines()[:5]


async def test_what_is_awaited_is_said_and_an_older_verdict_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, RUNNING)
    bench = JobBench()
    bench.facts.gate.clear()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert "asking Slurm, and reading its logs …" in screen_text(app)
        await bench.advance(pilot, 7)
        assert "for 7 s" in screen_text(app)
        bench.facts.gate.set()
        await bench.settled(pilot)
        assert "Makes progress" in screen_text(app)
        bench.facts.gate.clear()
        text = await bench.press(pilot, "r")
        assert "asking Slurm" in text
        assert "Makes progress" in text


async def test_closing_the_screen_ends_the_question() -> None:
    bench = JobBench()
    bench.facts.gate.clear()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "escape")
        assert not isinstance(app.screen, JobScreen)
        assert bench.facts.cancelled == 1


async def test_slurm_is_asked_on_open_on_a_change_of_state_and_on_a_key_only() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert len(bench.facts.calls) == 1
        for _ in range(2):
            await bench.advance(pilot, 20)
            await bench.answer(pilot, (replace(JOB, comment=f"at {bench.clock.now()}"),))
        assert len(bench.facts.calls) == 1
        await bench.answer(pilot, (replace(JOB, state=make_state("COMPLETING")),))
        assert len(bench.facts.calls) == 2
        await bench.press(pilot, "r", "r", "r")
        assert len(bench.facts.calls) == 3
        await bench.answer(pilot, ())
        assert len(bench.facts.calls) == 4
        assert bench.runner.calls == []


async def test_a_running_job_is_judged_again_every_minute_while_it_is_looked_at() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.advance(pilot, 59)
        assert len(bench.facts.calls) == 1
        await bench.advance(pilot, 2)
        assert len(bench.facts.calls) == 2
        assert bench.facts.calls[-1]["job"] is not None, "the queue's record is used"
        await bench.press(pilot, "tab")
        await bench.advance(pilot, 90)
        assert len(bench.facts.calls) == 2, "another tab is shown"
        await bench.press(pilot, "shift+tab")
        await bench.advance(pilot, 2)
        assert len(bench.facts.calls) == 3
        await bench.advance(pilot, 1800)
        assert len(bench.facts.calls) <= 3 + 10, "nobody is there after ten minutes"


async def test_a_grown_log_is_judged_again_without_asking_slurm() -> None:
    bench = JobBench()
    bench.runner.files[OUT] = b"step 1/9\n"
    bench.facts.given["logs"] = (await read_log_facts(bench.runner, "stdout", OUT),)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert "step 1 of 9" in screen_text(app)
        bench.runner.files[OUT] = b"step 1/9\nRuntimeError: NCCL error\n"
        bench.runner.mtimes[OUT] = bench.clock.now() + timedelta(seconds=10)
        await bench.advance(pilot, 16)
        await bench.settled(pilot)
        assert "an error line newer than its last step" in screen_text(app)
        assert len(bench.facts.calls) == 1


async def test_in_an_outage_the_logs_are_judged_and_the_controller_is_left_alone() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.fail(pilot, "the controller does not answer")
        await bench.advance(pilot, 80)
        await bench.settled(pilot)
        assert len(bench.facts.calls) == 1
        assert "the controller is silent" in screen_text(app)


async def test_in_an_outage_the_row_of_the_screen_is_cited_with_its_time() -> None:
    bench = JobBench()
    bench.facts.given["controller_answered"] = False
    app = bench.app()
    async with app.run_test(size=(100, 40)) as pilot:
        await bench.answer(pilot, (JOB,))
        await bench.advance(pilot, 5)
        app.open_job(JOB.key)
        await bench.settled(pilot)
        assert "squeue (the screen's last answer)  12:00:00" in screen_text(app)


async def test_an_old_verdict_says_so_where_it_may_be_overtaken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for verdict, said in ((PENDING, True), (FAILED, False)):
        judge_as(monkeypatch, verdict)
        bench = JobBench()
        app = bench.app()
        async with app.run_test(size=SIZE) as pilot:
            await bench.open(pilot, make_job("4711", "PENDING"))
            await bench.advance(pilot, 420)
            text = screen_text(app)
            assert ("judged 7 min ago: r judges again" in text) is said


async def test_a_failure_of_the_gathering_is_a_sentence() -> None:
    bench = JobBench()
    bench.facts.error = RuntimeError("[/bold] broke")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert "slurmtop could not gather what is known: [/bold] broke" in screen_text(app)
        bench.facts.error = None
        await bench.advance(pilot, 3)
        assert "could not gather" not in await bench.press(pilot, "r")


async def test_the_expected_start_is_asked_for_a_pending_job_only() -> None:
    bench = JobBench()
    app = bench.app()
    waiting = make_job("4711", "PENDING")
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, waiting)
        text = await bench.press(pilot, "e")
        assert bench.facts.calls[-1]["ask_start"]
        assert "Slurm expects it to start at 12:25:00, in 25 min" in text
        await bench.answer(pilot, (JOB,))
        await bench.settled(pilot)
        before = len(bench.facts.calls)
        await bench.press(pilot, "e")
        assert len(bench.facts.calls) == before


async def test_copy_takes_the_four_lines_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, FAILED)
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await bench.open(pilot)
        text = await bench.press(pilot, "y")
        assert "copied the four lines" in text
        lines = app.clipboard.splitlines()
        assert len(lines) == 4
        assert lines[0].endswith("Rank 3 on gpu02 ran out of GPU memory; the others lost it")


async def test_secrets_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = replace(
        FAILED.evidence[0], text="WANDB_API_KEY=0123456789abcdef0123456789abcdef0123"
    )
    judge_as(monkeypatch, replace(FAILED, evidence=(evidence,)))
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "y")
        assert "0123456789abcdef" not in app.clipboard


async def test_every_line_of_a_long_verdict_can_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, replace(FAILED, evidence=FAILED.evidence * 8))
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        text = await bench.press(pilot, "G")
        assert "scontrol requeue 4711" in text
        assert "changes something" in text
        text = await bench.press(pilot, "g")
        assert "Rank 3 on gpu02" in text
        await bench.press(pilot, "j", "j", "k", "pagedown", "pageup", "space")


async def test_a_summary_that_does_not_fit_one_line_stands_whole_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summary = "Waits because " + "one thing and another, " * 6 + "the last of which is this"
    judge_as(monkeypatch, replace(PENDING, summary=summary))
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert "the last of which is this" in " ".join(screen_text(app).split())


async def test_an_outage_is_said_and_the_job_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, RUNNING)
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.advance(pilot, 200)
        await bench.fail(pilot, "the controller does not answer")
        text = screen_text(app)
        assert "llm-pretrain" in text
        assert "! no answer, data 3 min old" in text


async def test_in_an_outage_what_ticks_stands_still_at_the_last_answer() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        before = header_of(app)
        await bench.advance(pilot, 20)
        assert header_of(app)[1:3] != before[1:3]
        await bench.fail(pilot, "the controller does not answer")
        await bench.advance(pilot, 300)
        assert header_of(app)[1:3] == before[1:3]
        assert "! no answer, data 5 min old" in screen_text(app)
        await bench.answer(pilot, (JOB,))
        assert header_of(app)[1:3] != before[1:3]


async def test_a_clock_that_stepped_back_makes_no_data_young() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        bench.clock.step(-3600)
        await bench.advance(pilot, 1)
        assert "! age of the data unknown: the clock stepped back" in screen_text(app)


async def test_a_job_that_left_shows_what_accounting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, FAILED)
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.advance(pilot, 20)
        bench.facts.gate.clear()
        await bench.answer(pilot, ())
        assert "last seen running" in screen_text(app)
        bench.facts.given["history"] = (
            AccountingRecord(id=make_id("4711"), state=make_state("FAILED"), end=bench.clock.now()),
        )
        bench.facts.gate.set()
        await bench.settled(pilot)
        first = screen_text(app).splitlines()[0]
        assert first.endswith("failed")


async def test_the_script_is_asked_once_when_it_is_shown(golden: Golden) -> None:
    bench = JobBench()
    bench.runner.on("scontrol write batch_script 4711 -", SCRIPT.read_bytes() + b"echo \x1b[2J\n")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert bench.runner.calls == []
        await bench.press(pilot, "shift+tab")
        golden("job_script", app)
        await bench.press(pilot, "tab", "shift+tab")
        assert len(bench.runner.calls) == 1


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("job script retrieval failed: Job script not specified", "interactive job"),
        ("job script retrieval failed: Invalid job id specified", "no longer knows this job"),
        ("job script retrieval failed: Access/permission denied", "only the owner"),
        ("job script retrieval failed: Zero \x1b[2J Bytes", "Zero ␛[2J Bytes"),
    ],
)
async def test_a_script_that_cannot_be_shown_is_a_sentence(stderr: str, says: str) -> None:
    bench = JobBench()
    bench.runner.on("scontrol write batch_script *", rc=1, stderr=stderr)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        assert says in await bench.press(pilot, "shift+tab")


class Executes:
    """An executor that answers when told to."""

    def __init__(self, result: Result, sentence: str, bench: JobBench) -> None:
        self.result, self.sentence, self.bench = result, sentence, bench
        self.actions: list[Action] = []
        self.same: list[bool] = []

    async def execute(
        self, action: Action, *, still_same: object = None, **_how: object
    ) -> Outcome:
        self.actions.append(action)
        assert callable(still_same)
        self.same += [still_same(target) for target in action.targets]
        await self.bench.clock.sleep(30)
        jobs = tuple(JobOutcome(target, self.result, self.sentence) for target in action.targets)
        return Outcome(action=action, jobs=jobs, started_at=START, took_s=30.0)


def executing(
    result: Result = Result.DONE, sentence: str = "job 4711: cancelled, read back"
) -> tuple[JobBench, Executes]:
    bench = JobBench()
    executor = Executes(result, sentence, bench)
    object.__setattr__(bench.services, "executor", executor)
    return bench, executor


async def test_cancel_asks_does_and_shows_what_was_read_back(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_as(monkeypatch, RUNNING)
    bench, executor = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K")
        assert isinstance(app.screen, ConfirmScreen)
        assert executor.actions == []
        text = await bench.press(pilot, *"4711", "enter")
        assert "asking Slurm to cancel, then reading back" in text
        pokes = bench.queue.poller.pokes
        await bench.advance(pilot, 30)
        await bench.settled(pilot)
        golden("job_cancel_outcome", part_text(app, "#outcome"))
        assert bench.queue.poller.pokes == pokes + 1
        await bench.advance(pilot, 3_600)
        assert "cancelled, read back" in screen_text(app)
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobScreen)
        assert executor.same == [True]


async def test_an_outcome_that_was_left_running_is_shown_when_it_comes() -> None:
    bench, _ = executing(Result.DENIED, "job 4711: denied: only bob may cancel it")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K", *"4711", "enter")
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobScreen)
        await bench.press(pilot, "escape")
        await bench.advance(pilot, 30)
        await bench.settled(pilot)
        assert isinstance(app.screen, OutcomeScreen)
        assert "denied: only bob may cancel it" in screen_text(app)


async def test_an_outcome_waits_for_another_dialog_to_close() -> None:
    bench, _ = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K", *"4711", "enter", "escape", "K")
        await bench.advance(pilot, 31)
        assert isinstance(app.screen, ConfirmScreen)
        await bench.press(pilot, "escape")
        await bench.advance(pilot, 2)
        assert isinstance(app.screen, OutcomeScreen)


async def test_the_outcome_of_many_says_first_what_did_not_go(golden: Golden) -> None:
    bench, _ = executing()
    jobs = tuple(make_job(str(5_000 + n)) for n in range(60))

    class Mixed:
        async def execute(
            self, action: Action, *, still_same: object = None, **_how: object
        ) -> Outcome:
            denied = "job {}: denied: it belongs to bob\x1b[2J"
            done = tuple(
                JobOutcome(target, Result.DENIED, denied.format(target.base))
                if index == 40
                else JobOutcome(target, Result.DONE, f"job {target.base}: cancelled")
                for index, target in enumerate(action.targets)
            )
            return Outcome(
                action=action, jobs=done, trouble="it could not be logged", started_at=START
            )

    object.__setattr__(bench.services, "executor", Mixed())
    app = bench.app()
    left: list[Outcome] = []
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        act(app, Selection(jobs=jobs, on_outcome=left.append), Kind.CANCEL)
        await bench.settled(pilot)
        await bench.press(pilot, *"60", "enter")
        golden("outcome_60", part_text(app, "#outcome"))
        assert "it could not be logged" in screen_text(app)
        assert "job 5058: cancelled" not in screen_text(app)
        await bench.press(pilot, *["pagedown"] * 5)
        assert "job 5059: cancelled" in screen_text(app)
        assert [outcome.count(Result.DONE) for outcome in left] == [59]


async def test_an_executor_that_breaks_leaves_a_sentence() -> None:
    bench, _ = executing()

    class Broken:
        async def execute(
            self, action: Action, *, still_same: object = None, **_how: object
        ) -> Outcome:
            raise RuntimeError("[/bold]")

    object.__setattr__(bench.services, "executor", Broken())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K", *"4711", "enter")
        text = " ".join(part_text(app, "#outcome").replace("│", "").split())
        assert "what became of it is not known: RuntimeError('[/bold]')" in text


async def test_a_click_on_a_tab_shows_it() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot)
        await pilot.click("#job-tabs", offset=(7, 0))
        await bench.settled(pilot)
        assert screen.tab == 1
        await pilot.click("#job-tabs", offset=(1, 0))
        assert screen.tab == 0


async def test_a_tab_picked_before_the_page_has_settled_stays() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot)
        await bench.press(pilot, "tab")
        # A page that is busy is painted first; its mount event comes behind the key then.
        screen.on_mount()
        await bench.settled(pilot)
        assert screen.tab == 1


async def test_a_demo_read_only_and_the_calls_are_always_in_sight() -> None:
    bench = JobBench(demo="hang", read_only=True, calls_last_minute=lambda: 7)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        for _ in range(4):
            text = await bench.press(pilot, "tab")
            assert "DEMO hang, simulated · read-only · hpc1 · 7 calls/min" in text


async def test_a_job_that_nothing_knows_is_said_to_be_unknown() -> None:
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, ())
        app.open_job(JobKey("", "999"))
        await bench.settled(pilot)
        assert "no record of it was found" in screen_text(app)


async def test_no_means_nothing_is_done() -> None:
    bench, executor = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K", "escape")
        assert isinstance(app.screen, JobScreen)
        assert executor.actions == []


async def test_read_only_has_no_cancel_and_refuses_it_anyway() -> None:
    bench, executor = executing()
    object.__setattr__(bench.services, "read_only", True)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot)
        await bench.press(pilot, "K")
        assert app.screen is screen
        screen.action_cancel()
        await bench.settled(pilot)
        assert "read-only" in screen_text(app)
        assert executor.actions == []


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("K", "job 4711 is already over (COMPLETED): there is nothing to cancel"),
        ("C", "job 4711 is already over (COMPLETED): there is nothing to cancel"),
        ("S", "job 4711 is already over (COMPLETED): there is nothing to signal"),
        ("H", "already over (COMPLETED): there is nothing to hold"),
        ("U", "already over (COMPLETED): there is nothing to release"),
        ("T", "already over (COMPLETED): there is nothing to change the time limit of"),
        ("D", "requeue and hold it, exclude the node, release it"),
    ],
)
async def test_what_cannot_be_done_to_a_job_that_is_over_is_said(key: str, says: str) -> None:
    bench, executor = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, replace(JOB, state=make_state("COMPLETED"), end=START))
        await bench.press(pilot, key)
        assert isinstance(app.screen, OutcomeScreen), screen_text(app)
        told = part_text(app, "#outcome").replace("│", " ")
        assert says in " ".join(told.split())
        assert executor.actions == []


@pytest.mark.parametrize(("key", "says"), [("K", "so nothing was done"), ("R", "so resubmit it")])
async def test_what_has_left_the_queue_is_said_to_have(key: str, says: str) -> None:
    bench, executor = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.clock.advance(20)
        await bench.answer(pilot, [])
        await bench.settled(pilot)
        await bench.press(pilot, key)
        words = " ".join(screen_text(app).replace("│", " ").split())
        assert "job 4711 has left the queue" in words
        assert says in words
        assert executor.actions == []


# Leaving


async def test_leaving_while_an_action_is_not_read_back_is_asked(golden: Golden) -> None:
    bench, executor = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "K", *"4711", "enter", "escape")
        app.underway[0].heard(1, 1)
        await bench.press(pilot, "q")
        assert isinstance(app.screen, LeaveScreen)
        golden("leave_not_read_back", part_text(app, "#question"))
        await bench.press(pilot, "enter")
        assert isinstance(app.screen, JobScreen), "enter stays"
        await bench.press(pilot, "q", "ctrl+q", "escape")
        assert isinstance(app.screen, JobScreen), "it is asked once"
        await bench.press(pilot, "q")
        await bench.advance(pilot, 30)
        assert "all done and read back by now" in screen_text(app)
        await bench.press(pilot, "n")
        await bench.advance(pilot, 2)
        assert isinstance(app.screen, OutcomeScreen)
        await bench.press(pilot, "escape", "q")
        assert app._exit, "nothing is underway any more"
        assert len(executor.actions) == 1


async def test_leaving_while_commands_are_not_sent_says_how_many(golden: Golden) -> None:
    bench, _ = executing()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        jobs = [make_job(str(5_000 + n), "PENDING") for n in range(120)]
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "m", "K", *"120", "enter", "escape")
        assert len(app.underway) == 1, screen_text(app)
        app.underway[0].heard(1, 3)
        await bench.press(pilot, "q")
        golden("leave_not_sent", part_text(app, "#question"))
        assert not app._exit
        await bench.press(pilot, "y")
        assert app._exit


@pytest.mark.parametrize("size", [(10, 3), (20, 6), (40, 12), (200, 60), (80, 24)])
async def test_any_size_survives(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, FAILED)
    bench = JobBench()
    bench.runner.on("scontrol write batch_script *", SCRIPT.read_bytes())
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "tab", "tab", "tab", "tab", "K", "escape")
        assert isinstance(app.screen, JobScreen)


@pytest.mark.parametrize("name", TABS)
def test_the_tab_that_is_shown_is_told_on_any_width(name: str) -> None:
    marks = (("DEMO busy, simulated, read-only, via ssh, 10 calls/min", "warn"),)
    bar = TabBar(TABS, lambda: marks, id="tabs")
    bar.current = TABS.index(name)
    for width in (20, 50, 80, 140):
        (line,) = bar._line(width)
        assert f"[{name}]" in plain(line)
        assert line_width(line) <= width
    assert "DEMO" in plain(bar._line(50)[0])
