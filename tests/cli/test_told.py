"""Verdicts of earlier requeues, from the log of actions."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.cli.told import read_told, told_in
from slurmtop.cli.wiring import Wiring
from slurmtop.cli.world import make_world
from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.who import Who
from slurmtop.control.action_log import Entry, entry_line
from tests.build import make_job
from tests.fakes import FakeClock, FakeRunner


def line(job: str, verdict: str | None, result: str = "requeued", event: str = "outcome") -> bytes:
    entry = Entry(
        id="1",
        event=event,
        when=datetime(2031, 5, 5, tzinfo=UTC),
        kind="requeue",
        cluster="",
        argvs=(("scontrol", "requeue", job),),
        outcomes={job: (result, "")},
        verdict=verdict,
    )
    return entry_line(entry, who="anna", uid=1001)


def test_only_what_was_requeued_of_this_job() -> None:
    lines = [
        line("4711", "KeyError: 'a'"),
        line("4711", "not done", "denied"),
        line("4711", "only asked", "asked", "asked"),
        line("4712", "another job"),
        line("4711", None),
        line("4711", "cancelled it", "cancelled"),
        line("4711", "KeyError: 'b'", "requeued and held"),
    ]
    assert told_in(lines, "4711") == ("KeyError: 'a'", "KeyError: 'b'")


@given(st.lists(st.binary(max_size=60) | st.just(b'{"event": "outcome", "jobs": [1, {}]}')))
def test_any_lines(lines: list[bytes]) -> None:
    assert told_in(lines, "4711") == ()


async def test_the_end_of_a_long_log_is_read() -> None:
    runner = FakeRunner()
    runner.files["/log"] = b"x" * 2_000_000 + b"\n" + line("4711", "late") + b"\n"
    assert await read_told(runner, "/log", "4711") == ("late",)
    assert sum(length for _, _, length in runner.reads) <= 1024 * 1024


@pytest.mark.parametrize("error", [FileNotFoundError(2, "none"), PermissionError(13, "no")])
async def test_without_a_log_nothing_was_told(error: OSError) -> None:
    runner = FakeRunner()
    runner.files["/log"] = error
    assert await read_told(runner, "/log", "4711") == ()


async def test_what_was_told_goes_into_the_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, runner = FakeClock(), FakeRunner()
    runner.files["/state/slurmtop/actions.jsonl"] = line("4711", "KeyError: 'a'") + b"\n"
    given: list[object] = []

    async def looping(*args: object, told: object) -> str:
        given.append(told)
        return "looping"

    monkeypatch.setattr("slurmtop.cli.world.read_looping", looping)
    wiring = Wiring(
        runner=MeteredRunner(runner, clock),
        clock=clock,
        who=Who(1001, "anna"),
        cluster="",
        mark=b"\x1eabcdef",
        live=True,
    )
    world = make_world(wiring, {"XDG_STATE_HOME": "/state"})
    assert await world.looping(make_job("4711", restarts=3)) == "looping"
    # A job that was not restarted so often costs no read.
    await world.looping(make_job("4711", restarts=1))
    await make_world(wiring).looping(make_job("4711", restarts=3))
    assert given == [("KeyError: 'a'",), (), ()]
    assert len(runner.reads) == 1
