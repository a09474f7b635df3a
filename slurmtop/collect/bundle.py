"""Saving what a verdict rests on, so that anybody can judge the same again, anywhere.

While the job (or the files) is looked at, a recording is written; beside it then come the verdict
and a manifest. What was saved is masked before it is written, and only its owner may read it.
"""

import asyncio
import contextlib
import errno
import gzip
import hashlib
import os
import secrets
import shutil
import socket
import tarfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from slurmtop import __version__
from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.bundle_clock import RecordingClock
from slurmtop.collect.bundle_form import (
    MANIFEST,
    MOST_BYTES,
    NAMES,
    PATHS,
    REPORT,
    SAID,
    VERDICT,
    Manifest,
    Sum,
    json_bytes,
    manifest_bytes,
    said_bytes,
    stack_tools,
)
from slurmtop.collect.job_triage import Door
from slurmtop.collect.log_content import PACKED
from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder
from slurmtop.collect.recording import RecordingExists, RecordingRunner
from slurmtop.model.facts import JobFacts
from slurmtop.model.reach import Reach
from slurmtop.model.verdict import Verdict, verdict_dict
from slurmtop.parse.mask import mask_json, mask_text

_PACKED_ENDS = (".tar.gz", ".tgz")
_FILE_MODE = 0o600
_LINES_OF_HEAD = 4_096
#: Of files without text in a note.
_NAMED = 4
#: Room for the manifest, the verdict and the report in what a reader takes at the most.
_SPARE_BYTES = 16 * 1024 * 1024


class CannotSave(Exception):
    """There is no bundle, or only part of one; ``str()`` is a sentence."""


class NothingFound(Exception):
    """The look came to nothing that could be judged; ``str()`` says why. Nothing is kept then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a look came to: the verdict, and of a job its facts. ``report`` is for people."""

    verdict: Verdict
    facts: JobFacts | None = None
    report: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A finished bundle. ``notes`` tell what is not in it."""

    path: str
    size: int
    notes: tuple[str, ...] = ()


#: Looks through a door, and comes to a verdict.
Look = Callable[[Door], Awaitable[Found]]


@dataclass(slots=True)
class _Reaches:
    """How nodes were reached, as it was told."""

    inner: Callable[[str], Reach | None]
    told: dict[str, Reach] = field(default_factory=dict)

    def __call__(self, host: str) -> Reach | None:
        reach = self.inner(host)
        if reach is not None:
            self.told[host] = reach
        return reach


async def save_bundle(to: str | Path, door: Door, about: Manifest, look: Look) -> Saved:
    """Have ``look`` judge through ``door``, and keep all that it saw in ``to``.

    ``to`` is a folder that does not exist or is empty, or a name that ends in ``.tar.gz``. Raises
    :class:`CannotSave`, and whatever ``look`` raises; what was kept until then stays in the
    folder, with a manifest that says so, but for :class:`NothingFound`. What ``look`` came to only
    the bundle gets to know.
    """
    path, place = _places(to)
    packed = place != path
    about = replace(
        about,
        version=__version__,
        cluster=door.cluster,
        who=door.who,
        made_at=door.clock.now(),
        login_host=socket.gethostname(),
    )
    try:
        notes, size = await _keep(place, door, about, look)
        if packed:
            size = await asyncio.to_thread(_pack, place, path)
    except (OSError, UnsafeFolder, RecordingExists) as error:
        half = "" if packed or not is_half(place) else "; what is there now is not whole"
        raise CannotSave(f"cannot save to {path}: {_why(error)}{half}") from error
    except NothingFound:
        await asyncio.to_thread(_remove, place)
        raise
    finally:
        if packed:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
    return Saved(path=str(path), size=size, notes=notes)


def _places(to: str | Path) -> tuple[Path, Path]:
    """Where the bundle is to be, and where it is written: for a packed one a folder beside it."""
    path = Path(to).expanduser().absolute()
    if not path.name.endswith(_PACKED_ENDS):
        return path, path
    if path.exists() or path.is_symlink():
        raise CannotSave(f"cannot save to {path}: it is there already; name a new file")
    return path, path.with_name(f".{path.name}.{secrets.token_hex(6)}")


async def _keep(
    place: Path, door: Door, about: Manifest, look: Look
) -> tuple[tuple[str, ...], int]:
    folder = PrivateFolder(place)
    mark = door.mark if door.mark is not None else new_record_mark()
    recording = RecordingRunner(
        door.runner,
        folder,
        clock=door.clock,
        mark=mark,
        who=door.who,
        patient=True,
        only_logs=about.kind == PATHS,
        most_bytes=MOST_BYTES - _SPARE_BYTES,
    )
    folder.write(MANIFEST, manifest_bytes(about))
    clock, reaches = RecordingClock(door.clock), _Reaches(door.reached)
    try:
        found = await look(replace(door, runner=recording, clock=clock, mark=mark, reached=reaches))
    finally:
        await recording.aclose()
        with contextlib.suppress(OSError, UnsafeFolder):
            folder.write(SAID, said_bytes(clock.form, reaches.told))
    notes = _notes(recording)
    about = replace(
        about,
        asked=tuple(map(recording.told, about.asked)),
        stack_tools=stack_tools(found.facts),
        notes=notes,
        finished=True,
    )
    size = await asyncio.to_thread(_finish, folder, about, found)
    return notes, size


def is_half(to: str | Path) -> bool:
    """Is a bundle there, as a folder, that was begun and not finished?"""
    manifest = Path(to).expanduser() / MANIFEST
    try:
        return b'"finished": false' in manifest.read_bytes()[:_LINES_OF_HEAD]
    except OSError:
        return False


def _remove(place: Path) -> None:
    """Take back what was written there, and the folder where nothing else is in it."""
    with contextlib.suppress(OSError):
        for name in NAMES:
            (place / name).unlink(missing_ok=True)
        place.rmdir()


def _notes(recording: RecordingRunner) -> tuple[str, ...]:
    out = []
    if recording.trouble is not None:
        out.append(recording.trouble)
    if recording.lost:
        out.append(f"{recording.lost} answers could not be written in time and are not in it")
    not_kept = {recording.told(path): content for path, content in recording.not_kept.items()}
    for path, content in sorted(not_kept.items()):
        if content in PACKED:
            out.append(
                f"{path}: packed, so its bytes were not kept (what is in them cannot be"
                " masked); unpack it and save again to have it in the bundle"
            )
    others = [path for path, content in sorted(not_kept.items()) if content not in PACKED]
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        out.append(
            f"{', '.join(others[:_NAMED])}{more}: no log, so not kept (what is in such a file"
            " cannot be masked)"
        )
    return tuple(out)


def _finish(folder: PrivateFolder, about: Manifest, found: Found) -> int:
    folder.write(VERDICT, json_bytes(mask_json(verdict_dict(found.verdict))))
    report = "".join(f"{line}\n" for line in found.report)
    folder.write(REPORT, mask_text(report).encode("utf-8"))
    sums = _sums(folder)
    folder.write(MANIFEST, manifest_bytes(replace(about, files=sums)))
    return sum(one.size for one in sums.values())


def _sums(folder: PrivateFolder) -> Mapping[str, Sum]:
    sums: dict[str, Sum] = {}
    for name in NAMES:
        data = None if name == MANIFEST else folder.read(name, MOST_BYTES)
        if data is not None:
            sums[name] = Sum(size=len(data), sha256=hashlib.sha256(data).hexdigest())
    return sums


def _pack(place: Path, path: Path) -> int:
    """Put the files of ``place`` into one file that appears whole, and never over another."""
    folder = PrivateFolder(place)
    half = place.with_name(f"{place.name}.half")
    stem = path.name
    for end in _PACKED_ENDS:
        stem = stem.removesuffix(end)
    handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            with (
                gzip.GzipFile(filename="", fileobj=file, mode="wb") as zipped,
                tarfile.open(fileobj=zipped, mode="w") as tar,
            ):
                # The manifest first: whoever opens it knows at once what it is.
                for name in reversed(NAMES):
                    with contextlib.suppress(FileNotFoundError):
                        _add(tar, folder.path / name, f"{stem or 'bundle'}/{name}")
            file.flush()
            os.fsync(file.fileno())
        size = half.stat().st_size
        _appear(half, path)
        return size
    finally:
        half.unlink(missing_ok=True)


def _appear(half: Path, path: Path) -> None:
    try:
        os.link(half, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links.
        if path.exists() or path.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        half.rename(path)


def _add(tar: tarfile.TarFile, file: Path, name: str) -> None:
    """Names and times of ours only: no user, no group, no link."""
    info = tarfile.TarInfo(name)
    stat = file.stat()
    # Parts of a second would need a head of their own before each file.
    info.size, info.mtime, info.mode = stat.st_size, int(stat.st_mtime), _FILE_MODE
    with file.open("rb") as data:
        tar.addfile(info, data)


def _why(error: Exception) -> str:
    if isinstance(error, FileExistsError):
        return "it is there already; name a new one"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".")
