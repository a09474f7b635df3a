"""What a file holds, by its first bytes: text to read, packed text, or no log at all.

Names say nothing here: ``nohup.out``, ``3``, ``stderr`` and ``worker-7.1`` are all logs.
"""

import re
from enum import StrEnum

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
#: What slurmtop saved is no log: it tells of another look, or of another job.
_BUNDLE = re.compile(rb'\s*\{\s*"schema"\s*:\s*"slurmtop\.bundle/')
_BUNDLE_IN_TAR = re.compile(rb"[^\0]{0,99}manifest\.json\0.{0,520}?" + _BUNDLE.pattern, re.DOTALL)


class Content(StrEnum):
    TEXT = "text"
    GZIP = "gzip"
    ZSTD = "zstd"
    BINARY = "binary"
    """A checkpoint, a program, an image: no text."""
    CODE = "code"
    """A script or a program's source: what stands in it was not said by a run."""
    EMPTY = "empty"


PACKED = frozenset({Content.GZIP, Content.ZSTD})
NO_PLAIN_TEXT = PACKED | {Content.BINARY, Content.CODE}


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
    start = _narrow(start)
    sample = start[:SAMPLE_BYTES].strip(b"\0") or start.strip(b"\0")[:SAMPLE_BYTES]
    if not sample:
        return Content.EMPTY
    if _is_binary(sample) or _SAFETENSORS.match(start):
        return Content.BINARY
    if sample.startswith(b"#!") or len(_CODE_LINE.findall(sample)) >= _CODE_LINES:
        return Content.CODE
    return Content.TEXT


def begins_bundle(start: bytes) -> bool:
    """Is it the manifest of a bundle, whole or torn, or a packed bundle that was unpacked?"""
    return _BUNDLE.match(start) is not None or _BUNDLE_IN_TAR.match(start[:2048]) is not None


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
