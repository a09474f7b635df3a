"""The kernel log of one node: what is read of it, and who may not."""

import math
import os
import subprocess
from pathlib import Path

import pytest

from slurmtop.collect.nodes.kernel import KERNEL_SCRIPT, KERNEL_SCRIPT_NAME, read_kernel_log
from slurmtop.model.ports import NodeUnreachable, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from tests.fakes import FakeRunner

XID = "[Mon May  5 10:00:01 2031] NVRM: Xid (PCI:0000:3b:00): 79, pid=21180, name=python, fallen"
FIRST = "#slurmtop first [Mon May  5 10:00:01 2031]\n"
REFUSED = "dmesg: read kernel buffer failed: Operation not permitted"


async def test_the_node_is_asked_once_by_name() -> None:
    runner = FakeRunner()
    runner.on("/bin/sh *", XID + "\n")
    log = await read_kernel_log(runner, "gpu05")
    assert [(event.code, event.bus_id) for event in log.events] == [(79, "0000:3b:00")]
    (command,) = runner.calls
    assert command.host == "gpu05"
    assert command.argv[3] == KERNEL_SCRIPT_NAME


async def test_a_refusal_is_not_asked_again() -> None:
    runner = FakeRunner()
    runner.on("/bin/sh *", rc=1, stderr=REFUSED)
    log = await read_kernel_log(runner, "gpu05")
    assert log.failure is not None
    assert log.failure.trouble is Trouble.DENIED
    assert log.failure.retry_after_s == math.inf


@pytest.mark.parametrize("rc", [1, 2, 127, None])
async def test_no_log_is_never_no_error(rc: int | None) -> None:
    runner = FakeRunner()
    runner.on("/bin/sh *", rc=rc, stderr="something else")
    log = await read_kernel_log(runner, "gpu05")
    assert log.failure is not None
    assert "not known" in log.failure.sentence or "in time" in log.failure.sentence


async def test_a_log_without_xid_is_empty_and_no_failure() -> None:
    runner = FakeRunner()
    runner.on("/bin/sh *", "")
    log = await read_kernel_log(runner, "gpu05")
    assert log.events == ()
    assert log.failure is None


async def test_a_node_that_is_closed_says_why() -> None:
    runner = FakeRunner()
    closed = Failure(Trouble.DENIED, "gpu05 refuses the login.")
    runner.on_call("/bin/sh *", NodeUnreachable("gpu05", closed))
    assert (await read_kernel_log(runner, "gpu05")).failure is closed
    runner.on_call("/bin/sh *", RunnerError("no such program"))
    failure = (await read_kernel_log(runner, "gpu05")).failure
    assert failure is not None
    assert failure.sentence == "no such program"


def in_a_shell(folder: Path, **programs: str) -> "subprocess.CompletedProcess[str]":
    """Run the script where ``dmesg`` and ``journalctl`` are these shell lines."""
    for name, text in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", "-c", KERNEL_SCRIPT, KERNEL_SCRIPT_NAME],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
    )


def test_the_script_sends_lines_of_the_driver_only(tmp_path: Path) -> None:
    done = in_a_shell(tmp_path, dmesg=f"echo 'usb 1-1: secret stick'; echo '{XID}'")
    assert (done.returncode, done.stdout) == (0, XID + "\n")


@pytest.mark.parametrize(
    ("line", "since"),
    [
        ("[Mon May  5 09:00:00 2031] usb 1-1: secret stick", "Mon May  5 09:00:00 2031"),
        ("[    0.000000] Linux version 6.8.0", "0.000000"),
        ("2031-05-05T09:00:00+0000 gpu05 kernel: secret", "2031-05-05T09:00:00+0000"),
        ("secret without a time", None),
    ],
)
async def test_how_far_the_log_reaches_back_is_told_and_nothing_else_of_its_first_line(
    tmp_path: Path, line: str, since: str | None
) -> None:
    done = in_a_shell(tmp_path, dmesg=f"echo '{line}'; echo '[9.0] usb'")
    assert "secret" not in done.stdout
    assert "Linux" not in done.stdout
    runner = FakeRunner()
    runner.on("/bin/sh *", done.stdout)
    log = await read_kernel_log(runner, "gpu05")
    assert (log.since, log.events) == (since, ())


def test_the_script_takes_the_journal_where_dmesg_is_closed(tmp_path: Path) -> None:
    closed = f"echo '{REFUSED}' >&2; exit 1"
    journal = f"echo 'kernel: Linux version'; echo '{XID}'"
    done = in_a_shell(tmp_path, dmesg=closed, journalctl=journal)
    assert (done.returncode, done.stdout) == (0, XID + "\n")
    done = in_a_shell(tmp_path, dmesg=closed, journalctl="exit 0")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", REFUSED + "\n")


def test_the_script_asks_without_times_where_dmesg_knows_none(tmp_path: Path) -> None:
    old = f"[ $# = 0 ] || {{ echo 'invalid option' >&2; exit 1; }}; echo '{XID}'"
    done = in_a_shell(tmp_path, dmesg=old)
    assert done.stdout == FIRST + XID + "\n"


def test_a_log_without_the_driver_is_an_answer(tmp_path: Path) -> None:
    done = in_a_shell(tmp_path, dmesg="echo 'usb 1-1: new device'")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
