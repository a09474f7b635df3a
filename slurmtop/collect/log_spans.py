"""Which parts of a log are read: all of a short one, of a long one its two ends."""

from collections.abc import Iterator

#: Read of each end of a log that is longer than both together.
END_BYTES = 512 * 1024
BLOCK_BYTES = 1024 * 1024


def spans(size: int, *, whole: bool) -> Iterator[tuple[int, int]]:
    """(offset, length) of the blocks of a file of ``size`` bytes that are read, in order.

    The first one is long enough to tell what the file holds.
    """
    at = min(size, END_BYTES)
    yield 0, at
    if not whole and size > 2 * END_BYTES:
        at = size - END_BYTES
    while at < size:
        length = min(BLOCK_BYTES, size - at)
        yield at, length
        at += length
