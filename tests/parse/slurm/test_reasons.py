"""Every reason word that Slurm has, its free texts, and its two spellings."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.slurm.reasons import explain_reason, spelled_out

with (Path(__file__).parent / "reasons.tsv").open(encoding="utf-8", newline="") as _file:
    ROWS = list(csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE))
KINDS = {"queue", "limit", "user", "held", "never", "site", "transient", "failure", "ok", "unknown"}
HIGHER = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)


def words(text: str) -> set[str]:
    """What carries the sense: longer words, options and names; not ``text form is``."""
    return {word.lower() for word in re.findall(r"--[a-z]+|-A|[A-Za-z]{5,}", text)}


def test_the_table_is_whole() -> None:
    assert len(ROWS) == 218
    assert {row["kind"] for row in ROWS} == KINDS - {"unknown"}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['word']}-{row['kind']}" for row in ROWS])
def test_every_word_has_its_class_and_sense(row: dict[str, str]) -> None:
    same = [other for other in ROWS if other["word"] == row["word"]]
    info = explain_reason(row["word"])
    assert (info.word, info.kind, info.detail) == (row["word"], row["kind"], None)
    if row["word"] == "RaisedSignal":
        assert "signal" in info.meaning
        return
    assert any(
        words(other["meaning"])
        - words("often carries free text reqnodenotavail unavailablenodes")
        - words("for maintenance")
        <= words(info.meaning)
        for other in same
    ), info.meaning
    assert any(words(other["advice"]) <= words(info.advice) for other in same), info.advice


def test_families_tell_the_resource_and_who_set_the_cap() -> None:
    info = explain_reason("QOSMaxGRESPerUser")
    assert info.meaning == (
        "QOS: your running jobs already hold the allowed GRES (GPUs and the like)."
    )
    assert info.advice == "wait for own jobs"
    assert explain_reason("AssocGrpCPUMinutesLimit").meaning == (
        "account/association: CPUs-minutes budget spent (GrpTRESMins)."
    )
    assert explain_reason("QOSMaxGRESPerUserr").kind == "unknown"


@pytest.mark.parametrize("text", [HIGHER, HIGHER.replace(" ", "_"), f"({HIGHER})"])
def test_nodes_down_or_reserved_in_each_spelling(text: str) -> None:
    info = explain_reason(text)
    assert (info.word, info.kind, info.detail) == ("Resources", "site", HIGHER)


@pytest.mark.parametrize(
    ("text", "word", "kind", "detail"),
    [
        (
            "ReqNodeNotAvail, UnavailableNodes:gpu[03-05]",
            "ReqNodeNotAvail",
            "site",
            "UnavailableNodes:gpu[03-05]",
        ),
        (
            "ReqNodeNotAvail,_UnavailableNodes:rack_1-gpu[03-05]",
            "ReqNodeNotAvail",
            "site",
            "UnavailableNodes:rack_1-gpu[03-05]",
        ),
        (
            "(ReqNodeNotAvail, May be reserved for other job)",
            "ReqNodeNotAvail",
            "site",
            "May be reserved for other job",
        ),
        (
            "ReqNodeNotAvail,_Reserved_for_maintenance",
            "ReqNodeNotAvail",
            "site",
            "Reserved for maintenance",
        ),
        (
            "job_requeued_in_held_state",
            "JobHeldUser",
            "held",
            "job requeued in held state",
        ),
        (
            "launch failed requeued held",
            "JobHoldMaxRequeue",
            "held",
            "launch failed requeued held",
        ),
        (
            "user env retrieval failed requeued held",
            "JobHoldMaxRequeue",
            "held",
            "user env retrieval failed requeued held",
        ),
        (
            "Prolog error on n1 requeued held",
            "JobHoldMaxRequeue",
            "held",
            "Prolog error on n1 requeued held",
        ),
        (
            "(Job is at or exceeds QOS x's group max TRES(gres/gpu) minutes of 5 with 7)",
            "AccountingPolicy",
            "limit",
            "Job is at or exceeds QOS x's group max TRES(gres/gpu) minutes of 5 with 7",
        ),
        ("Dependency (afterok:12)", "Dependency", "user", "(afterok:12)"),
        ("(Priority)", "Priority", "queue", None),
        ("", "None", "ok", None),
        ("(null)", "None", "ok", None),
    ],
)
def test_free_text_keeps_its_detail(text: str, word: str, kind: str, detail: str | None) -> None:
    info = explain_reason(text)
    assert (info.word, info.kind, info.detail) == (word, kind, detail)


def test_a_list_of_words_tells_the_one_that_hinders_most() -> None:
    info = explain_reason("Priority,BeginTime")
    assert (info.word, info.kind) == ("Priority,BeginTime", "user")
    assert info.meaning.startswith("BeginTime: ")
    assert "Priority: Other jobs are ahead" in info.meaning
    assert explain_reason("Resources, JobHeldAdmin").kind == "held"


def test_signals_that_are_none_are_told_as_what_they_are() -> None:
    for text in ("RaisedSignal:53(Real-time_signal_19)", "RaisedSignal:53(Real-time signal 19)"):
        info = explain_reason(text)
        assert (info.word, info.kind) == ("RaisedSignal", "failure")
        assert "output file or its directory could not be created or opened" in info.meaning
        said = f"{info.meaning} {info.advice} {info.detail}"
        assert "signal 53" not in said
        assert "Real-time" not in said
    assert "SIGKILL" in explain_reason("RaisedSignal:9(Killed)").meaning
    assert "Out of memory" in explain_reason("RaisedSignal:125(Real-time signal 91)").meaning


def test_unknown_words_stay_visible() -> None:
    info = explain_reason("SiteQuotaExceeded")
    assert (info.word, info.kind) == ("SiteQuotaExceeded", "unknown")
    assert explain_reason("Something new happened").word == "Something new happened"


def test_spelling() -> None:
    assert spelled_out(HIGHER.replace(" ", "_")) == HIGHER
    assert spelled_out("a_b c") == "a_b c"
    assert spelled_out("(a) and (b)") == "(a) and (b)"


@given(st.text(max_size=60) | st.from_regex(r"[(]*[A-Za-z]{0,12}[_,: ]{0,3}[A-Za-z]{0,9}[)]*"))
def test_any_text_has_a_kind_and_words(text: str) -> None:
    info = explain_reason(text)
    assert info.kind in KINDS
    assert info.word
    assert info.meaning
    assert info.advice


@given(st.sampled_from([row["word"] for row in ROWS]), st.text(max_size=30))
def test_a_known_word_is_found_in_front_of_any_text(word: str, text: str) -> None:
    assert explain_reason(f"{word}, {text}x").kind != "unknown"
