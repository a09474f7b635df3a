"""A signal to processes on their nodes: one command a node, which looks before it sends. Pure.

A pid may have been given to another process since it was seen, so that each goes with the moment
at which its process started (field 22 of ``/proc/PID/stat``), and both are compared right before
``kill``. What comes back is a word a pid::

    4711 sent
    4712 reused
    4713 gone
    4714 not-yours
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from slurmtop.control.actions import RankPid
from slurmtop.model.ports import Completed

#: By this the command is known on the node.
NAME = "slurmtop-kill"
#: Pids in one command.
PIDS_PER_CALL = 500
TIMEOUT_S = 30.0
#: ``$1``: the signal; then PID:START …. The name of a process may hold anything, also a ``)``.
SCRIPT = """\
one() { s=$1 p=$2 t=$3; { l=$(cat /proc/$p/stat); } 2>/dev/null || { echo $p gone; return; };
set -f; set -- $p $t ${l##*)};
[ "${22}" = $t ] || { echo $p reused; return; };
[ "$3" != Z ] || { echo $p gone; return; };
kill -s $s $p 2>/dev/null && { echo $p sent; return; };
[ -e /proc/$p ] && echo $p not-yours || echo $p gone; };
sig=$1; shift; for a do one $sig ${a%%:*} ${a##*:}; done;"""

_ADDRESS = re.compile(r"[1-9][0-9]{0,9}:[0-9]{1,19}")


class Sent(StrEnum):
    """What became of the signal for one process."""

    SENT = "sent"
    GONE = "gone"
    REUSED = "reused"
    NOT_YOURS = "not-yours"
    UNREACHED = "unreached"
    """The node could not be reached, or did not say what became of it."""


def kill_argv(signal: str, ranks: Iterable[RankPid]) -> tuple[str, ...]:
    """The command for one node; ``signal`` is a word that ``kill -s`` takes."""
    addresses = (f"{one.pid}:{one.start_ticks}" for one in ranks)
    return ("/bin/sh", "-c", SCRIPT, NAME, signal, *addresses)


def check_kill(argv: Sequence[str], signals: Iterable[str]) -> None:
    """Refuse (``ValueError``) anything that :func:`kill_argv` does not make."""
    if tuple(argv[:4]) != ("/bin/sh", "-c", SCRIPT, NAME):
        raise ValueError("not a command that an action may run on a node")
    signal, addresses = (argv[4], argv[5:]) if len(argv) > 4 else ("", ())
    if signal not in tuple(signals):
        raise ValueError("not a signal")
    if not addresses or len(addresses) > PIDS_PER_CALL:
        raise ValueError("no process named, or too many")
    for address in addresses:
        # Process 1 is a node's own.
        if _ADDRESS.fullmatch(address) is None or address.startswith("1:"):
            raise ValueError(f"not a process: {address!r}")


def read_kill(done: Completed, ranks: Iterable[RankPid]) -> dict[RankPid, Sent]:
    """What the command said of each of ``ranks``. Total; of whom it says nothing is unreached."""
    words: dict[str, Sent] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        pid, _, word = line.partition(" ")
        if word in tuple(Sent):
            words[pid] = Sent(word)
    return {one: words.get(str(one.pid), Sent.UNREACHED) for one in ranks}
