"""``slurmtop explain``: every word that slurmtop or Slurm uses has an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.cli.explain import explain, run, unknown
from slurmtop.cli.main import main
from slurmtop.cli.options import Options
from slurmtop.model.text import cell_width
from slurmtop.parse.slurm.reason_table import WORDS
from slurmtop.parse.slurm.states import parse_state
from slurmtop.triage.catalogue import CATALOGUE
from slurmtop.triage.fault_classes import FAMILIES
from slurmtop.triage.mistaken import MISTAKEN_FOR
from slurmtop.triage.state_words import NODE_WORDS, STATE_WORDS
from slurmtop.triage.verdict_words import ALSO_CALLED
from slurmtop.triage.xid_table import ROWS

JOB_STATES = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"),
    *("NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "COMPLETING"),
    *("CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED", "REVOKED"),
)


def kinds(word: str) -> list[str]:
    return [one.kind.partition(":")[0].partition(" (")[0] for one in explain(word)]


def test_every_class_says_what_it_is_mistaken_for_and_what_to_do() -> None:
    assert set(MISTAKEN_FOR) == set(CATALOGUE)
    for slug in CATALOGUE:
        (one,) = explain(slug)
        assert one.meaning
        assert one.mistaken_for
        assert one.first_action


@pytest.mark.parametrize("state", JOB_STATES)
def test_every_state_of_a_job_is_explained(state: str) -> None:
    assert parse_state(state).word == state
    (one,) = (one for one in explain(state) if one.kind == "state of a job")
    assert one.mistaken_for
    assert one.first_action


@pytest.mark.parametrize(
    ("short", "state"), [("PD", "PENDING"), ("oom", "OUT_OF_MEMORY"), ("nf", "NODE_FAIL")]
)
def test_the_short_words_of_states_are_known(short: str, state: str) -> None:
    assert state in [one.word for one in explain(short)]


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_reason_of_slurm_is_explained_in_any_case(word: str) -> None:
    assert "reason of Slurm" in kinds(word)
    assert "reason of Slurm" in kinds(word.lower())


def test_every_xid_of_the_table_is_explained() -> None:
    for codes, *_ in ROWS:
        for code in codes:
            for spelling in (f"xid {code}", f"Xid{code}", f"XID:{code}"):
                assert kinds(spelling) == [
                    "Xid, " + next(explain(spelling)).kind.partition(", ")[2]
                ]


@pytest.mark.parametrize(
    ("word", "kind", "says"),
    [
        ("137", "exit code", "SIGKILL"),
        ("127", "exit code", "not found"),
        ("3", "exit code", "the program's own"),
        ("0", "exit code", "ended well"),
        ("0:53", "exit code:signal", "output file"),
        ("0:9", "exit code:signal", "SIGKILL"),
        ("1:0", "exit code:signal", "general error"),
        ("SIGBUS", "signal 7", "/dev/shm"),
        ("bus", "signal 7", "/dev/shm"),
        ("signal 11", "signal 11", "segmentation"),
        ("idle*", "state of a node", "Nothing runs"),
        ("drained", "state of a node", "no new jobs"),
        ("network", "family of faults", "net-link-fault"),
        ("GPU_OOM", "class of fault", "ran out of memory"),
    ],
)
def test_words(word: str, kind: str, says: str) -> None:
    found = [one for one in explain(word) if one.kind.startswith(kind)]
    assert found, kinds(word)
    assert says in found[0].meaning


def test_a_number_may_be_an_exit_code_and_an_xid() -> None:
    assert [one.word for one in explain("79")] == ["79", "Xid 79"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("gpu-om", "gpu-oom"),
        ("PENDNG", "PENDING"),
        ("priorty", "Priority"),
        ("timeout-un", "watch"),
    ],
)
def test_near_words_are_named(word: str, near: str) -> None:
    assert near in unknown(word)


def test_families_are_explained() -> None:
    for family in FAMILIES:
        assert "family of faults" in kinds(family)


def test_the_node_states_are_explained() -> None:
    for name in NODE_WORDS:
        assert list(explain(name)), name
    assert not set(NODE_WORDS) & set(STATE_WORDS)


def test_it_prints_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*CATALOGUE, *STATE_WORDS, *WORDS, *FAMILIES, "137", "79")
    for word in words:
        assert run(Options(command="explain", words=(word,))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(cell_width(line) for line in lines) <= 80
    assert all(line == line.rstrip() for line in lines)


def test_several_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "xid", "79", "NODE_FAIL", "exit", "137"]) == 0
    heads = [line for line in capsys.readouterr().out.splitlines() if line.endswith(")")]
    assert [head.partition("  (")[0] for head in heads[:2]] == ["Xid 79", "NODE_FAIL"]
    assert any(head.startswith("137  (exit code") for head in heads)


def test_an_unknown_word_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gpu-oom", "flurble\x1b[2J"]) == 1
    out, err = capsys.readouterr()
    assert "gpu-oom" in out
    assert err.startswith("slurmtop: ")
    assert "\x1b" not in err
    assert len(err.splitlines()) == 1


def test_no_word_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 64
    assert main(["explain", ""]) == 1
    capsys.readouterr()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", "137", "nothing-like-it"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert first["word"] == "137"
    assert set(first["means"][0]) == {
        "word", "kind", "meaning", "mistaken_for", "first_action"
    }  # fmt: skip
    assert second == {"word": "nothing-like-it", "means": []}


@given(st.text(max_size=40))
def test_any_text_has_an_answer(text: str) -> None:
    for one in explain(text):
        assert one.meaning
    assert unknown(text)


@pytest.mark.parametrize("state", ["hung", "slow", "recovering", "failed", "unknown"])
def test_every_state_of_a_verdict_on_logs_is_explained_first(state: str) -> None:
    first, *others = explain(state)
    assert (first.word, first.kind) == (state, "state of a verdict")
    assert first.mistaken_for
    assert "None" not in [one.word for one in others]


def test_what_people_call_a_fault_leads_to_its_classes() -> None:
    for word, meant in ALSO_CALLED.items():
        assert [one.word for one in explain(word.upper())][: len(meant)] == list(meant)
    assert run(Options(words=("CUDA", "error"))) == 0
    assert [one.kind for one in explain("NaN")] == ["word of logs"]


def test_idle_is_first_of_all_what_a_verdict_calls_so() -> None:
    first, *others = explain("idle")
    assert first.kind == "state of a verdict"
    assert "no program of it is at work" in first.meaning
    assert [one.kind for one in others] == ["state of a node"]


def test_io_stuck_says_why_a_verdict_names_the_rank() -> None:
    (one,) = explain("io-stuck")
    assert "names the rank that waits, to tell where" in one.mistaken_for
