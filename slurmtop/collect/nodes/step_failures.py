"""Why a step of a job could not be made, or ended, in one sentence each.

What srun 22.05.8 prints (its exit status is 1 for all of these, 255 for an unknown option)::

    srun: error: Unable to confirm allocation for job 11: Job is pending execution
    srun: error: Unable to create step for job 10: Requested node configuration is not available
"""

import re
from typing import NamedTuple

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.slurm.failures import explain_failure

_RAW_CHARS = 2_000
#: A job that ends, or nodes that are busy for a moment.
_SOON_S = 60.0
_NEVER = float("inf")


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    trouble: Trouble
    sentence: str
    retry_after_s: float


def _rule(pattern: str, trouble: Trouble, sentence: str, retry_after_s: float = _SOON_S) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), trouble, sentence, retry_after_s)


_RULES = (
    _rule(
        r"(?:unrecognized|unknown|invalid) option.*(?:overlap|immediate|no-kill)",
        Trouble.TOO_OLD,
        "srun here does not know --overlap (Slurm before 20.11): a step beside the job's own steps"
        " would wait for them, so none is made; ssh is the only way onto its nodes.",
        _NEVER,
    ),
    _rule(
        r"Job is pending execution",
        Trouble.UNKNOWN_JOB,
        "srun gets onto nodes through job {job} only, and that is waiting in the queue.",
    ),
    _rule(
        r"has expired|Invalid job id|already completing or completed|Job has already finished"
        r"|Job/step already",
        Trouble.UNKNOWN_JOB,
        "srun gets onto nodes through job {job} only, and that is ending or over.",
    ),
    _rule(
        r"Requested node configuration is not available|not available \(down|Node.*not responding"
        r"|Requested nodes? .*not available",
        Trouble.DOWN,
        "Slurm makes no step on these nodes of job {job}: one of them is down or no longer its.",
    ),
    _rule(
        r"nodes are busy|Immediate execution|temporarily disabled|retrying|Memory required by task"
        r"|Resource temporarily",
        Trouble.BUSY,
        "Slurm has no room for a step of ours in job {job} now; its own steps hold all of it.",
    ),
    _rule(
        r"step limit|MaxStepCount|limit for steps",
        Trouble.DENIED,
        "Job {job} may have no more steps (MaxStepCount), so none is made to look into its nodes.",
        _NEVER,
    ),
    _rule(
        r"Access/permission denied|Invalid user id|not your job|Job not owned",
        Trouble.DENIED,
        "Slurm lets only the owner of job {job}, or an administrator, make a step in it.",
        _NEVER,
    ),
)
_GRES = re.compile(r"generic resource|\bgres\b|nodes are busy|Immediate execution", re.IGNORECASE)
_NOT_LEADER = re.compile(r"not heterogeneous job leader|hetjob component", re.IGNORECASE)


def explain_step(job: str, rc: int | None, stderr: bytes) -> Failure:
    """Why srun made no step in ``job`` (its raw number)."""
    text = stderr.decode("utf-8", "replace")
    for rule in _RULES:
        if rule.pattern.search(text):
            sentence = rule.sentence.replace("{job}", job)
            return Failure(rule.trouble, sentence, text[:_RAW_CHARS].strip(), rule.retry_after_s)
    told = explain_failure("srun", rc, stderr)
    retry = told.retry_after_s
    return Failure(told.trouble, told.sentence, told.raw, _SOON_S if retry is None else retry)


def explain_step_gone(job: str, rc: int | None, stderr: bytes) -> Failure:
    """Why a step that served has ended, though nobody here ended it."""
    text = stderr.decode("utf-8", "replace")
    why = "the job is ending, or somebody cancelled the step"
    if re.search(r"time limit", text, re.IGNORECASE):
        why = "it or the job reached its time limit"
    elif re.search(r"node fail|not responding|down", text, re.IGNORECASE):
        why = "a node of the job does not answer Slurm any more"
    sentence = f"The step that looked into the nodes of job {job} has ended: {why}."
    return Failure(Trouble.OTHER, sentence, text[-_RAW_CHARS:].strip(), 5.0)


def lacks(host: str, tool: str) -> Failure:
    sentence = f"There is no {tool} command on {host}: the way over srun needs it; ssh does not."
    return Failure(Trouble.NO_SLURM, sentence, "", _NEVER)


def wants_no_gres(stderr: bytes) -> bool:
    """Was it refused for the job's GPUs, which older versions give to one step only?"""
    return _GRES.search(stderr.decode("utf-8", "replace")) is not None


def wants_other_nodes(stderr: bytes) -> bool:
    """Was it refused for a node that the job has no more?"""
    return b"node configuration is not available" in stderr


def wants_het_group(stderr: bytes) -> bool:
    """Is the job part of a heterogeneous job, which srun knows by its leader only?"""
    return _NOT_LEADER.search(stderr.decode("utf-8", "replace")) is not None
