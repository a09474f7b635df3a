"""The shared file system: the logs and batch scripts of the jobs, and the folders around."""

import errno
import posixpath
from dataclasses import dataclass

from slurmtop.demo.endings import last_words
from slurmtop.demo.jobs import USERS, DemoJob
from slurmtop.demo.logs import Log, Piece, Text, insert, written
from slurmtop.demo.scripts import batch_script
from slurmtop.demo.specs import scatter
from slurmtop.demo.stories import STORIES, Teller
from slurmtop.demo.values import View, default_stdout, path_of, script_path
from slurmtop.model.ports import FileStat

_FOLDER_SIZE = 4_096
_DEVICE = 0x36


@dataclass(frozen=True, slots=True)
class _Source:
    """What is behind a path: a stream of a job, or its script."""

    job: DemoJob
    kind: str


def _sources(view: View) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    for job in view.world.jobs.values():
        script = script_path(job.spec)
        if script is not None and script not in found:
            found[script] = _Source(job, "script")
        if job.runs:
            found[path_of(job, default_stdout(job))] = _Source(job, "out")
            if job.spec.stderr is not None:
                found[path_of(job, job.spec.stderr)] = _Source(job, "err")
    return found


def _check(view: View, path: str) -> str:
    """The path in its plain form; ``PermissionError`` below a folder that is closed."""
    if "\0" in path or not path.startswith("/"):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    plain = posixpath.normpath("/" + path.lstrip("/"))
    for user, (uid, _, closed) in USERS.items():
        home = f"/shared/{user}"
        if closed and uid != view.uid and (plain == home or plain.startswith(home + "/")):
            raise PermissionError(errno.EACCES, "Permission denied", path)
    return plain


def _folders(paths: dict[str, _Source]) -> set[str]:
    folders = {"/", "/shared", *(f"/shared/{user}" for user in USERS if user != "root")}
    for path in paths:
        while (path := posixpath.dirname(path)) not in folders:
            folders.add(path)
    return folders


def log_of(view: View, job: DemoJob, kind: str) -> Log:
    """The log as it is now. ``kind`` is ``out`` or ``err``."""
    runs = list(enumerate(job.runs))
    pieces: list[Piece] = []
    joined = job.spec.stderr is None
    for attempt, run in runs if job.spec.append else runs[-1:]:
        teller = Teller(view.start, job, run, attempt)
        until = view.t if run.end_t is None else min(view.t, run.end_t)
        told = written(STORIES[job.spec.story](teller), until) if kind == "out" else []
        for t, line in run.marks:
            if t <= until and kind == "out":
                told = insert(told, Text(t, line.encode()))
        pieces += told
        if run.end_t is not None:
            out, err = last_words(teller)
            text = out + err if kind == "out" and joined else out if kind == "out" else err
            if text:
                pieces.append(Text(run.end_t, text.encode()))
    return Log(pieces, job.runs[0].start_t)


def _open(view: View, path: str) -> tuple[Log, str]:
    plain = _check(view, path)
    sources = _sources(view)
    source = sources.get(plain)
    if source is None:
        if plain in _folders(sources):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    if source.kind == "script":
        text = Text(source.job.submit_t - 3_600, batch_script(source.job.spec).encode())
        return Log([text], text.t), plain
    return log_of(view, source.job, source.kind), plain


def read(view: View, path: str, offset: int, length: int) -> bytes:
    """At most ``length`` bytes; the errors are those of a real file system."""
    return _open(view, path)[0].read(offset, length)


def stat(view: View, path: str) -> FileStat:
    try:
        log, plain = _open(view, path)
    except IsADirectoryError:
        plain = _check(view, path)
        inode = 2 + scatter(len(plain) + sum(plain.encode()), 1 << 30)
        return FileStat(_FOLDER_SIZE, view.when(view.t), _DEVICE, inode, is_dir=True)
    number = int.from_bytes(plain.encode()[-12:], "big") % (1 << 48)
    return FileStat(log.size, view.when(log.last_t), _DEVICE, number)


def names_in(view: View, path: str) -> tuple[str, ...]:
    """The names in a folder, sorted."""
    plain = _check(view, path)
    sources = _sources(view)
    folders = _folders(sources)
    if plain in sources:
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
    if plain not in folders:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
    everything = (*sources, *folders)
    inside = {posixpath.basename(one) for one in everything if posixpath.dirname(one) == plain}
    return tuple(sorted(name for name in inside if name))
