"""``slurmtop why`` asked as a person asks it, and what must hold of every answer."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slurmtop.model.text import cell_width
from slurmtop.triage.catalogue import CATALOGUE
from tests.cluster.desk import Said, slurmtop

#: What design and schema promise, whatever the state.
FIELDS = frozenset(
    {
        *("schema", "job", "cluster", "state", "family", "class", "ended_by", "confidence"),
        *("summary", "since", "culprits", "collective", "evidence", "against", "missing"),
        *("next", "made_at", "sources"),
    }
)
STATES = frozenset(
    {"pending", "hung", "failed", "slow", "recovering", "healthy", "idle", "unknown"}
)
FAMILIES = frozenset(
    {"log", "stack", "process", "flight-recorder", "ras", "telemetry", "slurm", "kernel"}
)
_REFINED = re.compile(r"slurmtop: \d+\.\d s: (first answer|so far|verdict): [a-z]+: ")
LABELS = ("what", "who", "proof", "do")
#: The promise of ``why``.
LONGEST_S = 10.0


def tells_only_how_it_came(err: str) -> bool:
    """Does standard error hold nothing but how the answer was refined?"""
    return all(_REFINED.match(line) for line in err.splitlines())


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The four lines, the same as JSON, and the exit status that both had."""

    rc: int
    lines: dict[str, str]
    data: dict[str, Any]

    @property
    def state(self) -> str:
        return str(self.data["state"])

    @property
    def cls(self) -> str | None:
        value = self.data["class"]
        return None if value is None else str(value)

    @property
    def ended_by(self) -> str | None:
        value = self.data["ended_by"]
        return None if value is None else str(value)

    @property
    def summary(self) -> str:
        return str(self.data["summary"])

    @property
    def first_evidence(self) -> dict[str, Any]:
        first = self.data["evidence"][0]
        assert isinstance(first, dict)
        return first

    @property
    def missing(self) -> str:
        """What could not be read, as one text."""
        return " ".join(f"{item['why']}" for item in self.data["missing"])


def ask(job: str) -> Answer:
    """Both forms of the answer, checked for all that must always hold."""
    told = slurmtop("why", job)
    as_json = slurmtop("why", job, "--json")
    for said in (told, as_json):
        assert said.took_s < LONGEST_S, f"{said.took_s:.1f} s"
        # Of a job that runs the answers on the way are told there, and nothing else.
        assert tells_only_how_it_came(said.err), said.err
    assert told.rc == as_json.rc
    check_verdict(as_json.data)
    return Answer(rc=told.rc, lines=four(told), data=as_json.data)


def four(said: Said) -> dict[str, str]:
    """The four lines by their labels."""
    assert len(said.lines) == 4, said.out
    out = {}
    for label, line in zip(LABELS, said.lines, strict=True):
        assert re.match(rf"{label}\s", line), line
        assert cell_width(line) <= 80, line
        assert line.isprintable(), line
        out[label] = line[len(label) :].strip()
    return out


def check_verdict(data: dict[str, Any]) -> None:
    """Every field is there and is what the schema says; every time has an offset."""
    assert data["schema"] == "slurmtop.verdict/1"
    assert set(data) == FIELDS
    assert data["state"] in STATES
    assert data["confidence"] in {"high", "medium", "low"}
    assert data["ended_by"] in {"self", "user", "slurm", "fault", None}
    if data["class"] is not None:
        assert data["family"] == CATALOGUE[data["class"]].family
    else:
        assert data["family"] is None
    assert data["summary"]
    assert len(data["evidence"]) <= 8
    for item in (*data["evidence"], *data["against"]):
        assert set(item) == {"family", "host", "source", "line", "time", "text", "says", "offset"}
        assert item["family"] in FAMILIES
        assert item["text"]
        assert len(item["text"]) <= 400
        check_time(item["time"])
    for item in data["missing"]:
        assert set(item) == {"family", "why", "command"}
        assert item["why"]
    assert data["next"], "there is always something to do"
    for item in data["next"]:
        assert set(item) == {"label", "command", "effect", "why"}
        assert item["effect"] in {"read", "write"}
        assert item["command"]
    check_time(data["since"])
    check_time(data["made_at"])
    assert data["made_at"] is not None


def check_time(text: str | None) -> None:
    """None, or ISO 8601 with an offset."""
    if text is not None:
        assert datetime.fromisoformat(text).tzinfo is not None, text


def first_step_works(answer: Answer) -> None:
    """The command that the answer ends with does what it says, where it only reads."""
    step = answer.data["next"][0]
    assert step["effect"] == "read", step
    argv = shlex.split(step["command"])
    if argv[0] == "slurmtop":
        assert slurmtop(*argv[1:]).rc in (0, 1, 2)
        return
    done = subprocess.run(argv, capture_output=True, timeout=30, check=False, stdin=-3)
    assert done.returncode == 0, (argv, done.stderr)
    assert done.stdout
