"""Files that only their owner may read, in a folder that nobody else can change.

What slurmtop writes (recordings, logs of actions, saved verdicts) may quote job names, paths and
log lines. It is kept 0600 in a 0700 folder, never directly in a shared folder such as /tmp, and
no link that somebody else laid out is ever followed.
"""

import os
import secrets
import stat
from pathlib import Path

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeFolder(Exception):
    """The folder must not hold private files; ``str()`` is a sentence that says why."""


class PrivateFolder:
    """A folder of ours and the files in it, each by its plain name.

    Made with its parents (0700) where it does not exist. Raises :class:`UnsafeFolder` for a
    folder that others may look into or write to, that belongs to somebody else, or that is a link;
    ``OSError`` as usual where it cannot be made or written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser().absolute()
        self._make(self.path)
        handle = self._open()
        os.close(handle)

    def write(self, name: str, data: bytes) -> None:
        """Replace the whole file at once: a reader sees the old or the new one, never half."""
        _check_name(name)
        folder = self._open()
        temporary = f".{name}.{secrets.token_hex(8)}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
            handle = os.open(temporary, flags, _FILE_MODE, dir_fd=folder)
            try:
                _write_all(handle, data)
                os.fsync(handle)
            finally:
                os.close(handle)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _remove(temporary, folder)
            raise
        finally:
            os.close(folder)

    def append(self, name: str, data: bytes) -> None:
        """Add ``data`` at the end in one write, so that two writers never mix their lines."""
        _check_name(name)
        folder = self._open()
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | _NO_LINK
            handle = os.open(name, flags, _FILE_MODE, dir_fd=folder)
            try:
                info = os.fstat(handle)
                if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
                    raise UnsafeFolder(f"{self.path / name} is not a file of yours.")
                if info.st_mode & 0o077:
                    os.fchmod(handle, _FILE_MODE)
                _write_all(handle, data)
            finally:
                os.close(handle)
        finally:
            os.close(folder)

    def read(self, name: str, most_bytes: int = 64 * 1024 * 1024) -> bytes | None:
        """At most ``most_bytes`` of the file; None where there is none."""
        _check_name(name)
        folder = self._open()
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINK, dir_fd=folder)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnsafeFolder(f"{self.path / name} is not a plain file.")
            return file.read(most_bytes)

    def names(self) -> tuple[str, ...]:
        folder = self._open()
        try:
            return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - a handle, not a path
        finally:
            os.close(folder)

    @staticmethod
    def _make(path: Path) -> None:
        # mkdir(parents=True) gives the parents the default mode.
        missing = [path]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        for folder in reversed(missing):
            folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)

    def _open(self) -> int:
        """The folder itself, checked: names are resolved in it whatever happens to its path."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
        except OSError as error:
            if self.path.is_symlink():
                raise UnsafeFolder(
                    f"{self.path} is a link: name the folder it points to instead."
                ) from error
            raise
        why = _why_unsafe(os.fstat(handle))
        if why is not None:
            os.close(handle)
            raise UnsafeFolder(f"{self.path} {why}")
        return handle


def _why_unsafe(info: os.stat_result) -> str | None:
    if info.st_uid != os.geteuid():
        return "belongs to somebody else: name a folder of your own."
    if info.st_mode & stat.S_ISVTX:
        return "is a folder shared by all users: name a folder of your own, or a new one inside it."
    if info.st_mode & 0o022:
        return "may be written to by others: name a new folder, or one of mode 0700."
    if info.st_mode & 0o077:
        return "is open to others: name a new folder, or one of mode 0700."
    return None


def _check_name(name: str) -> None:
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"not a plain file name: {name!r}")


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return
