"""The process that parses logs when there are many: what it is told of comes back as traces.

Run as a script by :mod:`slurmtop.collect.log_pool`, at low priority; ends when its input ends,
which it does when slurmtop is gone, however it went. It reads the files that it is told to read,
or is handed their bytes, and writes none.

What comes in is ``(key, orders)``, each order a tuple: ``("open", name, year)``,
``("feed", bytes)``, ``("skip", count)``, ``("finish", size)``; each ``finish`` is answered by
``(key, traces)``, and ``("judge", logs, runs)`` by ``(key, what they say)``. A file is read with
``("read", path bytes, name, year, size, whole)``, answered by ``(key, (kind, …))``.
"""

import errno
import gc
import os
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurmtop.collect.log_door import LogDoor

_NICE = 10
_GC_AFTER = 20_000


#: What comes back of a file: ``(TRACES, traces)``; ``(CONTENT, content)`` where it is no plain
#: text and was not read; ``(ERROR, errno, text)``; ``(HANGS, sentence)`` of a silent mount.
TRACES, CONTENT, ERROR, HANGS = range(4)


def serve(connection: "Connection[Any, Any]") -> None:
    from slurmtop.collect.log_door import LogDoor
    from slurmtop.parse.logs.reading import SourceReader

    readers: dict[int, SourceReader] = {}
    door = LogDoor()
    # What was imported stays, and hardly anything here holds itself: looked for less often.
    gc.freeze()
    gc.set_threshold(_GC_AFTER)
    while True:
        try:
            key, orders = connection.recv()
            for order, *rest in orders:
                if order == "open":
                    readers[key] = SourceReader(rest[0], year=rest[1])
                elif order == "feed":
                    readers[key].feed(rest[0])
                elif order == "skip":
                    readers[key].skip(rest[0])
                elif order == "finish":
                    connection.send((key, readers.pop(key).finish(size=rest[0])))
                elif order == "read":
                    connection.send((key, read(door, *rest)))
                else:
                    connection.send((key, _judge(*rest)))
        except (EOFError, OSError):
            return


def read(
    door: "LogDoor", path: bytes, name: str, year: int, size: int, whole: bool
) -> tuple[Any, ...]:
    """A file, as one of the kinds above. Never raises for what is wrong with it."""
    from slurmtop.collect.log_door import Hangs

    try:
        return _read(door, path, name, year, size, whole)
    except Hangs as error:
        return HANGS, str(error)
    except (OSError, ValueError, OverflowError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        return ERROR, number, getattr(error, "strerror", None) or str(error)


def _read(
    door: "LogDoor", path: bytes, name: str, year: int, size: int, whole: bool
) -> tuple[Any, ...]:
    from slurmtop.collect.log_content import NO_PLAIN_TEXT, content_of
    from slurmtop.collect.log_spans import spans
    from slurmtop.parse.logs.reading import SourceReader

    reader = SourceReader(name, year=year)
    at = 0
    for offset, length in spans(size, whole=whole):
        block = door.read(path, offset, length)
        if offset == 0 and (content := content_of(block)) in NO_PLAIN_TEXT:
            return CONTENT, content
        reader.skip(offset - at)
        reader.feed(block)
        at = offset + len(block)
        if offset and not block:
            # Cut short under our hands.
            break
    return TRACES, reader.finish(size=max(size, at))


def _judge(logs: Any, runs: Any) -> Any:
    from slurmtop.collect.log_verdict import judge_now

    return judge_now(logs, runs)


def main() -> None:
    # A session of its own: ctrl-C in the terminal is not meant for it.
    os.setsid()
    os.nice(_NICE)
    os.chdir("/")
    # Started without the site's folders: only this package and Python's own are needed.
    sys.path.append(sys.argv[1])
    serve(Connection(0))


if __name__ == "__main__":
    main()
