"""What slurmtop ran of late, as lines: actions stand out from questions. Pure."""

import shlex
from collections.abc import Sequence
from datetime import tzinfo
from pathlib import PurePath

from slurmtop.collect.metered import Ran
from slurmtop.model.text import fit, visible
from slurmtop.ui.present.spans import Line

#: Words of scontrol that change a job.
_CHANGES = frozenset({"update", "hold", "release", "requeue", "requeuehold"})
_TROUBLE_CELLS = 12


def acts(argv: Sequence[str]) -> bool:
    """Does it change something on the cluster?"""
    program = PurePath(argv[0]).name if argv else ""
    return program == "scancel" or (program == "scontrol" and not _CHANGES.isdisjoint(argv[1:4]))


def command_log_lines(ran: Sequence[Ran], zone: tzinfo) -> tuple[Line, ...]:
    """One line each: time, ``ACT`` or ``ask``, how it went, how long it took, the command."""
    if not ran:
        return ((("nothing was run yet", "dim"),),)
    return tuple(_line(one, zone) for one in ran)


def _line(ran: Ran, zone: tzinfo) -> Line:
    changes = acts(ran.argv)
    if ran.took_s is None:
        word, role, took = "runs", "busy", ""
    elif ran.trouble:
        word, role, took = visible(ran.trouble), "bad", f"{ran.took_s:.1f} s"
    else:
        word, role, took = "ok", "good" if changes else "", f"{ran.took_s:.1f} s"
    where = f"{visible(ran.host)}: " if ran.host else ""
    return (
        (f"{ran.at.astimezone(zone):%H:%M:%S}  ", "dim"),
        ("ACT" if changes else "ask", "strong" if changes else "dim"),
        (f"  {fit(word, _TROUBLE_CELLS)}", role),
        (f"  {took:>7}  ", "dim"),
        (where + visible(shlex.join(ran.argv)), "strong" if changes else ""),
    )
