"""A signal to rank processes by keys.

The look at the nodes can be watched and left; the dialog shows their commands and who would die.
"""

from dataclasses import replace

from slurmtop.control.outcome import StepsSeen
from slurmtop.control.prepare import ScriptSeen
from slurmtop.model.script import Recipient
from slurmtop.ui.screens.asking import AskingScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from tests.control.test_rank_signal import node, rank, shut
from tests.ui.acting_bench import ActingBench
from tests.ui.test_actions import READING, RUNS, SIZE, STEPS, signal_screen

JOB = replace(RUNS, nodes="gpu[01-02]", raw_id="4711")


def _bench() -> ActingBench:
    bench = ActingBench()
    bench.world.queue = (JOB,)
    bench.world.seen_steps = StepsSeen(STEPS)
    bench.world.seen_script = ScriptSeen(READING)
    return bench


async def _to_ranks(bench: ActingBench, pilot: object) -> None:
    screen = await signal_screen(bench, pilot, JOB)
    if not screen.choice.to_side:
        await bench.press(pilot, "tab")  # type: ignore[arg-type]
    down = len(screen.choice.receivers) - 1 - screen.choice.to
    await bench.press(pilot, *["down"] * down)  # type: ignore[arg-type]
    assert screen.choice.receiver.recipient is Recipient.RANKS
    assert screen.choice.signal == "USR1"


async def test_the_dialog_shows_each_node_and_who_would_die() -> None:
    bench = _bench()
    bench.world.looks = (node("gpu01", rank(30, 0), replace(rank(31, 1), caught=0)), shut())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await _to_ranks(bench, pilot)
        await bench.press(pilot, "enter")
        action = bench.dialog(pilot).action
        assert action.hosts == ("gpu01",)
        words = bench.words(pilot)
        assert "on gpu01: slurmtop-kill USR1 30:300 31:310" in words
        assert "rank 1 on gpu01 (pid 31)" in words
        assert "ranks on gpu02 not reached" in words
        assert "only 2 of 4 ranks are reached" in words
        assert bench.does.actions == []


async def test_a_look_that_takes_long_tells_how_far_it_is_and_can_be_left() -> None:
    bench = _bench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await _to_ranks(bench, pilot)
        bench.world.gate.clear()
        bench.world.words = "looked at 3 of 64 nodes"
        await bench.press(pilot, "enter")
        assert isinstance(app.screen, AskingScreen)
        assert "looked at 3 of 64 nodes for" in bench.words(pilot)
        await bench.press(pilot, "escape")
        bench.world.gate.set()
        await bench.settled(pilot)
        assert "looked at" not in bench.words(pilot)
        assert bench.does.actions == []


async def test_where_no_rank_is_reached_there_is_a_sentence() -> None:
    bench = _bench()
    bench.world.looks = (shut("gpu01"), shut())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await _to_ranks(bench, pilot)
        await bench.press(pilot, "enter")
        await bench.settled(pilot)
        assert isinstance(app.screen, OutcomeScreen)
        assert "no rank process of job 4711 is reached" in bench.words(pilot)
        assert bench.does.actions == []
