"""A log as a file: what is wrong with it when it cannot be read, in words for people."""

from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileStat, FileTimeout, Runner, RunnerError


async def checked_stat(runner: Runner, path: str, host: str | None = None) -> FileStat:
    """``stat`` of a plain file; folders, pipes and devices raise as an attempt to read would."""
    stat = await runner.stat(path, host)
    if stat.is_dir:
        raise IsADirectoryError(21, "Is a directory", path)
    if not stat.is_regular:
        raise NotAFile(path)
    return stat


class NotAFile(OSError):
    """A pipe or a device where a log should be, e.g. ``/dev/null``."""


def log_status(error: OSError | RunnerError) -> tuple[LogStatus, str]:
    """What kind of trouble a failed file call is, and why, in words for people."""
    if isinstance(error, FileTimeout):
        return LogStatus.HANGS, str(error)
    if isinstance(error, RunnerError):
        return LogStatus.FAILED, str(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return LogStatus.ABSENT, "there is no such file"
    if isinstance(error, PermissionError):
        return LogStatus.DENIED, "this user may not read it"
    if isinstance(error, IsADirectoryError):
        return LogStatus.NOT_A_FILE, "it is a folder"
    if isinstance(error, NotAFile):
        return LogStatus.NOT_A_FILE, "it is a pipe or a device"
    return LogStatus.FAILED, error.strerror or str(error)
