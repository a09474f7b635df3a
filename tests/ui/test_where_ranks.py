"""Rows of ranks that stand at the same place, and the sources of a verdict, as lines."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.live import LiveFacts, LogMotion, Sample
from slurmtop.model.stacks import Frame
from slurmtop.model.verdict import Fate, SourceFate
from slurmtop.triage.sources import folded
from slurmtop.ui.present.looking import (
    LookState,
    better,
    carried_over,
    earns_look,
    look_line,
    looked_line,
    overtaken,
)
from slurmtop.ui.present.rank_rows import rank_rows
from slurmtop.ui.present.sources import answered_text, fate_lines, not_asked_lines, unanswered
from slurmtop.ui.present.spans import line_width, plain
from slurmtop.ui.present.where_ranks import MOST_ROWS, RankRow, rank_lines
from slurmtop.ui.present.why import WhyState, why_page
from tests.fakes import START
from tests.ui.job_bench import JOB
from tests.ui.look_bench import ODD as ODD_RANK
from tests.ui.look_bench import READS, live, sample, two_looks
from tests.ui.test_present_hostile import HOSTILE, harmless

SITE = "train.py:37 in step"
WAITS = RankRow(
    ranks=tuple(rank for rank in range(16) if rank != 11),
    hosts=("gpu03", "gpu04"),
    does="waits in all_reduce",
    site=SITE,
    moved=False,
)
ODD = RankRow(
    ranks=(11,), hosts=("gpu04",), does="waits for its data loader", site="data.py:9 in get"
)


def texts(*rows: RankRow, culprits: tuple[int, ...] = (), width: int = 100) -> list[str]:
    return [plain(line) for line in rank_lines(rows, culprits, (), width)]


def test_whom_the_verdict_names_stands_on_top() -> None:
    lines = texts(WAITS, replace(ODD, moved=False), culprits=(11,))
    assert lines[1] == "Where the ranks are"
    told = "! rank 11 gpu04 stands waits for its data loader data.py:9 in get"
    assert " ".join(lines[2].split()) == told
    assert lines[3].startswith("    15 ranks: 0-10, 12-15")
    assert lines[3].endswith("waits in all_reduce  train.py:37 in step")
    assert "  ! named by the verdict" in lines


def test_without_a_culprit_the_few_stand_above_the_many() -> None:
    lines = texts(WAITS, ODD)
    assert lines[2].startswith("    rank 11")
    assert not any(line.startswith("  !") for line in lines)


def test_a_process_without_a_rank_is_known_by_its_pid() -> None:
    row = RankRow(nameless=1, hosts=("gpu04",), does="stopped", pids=frozenset({("gpu04", 811)}))
    lines = [plain(line) for line in rank_lines((WAITS, row), (), {("gpu04", 811)}, 100)]
    assert lines[2].startswith("  ! 1 process, rank unknown")


def test_thousands_of_ranks_take_as_many_lines_as_eight() -> None:
    many = replace(
        WAITS,
        ranks=tuple(rank for rank in range(8_192) if rank != 4_711),
        hosts=tuple(f"gpu{number:04}" for number in range(1_024)),
    )
    lines = texts(replace(ODD, ranks=(4_711,)), many, culprits=(4_711,), width=80)
    assert len(lines) < 12
    assert any("8,191 ranks" in line and "gpu[0000-1023]" in line for line in lines)


def test_many_places_are_counted_and_the_named_one_is_among_those_shown() -> None:
    rows = [replace(ODD, ranks=(rank,), site=f"f{rank}.py:1") for rank in range(40)]
    lines = texts(*rows, culprits=(39,))
    assert lines[2].startswith("  ! rank 39")
    assert any("32 more places with 32 ranks" in line for line in lines)
    assert sum("data loader" in line for line in lines) == MOST_ROWS


def test_motion_is_told_by_a_word() -> None:
    lines = texts(WAITS, replace(ODD, moved=True), replace(ODD, ranks=(3,)))
    assert any(" moved " in line for line in lines)
    assert any(line.startswith("  moved: its stack") for line in lines)
    assert any(line.startswith("  ?: seen once only") for line in lines)


@given(HOSTILE, HOSTILE, HOSTILE, st.integers(8, 140))
def test_hostile_names_of_frames_and_nodes_do_no_harm(
    does: str, site: str, host: str, width: int
) -> None:
    rows = (replace(ODD, does=does, site=site, hosts=(host,)), WAITS)
    lines = rank_lines(rows, (11,), (), width, stale="its log has grown since")
    harmless(lines)
    assert all(line_width(line) <= width for line in lines)


@given(HOSTILE, HOSTILE, st.integers(20, 140))
def test_hostile_frames_do_no_harm_on_their_way_to_the_page(
    name: str, path: str, width: int
) -> None:
    odd = (Frame(name, path, 12), Frame(path, f"/home/anna/{name}.py", None), *READS)
    rows = rank_rows(two_looks(START, odd))
    assert sum(row.count for row in rows) == 8
    page = why_page(WhyState(verdict=None, rows=rows), START, width)
    harmless(page.lines)
    harmless(rank_lines(rows, (ODD_RANK,), (), width))


def test_a_stack_is_not_needed_where_the_kernel_tells() -> None:
    bare = live(*(replace(one, stacks=()) for one in two_looks(START).samples))
    rows = {row.ranks: row for row in rank_rows(bare)}
    assert rows[(ODD_RANK,)].does == "is blocked in a read or write"
    assert rows[(ODD_RANK,)].site == ""
    assert len(rows) == 2
    assert rank_rows(None) == ()
    assert rank_rows(live()) == ()


# Sources

KERNEL = SourceFate(
    source="kernel log",
    fate=Fate.REFUSED,
    hosts=("gpu04",),
    why="only root may read it there",
    command="sudo dmesg -T",
)
SOURCES = (
    SourceFate(source="ras", fate=Fate.NOT_ASKED, why="a later version reads it"),
    SourceFate(source="processes", fate=Fate.ANSWERED, hosts=("gpu03",)),
    SourceFate(source="processes", fate=Fate.TIMED_OUT, hosts=("gpu04",), why="30 s"),
    KERNEL,
    replace(KERNEL, hosts=("gpu03",)),
    SourceFate(source="slurm", fate=Fate.ANSWERED),
)


def test_sources_stand_in_their_order_and_nodes_are_folded() -> None:
    both = folded(SOURCES)
    assert [one.source for one in both] == ["slurm", "processes", "processes", "kernel log", "ras"]
    assert answered_text(both) == "answered: slurm, processes (1 of 2 nodes)"
    rest = unanswered(both)
    assert [one.source for one in rest] == ["processes", "kernel log"]
    assert [plain(line) for line in fate_lines(rest[1], 80)] == [
        "  kernel log: refused on gpu[03-04]: only root may read it there",
        "    $ sudo dmesg -T",
    ]


def test_what_nobody_asked_for_one_reason_is_one_entry() -> None:
    why = "the nodes were not looked at"
    names = ("nodes", "processes", "stacks")
    left = [SourceFate(source=name, fate=Fate.NOT_ASKED, why=why) for name in names]
    told = [plain(line) for line in not_asked_lines((*SOURCES, *left), 80)]
    assert told == [
        "  not asked: ras: a later version reads it",
        "  not asked: nodes, processes, stacks: the nodes were not looked at",
    ]


@given(HOSTILE, HOSTILE, HOSTILE, st.integers(20, 140))
def test_hostile_words_of_a_source_do_no_harm(
    why: str, command: str, host: str, width: int
) -> None:
    one = SourceFate(source=why, fate=Fate.FAILED, hosts=(host, why), why=why, command=command)
    harmless(fate_lines(one, width))
    harmless(not_asked_lines((replace(one, fate=Fate.NOT_ASKED, command=None),), width))


# When a look is earned, and what of it stays


def facts(quiet_s: float = 0.0, known: LiveFacts | None = None, **more: object) -> JobFacts:
    log = LogFacts(
        label="stdout",
        path="/run/out",
        status=LogStatus.READ,
        mtime=START - timedelta(seconds=quiet_s),
    )
    given: dict[str, object] = {"job": JOB, "logs": (log,), "live": known}
    return JobFacts(asked="4711", cluster="", now=START, **{**given, **more})  # type: ignore[arg-type]


def age(at: object) -> float:
    return 0.0


@pytest.mark.parametrize(("quiet_s", "earned"), [(0, False), (59, False), (60, True), (-30, False)])
def test_a_quiet_log_earns_a_look(quiet_s: float, earned: bool) -> None:
    assert earns_look(facts(quiet_s), START) is earned


def test_a_log_that_was_not_read_earns_nothing() -> None:
    assert not earns_look(facts(logs=()), START)
    unread = LogFacts(label="stdout", path="/run/out", status=LogStatus.DENIED)
    assert not earns_look(facts(logs=(unread,)), START)


def test_old_looks_are_kept_for_the_same_run_only() -> None:
    known = two_looks(START)
    old = facts(known=known)
    assert carried_over(old, facts()).live is known
    assert carried_over(None, facts()).live is None
    assert carried_over(old, facts(job=replace(JOB, restarts=1))).live is None
    assert carried_over(old, facts(job=None)).live is None


def test_half_a_look_does_not_push_out_a_whole_one() -> None:
    whole, half = two_looks(START), live(sample(START + timedelta(seconds=70), whole=False))
    assert better(whole, half, going=True) is whole
    assert better(whole, half, going=False) is half
    assert better(None, half, going=True) is half
    assert better(half, whole, going=True) is whole
    other = replace(half, job="4712")
    assert better(whole, other, going=True) is other


def test_what_was_seen_is_overtaken_by_the_log_and_by_time() -> None:
    known = two_looks(START - timedelta(seconds=60))
    assert overtaken(facts(90, known), age) == ""
    assert overtaken(facts(30, known), age) == "its log has grown since"
    growing = replace(known, log=LogMotion(grew=True))
    assert overtaken(facts(30, growing), age) == "", "it was seen to go on"
    assert overtaken(facts(900, known), lambda at: 200.0) == "that is long ago"
    assert overtaken(facts(900), age) == ""


def test_a_look_that_ended_is_told_with_its_age() -> None:
    assert looked_line(None, None, "", age, possible=False) == ()
    ended = LookState(began_at=START, going=False, ended="it was stopped")
    line = plain(looked_line(None, ended, "", age, possible=True))
    assert line == "it was stopped; p looks again"
    line = plain(looked_line(two_looks(START), ended, "", age, possible=False))
    assert line == "nodes looked at twice, 0 s ago; it was stopped"
    assert look_line(ended, age) == ()


@given(HOSTILE, st.booleans(), st.integers(0, 3))
def test_the_lines_of_a_look_do_no_harm(host: str, whole: bool, rounds: int) -> None:
    samples = tuple(Sample(began_at=START, whole=whole) for _ in range(rounds))
    known = LiveFacts(job="4711", hosts=(host,), samples=samples)
    look = LookState(began_at=START, hosts=(host,), newest=known)
    harmless([look_line(look, age)])
    harmless([looked_line(known, replace(look, going=False, ended=host), "", age, possible=True)])
