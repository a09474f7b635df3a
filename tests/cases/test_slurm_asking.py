"""What happens while Slurm does not answer: cases 041, 043, 044."""

import itertools
import re

import pytest
from textual.pilot import Pilot

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.squeue import QueueSource
from slurmtop.control.execute import CALL_TIMEOUT_S
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.facts import JobFacts
from slurmtop.model.snapshot import Trouble
from slurmtop.model.verdict import State
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.scontrol import parse_ping
from slurmtop.triage.why import explain_job
from tests.cases.live import Live, Polling
from tests.cases.product import CaseRunner, gather, rows_of, until_done
from tests.cases.support import load, sentence
from tests.fakes import START, settle
from tests.ui.golden import screen_text

INTERVAL_S = 20.0


# 041: the controller does not answer for 41 s


def _text(pilot: Pilot[None]) -> str:
    return screen_text(pilot.app)


def _good_then_silent(live: Live) -> None:
    """Job 8401 runs; from the next call on there is no answer for 41 s, then an error."""
    (row,) = rows_of(load("041")[2])
    live.runner.queue([row | {"user": "anna", "name": "train"}], took_s=2.0)


async def _outage(live: Live, pilot: Pilot[None]) -> None:
    """Wait until the failed call is over."""
    live.runner.says("squeue *", load("041")[1])
    calls = len(live.runner.calls)
    for _ in range(40):
        if len(live.runner.calls) > calls:
            break
        await live.wait(pilot, 1)
    assert len(live.runner.calls) == calls + 1
    await live.wait(pilot, 42)


@sentence("041", "keep the last good table and mark it stale with its age")
async def test_case_041_must_keep_the_table_and_mark_it_stale() -> None:
    live = Live()
    _good_then_silent(live)
    async with live.screen() as pilot:
        assert "8401" in _text(pilot)
        assert "stale" not in _text(pilot)
        await _outage(live, pilot)
        text = _text(pilot)
        assert "8401" in text
        assert "stale: last answer" in text
        assert re.search(r"last answer [0-9]+ (s|min) ago", text)
        await live.wait(pilot, 180)
        assert "min ago" in _text(pilot)


@sentence("041", "next try later than the usual interval, doubling to minutes")
async def test_case_041_must_back_off_by_doubling_to_minutes() -> None:
    runner = CaseRunner()
    runner.says("squeue *", load("041")[1])
    calls = await Polling(runner).during(3_600)
    took_s = load("041")[1].elapsed_s
    assert took_s is not None
    waits = [later - sooner - took_s for sooner, later in itertools.pairwise(calls)]
    assert waits[0] > INTERVAL_S
    for sooner, later in itertools.pairwise(waits):
        assert later >= min(2 * sooner, waits[-1]) - 0.01
    assert waits[-1] == max(waits)
    assert 120 <= waits[-1] <= 600


@sentence("041", "no second squeue while the first is in flight")
async def test_case_041_must_have_one_call_in_flight() -> None:
    runner = CaseRunner()
    runner.says("squeue *", load("041")[1])
    polling = Polling(runner)
    task = spawn(polling.poller.run(), name="polling under test")
    await settle()
    pressed = []
    for _ in range(40):
        polling.poller.poke()
        pressed.append(spawn(polling.poller.tick(), name="one more round"))
        await runner.clock.advance(1.0)
    assert len(runner.calls) == 1
    await runner.clock.advance(600)
    await cancel_and_wait(task, *pressed)
    assert runner.most_in_flight == 1


@sentence("041", "UI stays responsive for the 41 s")
async def test_case_041_must_answer_keys_while_squeue_hangs() -> None:
    live = Live()
    _good_then_silent(live)
    async with live.screen() as pilot:
        live.runner.says("squeue *", load("041")[1])
        while not live.runner.in_flight:
            await live.wait(pilot, 1)
        for second in range(40):
            await live.wait(pilot, 1)
            assert live.runner.in_flight == 1
            if second % 8 == 0:
                await pilot.press("question_mark")
                assert len(pilot.app.screen_stack) == 2
                await pilot.press("escape")
                await pilot.press("slash", "8", "4")
                assert "8401" in _text(pilot)
                await pilot.press("escape", "escape")
        assert "no answer for" in _text(pilot)


@sentence("041", "clear the table")
async def test_case_041_must_not_clear_the_table() -> None:
    live = Live()
    _good_then_silent(live)
    async with live.screen() as pilot:
        await _outage(live, pilot)
        for _ in range(10):
            await live.wait(pilot, 60)
            assert "8401" in _text(pilot)
            assert "running" in _text(pilot)


@sentence("041", '"0 jobs"')
async def test_case_041_must_not_say_0_jobs() -> None:
    for known in (True, False):
        live = Live()
        if known:
            _good_then_silent(live)
        else:
            live.runner.says("squeue *", load("041")[1])
        async with live.screen() as pilot:
            if known:
                await _outage(live, pilot)
            else:
                await live.wait(pilot, 60)
            text = _text(pilot).lower()
            assert "0 jobs" not in text
            assert "no jobs" not in text
            assert known or "not an empty queue" in text


@sentence("041", "report jobs as ended")
async def test_case_041_must_not_report_jobs_as_ended() -> None:
    live = Live()
    _good_then_silent(live)
    async with live.screen() as pilot:
        await _outage(live, pilot)
        await live.wait(pilot, 600)
        text = _text(pilot)
        assert "gone" not in text
        assert "ended" not in text
    runner = CaseRunner()
    runner.says("*", load("041")[1])
    facts = await gather(runner, "8401")
    assert not facts.controller_answered
    assert explain_job(facts).state is State.UNKNOWN


# 043: munge is down on this node


@sentence(
    "043",
    'DOWN from ping together with "authentication error" on stderr is not a dead controller',
)
def test_case_043_must_not_take_an_authentication_error_for_a_dead_controller() -> None:
    step = load("043")[3]
    assert parse_ping(step.stdout) == (("primary", "ctl1", False),)
    failure = explain_failure("scontrol", step.exit, step.stderr, elapsed_s=step.elapsed_s)
    assert failure.trouble is Trouble.AUTH
    assert "controller" not in failure.sentence.lower() or "fine" in failure.sentence.lower()
    assert "down" not in failure.sentence.lower()


@sentence("043", "login-node problem (munge/clock/version), told in one line")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_case_043_must_tell_a_problem_of_the_login_node_in_one_line(n: int) -> None:
    step = load("043")[n]
    failure = explain_failure(step.argv[0], step.exit, step.stderr, elapsed_s=step.elapsed_s)
    assert failure.trouble is Trouble.AUTH
    assert "\n" not in failure.sentence
    assert "munge" in failure.sentence
    assert "this machine" in failure.sentence or "this node" in failure.sentence


@sentence("043", "long back-off, no loop")
@pytest.mark.parametrize("n", [1, 2])
async def test_case_043_must_back_off_for_long(n: int) -> None:
    runner = CaseRunner()
    runner.says("squeue *", load("043")[n])
    calls = await Polling(runner).during(3_600)
    waits = [later - sooner for sooner, later in itertools.pairwise(calls)]
    assert waits[0] > 2 * INTERVAL_S - 0.01
    assert max(waits) >= 240
    assert len(calls) <= 20


@sentence("043", "blame the user's job")
async def test_case_043_must_not_blame_the_job() -> None:
    for n in (1, 2):
        runner = CaseRunner()
        runner.says("*", load("043")[n])
        facts = await gather(runner, "8401")
        verdict = explain_job(facts)
        assert verdict.state is State.UNKNOWN
        assert verdict.culprits == ()
        assert verdict.ended_by is None
        assert "fail" not in verdict.summary
    bare = JobFacts(asked="8401", cluster="", now=START, controller_answered=False)
    assert explain_job(bare).state is State.UNKNOWN


# 044: the client sleeps inside because it is rate-limited


@sentence("044", "a good but slow answer lengthens the interval")
async def test_case_044_must_ask_less_often_after_a_slow_answer() -> None:
    waits = {}
    for n in (1, 2, 3):
        step = load("044")[n]
        assert step.elapsed_s is not None
        runner = CaseRunner()
        runner.queue(rows_of(load("044")[1]), took_s=step.elapsed_s)
        polling = Polling(runner)
        calls = await polling.during(60)
        waits[n] = calls[1] - calls[0]
        assert polling.healths[-1].failure is None
    assert waits[1] == pytest.approx(INTERVAL_S)
    assert waits[2] > INTERVAL_S + 6.3
    assert waits[2] >= waits[3] > INTERVAL_S


@sentence("044", "command time limit is above 30 s")
async def test_case_044_must_give_commands_more_than_30_s() -> None:
    runner = CaseRunner()
    runner.queue([])
    for how in ({}, {"all_users": True}, {"job_id": "8501"}):
        await until_done(runner.clock, QueueSource(runner, runner.clock, **how).fetch())
    await until_done(runner.clock, QueueReadBack(runner).read(["8501"], ""))
    assert all(call.timeout_s > 30 for call in runner.calls)
    assert CALL_TIMEOUT_S > 30


@sentence("044", "polls never overlap")
@pytest.mark.parametrize("took_s", [0.2, 6.3, 19.9, 25.0, 90.0])
async def test_case_044_must_never_overlap(took_s: float) -> None:
    runner = CaseRunner()
    runner.queue(rows_of(load("044")[1]), took_s=took_s)
    calls = await Polling(runner).during(1_200)
    assert runner.most_in_flight == 1
    assert len(calls) >= 2
    assert all(b - a >= took_s for a, b in itertools.pairwise(calls))


@sentence("044", "fourth: keep data, back off at least 30 s")
async def test_case_044_must_keep_data_and_back_off_when_refused() -> None:
    live = Live()
    (row,) = rows_of(load("044")[1])
    live.runner.queue([row | {"user": "anna"}])
    async with live.screen() as pilot:
        live.runner.says("squeue *", load("044")[4])
        await live.wait(pilot, 25)
        first = live.runner.started_at[-1]
        calls = len(live.runner.calls)
        assert "8501" in _text(pilot)
        assert "stale" in _text(pilot)
        await pilot.press("r")
        await live.wait(pilot, 29 - (live.clock.monotonic() - first))
        assert len(live.runner.calls) == calls
    step = load("044")[4]
    failure = explain_failure("squeue", step.exit, step.stderr)
    assert failure.trouble is Trouble.RATE_LIMITED
    assert (failure.retry_after_s or 0) >= 30


@sentence("044", "kill the child after 5 s and start another one (makes it worse)")
async def test_case_044_must_not_kill_a_slow_child() -> None:
    runner = CaseRunner()
    runner.queue(rows_of(load("044")[1]), took_s=29.0)
    polling = Polling(runner)
    calls = await polling.during(30)
    assert len(calls) == 1
    assert [answer.value.rows[0].key.id for answer in polling.values] == ["8501"]
    assert runner.calls[0].timeout_s > 30


# What a failure is (031, 038, 041, 043, 044)


@pytest.mark.parametrize("call", ["slurm_load_jobs", "slurm_load_node", "slurm_load_partitions"])
@pytest.mark.parametrize(
    ("words", "trouble"),
    [
        ("Unable to contact slurm controller (connect failure)", Trouble.DOWN),
        ("Unable to contact slurm controller (send failure)", Trouble.DOWN),
        ("Socket timed out on send/recv operation", Trouble.BUSY),
        ("Slurm backup controller in standby mode", Trouble.BUSY),
        ("Rate limit exceeded, please retry momentarily", Trouble.RATE_LIMITED),
        ("Rate limit exceeded, please retry later", Trouble.RATE_LIMITED),
        ("Invalid job id specified", Trouble.UNKNOWN_JOB),
        ("Protocol authentication error", Trouble.AUTH),
        ("Zero Bytes were transmitted or received", Trouble.AUTH),
        ("Incompatible versions of client and server code", Trouble.AUTH),
        ("Access/permission denied", Trouble.DENIED),
    ],
)
def test_kind_041_words_of_failures(call: str, words: str, trouble: Trouble) -> None:
    failure = explain_failure("squeue", 1, f"{call} error: {words}\n")
    assert failure.trouble is trouble
    assert "\n" not in failure.sentence
    assert failure.retry_after_s != float("inf")


@pytest.mark.parametrize("release", ["slurm_persist_conn_open_without_init", "_open_persist_conn"])
def test_kind_038_a_data_base_that_is_down_is_asked_again(release: str) -> None:
    words = (
        f"sacct: error: {release}: failed to open persistent connection to host:db1:6819:"
        " Connection refused\nsacct: error: Sending PersistInit msg: Connection refused\n"
        "sacct: error: Problem talking to the database: Connection refused\n"
    )
    failure = explain_failure("sacct", 1, words)
    assert failure.trouble is Trouble.ACCOUNTING_DOWN
    assert failure.retry_after_s != float("inf")
