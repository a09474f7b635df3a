"""The process that parses logs when there are many: what it is handed comes back as traces.

Run as a script by :mod:`slurmtop.collect.log_pool`, at low priority; ends when its input ends,
which it does when slurmtop is gone, however it went. It touches no file.

What comes in is ``(key, orders)``, each order a tuple: ``("open", name, year)``,
``("feed", bytes)``, ``("skip", count)``, ``("finish", size)``; each ``finish`` is answered by
``(key, traces)``, and ``("judge", logs, runs)`` by ``(key, what they say)``.
"""

import os
import sys
from multiprocessing.connection import Connection
from typing import Any

_NICE = 10


def serve(connection: "Connection[Any, Any]") -> None:
    from slurmtop.parse.logs.reading import SourceReader

    readers: dict[int, SourceReader] = {}
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
                else:
                    connection.send((key, _judge(*rest)))
        except (EOFError, OSError):
            return


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
