"""Jobs to plan actions for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.outcome import Seen
from slurmtop.control.plan import task_ranges
from slurmtop.control.prepare import ScriptSeen, StepsSeen
from slurmtop.model.ids import JobKey
from slurmtop.model.job import UNKNOWN_LIMIT, Job, LimitKind, Step, TimeLimit, Tres
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.states import parse_state

NOW = datetime(2031, 5, 5, 12, 0, tzinfo=UTC)
NOBODY = Rights(operator=False, coordinates=frozenset())
OPERATOR = Rights(operator=True, coordinates=frozenset())


def job(id: str, word: str = "RUNNING", *, cluster: str = "", **changes: object) -> Job:
    parsed = parse_job_id(id)
    running = word in ("RUNNING", "SUSPENDED", "COMPLETING")
    values: dict[str, object] = {
        "key": JobKey(cluster, parsed.stable),
        "id": parsed,
        "name": "train",
        "user": "anna",
        "state": parse_state(word),
        "account": "ml",
        "submit": NOW - timedelta(hours=4),
        "start": NOW - timedelta(hours=3) if running else None,
        "limit": TimeLimit(LimitKind.SECONDS, 24 * 3_600),
        "priority": 1_000,
        "restarts": 0,
        "requeueable": True,
        "batch": True,
        "excluded_nodes": "",
        "node_count": 1,
        "nodes": "gpu01" if running else None,
        "tres": Tres(gpus=8),
    }
    values.update(changes)
    return Job(**values)  # type: ignore[arg-type]


def plan(*jobs: Job, me: str = "anna", cluster: str = "", read_only: bool = False) -> Action:
    made = plan_cancel(jobs, Asker(me=me, now=NOW, cluster=cluster, read_only=read_only))
    assert isinstance(made, Action), made
    return made


def refusal(*jobs: Job, me: str = "anna", cluster: str = "", read_only: bool = False) -> str:
    made = plan_cancel(jobs, Asker(me=me, now=NOW, cluster=cluster, read_only=read_only))
    assert isinstance(made, Refusal), made
    return made.sentence


def asker(me: str = "anna", *, rights: Rights = UNKNOWN_RIGHTS, **changes: object) -> Asker:
    return Asker(me=me, now=NOW, rights=rights, **changes)  # type: ignore[arg-type]


def action(made: Action | Refusal) -> Action:
    assert isinstance(made, Action), made
    return made


def sentence(made: Action | Refusal) -> str:
    assert isinstance(made, Refusal), made
    return made.sentence


def told(made: Action | Refusal) -> str:
    """All that the person reads beside the jobs."""
    return sentence(made) if isinstance(made, Refusal) else "\n".join(made.warnings)


def a_step(id: str, *, word: str = "RUNNING", name: str = "python") -> Step:
    """``4711.0``, ``4711_3.batch``."""
    parsed = parse_job_id(id)
    return Step(job=parsed, id=parsed.step or "", name=name, state=parse_state(word))


@dataclass
class FakeWorld:
    """Answers what it was given, and remembers what it was asked."""

    seen: Seen = field(default_factory=Seen)
    steps_seen: StepsSeen = field(default_factory=StepsSeen)
    scripts: dict[str, ScriptSeen] = field(default_factory=dict)
    loops: dict[str, str] = field(default_factory=dict)
    may: Rights = UNKNOWN_RIGHTS
    what: tuple[Reaction, ...] = ()
    asked: list[str] = field(default_factory=list)
    looks: tuple[NodeProcesses, ...] = ()

    async def jobs(self, numbers: Sequence[str], cluster: str, **how: Any) -> Seen:
        self.asked.append(f"jobs {','.join(numbers)}{'@' if cluster else ''}{cluster}")
        return self.seen

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        self.asked.append(f"steps {','.join(numbers)}{'@' if cluster else ''}{cluster}")
        return self.steps_seen

    async def script(self, job: Job) -> ScriptSeen:
        self.asked.append(f"script {job.key.id}")
        return self.scripts.get(job.id.base, ScriptSeen(None, "the script cannot be read"))

    async def looping(self, job: Job) -> str | None:
        self.asked.append(f"looping {job.key.id}")
        return self.loops.get(job.key.id)

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        self.asked.append(f"processes {job} on {','.join(hosts)}")
        return tuple(look for look in self.looks if look.host in hosts)

    def doing(self) -> str:
        return ""

    async def rights(self) -> Rights:
        self.asked.append("rights")
        return self.may

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        return self.what


WORDS = (
    "PENDING", "RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "COMPLETING", "COMPLETED",
    "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "REVOKED", "SIGNALING", "QUANTUM",
)  # fmt: skip
_SPELLINGS = (
    "4711", "4712", "4713_1", "4713_2", "4713_3", "4713_[4-9%2]", "4713_[4,6-8]", "4713",
    "4714_[0-8:2%2]", "4714_[*]", "4714_[1-3,7,12,...%8]", "9300+0", "9300+1", "9302+1",
    "9302+2", "4715_99999999999", "4716_", "0", "-1", "--full", "4717;rm", "４７１１", "",
)  # fmt: skip
_ODD = st.text(max_size=8)


@st.composite
def any_job(draw: st.DrawFn, cluster: str = "") -> Job:
    """A job of any id, state, owner and knowledge; some ids are hostile."""
    ours = st.sampled_from(["anna", "anna", "bob", ""])
    moments = st.none() | st.integers(-400, 400).map(lambda n: NOW - timedelta(hours=n))
    whether = st.sampled_from([None, True, False])
    limits = st.sampled_from(
        [UNKNOWN_LIMIT, *(TimeLimit(kind) for kind in LimitKind)]
    ) | st.integers(0, 2_000_000).map(lambda n: TimeLimit(LimitKind.SECONDS, n))
    reasons = st.sampled_from(
        [None, "None", "Priority", "JobHeldUser", "JobHeldAdmin", "JobHeldUser,Priority",
         "job requeued in held state", "JobHoldMaxRequeue", "JobHeldAdmin,JobHeldUser"]
    )  # fmt: skip
    return job(
        draw(st.sampled_from(_SPELLINGS)),
        draw(st.sampled_from(WORDS)),
        cluster=cluster,
        user=draw(ours),
        name=draw(_ODD),
        account=draw(st.none() | _ODD),
        raw_id=draw(st.sampled_from([None, "5001", "5002", "; rm", ""])),
        reason=draw(reasons | _ODD),
        priority=draw(st.sampled_from([None, 0, 7])),
        submit=draw(moments),
        start=draw(moments),
        end=draw(moments),
        limit=draw(limits),
        restarts=draw(st.sampled_from([None, 0, 3])),
        requeueable=draw(whether),
        batch=draw(whether),
        het_leader=draw(st.sampled_from([None, None, "9300", "; rm"])),
        excluded_nodes=draw(st.sampled_from([None, "", "gpu[03-04]", "gpu[", "a b;c"])),
        nodes=draw(st.sampled_from([None, "gpu01", "gpu[01-02]", "gpu["])),
        node_count=draw(st.sampled_from([None, 0, 1, 4])),
        tres=Tres(gpus=draw(st.sampled_from([None, 0, 8]))),
    )


def any_asker() -> st.SearchStrategy[Asker]:
    rights = st.builds(
        Rights,
        operator=st.sampled_from([None, True, False]),
        coordinates=st.sampled_from([None, frozenset(), frozenset({"ml"})]),
    )
    return st.builds(Asker, me=st.just("anna"), now=st.just(NOW), rights=rights)


def named(made: Action) -> list[str]:
    """Every job, task or step that the commands name, brackets spelled out."""
    out: list[str] = []
    for argv in made.argvs:
        for word in argv[1:]:
            text = word.removeprefix("JobId=")
            if text[:1].isdigit():
                out.extend(_spelled(text))
    return out


def _spelled(text: str) -> list[str]:
    if "[" not in text:
        return text.split(",")
    base, _, inner = text.partition("_[")
    out: list[str] = []
    for piece in inner.rstrip("]").split(","):
        low, _, high = piece.partition("-")
        out.extend(f"{base}_{n}" for n in range(int(low), int(high or low) + 1))
    return out


def meant(made: Action) -> list[str]:
    """Every job, task or step that the targets stand for."""
    out: list[str] = []
    for target in made.targets:
        if target.step is not None or not target.tasks:
            out.extend(target.ids)
        for low, high in target.tasks:
            out.extend(f"{target.base}_{n}" for n in range(low, high + 1))
    return out


def stands_for(one: Job) -> set[str]:
    """The ids by which a command may name this job: of a het part the leader's."""
    if one.id.het_offset is not None:
        return {one.id.base}
    if one.id.tasks is None:
        return {one.id.stable}
    ranges = task_ranges(one.id.tasks) or ()
    return {f"{one.id.base}_{n}" for low, high in ranges for n in range(low, high + 1)}
