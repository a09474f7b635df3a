"""Files through the helper process: refusals, hanging mounts, and never more than a few helpers."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.files import MOST_ABANDONED, FileDoor, mount_of
from slurmtop.model.ports import FileTimeout, RunnerError
from tests.collect.helpers import alive, until
from tests.fakes import FakeClock

HANGS_S = 0.3


@pytest.fixture
async def door() -> AsyncIterator[FileDoor]:
    made = FileDoor(FakeClock(), dict(os.environ), timeout_s=10.0)
    yield made
    await made.aclose()


@pytest.fixture
async def hasty() -> AsyncIterator[FileDoor]:
    """A door that gives up soon, for the tests in which its helper is stopped."""
    made = FileDoor(FakeClock(), dict(os.environ), timeout_s=HANGS_S)
    yield made
    await made.aclose()


async def warm(door: FileDoor, path: Path) -> int:
    """The pid of a helper that is up; starting it may take longer than a hasty door waits."""
    clock = door._clock
    assert isinstance(clock, FakeClock)
    for _ in range(100):
        try:
            await door.stat(str(path))
        except FileTimeout:
            await clock.advance(61)
            continue
        assert door.child_pid is not None
        return door.child_pid
    raise AssertionError("the helper never answered")


async def test_read_is_by_offset_and_short_at_the_end(door: FileDoor, tmp_path: Path) -> None:
    path = tmp_path / "log with blanks \u00e4\n.out"
    path.write_bytes(b"0123456789")
    assert await door.read(str(path), 3, 4) == b"3456"
    assert await door.read(str(path), 8, 100) == b"89"
    assert await door.read(str(path), 50, 10) == b""
    assert await door.read(str(path), 0, 0) == b""


async def test_a_long_read_is_made_of_blocks(door: FileDoor, tmp_path: Path) -> None:
    path = tmp_path / "big"
    data = os.urandom(1024) * 9000
    path.write_bytes(data)
    assert await door.read(str(path), 0, len(data) + 5) == data


async def test_stat_tells_kind_size_time_and_identity(door: FileDoor, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"abc")
    os.utime(path, ns=(0, 1_900_000_000_123_456_789))
    seen = await door.stat(str(path))
    real = path.stat()
    assert (seen.size, seen.device, seen.inode) == (3, real.st_dev, real.st_ino)
    assert seen.mtime.isoformat() == "2030-03-17T17:46:40.123456+00:00"
    assert (seen.is_dir, seen.is_regular) == (False, True)
    folder = await door.stat(str(tmp_path))
    assert (folder.is_dir, folder.is_regular) == (True, False)


async def test_list_is_sorted_and_keeps_strange_names(door: FileDoor, tmp_path: Path) -> None:
    for name in (b"b", b"a\n\x1b[2J", b"\xff"):
        (tmp_path / os.fsdecode(name)).touch()
    names = await door.list(str(tmp_path))
    assert [os.fsencode(name) for name in names] == [b"a\n\x1b[2J", b"b", b"\xff"]
    assert await door.read(f"{tmp_path}/{names[2]}", 0, 1) == b""


async def test_the_usual_errors_have_their_usual_kinds(door: FileDoor, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        await door.read(str(tmp_path / "none"), 0, 1)
    assert missing.value.filename == str(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        await door.read(str(tmp_path), 0, 1)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        await door.stat(str(tmp_path / "file" / "x"))
    for bad in ("a\0b", "", "\ud800"):
        with pytest.raises(OSError, match="Not a possible file name") as refused:
            await door.stat(bad)
        assert refused.value.errno == 22


async def test_pipes_and_devices_are_never_opened(door: FileDoor, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="Not a regular file"):
        await door.read(str(pipe), 0, 10)
    with pytest.raises(OSError, match="Not a regular file"):
        await door.read("/dev/zero", 0, 10)
    assert not (await door.stat(str(pipe))).is_regular


async def test_one_helper_serves_all_and_is_gone_after_closing(tmp_path: Path) -> None:
    door = FileDoor(FakeClock(), dict(os.environ), timeout_s=10.0)
    await door.list(str(tmp_path))
    first = door.child_pid
    await door.stat(str(tmp_path))
    assert door.child_pid == first
    assert first is not None
    assert os.getsid(first) == first
    await door.aclose()
    assert not alive(first)


async def test_a_hanging_file_costs_one_timeout_and_its_folder_for_a_minute(
    hasty: FileDoor, tmp_path: Path
) -> None:
    hung, fine = tmp_path / "hung", tmp_path / "fine"
    for folder in (hung, fine):
        folder.mkdir()
        (folder / "log").write_bytes(b"x")
    pid = await warm(hasty, fine / "log")
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(FileTimeout, match="did not answer within"):
        await hasty.read(str(hung / "log"), 0, 1)
    await until(lambda: not alive(pid), "the stopped helper was killed")
    second = await warm(hasty, fine / "log")
    assert second != pid
    os.kill(second, signal.SIGSTOP)
    with pytest.raises(FileTimeout, match="in the last minute"):
        await hasty.read(str(hung / "log"), 0, 1)
    os.kill(second, signal.SIGCONT)
    clock = hasty._clock
    assert isinstance(clock, FakeClock)
    await clock.advance(61)
    await warm(hasty, hung / "log")


async def test_never_more_than_a_few_helpers_hang_at_once(
    hasty: FileDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Helpers that even SIGKILL does not end, as in an uninterruptible read."""
    kill = os.kill
    monkeypatch.setattr(os, "kill", lambda _pid, _number: None)
    folders = [tmp_path / str(number) for number in range(MOST_ABANDONED + 1)]
    for folder in folders:
        folder.mkdir()
    stuck = []
    try:
        for folder in folders[:MOST_ABANDONED]:
            hasty._child = None
            await hasty._living_child("x")
            assert hasty.child_pid is not None
            stuck.append(hasty.child_pid)
            kill(stuck[-1], signal.SIGSTOP)
            with pytest.raises(FileTimeout, match="did not answer"):
                await hasty.stat(str(folder / "log"))
        with pytest.raises(FileTimeout, match=f"{MOST_ABANDONED} earlier reads still hang"):
            await hasty.stat(str(folders[-1] / "log"))
        assert hasty.child_pid is None
    finally:
        monkeypatch.undo()
        for pid in stuck:
            kill(pid, signal.SIGKILL)
    await until(lambda: not any(alive(pid) for pid in stuck), "all are gone")
    await warm(hasty, folders[-1])


async def test_a_helper_that_somebody_killed_is_replaced(door: FileDoor, tmp_path: Path) -> None:
    await door.stat(str(tmp_path))
    first = door.child_pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: not alive(first), "it is dead")
    assert (await door.stat(str(tmp_path))).is_dir
    assert door.child_pid != first


async def test_a_cancelled_read_never_answers_the_next_one(door: FileDoor, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    await door.stat(str(one))
    pid = door.child_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    task = spawn(door.read(str(one), 0, 1), name="test")
    await until(lambda: door._lock.locked(), "the read is on its way")
    await cancel_and_wait(task)
    assert await door.read(str(two), 0, 1) == b"2"


async def test_a_helper_that_cannot_start_is_a_sentence(
    door: FileDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "posix_spawn", refuse)
    with pytest.raises(RunnerError, match="could not be started: Resource temporarily"):
        await door.stat("/etc/hosts")


def test_the_mount_is_found_without_asking_it(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:21 / / rw - ext4 /dev/sda1 rw\n"
        "36 22 0:32 / /shared rw,relatime - nfs4 filer:/shared rw\n"
        "37 36 0:33 / /shared/my\\040data rw - nfs4 filer:/d rw\n"
        "broken\n"
    )
    assert mount_of("/shared/a/log", table) == "/shared"
    assert mount_of("/shared/my data/log", table) == "/shared/my data"
    assert mount_of("/sharedness/log", table) == "/"
    assert mount_of("/shared", tmp_path / "none") == "/"


async def test_a_second_hanging_folder_speaks_for_the_mount(
    hasty: FileDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmtop.collect.files.mount_of", lambda _path: "/shared")
    hasty._remember("/shared/a/log")
    hasty._refuse_hung("/shared/b/log")
    hasty._remember("/shared/b/log")
    with pytest.raises(FileTimeout, match="/shared did not answer"):
        hasty._refuse_hung("/shared/c/log")
    hasty._refuse_hung("/home/log")
