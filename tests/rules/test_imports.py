"""The import rule, held a second time: what a room really loads, in a fresh interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "model",
    "parse",
    "triage",
    "store",
    "control",
    "collect",
    "jobscript",
    "ui",
    "demo",
    "cli",
)
BELOW = {
    "model": (),
    "parse": ("model",),
    "triage": ("model",),
    "store": ("model",),
    "control": ("model", "parse", "triage", "store"),
    "collect": ("model", "parse", "triage", "store"),
    "jobscript": ("model", "parse", "triage", "store"),
    "ui": ("model", "parse", "triage", "store", "control", "collect", "jobscript"),
    "demo": ("model",),
    "cli": ("model", "parse", "triage", "store", "control", "collect", "jobscript", "ui", "demo"),
}
PURE = ("model", "parse", "triage", "store", "jobscript")
SCREEN = ("textual", "rich", "plotext")
WORLD = ("asyncssh", "subprocess", "socket", "asyncio", "yaml")

#: A command that must answer without a terminal library, and the module behind it.
HEADLESS = (
    "slurmtop.cli.main",
    "slurmtop.cli.why",
    "slurmtop.cli.triage",
    "slurmtop.cli.explain",
    "slurmtop.cli.jobs",
    "slurmtop.cli.nodes",
    "slurmtop.cli.gpus",
    "slurmtop.cli.export",
    "slurmtop.cli.doctor",
    "slurmtop.ui.keys",
)


def modules_of(room: str) -> list[str]:
    folder = ROOT / "slurmtop" / room
    names = []
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def loaded_by(modules: list[str]) -> set[str]:
    code = f"import sys\nfor name in {modules!r}: __import__(name)\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_loads_only_what_lies_below_it(room: str) -> None:
    loaded = loaded_by(modules_of(room))
    allowed = {room, *BELOW[room]}
    strangers = {
        name
        for name in loaded
        if name.startswith("slurmtop.") and name.split(".")[1] in ROOMS
        if name.split(".")[1] not in allowed
    }
    assert not strangers, f"{room} loads {sorted(strangers)}"


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("ui", "cli")])
def test_only_ui_loads_a_terminal_library(room: str) -> None:
    loaded = loaded_by(modules_of(room))
    assert not {name for name in loaded if name.split(".")[0] in SCREEN}


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_have_no_door_to_the_world(room: str) -> None:
    loaded = loaded_by(modules_of(room))
    assert not {name for name in loaded if name.split(".")[0] in WORLD}


@pytest.mark.parametrize("module", HEADLESS)
def test_headless_commands_stay_thin(module: str) -> None:
    loaded = loaded_by([module])
    assert not {name for name in loaded if name.split(".")[0] in (*SCREEN, "asyncssh", "yaml")}


def test_every_module_has_a_room() -> None:
    top = {path.name for path in (ROOT / "slurmtop").iterdir() if path.is_dir()} - {"__pycache__"}
    assert top <= set(ROOMS), f"unknown rooms: {sorted(top - set(ROOMS))}"


def test_no_module_outgrows_its_reader() -> None:
    """About 400 lines is the most a reader holds; data tables may be a little longer."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in sorted((ROOT / "slurmtop").rglob("*.py"))
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 440
    }
    assert not long
