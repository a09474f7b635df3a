"""Failures of the clients: what kind, a sentence with a way out, and when to ask again."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.parse.slurm import failures
from slurmtop.parse.slurm.failures import explain_failure
from tests.parse.slurm.support import FIXTURES, VERSIONS, case


@pytest.mark.parametrize(
    ("number", "command", "program", "rc", "trouble", "words", "retry"),
    [
        ("031", 1, "squeue", 1, Trouble.UNKNOWN_JOB, "sacct", None),
        ("031", 5, "scontrol", 1, Trouble.UNKNOWN_JOB, "sacct", None),
        ("038", 1, "sacct", 1, Trouble.NO_ACCOUNTING, "no history", math.inf),
        ("041", 1, "squeue", 1, Trouble.BUSY, "too busy", None),
        ("043", 1, "squeue", 1, Trouble.AUTH, "munge", 60.0),
        ("043", 2, "squeue", 1, Trouble.AUTH, "munge, the clock or the version", 60.0),
        ("043", 3, "scontrol", 1, Trouble.AUTH, "The controller and your jobs may be fine", 60.0),
        ("044", 3, "squeue", 0, Trouble.RATE_LIMITED, "limits how often", 30.0),
        ("044", 4, "squeue", 1, Trouble.RATE_LIMITED, "limits how often", 30.0),
        ("046", 2, "scancel", 1, Trouble.UNKNOWN_JOB, "does not know this job", None),
        ("046", 4, "scancel", 210, Trouble.DENIED, "somebody else", None),
        ("049", 3, "scontrol", 1, Trouble.DENIED, "administrator", None),
        ("049", 7, "scontrol", 1, Trouble.DENIED, "not yours", None),
        ("053", 1, "scontrol", 1, Trouble.OTHER, "submit it again", None),
        ("053", 2, "scontrol", 1, Trouble.OTHER, "Only batch jobs", None),
        ("053", 3, "scontrol", 1, Trouble.OTHER, "waiting in the queue already", None),
        ("053", 4, "scontrol", 1, Trouble.UNKNOWN_JOB, "sacct", None),
        ("053", 5, "scontrol", 1, Trouble.DENIED, "somebody else", None),
        ("054", 3, "squeue", 1, Trouble.DOWN, "does not reach", None),
        ("054", 4, "squeue", 1, Trouble.OTHER, "gamma", None),
        ("058", 3, "scontrol", 1, Trouble.OTHER, "leader", None),
        ("061", 5, "squeue", 0, Trouble.OTHER, "no user nosuch", None),
        ("066", 1, "scancel", 228, Trouble.BUSY, "cannot get a signal", None),
        ("066", 2, "scancel", 217, Trouble.OTHER, "interactive", None),
    ],
)
def test_cases(
    number: str,
    command: int,
    program: str,
    rc: int,
    trouble: Trouble,
    words: str,
    retry: float | None,
) -> None:
    stderr = case(number, command, "stderr")
    failure = explain_failure(program, rc, stderr)
    assert failure.trouble is trouble
    assert words in failure.sentence
    assert failure.retry_after_s == retry
    assert failure.raw == stderr.decode().strip()


@pytest.mark.parametrize(
    ("text", "trouble", "words"),
    [
        (
            "squeue: error: s_p_parse_file: cannot stat file /etc/slurm.conf: No such file or "
            "directory, retrying in 1sec up to 60sec",
            Trouble.NO_CONFIG,
            "slurm.conf",
        ),
        (
            "squeue: fatal: Could not establish a configuration source",
            Trouble.NO_CONFIG,
            "tell the admins",
        ),
        (
            "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent "
            "connection to host:db1:6819: Connection refused",
            Trouble.ACCOUNTING_DOWN,
            "slurmdbd",
        ),
        (
            "sacct: error: Problem talking to the database: Connection refused",
            Trouble.ACCOUNTING_DOWN,
            "history",
        ),
        ("sacct: error: _open_persist_conn: failed", Trouble.ACCOUNTING_DOWN, "slurmdbd"),
        ("slurmdbd: Too wide of a date range in query", Trouble.OTHER, "fewer days"),
        ('sacct: error: Invalid field requested: "StdOut"', Trouble.TOO_OLD, "StdOut"),
        ("squeue: unrecognized option '--json'", Trouble.TOO_OLD, "--json"),
        (
            "squeue: error: Invalid job format specification: tres-per-node",
            Trouble.TOO_OLD,
            "tres-per-node",
        ),
        (
            "squeue: fatal: serializer_required: could not find plugin for application/json",
            Trouble.TOO_OLD,
            "JSON",
        ),
        ("squeue: fatal: Unable to find plugin: serializer/json", Trouble.TOO_OLD, "JSON"),
        (
            "slurm_load_jobs error: Incompatible versions of client and server code",
            Trouble.AUTH,
            "versions",
        ),
        ("error: Slurm backup controller in standby mode", Trouble.BUSY, "standby"),
        ("Unexpected message received for job 12", Trouble.DOWN, "does not reach"),
        ("slurm_auth: Rewound credential", Trouble.AUTH, "clock"),
        ("Cannot cancel scrontab jobs without --cron flag.", Trouble.OTHER, "--cron"),
        ("Job is in held state, pending scheduler release", Trouble.OTHER, "release it first"),
        ("Job is not suspended", Trouble.OTHER, "not suspended"),
        ("slurm_suspend error: Job has already finished", Trouble.OTHER, "over already"),
        ("[Errno 11] Resource temporarily unavailable", Trouble.LOCAL, "no room left"),
    ],
)
def test_texts(text: str, trouble: Trouble, words: str) -> None:
    failure = explain_failure("squeue", 1, text.encode())
    assert failure.trouble is trouble
    assert words in failure.sentence


def test_no_slurm_here() -> None:
    for rc, stderr in (
        (127, b""),
        (127, b"sh: 1: squeue: not found"),
        (1, b"FileNotFoundError: [Errno 2] No such file or directory: 'squeue'"),
    ):
        failure = explain_failure("squeue", rc, stderr)
        assert failure.trouble is Trouble.NO_SLURM
        assert failure.retry_after_s == math.inf


def test_our_own_time_limit() -> None:
    failure = explain_failure("squeue", None, b"", elapsed_s=60.4)
    assert failure.trouble is Trouble.TIMEOUT
    assert "within 60 s" in failure.sentence
    waiting = explain_failure("squeue", None, b"error: s_p_parse_file: cannot stat file /x")
    assert waiting.trouble is Trouble.NO_CONFIG


def test_a_client_that_crashed_or_said_nothing() -> None:
    assert "SIGSEGV" in explain_failure("squeue", 139, b"").sentence
    assert "SIGKILL" in explain_failure("squeue", -9, b"").sentence
    assert "said nothing" in explain_failure("squeue", 1, b" \n").sentence
    assert explain_failure("scancel", 229, b"").sentence == "Too late: the job is over already."
    assert explain_failure("squeue", 126, b"").trouble is Trouble.LOCAL


def test_unknown_words_are_shown_and_made_harmless() -> None:
    failure = explain_failure("squeue", 3, b"hint\nsqueue: \x1b[31mnew trouble\xff\n\n")
    assert failure.trouble is Trouble.OTHER
    assert failure.sentence == "squeue failed (exit 3): squeue: ␛[31mnew trouble�"
    assert failure.raw == "hint\nsqueue: \x1b[31mnew trouble�"


@pytest.mark.parametrize("version", VERSIONS)
def test_captured_refusals(version: str) -> None:
    expected = {
        "hold_not_mine": Trouble.DENIED,
        "requeue_norequeue": Trouble.OTHER,
        "requeue_unknown": Trouble.UNKNOWN_JOB,
        "scancel_not_mine": Trouble.DENIED,
        "scancel_signal_finished": Trouble.UNKNOWN_JOB,
        "scancel_signal_pending": Trouble.BUSY,
        "drain_denied": Trouble.DENIED,
        "scancel_badsig": Trouble.OTHER,
    }
    for name, trouble in expected.items():
        stderr = (FIXTURES / version / f"{name}.err").read_bytes()
        status = (FIXTURES / version / f"{name}.cmd").read_text().splitlines()[1]
        rc = int(status.removeprefix("exit="))
        assert explain_failure("scontrol", rc, stderr).trouble is trouble, name


@given(
    program=st.sampled_from(["squeue", "scancel", "sacct"]),
    rc=st.none() | st.integers(-70, 300),
    stderr=st.binary(max_size=80) | st.text(max_size=80),
)
def test_any_ending_has_a_sentence(program: str, rc: int | None, stderr: bytes | str) -> None:
    failure = explain_failure(program, rc, stderr, elapsed_s=1.0)
    assert failure.sentence.strip()
    assert "{" not in failure.sentence or "{" in str(stderr)
    assert visible(failure.sentence) == failure.sentence


def test_no_sentence_promises_what_only_a_poller_can_keep() -> None:
    told = [rule.sentence for rule in failures._RULES]
    told.append(explain_failure("squeue", None, b"", elapsed_s=120.0).sentence)
    for sentence in told:
        assert not re.search(r"asked again|waits before|next (?:try|call)", sentence), sentence
