"""Opening a bundle that somebody sends: a folder, or the same as an archive, packed by gzip or not.

Nothing of it is unpacked to disk. Only the files that a bundle has are read, as plain files, never
through a link, and never more than :data:`.bundle_form.MOST_BYTES` in all; what would grow far
beyond that once it is read is refused (:mod:`.bounded_json`).
"""

import contextlib
import gzip
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from slurmtop.collect import bounded_json
from slurmtop.collect.bundle_clock import BundleClock
from slurmtop.collect.bundle_form import (
    MANIFEST,
    MOST_BYTES,
    NAMES,
    RECORDED,
    SAID,
    VERDICT,
    BundleError,
    Manifest,
    check_manifest,
    parse_manifest,
    parse_said,
)
from slurmtop.collect.job_triage import Door
from slurmtop.collect.log_content import Content, content_of
from slurmtop.collect.plain_tar import BrokenTar, Member, members
from slurmtop.collect.record_form import SESSION
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.who import current_user
from slurmtop.model.ports import Clock

_GZIP = b"\x1f\x8b"
_MOST_MEMBERS = 1_000
_BROKEN_GZIP = (OSError, EOFError, zlib.error)
#: So much of the start of a packed file that is damaged further on tells what it was, taken in
#: pieces so small that damage costs hardly anything before it.
_TELLING_BYTES = 64 * 1024
_PIECE_BYTES = 64
#: A manifest is some kilobytes; with sums of thousands of tools a megabyte.
_MOST_MANIFEST = 16 * 1024 * 1024
_LARGE_MANIFEST = f"its manifest is larger than {_MOST_MANIFEST >> 20} MiB"
_TOO_LARGE = f"it is larger than {MOST_BYTES >> 20} MiB: no bundle is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An opened bundle. ``notes`` tell what is not as it was saved; ``verdict`` is the one that
    was saved with it, in its JSON form (None: not readable)."""

    path: str
    manifest: Manifest
    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    verdict: Any = None

    def door(self, real: Clock) -> Door:
        """The world as it was then. Raises :class:`BundleError` where it cannot be replayed."""
        try:
            replay = ReplayRunner(self.files)
        except ValueError as error:
            raise BundleError(f"its recording cannot be read: {error}") from error
        said = parse_said(self.files.get(SAID, b"{}"))
        return Door(
            runner=replay,
            clock=BundleClock(replay, real, said.clock),
            who=replay.who or self.manifest.who or current_user(),
            cluster=self.manifest.cluster,
            mark=replay.mark,
            reached=said.reach.get,
            replay=replay,
        )


def open_bundle(path: str | Path) -> Bundle | None:
    """The bundle at ``path``; None where there is none (any other file or folder).

    Raises :class:`BundleError` for one that cannot be used.
    """
    path = Path(path)
    files = _of_folder(path) if path.is_dir() else _of_archive(path)
    if files is None:
        return None
    manifest = parse_manifest(files[MANIFEST])
    return Bundle(
        path=str(path),
        manifest=manifest,
        files=files,
        notes=_checked(manifest, files),
        verdict=_json(files.get(VERDICT, b"")),
    )


def _json(data: bytes) -> Any:
    try:
        return bounded_json.loads(data)
    except (ValueError, RecursionError):
        return None


def _checked(manifest: Manifest, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """What is not as it was saved. Raises :class:`BundleError` for a torn one."""
    if not manifest.finished:
        if SESSION not in files:
            raise BundleError("saving it was stopped before anything was kept")
        return ("saving it was stopped on the way: what came after that is not in it",)
    out = []
    for name, one in manifest.files.items():
        data = files.get(name)
        if data is None or len(data) < one.size:
            if name in RECORDED:
                what = "is not in it" if data is None else "is cut short"
                raise BundleError(f"it is torn: {name} {what}")
            out.append(f"{name} of the bundle is missing or cut short")
        elif len(data) != one.size or hashlib.sha256(data).hexdigest() != one.sha256:
            out.append(
                f"{name} of the bundle is not as it was saved (its sha256 differs): somebody"
                " changed it"
            )
    out.extend(
        f"{name} of the bundle has no sum in its manifest: one of the two was changed since"
        for name in files
        if name in RECORDED and name not in manifest.files
    )
    return tuple(out)


def _of_folder(path: Path) -> dict[str, bytes] | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        manifest = _plain_file(MANIFEST, handle, _MOST_MANIFEST)
        if manifest is None or not check_manifest(manifest):
            return None
        files = {MANIFEST: manifest}
        left = MOST_BYTES - len(manifest)
        for name in NAMES:
            data = None if name == MANIFEST else _plain_file(name, handle, left)
            if data is not None:
                files[name] = data
                left -= len(data)
        return files
    finally:
        os.close(handle)


def _plain_file(name: str, folder: int, most: int) -> bytes | None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if name == MANIFEST:
            return None
        raise BundleError(f"{name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            return None
        if info.st_size > most:
            raise BundleError(_TOO_LARGE if name != MANIFEST else _LARGE_MANIFEST)
        # Room for all that is asked for is made at once.
        return file.read(min(most, info.st_size))


class _Bounded(io.RawIOBase):
    """Reads on from ``inner`` until too much came out of it: packed zeros are cheap to send."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._left = MOST_BYTES + (1 << 20)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._left if size is None or size < 0 else min(size, self._left)
        data = self._inner.read(wanted) if wanted else b""
        self._left -= len(data)
        if not self._left:
            raise BundleError(_TOO_LARGE)
        return data


def _of_archive(path: Path) -> dict[str, bytes] | None:
    """The files of a bundle in an archive. None where it holds no manifest of ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        start = file.read(_TELLING_BYTES)
        packed = start.startswith(_GZIP)
        if not packed and content_of(start) is not Content.BUNDLE:
            return None
        file.seek(0)
        files: dict[str, bytes] = {}
        try:
            inner: Any = gzip.GzipFile(fileobj=file) if packed else file
            bounded: Any = _Bounded(inner)
            _take(members(bounded), files)
            # What says whether all of it came stands at the very end.
            while MANIFEST in files and bounded.read(_TELLING_BYTES):
                pass
        except (*_BROKEN_GZIP, BrokenTar) as error:
            if MANIFEST in files or _was_bundle(start):
                raise BundleError(f"it is torn: {error}") from error
            return None
        except BundleError:
            if MANIFEST in files:
                raise
            return None
    return files if MANIFEST in files else None


def _was_bundle(start: bytes) -> bool:
    """Does the start of an archive, packed or not, that cannot be read to its end begin one?"""
    if not start.startswith(_GZIP):
        return content_of(start) is Content.BUNDLE
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    out = b""
    with contextlib.suppress(zlib.error):
        for at in range(0, len(start), _PIECE_BYTES):
            out += unpacking.decompress(start[at : at + _PIECE_BYTES], _TELLING_BYTES)
            if len(out) >= _TELLING_BYTES:
                break
    return content_of(out) is Content.BUNDLE


def _take(found: Iterator[Member], files: dict[str, bytes]) -> None:
    left = MOST_BYTES
    for place, member in enumerate(found):
        if place >= _MOST_MEMBERS:
            raise BundleError("it holds more files than a bundle has")
        folder, _, name = member.name.rpartition("/")
        if name not in NAMES or "/" in folder:
            continue
        if name == MANIFEST and member.size > _MOST_MANIFEST:
            raise BundleError(_LARGE_MANIFEST)
        if member.size > left:
            raise BundleError(_TOO_LARGE)
        data = member.read()
        if name == MANIFEST and MANIFEST not in files and not check_manifest(data):
            return
        files.setdefault(name, data)
        left -= len(data)
