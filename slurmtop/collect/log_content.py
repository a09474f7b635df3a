"""What a file holds, by its first bytes: text to read, packed text, or no log at all.

What slurmtop itself saved is no log either: it tells of another look, or of another job.

Names say nothing here: ``nohup.out``, ``3``, ``stderr`` and ``worker-7.1`` are all logs.
"""

import io
import re
from enum import StrEnum

from slurmtop.collect.printed import is_printed
from slurmtop.parse.logs.raws import MARKED, wide_name

#: So much of the start of a file decides.
SAMPLE_BYTES = 8 * 1024

_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
#: Packed in a way that is not unpacked here, which may look like text all the same: zip, 7z, rar,
#: xz, lzma, lzip, bzip2, compress, pack, lz4 (three forms), lzop, snappy.
_PACKED_OTHERWISE = (
    *(b"PK\x03\x04", b"PK\x05\x06", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\xfd7zXZ\x00"),
    *(b"\x5d\x00\x00", b"LZIP\x01", b"\x1f\x9d", b"\x1f\xa0", b"\x1f\x1e", b"\x89LZO\x00"),
    *(b"\x04\x22\x4d\x18", b"\x02\x21\x4c\x18", b"\x03\x21\x4c\x18"),
    b"\xff\x06\x00\x00sNaPpY",
    *(b"BZh%d1AY&SY" % size for size in range(1, 10)),
)
#: Bytes that :func:`content_of` takes for a file without text: to stand in place of another one.
NO_TEXT = b"\x01" * 16
#: The same of a file that is a script.
A_SCRIPT = b"#!\n"
_SAFETENSORS = re.compile(rb'.{2,6}\x00{2,6}\{"', re.DOTALL)
#: Bytes that text has no use for; escapes, bells and backspaces of terminals are none of them.
_ODD = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b")) + b"\x7f"
_MOST_ODD = 0.1
_MOST_UNDECODABLE = 0.3
_CODE_LINE = re.compile(
    rb"^(?:import \w|from [\w.]+ import |def \w+\(|class \w+[(:]|#include [<\"])", re.MULTILINE
)
_CODE_LINES = 3
_BUNDLE = re.compile(rb'\s*\{\s*"schema"\s*:\s*"slurmtop\.bundle/')
#: A file of a bundle or of a recording: its manifest, its session, a line of what was asked.
_SAVED = re.compile(
    rb'\s*\{\s*"schema"\s*:\s*"slurmtop\.(?:bundle|recording)/'
    rb'|\{"t":"[^"]{1,64}","(?:argv":\[|op":")'
)
_VERDICT = re.compile(rb'\s*\{\s*"schema"\s*:\s*"slurmtop\.verdict/')
_END_OF_VERDICT = b"\n}"
#: What stands in a bundle, by the names that it has there.
_SAVED_NAMES = frozenset(
    (
        *("manifest.json", "session.json", "commands.jsonl", "files.jsonl"),
        *("said.json", "verdict.json", "report.txt"),
    )
)
_TAR_MARK, _TAR_MARK_AT = b"ustar", 257
#: Beside each file, where a Mac packed it.
_OF_MAC = "._"


class Content(StrEnum):
    TEXT = "text"
    GZIP = "gzip"
    ZSTD = "zstd"
    BINARY = "binary"
    """A checkpoint, a program, an image: no text."""
    CODE = "code"
    """A script or a program's source: what stands in it was not said by a run."""
    BUNDLE = "bundle"
    """A bundle as one archive."""
    SAVED = "saved"
    """One of the files that slurmtop saves: of a bundle, or of a recording."""
    PRINTED = "printed"
    """What slurmtop said of a run, as it prints it."""
    EMPTY = "empty"


PACKED = frozenset({Content.GZIP, Content.ZSTD})
OURS = frozenset({Content.BUNDLE, Content.SAVED, Content.PRINTED})
NO_PLAIN_TEXT = PACKED | OURS | {Content.BINARY, Content.CODE}


def content_of(start: bytes) -> Content:
    """What a file holds that begins with ``start`` (at least :data:`SAMPLE_BYTES`, or all of it).

    A log that was cut short under its writer begins with a hole of NULs; that makes it no binary.
    """
    if not start:
        return Content.EMPTY
    if start.startswith(_GZIP):
        return Content.GZIP
    if start.startswith(_ZSTD):
        return Content.ZSTD
    if start.startswith(_PACKED_OTHERWISE):
        return Content.BINARY
    if _is_saved(start):
        return Content.SAVED
    if _is_bundle(start):
        return Content.BUNDLE
    start = _narrow(start)
    sample = start[:SAMPLE_BYTES].strip(b"\0") or start.strip(b"\0")[:SAMPLE_BYTES]
    if not sample:
        return Content.EMPTY
    if _is_binary(sample) or _SAFETENSORS.match(start):
        return Content.BINARY
    if is_printed(start):
        return Content.PRINTED
    if sample.startswith(b"#!") or len(_CODE_LINE.findall(sample)) >= _CODE_LINES:
        return Content.CODE
    return Content.TEXT


def begins_bundle(start: bytes) -> bool:
    """Is it the manifest of a bundle, whole or torn?"""
    return _BUNDLE.match(start) is not None


def _is_saved(start: bytes) -> bool:
    if _SAVED.match(start):
        return True
    if not _VERDICT.match(start):
        return False
    # A log may begin with a verdict that its script had printed, and go on behind it.
    return not start.partition(_END_OF_VERDICT)[2].strip()


def _is_bundle(start: bytes) -> bool:
    """Is it an archive that begins with the files of a bundle, in any order?"""
    if start[_TAR_MARK_AT : _TAR_MARK_AT + len(_TAR_MARK)] != _TAR_MARK:
        return False
    from slurmtop.collect.plain_tar import BrokenTar, members

    archive = io.BytesIO(start)
    try:
        for member in members(archive):
            name = member.name.rpartition("/")[2]
            if name.startswith(_OF_MAC):
                continue
            if name not in _SAVED_NAMES:
                return False
            at = archive.tell()
            if _is_saved(start[at : at + member.size]):
                return True
    except BrokenTar:
        # So far as the first bytes go.
        return False
    return False


def _narrow(start: bytes) -> bytes:
    """UTF-16 with its mark, as PowerShell writes it, in UTF-8; all else as it is.

    Without the mark numbers of two bytes look much the same.
    """
    if wide_name(start) != MARKED:
        return start
    return start[: 2 * SAMPLE_BYTES].decode(MARKED, "replace").encode("utf-8", "replace")


def _is_binary(sample: bytes) -> bool:
    odd = len(sample) - len(sample.translate(None, _ODD))
    if odd > _MOST_ODD * len(sample):
        return True
    undecodable = sample.decode("utf-8", "replace").count("\N{REPLACEMENT CHARACTER}")
    return undecodable + odd > _MOST_UNDECODABLE * len(sample)
