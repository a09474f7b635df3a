"""Private files stay private, whoever prepared the place."""

import os
import stat
from pathlib import Path

import pytest

from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> PrivateFolder:
    return PrivateFolder(tmp_path / "a" / "b")


def test_folders_and_files_are_for_the_owner_alone(folder: PrivateFolder) -> None:
    old = os.umask(0)
    try:
        folder.write("one", b"1")
        folder.append("two", b"2")
        nested = PrivateFolder(folder.path / "c" / "d")
    finally:
        os.umask(old)
    assert mode(folder.path) == 0o700
    assert mode(folder.path.parent) == 0o700
    assert mode(nested.path.parent) == 0o700
    assert mode(folder.path / "one") == 0o600
    assert mode(folder.path / "two") == 0o600


def test_what_was_written_is_read(folder: PrivateFolder) -> None:
    folder.write("file", b"old")
    folder.write("file", b"new")
    folder.append("log", b"a\n")
    folder.append("log", b"b\n")
    assert folder.read("file") == b"new"
    assert folder.read("log") == b"a\nb\n"
    assert folder.read("log", 2) == b"a\n"
    assert folder.read("none") is None
    assert folder.names() == ("file", "log")


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("file", b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        folder.write("file", b"new")
    assert folder.read("file") == b"old"
    assert folder.names() == ("file",)


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o720, 0o702])
def test_a_folder_that_others_may_change_is_refused(tmp_path: Path, bits: int) -> None:
    place = tmp_path / "x"
    place.mkdir()
    place.chmod(bits)
    with pytest.raises(UnsafeFolder, match="may be written to by others"):
        PrivateFolder(place)


def test_a_folder_like_tmp_is_refused_but_one_inside_is_fine(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.mkdir()
    place.chmod(0o1777)
    with pytest.raises(UnsafeFolder, match="shared by all users"):
        PrivateFolder(place)
    assert mode(PrivateFolder(place / "mine").path) == 0o700


@pytest.mark.parametrize("bits", [0o755, 0o750, 0o705, 0o711])
def test_a_folder_that_others_may_look_into_is_refused(tmp_path: Path, bits: int) -> None:
    place = tmp_path / "x"
    place.mkdir()
    place.chmod(bits)
    with pytest.raises(UnsafeFolder, match="is open to others"):
        PrivateFolder(place)
    assert mode(place) == bits
    assert mode(PrivateFolder(place / "mine").path) == 0o700


def test_somebody_elses_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    with pytest.raises(UnsafeFolder, match="belongs to somebody else"):
        PrivateFolder(tmp_path)


def test_a_folder_that_turns_bad_later_is_noticed(folder: PrivateFolder) -> None:
    folder.write("f", b"1")
    folder.path.chmod(0o777)
    with pytest.raises(UnsafeFolder):
        folder.write("f", b"2")
    with pytest.raises(UnsafeFolder):
        folder.append("f", b"2")


def test_links_are_not_followed(folder: PrivateFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"safe")
    (folder.path / "link").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        folder.append("link", b"x")
    with pytest.raises(OSError, match="symbolic links"):
        folder.read("link")
    folder.write("link", b"own")
    assert victim.read_bytes() == b"safe"
    assert not (folder.path / "link").is_symlink()
    way = tmp_path / "way"
    way.symlink_to(folder.path)
    with pytest.raises(UnsafeFolder, match="is a link"):
        PrivateFolder(way)


def test_a_pipe_in_the_place_of_a_file_does_not_hang(folder: PrivateFolder) -> None:
    os.mkfifo(folder.path / "pipe")
    with pytest.raises((UnsafeFolder, OSError)):
        folder.append("pipe", b"x")
    with pytest.raises(UnsafeFolder):
        folder.read("pipe")


def test_a_file_left_open_to_others_is_closed_to_them(folder: PrivateFolder) -> None:
    path = folder.path / "log"
    path.write_bytes(b"")
    path.chmod(0o644)
    folder.append("log", b"x")
    assert mode(path) == 0o600


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b"])
def test_names_are_plain(folder: PrivateFolder, name: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        folder.write(name, b"")
    with pytest.raises(ValueError, match="plain file name"):
        folder.append(name, b"")
    with pytest.raises(ValueError, match="plain file name"):
        folder.read(name)
