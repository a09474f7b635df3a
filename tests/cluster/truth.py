"""What Slurm itself says of a job, asked by other means than slurmtop's own read-back."""

import re
from dataclasses import dataclass

from tests.cluster.fixtures import Cluster

_FIELD = re.compile(r"(?:^| )(\w+(?::\w+)?)=(\S*)")


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of ``scontrol show job``: a job, a task, the waiting rest, a part."""

    id: str
    fields: dict[str, str]

    @property
    def state(self) -> str:
        return self.fields["JobState"]

    @property
    def reason(self) -> str:
        return self.fields["Reason"]

    @property
    def restarts(self) -> int:
        return int(self.fields["Restarts"])

    @property
    def held(self) -> bool:
        return self.fields["Priority"] == "0"

    @property
    def unmoved(self) -> tuple[str, ...]:
        """All that only an action changes: equal, and nothing was done to it."""
        names = ("JobState", "Restarts", "SubmitTime", "TimeLimit", "ExcNodeList", "ExitCode")
        return (self.id, str(self.held), *(self.fields[name] for name in names))


def records(cluster: Cluster, job: str) -> dict[str, Record]:
    """All records of a job, by the id that squeue prints: ``12``, ``12_3``, ``12_[4-9]``, ``12+1``.

    Empty where the controller knows it no more.
    """
    done = cluster.run("scontrol", "-o", "show", "job", job, check=False)
    found = {}
    for line in done.stdout.splitlines():
        fields = dict(_FIELD.findall(line))
        if "JobId" not in fields:
            continue
        text = fields["JobId"]
        if "HetJobId" in fields:
            text = f"{fields['HetJobId']}+{fields['HetJobOffset']}"
        elif "ArrayTaskId" in fields:
            task = fields["ArrayTaskId"].partition("%")[0]
            text = f"{fields['ArrayJobId']}_{task if task.isdigit() else f'[{task}]'}"
        found[text] = Record(id=text, fields=fields)
    return found


def record(cluster: Cluster, job: str) -> Record:
    """The one record of a job or of one task."""
    (found,) = records(cluster, job).values()
    return found


def unmoved(cluster: Cluster, *jobs: str) -> list[tuple[str, ...]]:
    """What only an action changes, of all records of ``jobs``."""
    return [one.unmoved for job in jobs for one in records(cluster, job).values()]


def states(cluster: Cluster, job: str) -> dict[str, str]:
    """State by id."""
    return {key: value.state for key, value in records(cluster, job).items()}


def accounted(cluster: Cluster, job: str) -> list[str]:
    """The states of all runs of a job that accounting knows, oldest first."""
    done = cluster.run("sacct", "-nXPD", "-j", job, "-o", "State")
    return done.stdout.split("\n")[:-1]


#: A word behind each script of slurmtop's; the cluster's own folder has one alike.
_OURS = re.compile(r"\bslurmtop-(?!cluster)")


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process on a node."""

    pid: int
    parent: int
    state: str
    argv: str


def processes(cluster: Cluster, node: str) -> dict[int, Process]:
    """The processes of the test's user on a node, without those that look: our own, and slurmtop's,
    which are at their end a second after their look."""
    own = "ps -u $(id -u) -o pid=,ppid=,stat=,args="
    found, ours = {}, set()
    for line in cluster.ssh(node, own).splitlines():
        pid, parent, state, argv = line.split(maxsplit=3)
        # A child of one of ours is ours as well; ps lists parents first.
        if int(parent) in ours or _OURS.search(argv):
            ours.add(int(pid))
        elif not argv.startswith(("sshd:", "ps -u", "bash -c ps", "-bash")):
            found[int(pid)] = Process(pid=int(pid), parent=int(parent), state=state, argv=argv)
    return found
