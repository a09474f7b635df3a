"""What was tried, as rows of one table: reachable, refused or absent, why, and what opens it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from slurmtop.model.access import (
    Access,
    AccessStatus,
    Group,
    LogAccess,
    SlurmAccess,
    WayTried,
)
from slurmtop.model.gpu import Answer, NodeGpus
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.model.units import plural

_WORDS = {
    Way.SSH: "ssh",
    Way.OPENSSH: "ssh command",
    Way.SRUN: "srun step",
}
#: Slurm's trouble that means "not there" instead of "refused".
_NOT_RECORDED = "the recording does not hold it"
_NOT_THERE = frozenset({Trouble.NO_SLURM, Trouble.NO_ACCOUNTING})


def slurm_rows(facts: SlurmAccess) -> tuple[Access, ...]:
    """Slurm's commands. The queue comes first: without it nothing else works."""
    return (
        _slurm(
            "own queue",
            facts.queue,
            why=plural(facts.queue_jobs, "job"),
            recorded="squeue" not in facts.not_recorded,
        ),
        _everybody(facts),
        _slurm(
            "settings of the cluster",
            facts.config,
            command="scontrol show config",
            recorded="config" not in facts.not_recorded,
        ),
        _rights(facts),
        *_of_a_job(facts),
        _accounting(facts),
        _scancel(facts),
    )


def _slurm(
    source: str,
    failure: Failure | None,
    *,
    why: str = "",
    command: str = "",
    recorded: bool = True,
) -> Access:
    if not recorded:
        return _not_recorded(source)
    if failure is None:
        return Access(
            group=Group.SLURM,
            source=source,
            status=AccessStatus.REACHABLE,
            why=why,
            command=command,
        )
    absent = failure.trouble in _NOT_THERE
    return Access(
        group=Group.SLURM,
        source=source,
        status=AccessStatus.ABSENT if absent else AccessStatus.REFUSED,
        why=failure.sentence,
        command=command,
    )


def _not_recorded(source: str, group: Group = Group.SLURM) -> Access:
    return Access(group=group, source=source, status=AccessStatus.NOT_ASKED, why=_NOT_RECORDED)


def _everybody(facts: SlurmAccess) -> Access:
    source = "queue, everybody"
    if facts.queue is not None or facts.config is not None:
        why = "it cannot be told without the queue and the settings of the cluster"
        return Access(group=Group.SLURM, source=source, status=AccessStatus.NOT_ASKED, why=why)
    hidden = {"jobs", "all"} & set(facts.private_data)
    said = f"PrivateData={','.join(facts.private_data)}" if facts.private_data else ""
    if not hidden or facts.operator:
        why = f"{visible(said)} hides nothing from operators" if hidden else ""
        return Access(group=Group.SLURM, source=source, status=AccessStatus.REACHABLE, why=why)
    return Access(
        group=Group.SLURM,
        source=source,
        status=AccessStatus.REFUSED,
        why=f"{visible(said)}: Slurm leaves out the jobs of others, without a word",
        opens="an operator sees them all; the site may change PrivateData",
    )


def _rights(facts: SlurmAccess) -> Access:
    row = Access(
        group=Group.SLURM,
        source="jobs of others",
        status=AccessStatus.REACHABLE,
        command="sacctmgr show user where name=$USER withcoord",
    )
    if facts.operator:
        return replace(row, why="operator: every job may be acted on")
    if facts.coordinates:
        names = ", ".join(visible(name) for name in sorted(facts.coordinates)[:5])
        return replace(row, why=f"coordinator of {names}: the jobs there may be acted on")
    if facts.operator is None and "sacctmgr" in facts.not_recorded:
        return _not_recorded(row.source)
    if facts.operator is None:
        return replace(
            row,
            status=AccessStatus.REFUSED,
            why="neither accounting nor the controller said whether this user is an operator",
        )
    return replace(
        row,
        status=AccessStatus.REFUSED,
        why="an ordinary user: only own jobs may be acted on",
        opens="an operator may act on any job, a coordinator on the jobs of an account",
    )


def _of_a_job(facts: SlurmAccess) -> Iterator[Access]:
    if not facts.job:
        for source in ("details of a job", "batch script"):
            yield Access(
                group=Group.SLURM,
                source=source,
                status=AccessStatus.NOT_ASKED,
                why="there is no own job to ask about",
            )
        return
    job = visible(facts.job)
    yield _slurm(
        "details of a job",
        facts.detail,
        why=f"of {job}",
        command=f"scontrol show job {job}",
        recorded="job" not in facts.not_recorded,
    )
    if "batch_script" in facts.not_recorded:
        yield _not_recorded("batch script")
        return
    script = Access(
        group=Group.SLURM,
        source="batch script",
        status=AccessStatus.REACHABLE,
        why=f"of {job}",
        command=f"scontrol write batch_script {job} -",
    )
    if facts.script is not None:
        status = AccessStatus.REFUSED if facts.has_script else AccessStatus.ABSENT
        script = replace(script, status=status, why=f"of {job}: {visible(facts.script)}")
    yield script


def _accounting(facts: SlurmAccess) -> Access:
    if facts.accounting_off:
        return Access(
            group=Group.SLURM,
            source="accounting (sacct)",
            status=AccessStatus.ABSENT,
            why="this cluster keeps none: jobs that the controller forgot are unknown",
            opens="the site sets up slurmdbd",
        )
    return _slurm(
        "accounting (sacct)",
        facts.accounting,
        command="sacct -j JOB",
        recorded="sacct" not in facts.not_recorded,
    )


def _scancel(facts: SlurmAccess) -> Access:
    if facts.scancel is None and "scancel" in facts.not_recorded:
        return _not_recorded("cancel and signal")
    if facts.scancel is None:
        return Access(
            group=Group.SLURM,
            source="cancel and signal",
            status=AccessStatus.ABSENT,
            why="scancel is not in PATH or does not answer",
            opens="Slurm's commands in PATH",
        )
    how = "many ids in one request" if facts.sends_many else "one request for each id"
    return Access(
        group=Group.SLURM,
        source="cancel and signal",
        status=AccessStatus.REACHABLE,
        why=f"own jobs, {how} ({visible(facts.scancel)}); nothing was sent",
        command="scancel --version",
    )


def log_rows(logs: Sequence[LogAccess]) -> tuple[Access, ...]:
    """The logs of own jobs; each by its own file."""
    if not logs:
        return (
            Access(
                group=Group.LOGS,
                source="logs of own jobs",
                status=AccessStatus.NOT_ASKED,
                why="there is no own job, running or lately ended",
            ),
        )
    return tuple(map(_log, logs))


def _log(log: LogAccess) -> Access:
    row = Access(
        group=Group.LOGS,
        source=f"log of {visible(log.job)}",
        status=AccessStatus.REACHABLE,
        why=visible(log.path or ""),
    )
    if log.path is None:
        return replace(row, status=AccessStatus.ABSENT, why="Slurm does not say where it is")
    if not log.recorded:
        return _not_recorded(row.source, Group.LOGS)
    if log.readable:
        return row
    status = AccessStatus.REFUSED if log.denied or log.hangs else AccessStatus.ABSENT
    opens = "its owner may open it, by the mode of file and folder" if log.denied else ""
    return replace(row, status=status, why=f"{visible(log.path)}: {visible(log.why)}", opens=opens)


def exporter_row(node: NodeGpus | None, *, set_up: bool) -> Access:
    """What an exporter or Prometheus of the settings told of one node; ``node`` None: not asked."""
    row = Access(group=Group.HERE, source="GPU exporter", status=AccessStatus.REACHABLE)
    if not set_up:
        return replace(
            row,
            status=AccessStatus.ABSENT,
            why="neither exporter_url nor prometheus_url is set: GPU values come from the nodes",
        )
    if node is None:
        return replace(row, status=AccessStatus.NOT_ASKED, why="there is no node to ask about")
    if node.samples:
        count = plural(len(node.samples), "GPU")
        return replace(row, host=node.host, why=f"{count} of {visible(node.host)}")
    absent = node.answer is Answer.NOT_THERE
    return replace(
        row,
        host=node.host,
        status=AccessStatus.ABSENT if absent else AccessStatus.REFUSED,
        why=node.failure.sentence if node.failure is not None else "it has no GPU of that node",
        opens="the address in the settings, and a way to it from here",
    )


def way_rows(tried: Iterable[WayTried]) -> tuple[Access, ...]:
    """Each way onto each node, in the words of what it failed with."""
    return tuple(map(_way, tried))


def _way(one: WayTried) -> Access:
    here = one.way is Way.HERE
    host = visible(one.host)
    row = Access(
        group=Group.NODES,
        source=f"here on {host}" if here else f"{_WORDS[one.way]} to {host}",
        status=AccessStatus.REACHABLE,
        host=one.host,
    )
    if one.failure is not None:
        absent = one.failure.trouble in _NOT_THERE
        return replace(
            row,
            status=AccessStatus.ABSENT if absent else AccessStatus.REFUSED,
            why=one.failure.sentence,
            opens=opens_way(one.way, one.failure),
            copy=one.failure.copy,
        )
    access = one.access
    if access is None:
        return replace(row, status=AccessStatus.NOT_ASKED)
    where = "in no job's cgroup"
    if access.inside_job is not None:
        step = f", step {access.inside_step}" if access.inside_step is not None else ""
        where = f"put into job {access.inside_job}{step}"
    took = f" in {one.took_s:.1f} s" if one.took_s is not None else ""
    how = f"as {visible(access.user or '?')}{took}, {where}"
    return replace(row, why=f"this is the node: {how}" if here else how)


#: Words of ssh and of pam_slurm_adopt, and what opens what they refuse.
_OPENERS = (
    (("pam_slurm", "no active jobs", "no slurm jobs"), "a running job of this user on that node"),
    (("refuses this account",), "the site, which keeps the accounts"),
    (("lets nobody in just now",), "a little patience, or the site"),
    (
        ("has changed:", "identification has changed"),
        "the site's word which key is right, then the old one taken out where it stands",
    ),
    (("marked as revoked",), "a key of the node that is not revoked: ask the site"),
    (
        ("no line of yours is read",),
        "a file for UserKnownHostsFile, or the key in the known hosts of the site",
    ),
    (("host key",), "the node's key in the known hosts, by you or by the site"),
    (("passphrase",), "the key's passphrase, given to ssh-agent"),
    (("asks questions",), "a key, or a ControlMaster that a person opened"),
    (("left to the ssh command",), ""),
    (("refused every key", "permission denied", "no ssh key"), "a key that the node accepts"),
    (("refuses connections",), "an sshd that answers there: ask the site"),
    (("did not answer in time", "no route"), "a node that is up, and a way to it: ask the site"),
)


def opens_way(way: Way, failure: Failure) -> str:
    """What would open a way, from the words of its failure; "" where they tell nothing."""
    if way is Way.SRUN:
        return ""
    words = f"{failure.sentence}\n{failure.raw}".casefold()
    return next((says for signs, says in _OPENERS if any(sign in words for sign in signs)), "")
