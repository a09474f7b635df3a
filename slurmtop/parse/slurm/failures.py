"""Why a Slurm command failed, from its exit status and what it said on stderr.

Source: any client, for example ``squeue``::

    slurm_load_jobs error: Unable to contact slurm controller (connect failure)
    squeue: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file

The kind decides what slurmtop does next (keep the old data, ask later, never ask again); the
sentence says what failed, why, and what a person can do. Text decides before the exit status:
some clients exit 0 although they complain, and scancel exits with an errno modulo 256.
"""

import math
import re
from typing import NamedTuple

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.parse.slurm.exit_codes import signal_name

#: Characters of stderr kept in :attr:`Failure.raw`.
_RAW_CHARS = 2_000
_WORDS_CHARS = 200

_NEVER = math.inf


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    trouble: Trouble
    sentence: str
    """``{program}`` and the groups of the pattern by number, ``{1}``, are filled in."""
    retry_after_s: float | None


def _rule(
    pattern: str, trouble: Trouble, sentence: str, retry_after_s: float | None = None
) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), trouble, sentence, retry_after_s)


#: In order: what lies nearer to this machine comes first, because it causes what follows.
_RULES: tuple[_Rule, ...] = (
    # This machine cannot start the command.
    _rule(
        r"FileNotFoundError|command not found|No such file or directory: '[^']*'",
        Trouble.NO_SLURM,
        "{program} is not installed on this machine, or not in PATH; log in to a Slurm login "
        "node or load its module.",
        _NEVER,
    ),
    _rule(
        r"error while loading shared libraries|\bfork\b|Cannot allocate memory"
        r"|Resource temporarily unavailable|Too many open files",
        Trouble.LOCAL,
        "{program} could not be started: this machine has no room left (processes, memory or "
        "open files); close something and it goes on by itself.",
        30.0,
    ),
    # Its configuration.
    _rule(
        r"cannot stat file|Could not establish a configuration source|_fetch_child"
        r"|Unable to process configuration file|resolve_ctls_from_dns_srv|parse_file.*retrying",
        Trouble.NO_CONFIG,
        "{program} found no slurm.conf: the configuration is not mounted or the controller that "
        "hands it out is away. Every Slurm command here waits 60 s for it; tell the admins.",
        60.0,
    ),
    # Trust between this machine and the controller.
    _rule(
        r"Rewound credential|Expired credential|Replayed credential|credential (?:has )?expired",
        Trouble.AUTH,
        "{program}: the clock of this machine and that of the controller differ; tell the admins. "
        "Your jobs are not touched by this.",
        60.0,
    ),
    _rule(
        r"munge|authentication error|Invalid authentication credential|auth_g_create"
        r"|Unauthorized credential",
        Trouble.AUTH,
        "{program} could not prove who you are: munge on this machine does not answer. The "
        "controller and your jobs may be fine; tell the admins (systemctl status munge).",
        60.0,
    ),
    _rule(
        r"Incompatible versions of client and server code|Header lengths are longer",
        Trouble.AUTH,
        "{program} on this machine and the controller are of versions that do not understand each "
        "other; tell the admins.",
        60.0,
    ),
    _rule(
        r"Zero Bytes were transmitted or received",
        Trouble.AUTH,
        "The controller hung up on {program} without a word: munge, the clock or the version of "
        "this machine does not fit; tell the admins.",
        60.0,
    ),
    # Accounting.
    _rule(
        r"accounting storage is disabled",
        Trouble.NO_ACCOUNTING,
        "There is no accounting on this cluster, so no history: ended jobs are known only while "
        "the controller remembers them.",
        _NEVER,
    ),
    _rule(
        r"persist_conn|PersistInit|Problem talking to the database|slurmdbd.*(?:refused|down)"
        r"|Unable to connect to database|DBD_\w+ failure",
        Trouble.ACCOUNTING_DOWN,
        "The accounting service (slurmdbd) does not answer {program}: the history cannot be read "
        "now; nothing is lost, try again later.",
        60.0,
    ),
    _rule(
        r"Too wide of a date range|result exceeds size limit",
        Trouble.OTHER,
        "Accounting refuses so long a period; ask {program} for fewer days.",
    ),
    # What this Slurm does not know.
    _rule(
        r"Invalid field requested: \"?([\w-]+)",
        Trouble.TOO_OLD,
        "{program} here does not know the field {1}; it can be asked for the others.",
    ),
    _rule(
        r"(?:Invalid job format specification|Invalid node format specification"
        r"|Unknown field|unrecognized option|invalid option|Unrecognized option):?"
        r" *['\"]?([\w=-]*)",
        Trouble.TOO_OLD,
        "{program} here does not know {1}; this Slurm is older than what was asked for.",
    ),
    _rule(
        r"find (?:requested )?plugin(?:: | for )(?:serializer|application/json)"
        r"|serializer plugin for serializer/json|JSON plugin load failure",
        Trouble.TOO_OLD,
        "{program} here cannot write JSON: its plugin is not installed; the text form works.",
    ),
    # The controller.
    _rule(
        r"Rate limit exceeded|RPC rate limited",
        Trouble.RATE_LIMITED,
        "The controller limits how often you may ask it, and refused {program}.",
        30.0,
    ),
    _rule(
        r"standby mode",
        Trouble.BUSY,
        "{program} reached a controller in standby; the other one takes over shortly.",
    ),
    _rule(
        r"Socket timed out|Connection timed out|timed out on send/recv",
        Trouble.BUSY,
        "The controller is too busy to answer {program} in time.",
    ),
    _rule(
        r"Unable to contact slurm controller(?: \(([^)]*)\))?|Unexpected message received"
        r"|Connection refused|controller .*not respond",
        Trouble.DOWN,
        "Running jobs go on, but {program} does not reach the Slurm controller: it is down, "
        "failing over, or the network is broken.",
    ),
    _rule(
        r"No cluster '?([^'\s]+)'? known by database"
        r"|'([^'\s]+)' can't be reached now, or it is an invalid",
        Trouble.OTHER,
        "There is no cluster of this name ({1}) that can be reached; see sacctmgr list clusters.",
    ),
    # The job, and what may be done with it.
    _rule(
        r"Access/permission denied",
        Trouble.DENIED,
        "Slurm does not allow you this: the job belongs to somebody else, or only an "
        "administrator may do it.",
    ),
    _rule(
        r"Invalid user id(?: for job (\S+))?",
        Trouble.DENIED,
        "Slurm does not allow you this: the job or node is not yours; its owner or an "
        "administrator can do it.",
    ),
    _rule(
        r"Invalid job id|Job \S+ not found|Invalid job array",
        Trouble.UNKNOWN_JOB,
        "The controller does not know this job: it ended a while ago or never was; accounting "
        "(sacct) may know it.",
    ),
    _rule(
        r"already completing or completed|Job has already finished",
        Trouble.OTHER,
        "Too late: the job is over already.",
    ),
    _rule(
        r"can ?not be altered now, try again later",
        Trouble.BUSY,
        "The job is just changing and cannot be altered now; a job that waits cannot get a signal "
        "at all. Look again in a moment.",
    ),
    _rule(
        r"Requested operation is presently disabled",
        Trouble.OTHER,
        "This job may not be requeued (submitted with --no-requeue, or the site forbids it); "
        "submit it again instead.",
    ),
    _rule(
        r"Only batch jobs are accepted",
        Trouble.OTHER,
        "Only batch jobs can be requeued; this one came from salloc or srun.",
    ),
    _rule(r"Job is pending execution", Trouble.OTHER, "The job is waiting in the queue already."),
    _rule(
        r"held state, pending scheduler release",
        Trouble.OTHER,
        "The job is held; release it first (scontrol release).",
    ),
    _rule(
        r"no longer pending execution",
        Trouble.OTHER,
        "The job does not wait any more; refresh and look again.",
    ),
    _rule(
        r"Job is not (running|suspended)",
        Trouble.OTHER,
        "The job is not {1}; refresh and look again.",
    ),
    _rule(
        r"scrontab jobs without --cron",
        Trouble.OTHER,
        "This is a scrontab job: it is cancelled with scancel --cron, or edited with scrontab.",
    ),
    _rule(
        r"individual component of heterogeneous job|not heterogeneous job leader",
        Trouble.OTHER,
        "This is one part of a heterogeneous job: act on its leader, the first part.",
    ),
    _rule(
        r"Job script not specified",
        Trouble.OTHER,
        "This job is interactive and has no batch script that could get the signal.",
    ),
    _rule(
        r"Invalid user: (\S+)|Invalid user name",
        Trouble.OTHER,
        "There is no user {1} on this machine; check the name.",
    ),
    _rule(r"Unknown job signal: ?(\S*)", Trouble.OTHER, "{1} is no signal that scancel knows."),
)

#: Exit statuses of scancel that mean something without words: errno modulo 256.
_QUIET_STATUS: dict[int, str] = {
    8: "Unable to contact slurm controller",
    60: "individual component of heterogeneous job",
    140: "Socket timed out",
    210: "Access/permission denied",
    217: "Job script not specified",
    225: "Invalid job id",
    228: "can not be altered now, try again later",
    229: "already completing or completed",
    239: "authentication error",
    245: "Requested operation is presently disabled",
}


def _text(stderr: bytes | str) -> str:
    return stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else stderr


def _last_words(text: str) -> str:
    """The last line that says something, harmless to look at."""
    for line in reversed(text.splitlines()):
        if line.strip():
            return visible(line.strip())[:_WORDS_CHARS]
    return ""


def _filled(rule: _Rule, match: re.Match[str], program: str) -> str:
    named = next((group for group in match.groups() if group), "")
    text = rule.sentence.replace("{program}", program)
    return text.replace("{1}", visible(named)[:_WORDS_CHARS] or "what was asked for")


def explain_failure(
    program: str, rc: int | None, stderr: bytes | str, *, elapsed_s: float | None = None
) -> Failure:
    """What a failed call means; never raises.

    ``rc`` None: stopped at our own time limit after ``elapsed_s`` seconds. ``rc`` 127, or a
    stderr that names FileNotFoundError: the program is not there.
    """
    text = _text(stderr)
    raw = text[:_RAW_CHARS].strip()
    if rc == 127:
        rule = _RULES[0]
        return Failure(
            rule.trouble, rule.sentence.replace("{program}", program), raw, rule.retry_after_s
        )
    searched = text
    if not text.strip() and program == "scancel" and rc in _QUIET_STATUS:
        searched = _QUIET_STATUS[rc]
    for rule in _RULES:
        match = rule.pattern.search(searched)
        if match is not None:
            return Failure(rule.trouble, _filled(rule, match, program), raw, rule.retry_after_s)
    if rc is None:
        waited = "" if elapsed_s is None else f" within {elapsed_s:.0f} s"
        return Failure(
            Trouble.TIMEOUT,
            f"{program} did not answer{waited} and was stopped; the controller may be busy.",
            raw,
        )
    if rc == 126:
        return Failure(
            Trouble.LOCAL, f"{program} is there but may not be executed; tell the admins.", raw
        )
    if rc < 0 or 128 < rc < 160:
        name = signal_name(-rc if rc < 0 else rc - 128)
        return Failure(Trouble.OTHER, f"{program} itself died of {name}; try again.", raw)
    said = _last_words(text)
    if said:
        return Failure(Trouble.OTHER, f"{program} failed (exit {rc}): {said}", raw)
    return Failure(
        Trouble.OTHER, f"{program} failed with exit {rc} and said nothing; try it by hand.", raw
    )
