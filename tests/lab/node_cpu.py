"""CPU that commands of ssh sessions use on the nodes, seen from the machine that holds them all.

sshd does not tell it: what its sessions used is lost with them. So each command of a session (the
child of a user's sshd) is looked at ten times a second, with all that descends from it: the time of
each, and of all children that it has waited for, is in ``/proc``. What was used after the last look
is missing: of a tenth of a second at most.
"""

import os
import threading
from pathlib import Path
from types import TracebackType

_EVERY_S = 0.1
#: Name, parent, start and ticks of a process.
Stat = tuple[str, int, int, int]


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
        """All of a session that lives, and what each has waited for, is all that it used so far."""
        found, sums = _stats(), dict[tuple[int, int], int]()
        for pid, (_name, _parent, _start, ticks) in found.items():
            command = _command_of(found, pid)
            if command is not None:
                sums[command] = sums.get(command, 0) + ticks
        for command, ticks in sums.items():
            self._most[command] = max(ticks, self._most.get(command, 0))

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


def _command_of(found: dict[int, Stat], pid: int) -> tuple[int, int] | None:
    """The command of a session that a process belongs to, as pid and start: the child of a sshd."""
    for _ in range(32):
        if pid not in found or found[pid][0] == "sshd":
            return None
        parent = found[pid][1]
        if parent in found and found[parent][0] == "sshd":
            return pid, found[pid][2]
        pid = parent
    return None


def _stats() -> dict[int, Stat]:
    """Every process of the machine; its ticks include those of children it has waited for."""
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
