"""One line for the system's log."""

import socket
from pathlib import Path

import pytest

from slurmtop.collect.syslog_line import send_line


@pytest.fixture
def receiver(tmp_path: Path) -> socket.socket:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    door.bind(str(tmp_path / "log"))
    door.settimeout(10)
    return door


def test_one_line_with_its_priority(receiver: socket.socket, tmp_path: Path) -> None:
    with receiver:
        send_line("alice requeue 4711: requeued", path=str(tmp_path / "log"))
        assert receiver.recv(4096) == b"<13>slurmtop: alice requeue 4711: requeued"


def test_long_and_broken_text_stays_one_short_line(receiver: socket.socket, tmp_path: Path) -> None:
    with receiver:
        send_line("ä" * 2_000 + "\n<0>kernel: forged", path=str(tmp_path / "log"))
        line = receiver.recv(4096)
        assert len(line) <= 1_000
        assert line.decode().endswith("ä…")
        send_line("one\n<0>kernel: two", path=str(tmp_path / "log"))
        assert b"\n" not in receiver.recv(4096)


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        send_line("alice", path=str(tmp_path / "log"))


def test_a_log_that_is_full_is_not_waited_for(receiver: socket.socket, tmp_path: Path) -> None:
    def fill() -> None:
        for _ in range(100_000):
            send_line("x" * 900, path=str(tmp_path / "log"))

    with receiver, pytest.raises(BlockingIOError):
        fill()
