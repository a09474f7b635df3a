"""What a person is told by rules that no handed case holds.

Each test is named after the number that the collection of quirks gives to its rule.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from slurmtop.collect.cluster_info import cluster_info
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.squeue import QueueSource
from slurmtop.model.facts import JobFacts
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import SourceHealth, Trouble
from slurmtop.model.verdict import EndedBy, State
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.sacct import SACCT_FIELDS
from slurmtop.parse.slurm.squeue import QUEUE_FIELDS
from slurmtop.triage.why import explain_job
from slurmtop.ui.present.header import Emptiness, notice_lines
from slurmtop.ui.present.health import describe_health
from tests.cases.live import Polling
from tests.cases.product import CaseRunner, gather, told, until_done
from tests.fakes import START

Row = Mapping[str, str]
GONE = b"slurm_load_jobs error: Invalid job id specified\n"
TIMES = {
    "Submit": "2031-05-05T09:00:00",
    "Start": "2031-05-05T10:00:00",
    "User": "anna",
    "End": "2031-05-05T11:00:00",
    "Timelimit": "01:00:00",
    "WorkDir": "/w",
}


def _refused(runner: CaseRunner, program: str, words: bytes, rc: int = 1) -> None:
    def answer(_command: Command) -> Completed:
        return Completed(rc, b"", words, START, 0.1)

    runner.on_call(f"{program} *", answer)


def _row(state: str, code: str = "0:0", step: str = "", **more: str) -> dict[str, str]:
    return {"JobID": f"8000{step}", "State": state, "ExitCode": code, **TIMES, **more}


async def _facts(
    accounting: Sequence[Row] = (), queue: Sequence[Row] = (), refused: bytes = b"", rc: int = 1
) -> JobFacts:
    """Job 8000; without ``queue`` the controller has forgotten it."""
    runner = CaseRunner()
    _refused(runner, "scontrol", GONE)
    if queue:
        runner.queue(queue)
    else:
        _refused(runner, "squeue", GONE)
    if refused:
        _refused(runner, "sacct", refused, rc)
    else:
        runner.accounting(accounting)
    return await gather(runner, "8000")


async def test_S010_a_killed_child_that_sacct_calls_9_is_not_the_programs_own_end() -> None:
    facts = await _facts([_row("FAILED", "9:0"), _row("FAILED", "9:0", ".batch")])
    verdict = explain_job(facts)
    assert "137" in verdict.summary
    assert "SIGKILL" in verdict.summary
    assert verdict.ended_by is not EndedBy.SELF


async def test_S010_out_of_memory_is_told_with_its_peak() -> None:
    facts = await _facts(
        [
            _row("OUT_OF_MEMORY", "0:125", ReqMem="16G"),
            _row("OUT_OF_MEMORY", "0:125", ".batch", MaxRSS="16252928K"),
        ]
    )
    text = told(facts)
    assert "memory" in text
    assert "15.5 GiB of 16.0 GiB" in text
    assert "signal" not in text.lower()


async def test_S012_preempted_in_accounting_but_running_again() -> None:
    running = {"id": "8000", "raw_id": "8000", "state": "RUNNING", "user": "anna", "restarts": "1"}
    verdict = explain_job(await _facts([_row("PREEMPTED")], [running]))
    assert verdict.state is not State.FAILED
    assert "pushed out" not in verdict.summary


@pytest.mark.parametrize(
    "batch", [("CANCELLED", "0:15"), ("FAILED", "15:0"), ("FAILED", "143:0"), ("COMPLETED", "0:0")]
)
async def test_S035_the_job_row_decides_at_a_time_limit(batch: tuple[str, str]) -> None:
    facts = await _facts(
        [
            _row("TIMEOUT"),
            _row(*batch, ".batch"),
            _row("COMPLETED", "0:0", ".extern"),
            _row("CANCELLED", "0:15", ".0"),
        ]
    )
    verdict = explain_job(facts)
    assert verdict.summary == "ended by Slurm at its time limit of 1:00:00"
    assert verdict.ended_by is EndedBy.SLURM


async def test_S035_a_good_extern_step_is_no_success() -> None:
    facts = await _facts([_row("FAILED", "1:0"), _row("COMPLETED", "0:0", ".extern")])
    verdict = explain_job(facts)
    assert (verdict.state, verdict.ended_by) == (State.FAILED, EndedBy.SELF)


async def test_S035_steps_hold_the_peak_memory() -> None:
    facts = await _facts([_row("COMPLETED"), _row("COMPLETED", "0:0", ".0", MaxRSS="29036860K")])
    job, step = facts.history
    assert (job.max_rss_bytes, step.max_rss_bytes) == (None, 29036860 * 1024)


_DBD = "sacct: error: {0}: failed to open persistent connection to host:db1:6819: {1}\n"
_DBD += "sacct: error: Sending PersistInit msg: {1}\n"
_DBD += "sacct: error: Problem talking to the database: {1}\n"


@pytest.mark.parametrize("rc", [1, 0])
@pytest.mark.parametrize(
    "words",
    [
        _DBD.format("slurm_persist_conn_open_without_init", "Connection refused"),
        _DBD.format("_open_persist_conn", "Connection refused"),
        "sacct: error: Problem talking to the database: Transport endpoint is not connected\n",
        "sacct: error: slurmdbd: DBD_GET_JOBS_COND failure: Unspecified error\n",
    ],
)
async def test_S037_a_data_base_that_is_down_is_no_empty_history(words: str, rc: int) -> None:
    facts = await _facts(refused=words.encode(), rc=rc)
    assert facts.accounting_answered is False
    verdict = explain_job(facts)
    assert verdict.state is State.UNKNOWN
    assert "accounting does not answer" in verdict.summary
    assert "wrong id" not in verdict.summary
    failure = explain_failure("sacct", rc, words)
    assert failure.trouble is Trouble.ACCOUNTING_DOWN
    assert failure.retry_after_s == 60.0


@pytest.mark.parametrize(
    ("setting", "hides"),
    [
        *(("jobs", True), ("nodes,jobs,usage", True), ("JOBS", True), ("all", True)),
        *(("none", False), ("(null)", False), ("usage,users", False), ("", False)),
    ],
)
def test_S040_hidden_jobs_are_known_from_the_configuration(setting: str, hides: bool) -> None:
    assert cluster_info({"PrivateData": setting}).hides_jobs is hides


@pytest.mark.parametrize("private", [True, False])
def test_S040_an_empty_queue_of_all_says_that_jobs_may_be_hidden(private: bool) -> None:
    health = describe_health(SourceHealth("queue", good_at=START, took_s=0.1), START)
    why = Emptiness(health=health, good_at=START, all_users=True, private_data=private)
    text = " ".join(span[0] for line in notice_lines(why, START, 120) for span in line)
    assert ("may be hidden" in text) is private
    assert ("of anybody" in text) is not private


_BACK_OFF = (Trouble.DOWN, Trouble.BUSY, Trouble.AUTH, Trouble.NO_CONFIG, Trouble.RATE_LIMITED)


@pytest.mark.parametrize("call", ["slurm_load_jobs", "slurm_load_partitions", "slurm_load_node"])
@pytest.mark.parametrize(
    ("words", "trouble"),
    [
        ("Socket timed out on send/recv operation", Trouble.BUSY),
        ("Unable to contact slurm controller (connect failure)", Trouble.DOWN),
        ("Unable to contact slurm controller (send failure)", Trouble.DOWN),
        ("Unable to contact slurm controller (receive failure)", Trouble.DOWN),
        ("Unable to contact slurm controller (shutdown failure)", Trouble.DOWN),
        ("Slurm backup controller in standby mode", Trouble.BUSY),
        ("Controller is in standby mode, try a different controller", Trouble.BUSY),
        ("Zero Bytes were transmitted or received", Trouble.AUTH),
        ("Incompatible versions of client and server code", Trouble.AUTH),
        ("Header lengths are longer than data received", Trouble.AUTH),
        ("Protocol authentication error", Trouble.AUTH),
        ("Invalid authentication credential", Trouble.AUTH),
        ("Rate limit exceeded, please retry momentarily", Trouble.RATE_LIMITED),
        ("Access/permission denied", Trouble.DENIED),
        ("Invalid job id specified", Trouble.UNKNOWN_JOB),
    ],
)
def test_S042_every_text_of_a_controller_has_its_kind(
    call: str, words: str, trouble: Trouble
) -> None:
    for form in (f"{call} error: {words}\n", f"{call} error:{words}\n"):
        failure = explain_failure("squeue", 1, form)
        assert failure.trouble is trouble
        assert failure.raw == form.strip()


@pytest.mark.parametrize(
    "words",
    [
        "slurm_load_jobs error: Zero Bytes were transmitted or received",
        "slurm_load_jobs error: Unable to contact slurm controller (receive failure)",
        "squeue: error: s_p_parse_file: cannot stat file /etc/slurm/slurm.conf: No such file or"
        " directory, retrying in 1sec up to 60sec",
        "squeue: fatal: Could not establish a configuration source",
    ],
)
async def test_S042_the_last_answer_stays_and_calls_become_rare(words: str) -> None:
    runner = CaseRunner()
    _refused(runner, "squeue", words.encode())
    polling = Polling(runner)
    starts = await polling.during(600.0)
    assert polling.values == []
    assert 2 <= len(starts) <= 10
    gaps = [late - early for early, late in pairwise(starts)]
    assert gaps == sorted(gaps)
    failure = polling.healths[-1].failure
    assert failure is not None
    assert failure.trouble in _BACK_OFF


@pytest.mark.parametrize(
    "words",
    [
        "squeue: fatal: Unable to find plugin: serializer/json",
        "squeue: fatal: serializer_required: could not find plugin for application/json",
        "squeue: error: cannot create serializer context for serializer/json\n"
        "squeue: fatal: JSON plugin load failure",
        "squeue: unrecognized option '--json'\nTry \"squeue --help\" for more information",
    ],
)
def test_S045_a_missing_json_plugin_is_no_outage(words: str) -> None:
    assert explain_failure("squeue", 1, words).trouble is Trouble.TOO_OLD


@pytest.mark.parametrize("rc", [139, -11])
def test_S045_a_client_that_dies_is_named(rc: int) -> None:
    failure = explain_failure("squeue", rc, b"")
    assert failure.trouble is Trouble.OTHER
    assert "SIGSEGV" in failure.sentence


async def test_S045_an_answer_beside_words_is_an_answer() -> None:
    runner = CaseRunner()
    source = QueueSource(runner, runner.clock, user="anna")
    _refused(runner, "squeue", b"slurm_load_jobs error: Unspecified error\n", 0)
    with pytest.raises(SourceFailed):
        await until_done(runner.clock, source.fetch())


def test_S065_kilobytes_are_never_asked_for() -> None:
    asked = {name.lower() for name, _ in (*SACCT_FIELDS, *QUEUE_FIELDS)}
    assert not asked & {"admincomment", "admin_comment", "systemcomment", "system_comment"}


async def test_S057_no_question_is_asked_as_json() -> None:
    runner = CaseRunner()
    runner.queue([])
    runner.accounting([])
    await until_done(runner.clock, QueueSource(runner, runner.clock, user="anna").fetch())
    await until_done(runner.clock, Accounting(runner).history("8000"))
    assert not any(
        "json" in word
        for argv in (*runner.asked("squeue"), *runner.asked("sacct"))
        for word in argv
    )


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("REQUEUE_HOLD", "put back in the queue and held"),
        ("SPECIAL_EXIT", "was put back"),
        ("RESV_DEL_HOLD", "reservation was deleted"),
        ("EXPEDITING", "put back in the queue"),
        ("SIGNALING", "a signal is on its way"),
        ("STAGE_OUT", "copied out"),
        ("REVOKED", "another cluster"),
        ("STOPPED", "SIGSTOP"),
        ("HIBERNATED", "does not know: HIBERNATED"),
    ],
)
async def test_S067_what_is_told_of_a_flag_alone(flag: str, words: str) -> None:
    row = {"id": "8000", "raw_id": "8000", "state": flag, "user": "anna", "reason": "None"}
    verdict = explain_job(await _facts(queue=[row]))
    assert words in verdict.summary
    assert verdict.state is not State.FAILED
    assert verdict.state is not State.HEALTHY
