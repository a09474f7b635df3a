"""The entry point: Ctrl-C while modules are still being imported."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Sends the process SIGINT at the moment when it begins to import one module.
INTERRUPTED = """
import os, signal, sys

at = sys.argv.pop(1)

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from slurmtop.__main__ import start
sys.exit(start())
"""


def interrupted(at: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED, at, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("at", "arguments"),
    [
        ("slurmtop.cli", ("--help",)),
        ("slurmtop.cli.main", ("--help",)),
        ("slurmtop.cli.options", ("demo",)),
        ("slurmtop.cli.gpus", ("gpus",)),
        ("slurmtop.collect.squeue", ("doctor",)),
        ("slurmtop.demo", ("demo",)),
    ],
)
def test_ctrl_c_while_modules_are_imported_is_silent(at: str, arguments: tuple[str, ...]) -> None:
    done = interrupted(at, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = interrupted("slurmtop.cli.options", "--version")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_installed_command_starts_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["scripts"] == {"slurmtop": "slurmtop.__main__:start"}
