"""What ``export --textfile`` may replace: a regular file, and nothing else that is there."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmtop.cli.errors import CannotWork
from slurmtop.cli.export import replace_file, run
from slurmtop.cli.options import Options


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _link(path: Path) -> None:
    target = path.with_name("other.prom")
    target.write_bytes(b"old")
    path.symlink_to(target)


KINDS: list[tuple[Callable[[Path], None], str]] = [
    (os.mkfifo, "is no regular file"),
    (_socket, "is no regular file"),
    (_link, "is a link"),
    (lambda path: path.symlink_to("/proc/self/fd/1"), "is a link"),
    (lambda path: path.symlink_to(path.with_name("nowhere")), "is a link"),
    (lambda path: path.mkdir(), "is a folder"),
]


@pytest.mark.parametrize(("make", "says"), KINDS)
def test_what_is_no_regular_file_is_never_replaced(
    make: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    make(path)
    kind = path.lstat()
    there = sorted(tmp_path.iterdir())
    with pytest.raises(CannotWork, match=says):
        replace_file(path, b"slurmtop_up 1\n")
    # It is said before anything is asked: these options name no Slurm.
    with pytest.raises(CannotWork, match=says):
        run(Options(textfile=str(path)))
    assert path.lstat() == kind
    assert sorted(tmp_path.iterdir()) == there
    assert all(one.read_bytes() == b"old" for one in there if one.name == "other.prom")


def test_a_device_is_never_replaced() -> None:
    # A terminal is the one device that a test can make without being root.
    ours, theirs = os.openpty()
    try:
        with pytest.raises(CannotWork, match="is no regular file"):
            replace_file(Path(os.ttyname(theirs)), b"slurmtop_up 1\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_missing_and_a_regular_file_are_written(tmp_path: Path) -> None:
    path = tmp_path / "x.prom"
    for data in (b"one\n", b"two\n"):
        replace_file(path, data)
        assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]
