"""The matrix as text at any width, and what of this machine is told without a cluster."""

import os
from pathlib import Path

import pytest

from slurmtop.cli.doctor_here import (
    Terminal,
    agent_row,
    settings_row,
    state_row,
    terminal_row,
)
from slurmtop.cli.doctor_table import row_dict, table_lines
from slurmtop.cli.options import Options
from slurmtop.config import Config
from slurmtop.model.access import Access, AccessStatus, Group
from slurmtop.model.text import cell_width
from slurmtop.parse.mask import MARK

ROWS = (
    Access(
        group=Group.NODES,
        source="ssh (own connection) to gpu-node-with-a-long-name-0001",
        status=AccessStatus.REFUSED,
        why="gpu01 refuses connections on port 22: no sshd is running there. " * 2,
        opens="sshd on that node: ask the site",
        host="gpu01",
    ),
    Access(group=Group.SLURM, source="queue, own jobs", status=AccessStatus.REACHABLE, why="1 job"),
    Access(group=Group.SLURM, source="batch script", status=AccessStatus.NOT_ASKED),
    Access(
        group=Group.HERE,
        source="log of actions",
        status=AccessStatus.ABSENT,
        why="/home/anna/.local/state/slurmtop/actions.jsonl?password=hunter2hunter2",
    ),
)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table(width: int) -> None:
    lines = table_lines(ROWS, width)
    assert all(cell_width(line) <= width or "/home/anna" in line for line in lines)
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "Slurm",
        "Here",
        "Ways onto nodes",
    ]
    assert lines[1].split()[:1] == ["yes"]
    text = "\n".join(lines)
    assert text.replace(MARK.decode(), "").isascii()
    assert "not asked" in text
    assert "opens it: sshd on that node: ask the site" in " ".join(text.split())
    assert "hunter2" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80])
def test_what_is_to_be_copied_stands_whole_in_a_line_of_its_own(width: int) -> None:
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIKR3Zd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4K"
    line = f"[gpu01.cluster.example]:2222 ssh-ed25519 {key}"
    row = Access(
        group=Group.NODES,
        source="ssh to gpu01",
        status=AccessStatus.REFUSED,
        why=f"The host key of gpu01 is not known here: add this line to known_hosts: {line}",
        copy=line,
    )
    lines = table_lines((row,), width)
    assert lines[-1] == f"  {line}"
    assert sum(key in one for one in lines) == 1
    assert row_dict(row)["why"] == row.why


def test_a_row_as_json() -> None:
    assert row_dict(ROWS[1]) == {
        "group": "Slurm",
        "source": "queue, own jobs",
        "status": "reachable",
        "host": None,
        "why": "1 job",
        "opens": None,
        "command": None,
    }
    assert "hunter2" not in str(row_dict(ROWS[3]))


def terminal(**fields: object) -> Access:
    given: dict[str, object] = {
        "size": (120, 40),
        "term": "xterm-256color",
        "colorterm": "",
        "no_color": False,
        "encoding": "utf-8",
    }
    return terminal_row(Terminal(**{**given, **fields}))  # type: ignore[arg-type]


def test_the_terminal() -> None:
    assert terminal().why == "120x40, TERM=xterm-256color, 256 colours, Unicode"
    assert "all colours" in terminal(colorterm="truecolor").why
    assert "no colour" in terminal(no_color=True).why
    assert "16 colours" in terminal(term="screen").why
    assert terminal(size=None).status is AccessStatus.NOT_ASKED
    assert terminal(term="dumb").status is AccessStatus.REFUSED
    small = terminal(size=(60, 20), encoding="ansi_x3.4-1968")
    assert "smaller than 80x24" in small.why
    assert "no Unicode" in small.why
    assert small.opens == "LANG=C.UTF-8"


def test_the_log_of_actions_is_judged_without_making_anything(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    row = state_row(environ)
    assert row.status is AccessStatus.REACHABLE
    assert "is made with the first action" in row.why
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "state" / "slurmtop"
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    assert state_row(environ).opens == f"chmod 700 {folder}"
    folder.chmod(0o700)
    assert state_row(environ).status is AccessStatus.REACHABLE
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert state_row(environ).status is AccessStatus.REFUSED


def test_settings_that_are_wrong_are_told_and_gone_on_without(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("theem: x\n")
    row, config = settings_row(Options(config=str(path)), {})
    assert row.status is AccessStatus.REFUSED
    assert "line 1" in row.why
    assert config == Config()
    path.write_text("read_only: true\n")
    row, config = settings_row(Options(config=str(path)), {})
    assert (row.status, config.read_only) == (AccessStatus.REACHABLE, True)
    row, _ = settings_row(Options(), {"XDG_CONFIG_HOME": str(tmp_path / "none")})
    assert row.status is AccessStatus.ABSENT


def test_keys_for_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert agent_row({}).status is AccessStatus.ABSENT
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text("ssh-ed25519 AAAA")
    assert agent_row({}).why == "no agent; 1 key in ~/.ssh"
    row = agent_row({"SSH_AUTH_SOCK": str(tmp_path / "gone")})
    assert row.status is AccessStatus.REFUSED
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert agent_row({"SSH_AUTH_SOCK": str(pipe)}).status is AccessStatus.REFUSED


def test_bundles_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "slurmtop"
    folder.mkdir(mode=0o700)
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert state_row(environ).why.endswith("actions.jsonl")
    for name in ("4711-a", "4711-b"):
        (folder / "bundles" / name).mkdir(parents=True)
        (folder / "bundles" / name / "commands.jsonl").write_bytes(b"x" * 600_000)
    assert state_row(environ).why.endswith("actions.jsonl; 2 bundles beside it, 1.2 MB")
