"""Other answers of the kinds of 046, 048, 049, 053, 058, 066: other ids, users, versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Recipient
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.hold import plan_hold
from slurmtop.control.outcome import Result
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import parse_signal, plan_signal
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from slurmtop.parse.slurm.scontrol_replies import ReplyKind, parse_scontrol_replies
from tests.build import make_job
from tests.cases.acting import Acting, planned, refusal, row, said, told

# What scontrol says (049, 053)

WORDS = {
    "No error": ReplyKind.TAKEN,
    "Invalid job id specified": ReplyKind.UNKNOWN_JOB,
    "Access/permission denied": ReplyKind.DENIED,
    "Invalid user id": ReplyKind.DENIED,
    "Job has already finished": ReplyKind.FINISHED,
    "Job/step already completing or completed": ReplyKind.FINISHED,
    "Job is pending execution": ReplyKind.PENDING,
    "Job is no longer pending execution": ReplyKind.NOT_PENDING,
    "Requested operation is presently disabled": ReplyKind.DISABLED,
    "Only batch jobs are accepted or processed": ReplyKind.BATCH_ONLY,
    "Job not heterogeneous job leader": ReplyKind.HET_PART,
    "Job can not be altered now, try again later": ReplyKind.BUSY,
    "Requested time limit is invalid (missing or exceeds some limit)": ReplyKind.BAD_VALUE,
    "Invalid node name specified": ReplyKind.BAD_VALUE,
    "Unable to contact slurm controller (connect failure)": ReplyKind.UNHEARD,
    "Socket timed out on send/recv operation": ReplyKind.UNHEARD,
}
_IDS = st.integers(1, 2**31).map(str)
_RANGES = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 60)), min_size=1, max_size=6)


def spans(ranges: list[tuple[int, int]]) -> str:
    texts = []
    for low, more in ranges:
        texts.append(str(low) if not more else f"{low}-{low + more}")
    return ",".join(texts)


@given(_IDS, st.sampled_from(list(WORDS)), st.sampled_from(["", ": ", ":"]))
def test_kind_049_one_job_of_any_number(job: str, words: str, suspend: str) -> None:
    stderr = f"{words} for job {job}\n"
    if suspend:
        stderr += f"slurm_suspend error{suspend}{words}\n"
    (reply,) = parse_scontrol_replies(1, stderr.encode())
    assert reply.job is not None
    assert (reply.job.text, reply.kind) == (job, WORDS[words])
    assert "suspend" not in reply.words


@given(
    _IDS,
    st.lists(st.tuples(_RANGES, st.sampled_from(list(WORDS)), st.booleans()), min_size=1),
)
def test_kind_049_any_rows_of_an_array(
    base: str, rows: list[tuple[list[tuple[int, int]], str, bool]]
) -> None:
    lines = []
    for ranges, words, brackets in rows:
        text = spans(ranges)
        lines.append(f"{base}_[{text}]: {words}" if brackets else f"{base}_{text}: {words}")
    replies = parse_scontrol_replies(1, "\n".join(lines))
    assert [reply.kind for reply in replies] == [WORDS[words] for _, words, _ in rows]
    for reply, (ranges, _, _) in zip(replies, rows, strict=True):
        assert reply.job is not None
        assert reply.job.base == base
        counted = 1 if reply.job.tasks is None else reply.job.tasks.count
        assert counted == sum(more + 1 for _, more in ranges)


@pytest.mark.parametrize("words", list(WORDS))
def test_kind_049_brackets_change_nothing(words: str) -> None:
    for inner in ("7", "1-19", "0,2,5-9", "3-4"):
        (bare,) = parse_scontrol_replies(1, f"91_{inner}: {words}\n")
        (bracketed,) = parse_scontrol_replies(1, f"91_[{inner}]: {words}\n")
        assert bare.job is not None
        assert bracketed.job is not None
        assert (bare.kind, bare.words) == (bracketed.kind, bracketed.words)
        own, other = bare.job.tasks, bracketed.job.tasks
        assert (own.count if own else 1) == (other.count if other else 1)


def test_kind_049_several_jobs_in_one_call() -> None:
    stderr = (
        "Invalid job id specified for job 99999\n"
        "Access/permission denied for job 31\n"
        "8_0-1,3-9: Job has already finished\n"
        "8_2: No error\n"
        "slurm_suspend error: No error\n"
    )
    replies = parse_scontrol_replies(1, stderr)
    assert [(reply.job.base if reply.job else None, reply.kind) for reply in replies] == [
        ("99999", ReplyKind.UNKNOWN_JOB),
        ("31", ReplyKind.DENIED),
        ("8", ReplyKind.FINISHED),
        ("8", ReplyKind.TAKEN),
    ]


def test_kind_049_silence_is_no_success() -> None:
    assert [reply.kind for reply in parse_scontrol_replies(0, b"")] == [ReplyKind.SILENT]
    for rc in (1, 127, 255, None):
        (reply,) = parse_scontrol_replies(rc, b"")
        assert reply.kind not in (ReplyKind.TAKEN, ReplyKind.SILENT)


# What scancel says (046, 058, 066)


@given(
    st.from_regex(r"[1-9][0-9]{0,9}(_[0-9]{1,4}|\+[0-9])?", fullmatch=True),
    st.sampled_from(
        [
            ("Access/permission denied", ScancelKind.DENIED),
            ("Invalid job id specified", ScancelKind.UNKNOWN_JOB),
            ("Job/step already completing or completed", ScancelKind.ALREADY_OVER),
            ("Job can not be altered now, try again later", ScancelKind.BUSY),
            ("Job script not specified", ScancelKind.NO_SCRIPT),
            (
                "Operation not permitted on individual component of heterogeneous job",
                ScancelKind.HET_COMPONENT,
            ),
        ]
    ),
    st.sampled_from([0, 1, 60, 210, 217, 225, 228, 229]),
)
def test_kind_066_the_words_decide_not_the_status(
    job: str, words: tuple[str, ScancelKind], rc: int
) -> None:
    text, kind = words
    (reply,) = parse_scancel(rc, f"scancel: error: Kill job error on job id {job}: {text}\n")
    assert (reply.job, reply.kind) == (job, kind)


# What a person is told of them (049, 053)


@pytest.mark.parametrize("brackets", [True, False])
@pytest.mark.parametrize(
    ("base", "ended", "waits"), [("12", (0, 3), (4, 9)), ("99000001", (5, 5), (6, 7))]
)
async def test_kind_049_any_array_is_counted(
    base: str, ended: tuple[int, int], waits: tuple[int, int], brackets: bool
) -> None:
    over, held = (spans([(low, high - low)]) for low, high in (ended, waits))
    form = "[{}]" if brackets else "{}"
    stderr = (
        f"{base}_{form.format(over)}: Job has already finished\n"
        f"{base}_{form.format(held)}: No error\n"
    )
    rows = [row(f"{base}_{n}", "COMPLETED") for n in range(ended[0], ended[1] + 1)]
    rows.append(row(f"{base}_[{held}]", "PENDING", reason="JobHeldUser", priority="0"))
    job = make_job(f"{base}_[{ended[0]}-{waits[1]}]", "PENDING")
    outcome = await Acting(said(stderr), [rows]).outcome(planned(plan_hold, [job]))
    counts = {str(ended[1] - ended[0] + 1): "finished", str(waits[1] - waits[0] + 1): "held"}
    for number, word in counts.items():
        assert any(f"{number} {other}" in told(outcome) for other in (word, f"already {word}"))


@pytest.mark.parametrize("suspend", ["slurm_suspend error: {}", "slurm_suspend error:{}", ""])
@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("Access/permission denied", Result.DENIED),
        ("Invalid user id", Result.DENIED),
        ("Job can not be altered now, try again later", Result.REFUSED),
    ],
)
@pytest.mark.parametrize("user", ["bob", "svc-ml", "anna"])
async def test_kind_049_refusals_of_a_hold(
    suspend: str, words: str, result: Result, user: str
) -> None:
    stderr = f"{words} for job 57829110\n" + suspend.format(words)
    looks = [[row("57829110", "PENDING", reason="Resources", priority="7")]]
    job = make_job("57829110", "PENDING", user=user)
    outcome = await Acting(said(stderr), looks).outcome(planned(plan_hold, [job]))
    assert [each.result for each in outcome.jobs] == [result]
    text = told(outcome)
    assert "suspend" not in text
    assert "57829110" in text


async def test_kind_049_jobs_of_one_call_are_told_one_by_one() -> None:
    stderr = (
        "Access/permission denied for job 21\n"
        "Invalid job id specified for job 23\n"
        "slurm_suspend error: No error\n"
    )
    jobs = [make_job(str(n), "PENDING") for n in (20, 21, 22, 23)]
    held = {"reason": "JobHeldUser", "priority": "0"}
    free = {"reason": "Priority", "priority": "5"}
    looks = [
        [row("20", "PENDING", **held), row("21", "PENDING", **free), row("22", "RUNNING", **free)]
    ]
    outcome = await Acting(said(stderr), looks).outcome(planned(plan_hold, jobs))
    results = {job.target.key.id: job.result for job in outcome.jobs}
    assert results["20"] is Result.DONE
    assert results["21"] is Result.DENIED
    assert results["22"] is not Result.DONE
    assert results["23"] is Result.NO_SUCH_JOB
    assert not outcome.ok


@pytest.mark.parametrize(
    ("words", "result", "say"),
    [
        ("Requested operation is presently disabled", Result.REFUSED, "--no-requeue"),
        ("Only batch jobs are accepted or processed", Result.REFUSED, "batch"),
        ("Access/permission denied", Result.DENIED, ""),
        ("Invalid user id", Result.DENIED, ""),
    ],
)
@pytest.mark.parametrize("id", ["1", "4000123", "812_7"])
@pytest.mark.parametrize("hold", [False, True])
async def test_kind_053_refusals_of_a_requeue(
    words: str, result: Result, say: str, id: str, hold: bool
) -> None:
    base, _, task = id.partition("_")
    stderr = f"{id}: {words}\n" if task else f"{words} for job {base}\n"
    looks = [[row(id, "RUNNING", restarts="0")]]
    action = planned(plan_requeue, [make_job(id)], hold=hold)
    outcome = await Acting(said(stderr), looks).outcome(action)
    assert [job.result for job in outcome.jobs] == [result]
    assert say in told(outcome)


@pytest.mark.parametrize("restarts", [0, 1, 17])
@pytest.mark.parametrize("reason", ["BeginTime", "None", "Resources"])
async def test_kind_053_any_number_of_restarts(restarts: int, reason: str) -> None:
    action = planned(plan_requeue, [make_job("61", restarts=restarts)])
    for more, result in ((1, Result.DONE), (0, Result.SENT)):
        state = "PENDING" if more else "RUNNING"
        looks = [[row("61", state, reason=reason, restarts=str(restarts + more))]]
        outcome = await Acting(said(rc=0), looks).outcome(action)
        assert [job.result for job in outcome.jobs] == [result]


# Signals (048, 066)


@pytest.mark.parametrize("signal", ["USR2", "TERM", "INT", "HUP", "CONT", "STOP"])
@pytest.mark.parametrize("user", ["anna", "bob"])
@pytest.mark.parametrize("id", ["1", "88_0", "88_[3-9%2]", "70+1"])
def test_kind_066_nothing_that_waits_is_signalled(signal: str, user: str, id: str) -> None:
    waits = make_job(id, "PENDING", user=user)
    for recipient in (Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING):
        how = {"signal": signal, "recipient": recipient}
        assert "signal" in refusal(planned(plan_signal, [waits], **how))


@pytest.mark.parametrize(("form", "rc"), [("job id", 228), ("job step id", 228), ("job id", 0)])
@pytest.mark.parametrize("id", ["9801", "812_7", "3"])
async def test_kind_066_refused_in_words_of_any_version(form: str, rc: int, id: str) -> None:
    stderr = (
        f"scancel: error: Kill job error on {form} {id}:"
        " Job can not be altered now, try again later\n"
    )
    action = planned(plan_signal, [make_job(id)], signal="USR1", recipient=Recipient.STEPS)
    outcome = await Acting(said(stderr, rc), [[row(id, "PENDING")]]).outcome(action)
    (job,) = outcome.jobs
    assert job.result not in (Result.DONE, Result.OVER)
    assert "signal" in job.sentence


@pytest.mark.parametrize("id", ["5", "99_1"])
@pytest.mark.parametrize("node_count", [1, 16])
@pytest.mark.parametrize("user", ["anna", "bob"])
def test_kind_048_kill_asks_like_a_cancel(id: str, node_count: int, user: str) -> None:
    job = make_job(id, node_count=node_count, user=user)
    cancel = planned(plan_cancel, [job])
    assert isinstance(cancel, Action)
    for text in ("KILL", "SIGKILL", "9", "kill"):
        signal = parse_signal(text)
        assert signal == "KILL"
        for recipient in (Recipient.STEPS, Recipient.EVERYTHING):
            kill = planned(plan_signal, [job], signal=signal, recipient=recipient)
            assert isinstance(kill, Action)
            assert (kill.confirm, kill.expected_text) == (cancel.confirm, cancel.expected_text)
