"""What a command in a verdict asks for, where slurmtop has a dialog for it. Pure.

A verdict tells its steps as commands to type. slurmtop never runs such a line: it plans the same
wish anew for the job that is shown, and the dialog shows the exact command before anything is
done. A line that is not wholly understood is no wish.
"""

import shlex
from dataclasses import dataclass

from slurmtop.control.actions import NO_DETAILS, Details, Kind, Recipient
from slurmtop.control.commands import host_allowed, signal_allowed
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts
from slurmtop.parse.slurm.times import parse_limit

_SCONTROL = {
    "requeue": Kind.REQUEUE,
    "requeuehold": Kind.REQUEUE_HOLD,
    "hold": Kind.HOLD,
    "release": Kind.RELEASE,
}
_TO = {
    "-b": Recipient.BATCH,
    "--batch": Recipient.BATCH,
    "-f": Recipient.EVERYTHING,
    "--full": Recipient.EVERYTHING,
}
_MOST_HOSTS = 1_024


@dataclass(frozen=True, slots=True)
class Wish:
    """``job`` is the id as the command names it, ``cluster`` what stands behind its ``-M``."""

    kind: Kind
    job: str
    details: Details = NO_DETAILS
    cluster: str = ""


def wish_of(command: str) -> Wish | None:
    """The wish of one command line; None for every other line.

    ``scancel 4711``, ``scancel --signal=CONT 4711``, ``scontrol -M hpc2 requeue 4711``,
    ``scontrol update JobId=4711 ExcNodeList=gpu07``.
    """
    try:
        program, *words = shlex.split(command)
    except ValueError:
        return None
    cluster, words = _cluster(words)
    if program == "scancel":
        found = _scancel(words, cluster)
    elif program == "scontrol":
        found = _scontrol(words, cluster)
    else:
        found = None
    return found if found is not None and found.job and not found.job.startswith("-") else None


def _cluster(words: list[str]) -> tuple[str, list[str]]:
    if len(words) > 1 and words[0] in ("-M", "--clusters"):
        return words[1], words[2:]
    return "", words


def _scancel(words: list[str], cluster: str) -> Wish | None:
    if not words:
        return None
    *options, job = words
    if not options:
        return Wish(Kind.CANCEL, job, cluster=cluster)
    recipient = Recipient.STEPS
    signal = ""
    while options:
        option = options.pop(0)
        if option in _TO:
            recipient = _TO[option]
        elif option.startswith("--signal="):
            signal = option.partition("=")[2]
        elif option == "-s" and options:
            signal = options.pop(0)
        else:
            return None
    name = signal.upper().removeprefix("SIG")
    if not signal_allowed(name):
        return None
    return Wish(Kind.SIGNAL, job, Details(signal=name, recipient=recipient), cluster)


def _scontrol(words: list[str], cluster: str) -> Wish | None:
    if len(words) == 2 and words[0] in _SCONTROL:
        return Wish(_SCONTROL[words[0]], words[1], cluster=cluster)
    if len(words) == 3 and words[0] == "update":
        job, value = (word.partition("=") for word in words[1:])
        if job[0].lower() == "jobid":
            return _update(job[2], value[0].lower(), value[2], cluster)
    return None


def _update(job: str, field: str, value: str, cluster: str) -> Wish | None:
    if field == "excnodelist":
        try:
            hosts = tuple(dict.fromkeys(expand_hosts(value, limit=_MOST_HOSTS)))
        except HostlistError:
            return None
        if not hosts or not all(map(host_allowed, hosts)):
            return None
        return Wish(Kind.EXCLUDE, job, Details(exclude=hosts), cluster)
    if field == "timelimit":
        limit = parse_limit(value)
        if limit.seconds is None or limit.seconds < 60:
            return None
        return Wish(Kind.LIMIT, job, Details(limit_minutes=int(limit.seconds // 60)), cluster)
    return None
