"""Slurm's reason words in plain words: why a job waits, or why it ended.

Two limits (of an association or of a QOS) times nine resources times a dozen ways to count
give most of the words, so those are patterns; the others stand one by one. :data:`FREE_TEXTS`
are sentences that slurmctld prints in place of a word.
"""

import re
from typing import NamedTuple


class ReasonRow(NamedTuple):
    """``kind`` as in :class:`slurmtop.model.job.ReasonInfo`."""

    kind: str
    meaning: str
    advice: str


_ASSOC = "account/association"

# fmt: off
_ROWS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "queue": (  # normal waiting
        ("Priority", "Other jobs are ahead in the same partition/reservation.",
         "wait; shorten the time limit to be backfilled"),
        ("Resources", "Next in line; the nodes it needs are busy.", "wait"),
        ("Constraints", "Constraints cannot be met at this moment.", "wait or relax them"),
        ("Licenses", "Licences are used up.", "wait"),
        ("BurstBufferResources", "Burst buffer space is not free.", "wait"),
        ("NvidiaImexChannels", "All NVIDIA IMEX channels are in use by other jobs (25.11+).",
         "wait"),
    ),
    "ok": (  # nothing recorded
        ("None",
         "No reason recorded. On a pending job: not looked at yet, or cleared; on a running "
         "job: normal.", "wait one scheduler pass"),
    ),
    "transient": (  # for a moment
        ("BurstBufferStageIn", "Staging in to the burst buffer.", "wait"),
        ("Cleaning", "Requeued while its last run is still being cleaned up.",
         "wait; if long, a node is stuck COMPLETING"),
        ("FedJobLock", "Waiting for federation siblings to agree.", "wait"),
        ("MpiPortsBusy", "The reserved MPI ports are busy.", "wait"),
        ("Prolog", "PrologSlurmctld is still running for this job.",
         "wait; if it takes minutes, ask admins"),
        ("SchedDefer", 'Not tried at submit because of "defer".', "wait"),
    ),
    "user": (  # set so by the user
        ("BeginTime",
         "Its --begin time is not reached; also shown for the cool-down after a requeue.",
         "wait; check EligibleTime"),
        ("Dependency", "Waits for the jobs named in --dependency.", "look at the parent job"),
        ("JobArrayTaskLimit", "The %N throttle of the job array lets no more tasks run at once.",
         "raise ArrayTaskThrottle"),
    ),
    "held": (  # until somebody releases it
        ("JobHeldAdmin", "Held by an administrator (priority 0).",
         "only an admin/operator can release it"),
        ("JobHeldUser", "Held by the owner (or by uhold).", "scontrol release JOB"),
        ("JobHoldMaxRequeue", "Too many batch requeues (MaxBatchRequeue); the job is held.",
         "find the launch failure, then release"),
        ("ReservationDeleted", "Its reservation was deleted; the job is held.",
         "scontrol update JobId=JOB ReservationName= and then release it"),
    ),
    "never": (  # it will not start as it is
        ("AccountNotAllowed", "The account is not allowed in this partition.",
         "fix -A or the partition"),
        ("BadConstraints", "Its constraints can never be met.", "fix the request and resubmit"),
        ("DependencyNeverSatisfied",
         "The dependency can no longer be met (e.g. afterok on a failed job).",
         "it will wait for ever unless cancelled: scancel it or fix the dependency"),
        ("InvalidAccount", "The account is invalid.", "fix -A"),
        ("InvalidQOS", "The QOS is invalid.", "fix --qos"),
        ("PartitionConfig", "Some partition setting refuses the job.",
         "compare with scontrol show partition"),
        ("QOSNotAllowed", "The QOS is not allowed in this partition/association.", "fix --qos"),
        ("ReservationInvalid", "Its reservation is not valid.", "fix --reservation"),
    ),
    "limit": (  # a cap
        ("AccountingPolicy", "Fallback text for an accounting limit with no better match.",
         "see sacctmgr/sshare or ask"),
        ("AssocGrpJobsLimit", "The association runs as many jobs as GrpJobs allows its group.",
         "wait"),
        ("AssocGrpSubmitJobsLimit",
         "The association has as many jobs queued as GrpSubmitJobs allows its group.", "wait"),
        ("AssocGrpWallLimit", "The association has used up its wall time (GrpWall).",
         "wait for decay or ask"),
        ("AssociationJobLimit", "Generic association job limit.", "wait for own jobs to finish"),
        ("AssociationResourceLimit", "Generic association resource limit.",
         "wait or shrink the request"),
        ("AssociationTimeLimit", "Generic association time limit.", "shorten --time or ask"),
        ("AssocMaxJobsLimit", "You run as many jobs as the association allows one user (MaxJobs).",
         "wait for own jobs"),
        ("AssocMaxSubmitJobLimit",
         "You have as many jobs queued as the association allows (MaxSubmitJobs).", "wait"),
        ("AssocMaxWallDurationPerJobLimit",
         "The time limit is above what the association allows one job (MaxWallDurationPerJob).",
         "lower --time"),
        ("MaxJobsPerAccount",
         "The account runs as many jobs as the QOS allows (MaxJobsPerAccount).",
         "wait for account jobs"),
        ("MaxMemPerLimit", "It asks for more memory than MaxMemPerNode/MaxMemPerCPU: exceeded.",
         "lower --mem"),
        ("MaxSubmitJobsPerAccount",
         "The account has as many jobs queued as the QOS allows (MaxSubmitJobsPerAccount).",
         "wait"),
        ("PartitionNodeLimit",
         "It asks for fewer/more nodes than the partition allows, or needed nodes are down.",
         "change node count or partition"),
        ("PartitionTimeLimit", "The time limit is above the partition maximum.",
         "lower --time or change partition"),
        ("QOSGrpJobsLimit", "The QOS runs as many jobs as GrpJobs allows.", "wait"),
        ("QOSGrpSubmitJobsLimit", "The QOS has as many jobs queued as GrpSubmitJobs allows.",
         "wait"),
        ("QOSGrpWallLimit", "The QOS has used up its wall time (GrpWall).",
         "wait for decay or ask"),
        ("QOSJobLimit", "The QOS allows no more jobs: job limit.", "wait for own jobs"),
        ("QOSMaxJobsPerUserLimit", "QOS MaxJobsPerUser: you run as many as allowed.",
         "wait for own jobs"),
        ("QOSMaxSubmitJobPerUserLimit",
         "You have as many jobs queued as the QOS allows (MaxSubmitJobsPerUser).", "wait"),
        ("QOSMaxWallDurationPerJobLimit",
         "The time limit is above what the QOS allows one job (MaxWallDurationPerJob).",
         "lower --time"),
        ("QOSResourceLimit", "QOS resource limit.", "wait or shrink the request"),
        ("QOSTimeLimit", "QOS time limit.", "shorten --time"),
        ("QOSUsageThreshold", "The QOS usage threshold is breached.",
         "wait for fair-share decay or ask"),
    ),
    "site": (  # in the hands of the admins
        ("MaxPoweredUpNodes", "The cluster-wide cap on powered-up nodes is reached.", "wait"),
        ("PartitionDown", "The partition is DOWN.", "wait or change partition"),
        ("PartitionInactive", "The partition is INACTIVE.", "wait or change partition"),
        ("ReqNodeNotAvail", "A node it must have is down, drained, reserved or powered off.",
         "often a coming maintenance window: shorten --time; sinfo -R says what is down"),
        ("Reservation", "Waits for its reservation to become usable.",
         "wait; check reservation times"),
        ("FrontEndDown", "The front end node is down.", "ask admins"),
        ("PowerNotAvail", "Not enough power is free for it (power cap).", "wait"),
        ("PowerReserved", "The power it needs is reserved.", "wait"),
        ("BlockMaxError", "A hardware block failed too often.", "ask admins"),
    ),
    "failure": (  # set on ended or requeued jobs
        ("BurstBufferOperation", "A burst buffer action failed (the job is usually held).",
         "ask admins"),
        ("DeadLine", "Its deadline cannot be met.", "resubmit"),
        ("InactiveLimit", "salloc/srun was idle past InactiveLimit.", "re-allocate"),
        ("JobLaunchFailure",
         "It could not be launched (bad program, output file, prolog or spank failure).",
         "check the paths of its output files, then the slurmd log with the admins"),
        ("NodeDown", "A node of the allocation failed (state NODE_FAIL, or requeued).",
         "resubmit/requeue; report the node"),
        ("NonZeroExitCode", "It ended with a non-zero exit code.", "read the log"),
        ("OutOfMemory", "It ran out of memory.", "raise --mem"),
        ("RaisedSignal", "It was ended by a signal.", "see what its exit code says"),
        ("SystemFailure", "Slurm, file system or network trouble.", "ask admins"),
        ("TimeLimit", "It hit the time limit.", "raise --time / checkpoint"),
    ),
}
# fmt: on
WORDS: dict[str, ReasonRow] = {
    word: ReasonRow(kind, meaning, advice)
    for kind, rows in _ROWS.items()
    for word, meaning, advice in rows
}

_RESOURCES = {
    "BB": "burst buffer",
    "BILLING": "billing units",
    "CPU": "CPUs",
    "ENERGY": "energy",
    "GRES": "GRES (GPUs and the like)",
    "LICENSE": "licences",
    "MEM": "memory",
    "MEMORY": "memory",
    "NODE": "nodes",
    "UNKNOWN": "an unnamed TRES",
}
_R = "(?P<what>BB|Billing|CPU|Cpu|Energy|GRES|License|Memory|Mem|Node|Unknown)"
_SCOPE = "(?P<scope>Assoc|QOS)"

_FAMILIES: tuple[tuple[re.Pattern[str], ReasonRow], ...] = tuple(
    (re.compile(pattern), ReasonRow(kind, meaning, advice))
    for pattern, kind, meaning, advice in (
        (
            f"{_SCOPE}Grp{_R}(?:Limit)?",
            "limit",
            "{scope}: running total of {what} is at the group cap (GrpTRES).",
            "wait for the group's jobs",
        ),
        (
            f"{_SCOPE}Grp{_R}Minutes(?:Limit)?",
            "limit",
            "{scope}: {what}-minutes budget spent (GrpTRESMins).",
            "wait for decay or ask",
        ),
        (
            f"{_SCOPE}Grp{_R}RunMinutes(?:Limit)?",
            "limit",
            "{scope}: {what}-minutes promised to running jobs at cap (GrpTRESRunMins).",
            "wait, or shorten --time",
        ),
        (
            f"{_SCOPE}Max{_R}PerJob(?:Limit)?",
            "never",
            "{scope}: job asks for more {of_what} than one job may have.",
            "shrink the request",
        ),
        (
            f"{_SCOPE}Max{_R}PerNode",
            "never",
            "{scope}: more {of_what} per node than allowed.",
            "shrink the request",
        ),
        (
            f"{_SCOPE}Max{_R}MinutesPerJob(?:Limit)?",
            "never",
            "{scope}: {what} x time of this job above the cap.",
            "shrink or shorten",
        ),
        (
            f"(?P<scope>QOS)Max{_R}PerUser(?:Limit)?",
            "limit",
            "{scope}: your running jobs already hold the allowed {amount}.",
            "wait for own jobs",
        ),
        (
            f"(?P<scope>QOS)Min{_R}(?:NotSatisfied)?",
            "never",
            "Below the QOS minimum of {what} per job.",
            "ask for more or another QOS",
        ),
        (
            f"Max{_R}PerAccount",
            "limit",
            "QOS: the account's running jobs hold the allowed {amount}.",
            "wait for account jobs",
        ),
        (
            f"Max{_R}RunMinsPerAccount",
            "limit",
            "QOS: {what}-minutes promised to the account's running jobs at cap (24.05+).",
            "wait or shorten",
        ),
        (
            f"Max{_R}RunMinsPerUser",
            "limit",
            "QOS: {what}-minutes promised to your running jobs at cap (24.05+).",
            "wait or shorten",
        ),
    )
)

#: (start of the sentence in lower case, word it stands for, what it means).
# fmt: off
_FREE = (
    ("nodes required for job are down, drained or reserved", "Resources", "site",
     "The nodes it could use are down, drained, or reserved for jobs in partitions of higher "
     "priority.", "wait or change partition; sinfo -R says what is down"),
    ("job requeued in held state", "JobHeldUser", "held", "It was put back in the queue and held.",
     "scontrol release JOB"),
    ("launch failed requeued held", "JobHoldMaxRequeue", "held",
     "Its launch failed; it was put back in the queue and held.",
     "find the launch failure (slurmd log), then scontrol release JOB"),
    ("launch failure limit exceeded requeued held", "JobHoldMaxRequeue", "held",
     "Its launch failed too often; it was put back in the queue and held.",
     "find the launch failure (slurmd log), then scontrol release JOB"),
    ("user env retrieval failed requeued held", "JobHoldMaxRequeue", "held",
     "The login environment could not be read (--get-user-env); the job is held.",
     "make the login scripts quick and quiet, then scontrol release JOB"),
    ("job is at or exceeds", "AccountingPolicy", "limit",
     "A limit of the QOS or association is reached; the text says which and by how much.",
     "wait for running jobs or ask"),
    ("job would exceed", "AccountingPolicy", "limit",
     "It would go over a limit of the QOS or association; the text says which.",
     "wait for running jobs or shrink the request"),
    ("job's qos not permitted to use this partition", "QOSNotAllowed", "never",
     "The QOS is not allowed in this partition.", "fix --qos"),
    ("job's account not permitted to use this partition", "AccountNotAllowed", "never",
     "The account is not allowed in this partition.", "fix -A or the partition"),
    ("burst_buffer/", "BurstBufferOperation", "failure", "A burst buffer action reports trouble.",
     "read the text; ask admins"),
)
# fmt: on
FREE_TEXTS: tuple[tuple[str, str, ReasonRow], ...] = tuple(
    (start, word, ReasonRow(kind, meaning, advice)) for start, word, kind, meaning, advice in _FREE
)


def find_reason(word: str) -> ReasonRow | None:
    """The row of one exact word, whether it stands alone or belongs to a family."""
    row = WORDS.get(word)
    if row is not None:
        return row
    for pattern, (kind, meaning, advice) in _FAMILIES:
        match = pattern.fullmatch(word)
        if match is None:
            continue
        found = match.groupdict()
        what = _RESOURCES[found["what"].upper()]
        unnamed = found["what"] == "Unknown"
        return ReasonRow(
            kind,
            meaning.format(
                scope=_ASSOC if found.get("scope") == "Assoc" else "QOS",
                what=what,
                of_what=f"of {what}" if unnamed else what,
                amount=f"amount of {what}" if unnamed else what,
            ),
            advice,
        )
    return None
