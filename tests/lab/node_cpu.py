"""CPU that commands of ssh sessions use on the nodes, seen from the machine that holds them all.

sshd does not tell it: what its sessions used is lost with them. So each command of a session (the
child of a user's sshd) is looked at ten times a second; its own time and that of all children that
it has waited for are in ``/proc``. What it used after the last look is missing, a tenth of a second
at most.
"""

import os
import threading
from pathlib import Path
from types import TracebackType

_EVERY_S = 0.1


class NodeCpu:
    """Watches from ``with`` on; :attr:`used_s` is the sum over all sessions seen."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._most: dict[tuple[int, int], int] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def used_s(self) -> float:
        return sum(self._most.values()) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        found = _stats()
        for pid, (name, parent, start, ticks) in found.items():
            above = found.get(parent)
            # A session's sshd is the child of one that is root's, which is the listener's.
            if name != "sshd" and above is not None and above[0] == "sshd":
                key = (pid, start)
                self._most[key] = max(ticks, self._most.get(key, 0))

    def __enter__(self) -> "NodeCpu":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()


def _stats() -> dict[int, tuple[str, int, int, int]]:
    """Name, parent, start and ticks of every process of the machine."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            head, _, tail = (entry / "stat").read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        ticks = sum(int(field) for field in fields[11:15])
        name = head.partition("(")[2]
        found[int(entry.name)] = (name, int(fields[1]), int(fields[19]), ticks)
    return found
