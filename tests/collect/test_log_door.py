"""Files that a parsing process reads: a mount that hangs costs what lies on it, and no more."""

import errno
import os
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect import log_child, log_door
from slurmtop.collect.file_child import read_block
from slurmtop.collect.log_content import Content
from slurmtop.collect.log_door import MOST_ABANDONED, Hangs, LogDoor
from slurmtop.collect.log_spans import BLOCK_BYTES, END_BYTES, spans


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Reads of paths with ``dead`` in them end when this is set."""
    end = threading.Event()

    def read(path: bytes, offset: int, count: int) -> bytes:
        if b"dead" in path:
            end.wait(60)
        return read_block(path, offset, count)

    monkeypatch.setattr(log_door, "read_block", read)
    yield end
    end.set()


def test_a_file_that_hangs_costs_its_folder_only(never: threading.Event, tmp_path: Path) -> None:
    good = tmp_path / "x.log"
    good.write_bytes(b"abcdef")
    door = LogDoor(timeout_s=0.05)
    assert door.read(os.fsencode(good), 2, 3) == b"cde"
    with pytest.raises(Hangs, match=r"did not answer within 0\.05 s"):
        door.read(b"/dead/x.log", 0, 9)
    # Not asked again, so that a thousand files do not wait a thousand times.
    with pytest.raises(Hangs, match="its folder did not answer before"):
        door.read(b"/dead/y.log", 0, 9)
    assert door.read(os.fsencode(good), 0, 2) == b"ab"


def test_a_mount_that_hangs_in_many_folders_is_given_up(
    never: threading.Event, tmp_path: Path
) -> None:
    door = LogDoor(timeout_s=0.01)
    before = threading.active_count()
    for number in range(MOST_ABANDONED + 3):
        with pytest.raises(Hangs):
            door.read(b"/dead/%d/x.log" % number, 0, 9)
    assert threading.active_count() - before <= MOST_ABANDONED
    with pytest.raises(Hangs, match="earlier reads still hang"):
        door.read(os.fsencode(tmp_path / "x.log"), 0, 9)


def test_an_answer_that_comes_too_late_is_nobody_elses(
    never: threading.Event, tmp_path: Path
) -> None:
    late = tmp_path / "dead.log"
    late.write_bytes(b"late")
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "x.log").write_bytes(b"mine")
    door = LogDoor(timeout_s=0.05)
    with pytest.raises(Hangs):
        door.read(os.fsencode(late), 0, 9)
    never.set()
    assert door.read(os.fsencode(folder / "x.log"), 0, 9) == b"mine"


def test_what_is_wrong_with_a_file_is_told_and_the_next_one_is_read(tmp_path: Path) -> None:
    door = LogDoor()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "x.log").write_bytes(b"step 1\n")

    def told(name: str) -> tuple[object, ...]:
        path = os.fsencode(tmp_path / name)
        return log_child.read(door, path, name, 2031, 7, whole=False)

    assert told("gone")[:2] == (log_child.ERROR, errno.ENOENT)
    assert told("pipe")[:2] == (log_child.ERROR, errno.EINVAL)
    assert told(".")[:2] == (log_child.ERROR, errno.EISDIR)
    assert told("a\0b")[0] == log_child.ERROR
    assert told("x.log")[0] == log_child.TRACES
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8b\x08xxxxx")
    assert told("x.gz") == (log_child.CONTENT, Content.GZIP)


def test_a_file_that_was_cut_short_tells_what_was_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"step 1\n")
    size = 40 * END_BYTES
    kind, traces = log_child.read(LogDoor(), os.fsencode(path), "x", 2031, size, whole=False)
    assert kind == log_child.TRACES
    (source,) = traces.sources
    assert (source.read_bytes, source.size) == (7, size)
    assert source.unread == ((7, size - END_BYTES - 7),)


@given(st.integers(0, 9 * BLOCK_BYTES), st.booleans())
def test_what_is_read_of_a_file(size: int, whole: bool) -> None:
    parts = list(spans(size, whole=whole))
    assert parts[0] == (0, min(size, END_BYTES))
    assert all(length <= BLOCK_BYTES for _, length in parts)
    gaps = [later[0] - sum(earlier) for earlier, later in pairwise(parts)]
    assert all(gap >= 0 for gap in gaps)
    assert sum(parts[-1]) == size
    if whole or size <= 2 * END_BYTES:
        assert not any(gaps)
    else:
        assert sum(length for _, length in parts) == 2 * END_BYTES
