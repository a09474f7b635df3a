"""The screen in a real terminal: first rows, leaving, and what a signal leaves behind."""

import os
import pty
import re
import signal
from pathlib import Path

import pytest

from tests.cli.stand_ins import StandIns, queue_row, slurmtop
from tests.cli.terminal import Terminal

#: What Textual sends to take back the other screen, the hidden cursor and the mouse.
RESTORED = ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l")


@pytest.fixture(autouse=True)
def needs_pseudo_terminals() -> None:
    """A bare root folder (chroot) may have none; a real machine has, and CI demands them."""
    try:
        ends = pty.openpty()
    except OSError as error:
        reason = f"this machine has no pseudo-terminals ({error}): mount devpts on /dev/pts"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    for end in ends:
        os.close(end)


def test_first_rows_and_leaving(slurm: StandIns, home: Path) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        terminal.type("q")
        assert terminal.leave() == 0
        assert all(sign in terminal.text for sign in RESTORED)
        assert terminal.restored
    squeues = [call for call in slurm.calls if call[0] == "squeue"]
    assert len(squeues) == 1, "the early answer is the first answer"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_puts_the_terminal_back(slurm: StandIns, home: Path, number: int) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        os.kill(terminal.process.pid, number)
        assert terminal.leave() == 128 + number
        assert all(sign in terminal.text for sign in RESTORED)
        assert terminal.restored


@pytest.mark.parametrize("go", range(2))
def test_stopped_and_continued_it_goes_on_and_ends(slurm: StandIns, home: Path, go: int) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        tasks = Path(f"/proc/{terminal.process.pid}/task")
        threads = len(list(tasks.iterdir()))
        os.kill(terminal.process.pid, signal.SIGSTOP)
        os.waitpid(terminal.process.pid, os.WUNTRACED)
        # As a shell does: the terminal is its own while the job is stopped.
        terminal.restore()
        terminal.drain()
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for("my-training")
        # A clock tick may paint before the signal is heard.
        terminal.until(lambda: not terminal.restored)
        assert len(list(tasks.iterdir())) <= threads, "no second reader of the keys"
        terminal.type("?")
        terminal.wait_for("Turn the sort order round")
        terminal.text = ""
        terminal.type("\x1b")
        terminal.wait_for("my-training")
        terminal.type("q")
        assert terminal.leave(5) == 0
        assert terminal.restored


def test_a_reader_stuck_in_the_terminal_does_not_hold_the_process(
    slurm: StandIns, home: Path
) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        # Lines again: what is typed makes the reader wait for the end of a line.
        terminal.restore()
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.leave(5) == 128 + signal.SIGTERM


@pytest.mark.parametrize("keys", ["", "2", "?"])
def test_it_ends_with_its_terminal(slurm: StandIns, home: Path, keys: str) -> None:
    """Under a parent that keeps SIGHUP to itself, as make does."""
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        if keys:
            terminal.text = ""
            terminal.type(keys)
            terminal.wait_for("\x1b[")
        terminal.hang_up()
        assert terminal.process.wait(8) == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_while_the_terminal_takes_nothing(
    slurm: StandIns, home: Path, number: int
) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("my-training")
        terminal.fill()
        os.kill(terminal.process.pid, number)
        assert terminal.process.wait(8) == 128 + number
        assert terminal.restored


def test_leaving_does_not_wait_for_a_squeue_that_hangs(slurm: StandIns, home: Path) -> None:
    slurm.say(slow_s={"squeue": 60})
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("\x1b[?1049h")
        terminal.wait_for("quit")
        terminal.type("q")
        assert terminal.leave(8) == 0


def test_an_outage_at_the_start_is_shown(slurm: StandIns, home: Path) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"squeue": [words, 1], "scontrol": [words, 1]})
    with Terminal(slurm.environ(home)) as terminal:
        terminal.wait_for("controller")
        terminal.type("q")
        assert terminal.leave() == 0


def test_a_recorded_screen_is_replayed(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    folder = str(tmp_path / "recording")
    with Terminal(slurm.environ(home), "--record", folder) as terminal:
        terminal.wait_for("my-training")
        terminal.type("q")
        assert terminal.leave() == 0
    calls = len(slurm.calls)
    with Terminal({**slurm.environ(home), "PATH": "/nowhere"}, "--replay", folder) as terminal:
        terminal.wait_for("my-training")
        terminal.wait_for("REPLAY of 20")
        terminal.wait_for("as recorded, nobody is asked")
        terminal.type("q")
        assert terminal.leave() == 0
        assert not re.search(r"[1-9]\d* calls/min", terminal.text)
    assert len(slurm.calls) == calls


def test_a_recording_without_a_queue_says_what_it_holds(
    slurm: StandIns, home: Path, tmp_path: Path
) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    folder = str(tmp_path / "recording")
    slurmtop(slurm.environ(home), "why", "4711", "--record", folder)
    with Terminal({**slurm.environ(home), "PATH": "/nowhere"}, "--replay", folder) as terminal:
        terminal.wait_for("The recording does not hold it")
        terminal.wait_for("holds no queue")
        terminal.type("q")
        assert terminal.leave() == 0
        assert "next try" not in terminal.text
        assert "\u241f" not in terminal.text


def test_the_look_of_the_demo_is_found_as_the_docs_say(home: Path) -> None:
    environ = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/nowhere"}
    with Terminal(environ, "demo") as terminal:
        terminal.wait_for("moe-8x7b")
        terminal.type("/4817\r")
        terminal.wait_for("1 of 1,021")
        terminal.type("\r")
        terminal.wait_for("Collectives")
        terminal.type("p")
        terminal.wait_for("look at gpu[03-04]")
        terminal.type("q")
        assert terminal.leave() == 0


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_a_terminal_that_cannot_paint_gets_the_plain_report(
    slurm: StandIns, home: Path, term: str
) -> None:
    slurm.say(jobs=[queue_row("4711", Name="my-training")])
    with Terminal(slurm.environ(home), term=term) as terminal:
        terminal.wait_for("my-training")
        assert terminal.leave() == 0
        assert "\x1b" not in terminal.text


def test_no_color_sends_no_colour(slurm: StandIns, home: Path) -> None:
    environ = {**slurm.environ(home), "PATH": "/nowhere", "NO_COLOR": "1"}
    with Terminal(environ, "demo") as terminal:
        terminal.wait_for("moe-8x7b")
        terminal.type("?")
        terminal.wait_for("Turn the sort order round")
        terminal.type("q")
        terminal.type("jK")
        terminal.wait_for("Runs exactly")
        terminal.type("\x11")
        assert terminal.leave() == 0
    parameters = {
        number
        for found in re.findall(r"\x1b\[([\d;]*)m", terminal.text)
        for number in found.split(";")
    }
    assert "1" in parameters, "bold is still sent"
    colours = {str(n) for n in (*range(30, 39), *range(40, 49), *range(90, 108))}
    assert not parameters & colours


def test_the_demo_opens(slurm: StandIns, home: Path) -> None:
    with Terminal({**slurm.environ(home), "PATH": "/nowhere"}, "demo") as terminal:
        terminal.wait_for("moe-8x7b")
        terminal.type("q")
        assert terminal.leave() == 0
    assert not (home / ".local").exists()


def test_errors_sent_to_a_file_do_not_take_the_screen_along(
    slurm: StandIns, home: Path, tmp_path: Path
) -> None:
    environ = {**slurm.environ(home), "PATH": "/nowhere"}
    with (
        (tmp_path / "errors").open("wb") as errors,
        Terminal(environ, "demo", stderr=errors.fileno()) as terminal,
    ):
        terminal.wait_for("moe-8x7b")
        terminal.type("q")
        assert terminal.leave() == 0
