"""Why a GPU tool gave no rows, from its exit status and its words.

nvidia-smi and dcgmi write their errors to stdout, where a careless reader takes them for data::

    NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …
    Field "gpu_recovery_action" is not a valid field to query.
"""

import math
import re
from dataclasses import dataclass

from slurmtop.model.gpu import Answer
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible

#: A stuck driver holds every new process as well: a long time between two tries.
STUCK_RETRY_S = 300.0
_SLOW_RETRY_S = 60.0
_NEVER = math.inf
_RAW_CHARS = 2_000
_WORDS_CHARS = 200

_LOST = re.compile(
    r"(?i)unable to determine the device handle for gpu ?"
    r"(?P<bus>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
)
#: How the texts begin that stand in the place of data; the same words occur inside good rows.
_TALK = re.compile(
    r"(?i)\s*(?:NVIDIA-SMI has failed|NVIDIA-SMI couldn't|Failed to initialize NVML|NVML library"
    r"|Unable to determine the device handle|No devices were found|Field \"|Insufficient Perm"
    r"|GPU is lost|Error\b)"
)
_BAD_FIELD = re.compile(r'Field "(?P<field>[^"\n]{1,120})" is not a valid field to query')


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    answer: Answer
    trouble: Trouble
    sentence: str
    retry_after_s: float | None = None


def _rule(
    pattern: str, answer: Answer, trouble: Trouble, sentence: str, retry_after_s: float | None
) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), answer, trouble, sentence, retry_after_s)


_RULES = (
    _rule(
        r"couldn't communicate with the NVIDIA driver|\bDriver Not Loaded\b",
        Answer.NOT_LOADED,
        Trouble.DOWN,
        "The NVIDIA driver on {host} is not loaded: no GPU works there; tell the admins.",
        _SLOW_RETRY_S,
    ),
    _rule(
        r"Driver/library version mismatch",
        Answer.MISMATCH,
        Trouble.TOO_OLD,
        "The driver on {host} was upgraded under its running module: running jobs go on, but "
        "GPU values come back only after a reboot.",
        STUCK_RETRY_S,
    ),
    _rule(
        r"Unable to determine the device handle|GPU is lost|fallen off the bus",
        Answer.GPU_LOST,
        Trouble.DOWN,
        "A GPU of {host} is lost{1}; other GPUs are unknown where no value stands, not gone: drain "
        "the node, then reset or reboot it.",
        _SLOW_RETRY_S,
    ),
    _rule(
        r"is not a valid field to query",
        Answer.BAD_FIELD,
        Trouble.TOO_OLD,
        "The driver on {host} does not know the field {1}; it is asked for the others.",
        0.0,
    ),
    _rule(
        r"^No devices were found",
        Answer.NO_DEVICES,
        Trouble.OTHER,
        "{program} on {host} sees no GPU: none is visible from here, or they are gone; where "
        "the job has GPUs, the node is at fault.",
        _SLOW_RETRY_S,
    ),
    _rule(
        r"Unable to connect to host engine|unable to establish a connection to the specified host",
        Answer.NO_ENGINE,
        Trouble.OTHER,
        "DCGM does not run on {host} (nv-hostengine): its counters are not there; an admin can "
        "start it.",
        _NEVER,
    ),
    _rule(
        r"Result: -3[36]\b|module of DCGM that is not currently loaded"
        r"|Profiling is not supported",
        Answer.NO_PROFILING,
        Trouble.OTHER,
        "There are no profiling counters on {host} (SM activity, tensor, NVLink); the other "
        "values are read without them.",
        _NEVER,
    ),
    _rule(
        r"Result: -3[78]\b|in use by another|single pass|Profiling module returned",
        Answer.NO_PROFILING,
        Trouble.BUSY,
        "The profiling counters of {host} are taken by another program (nsys, ncu or a second "
        "hostengine); the other values are read without them.",
        STUCK_RETRY_S,
    ),
    _rule(
        r"NVML Shared Library Not Found|couldn't find libnvidia-ml",
        Answer.NO_TOOL,
        Trouble.OTHER,
        "{host} has no library of the NVIDIA driver; tell the admins.",
        _NEVER,
    ),
    _rule(
        r"Insufficient Permissions?",
        Answer.DENIED,
        Trouble.DENIED,
        "{program} on {host} may not be used by you.",
        STUCK_RETRY_S,
    ),
    _rule(
        r"Failed to initialize NVML: Unknown Error",
        Answer.OTHER,
        Trouble.OTHER,
        "The GPUs are not reachable from where {program} runs on {host} (a container or cgroup "
        "that lost its devices).",
        _SLOW_RETRY_S,
    ),
)

#: nvidia-smi(1), "RETURN VALUE": what stands for a text that is not there.
_STATUS = {
    4: "Insufficient Permissions",
    6: "Unable to determine the device handle",
    9: "Driver Not Loaded",
    12: "NVML Shared Library Not Found",
    15: "GPU is lost",
    18: "Driver/library version mismatch",
}
_SSH = re.compile(
    r"(?m)^(?:ssh: |kex_exchange_identification|Connection (?:closed|reset|timed out)|"
    r"Host key verification failed|\S+: Permission denied \()(?P<why>.*)"
)


def lost_bus(line: str) -> str | None:
    """The bus id in a line about a card that is gone, as printed; both known spellings."""
    match = _LOST.search(line)
    return match["bus"] if match else None


def bad_field(text: str) -> str | None:
    """The one field that made nvidia-smi refuse the whole query."""
    match = _BAD_FIELD.search(text)
    return match["field"] if match else None


def is_failure_line(line: str) -> bool:
    """The line is one of the texts that tools print in place of data."""
    return _TALK.match(line) is not None


def _filled(rule: _Rule, text: str, program: str, where: str) -> str:
    named = visible(bad_field(text) or lost_bus(text) or "")[:_WORDS_CHARS]
    if rule.answer is Answer.GPU_LOST and named:
        named = f" ({named})"
    says = rule.sentence.replace("{program}", program).replace("{host}", where)
    return says.replace("{1}", named)


def explain_gpu_failure(
    program: str,
    host: str,
    rc: int | None,
    stdout: bytes,
    stderr: bytes = b"",
    *,
    elapsed_s: float | None = None,
) -> tuple[Answer, Failure]:
    """What it means that ``program`` on ``host`` gave no good answer; never raises.

    ``rc`` None or 124 or 137: stopped at a time limit, which a stuck driver may outlive.
    """
    out = stdout[:_RAW_CHARS].decode("utf-8", "replace")
    err = stderr[:_RAW_CHARS].decode("utf-8", "replace")
    raw = (out.strip() + "\n" + err.strip()).strip()
    where = visible(host)[:_WORDS_CHARS]

    if rc in (None, 124, 137):
        waited = "" if elapsed_s is None else f" within {elapsed_s:.0f} s"
        says = f"The GPU driver on {where} does not answer: {program} gave nothing{waited}."
        if not program.startswith("nvidia"):
            says = f"{program} on {where} did not answer{waited}."
        return Answer.NO_ANSWER, Failure(Trouble.TIMEOUT, says, raw, STUCK_RETRY_S)
    if rc in (126, 127):
        says = f"{where} has no {program} that could be run."
        return Answer.NO_TOOL, Failure(Trouble.OTHER, says, raw, _NEVER)
    for text in (out, err, _STATUS.get(rc, "") if program.startswith("nvidia") else ""):
        for rule in _RULES:
            if rule.pattern.search(text):
                says = _filled(rule, text, program, where)
                return rule.answer, Failure(rule.trouble, says, raw, rule.retry_after_s)
    unreachable = _SSH.search(err)
    if rc == 255 and unreachable:
        why = visible(unreachable.group().strip())[:_WORDS_CHARS]
        says = f"{where} cannot be reached: {why}"
        return Answer.UNREACHABLE, Failure(Trouble.DOWN, says, raw, _SLOW_RETRY_S)
    last = visible(raw.splitlines()[-1].strip())[:_WORDS_CHARS] if raw else "it said nothing"
    says = f"{program} on {where} failed (exit {rc}): {last}"
    return Answer.OTHER, Failure(Trouble.OTHER, says, raw, None)
