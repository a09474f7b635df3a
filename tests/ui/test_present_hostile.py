"""Whatever bytes the cluster hands over: no presenter lets them reach the terminal as they are."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.changes import Change, ChangeKind
from slurmtop.control.outcome import JobOutcome, Outcome, Result
from slurmtop.model.facts import JobFacts, LogFacts, LogLine, LogStatus
from slurmtop.model.job import Job
from slurmtop.model.script import BatchScript, ScriptStatus
from slurmtop.parse.slurm.sacct_json import parse_sacct_json
from slurmtop.triage.why import explain_job
from slurmtop.ui.log_window import LogWindow
from slurmtop.ui.present.action_words import ask_text, title_text
from slurmtop.ui.present.changes import change_lines
from slurmtop.ui.present.confirm import body_lines
from slurmtop.ui.present.log import LogBar, bar_line, no_log_lines, row_line
from slurmtop.ui.present.outcome import Progress, progress_lines
from slurmtop.ui.present.script import script_lines
from slurmtop.ui.present.spans import Line, plain
from slurmtop.ui.present.why import WhyState, why_page
from tests.build import make_job
from tests.fakes import START

#: What a stranger may put into a name: any bytes, and the worst ones on purpose.
HOSTILE = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "replace")),
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            ["\x1b[2J", "\x1b]0;x\x07", "\u202e", "\x9b31m", "\r", "\n", "[/]", "\x1f", "a"]
        ),
        max_size=12,
    ).map("".join),
)
WIDTH = st.integers(20, 140)
#: Direction marks and other format characters; a soft hyphen is one, too.
_UNSAFE = re.compile("[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(lines: Iterable[Line]) -> None:
    for line in lines:
        text = plain(line)
        assert not _UNSAFE.search(text), repr(text)
        assert not any(unicodedata.category(char) == "Cs" for char in text)


def hostile_job(name: str, text: str) -> Job:
    return make_job(
        "4711",
        name=name,
        comment=text,
        workdir=f"/{text}",
        stdout=f"/{name}",
        command=text,
        nodes=name or None,
        reason=text or None,
        start=START - timedelta(hours=1),
    )


def cancel_of(job: Job) -> Action:
    action = plan_cancel([job], Asker(me=job.user, now=START))
    assert isinstance(action, Action)
    return action


@given(HOSTILE, HOSTILE, WIDTH)
def test_the_dialog_and_the_outcome(name: str, text: str, width: int) -> None:
    action = cancel_of(hostile_job(name, text))
    harmless(body_lines(action, START, width, name))
    harmless([((title_text(action), ""),), ((ask_text(action), ""),)])
    change = Change(action.targets[0].key, ChangeKind.STARTED, job=hostile_job(name, text))
    harmless(change_lines((change,), 1, width))
    told = JobOutcome(action.targets[0], Result.NOT_KNOWN, text, state_word=name)
    outcome = Outcome(action=action, jobs=(told,), trouble=text, started_at=START)
    harmless(progress_lines(Progress(title=title_text(action), outcome=outcome), START, width))
    harmless(progress_lines(Progress(title="x", refusal=text), START, width))
    harmless(progress_lines(Progress(title="x", failure=name), START, width))


@given(HOSTILE, HOSTILE, WIDTH)
def test_the_why_tab(name: str, text: str, width: int) -> None:
    line = LogLine(text, 1, 0)
    log = LogFacts(
        label="stdout",
        path=f"/{name}",
        status=LogStatus.READ,
        size=10,
        mtime=START,
        last_line=line,
        first_error=line,
    )
    facts = JobFacts(asked="4711", cluster="", now=START, job=hostile_job(name, text), logs=(log,))
    harmless(why_page(WhyState(verdict=explain_job(facts), note=text), START, width).lines)
    harmless(why_page(WhyState(failed=text), START, width).lines)


@given(HOSTILE, HOSTILE, WIDTH)
def test_logs_and_scripts(name: str, text: str, width: int) -> None:
    window = LogWindow()
    window.load([LogLine(text, 1, 0)], LogLine(name, 2, 5), end=10, size=10)
    for row in window.rows:
        harmless([row_line(row, name, False), row_line(row, "", True)])
    harmless([bar_line(LogBar(label="stdout", path=f"/{name}", said=text), width)])
    for status in LogStatus:
        harmless(no_log_lines(status, f"/{name}", text, hostile_job(name, text), name, width))
    for kind in ScriptStatus:
        harmless(script_lines(BatchScript(status=kind, text=text, why=name), width))


@given(st.binary(max_size=200))
def test_sacct_json_takes_any_bytes(data: bytes) -> None:
    parsed = parse_sacct_json(data)
    assert parsed.rows == () or parsed.bad >= 0
