import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import ENDED_STATES, Phase
from slurmtop.model.node import Usable
from slurmtop.parse.slurm.states import (
    parse_node_state,
    parse_node_state_list,
    parse_state,
    parse_state_list,
)
from tests.parse.slurm.support import case, expected

_BASES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "BOOT_FAIL": "BF",
    "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM",
}
_FLAGS = {
    "COMPLETING": "CG",
    "STAGE_OUT": "SO",
    "CONFIGURING": "CF",
    "RESIZING": "RS",
    "REQUEUED": "RQ",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "SPECIAL_EXIT": "SE",
    "STOPPED": "ST",
    "REVOKED": "RV",
    "RESV_DEL_HOLD": "RD",
    "SIGNALING": "SI",
}


@pytest.mark.parametrize(("long", "short"), _BASES.items())
def test_base_states_long_and_short(long: str, short: str) -> None:
    for text in (long, short, long.lower()):
        state = parse_state(text)
        assert (state.word, state.base, state.flags) == (long, long, ())
    assert parse_state(long).ended is (long in ENDED_STATES)


@pytest.mark.parametrize(("long", "short"), _FLAGS.items())
def test_flags_long_and_short_leave_the_base_open(long: str, short: str) -> None:
    for text in (long, short):
        state = parse_state(text)
        assert (state.word, state.base, state.flags) == (long, None, (long,))
        assert not state.ended
        assert state.phase is not Phase.UNKNOWN


def test_case_007_oom_is_cut_to_two_letters() -> None:
    assert parse_state("OO").base == "OUT_OF_MEMORY"


def test_case_026_words_cut_by_padding() -> None:
    words = [line.split()[-2] for line in case("026").decode().splitlines()[2:]]
    assert [parse_state(word).base for word in words] == [
        "CANCELLED",
        "CANCELLED",
        "COMPLETED",
        "OUT_OF_MEMORY",
        "RUNNING",
    ]
    assert parse_state("COMPLET+").base is None


def test_case_008_cancelled_by_whom() -> None:
    states = [parse_state(line.split("|")[1]) for line in case("008").decode().splitlines()]
    for state, row in zip(states, expected("008")["rows"], strict=True):
        assert state.by_uid == row.get("by_uid")
        assert state.ended is (row["result"] is not None)
    assert states[3].word == "CANCELLED"


def test_case_004_completing_ends_nothing() -> None:
    states = [parse_state(case("004", command).decode().split("|")[2]) for command in (1, 2, 3)]
    assert [state.word for state in states] == expected("004")["states"]
    assert not any(state.ended for state in states)
    assert states[1].phase is Phase.ENDING


@pytest.mark.parametrize(
    ("words", "word", "base", "flags"),
    [
        (["COMPLETING", "FAILED"], "COMPLETING", "FAILED", ("COMPLETING",)),
        (["FAILED", "COMPLETING"], "COMPLETING", "FAILED", ("COMPLETING",)),
        (["RUNNING"], "RUNNING", "RUNNING", ()),
        (
            ["PENDING", "REQUEUED", "COMPLETING"],
            "COMPLETING",
            "PENDING",
            ("COMPLETING", "REQUEUED"),
        ),
        (["RUNNING", "POWER_UP_NODE"], "RUNNING", "RUNNING", ("POWER_UP_NODE",)),
        (["FAILED", "LAUNCH_FAILED"], "FAILED", "FAILED", ("LAUNCH_FAILED",)),
        (["NEW_THING"], "NEW_THING", None, ("NEW_THING",)),
        ([], "?", None, ()),
    ],
)
def test_A14_a_list_in_any_order(
    words: list[str], word: str, base: str | None, flags: tuple[str, ...]
) -> None:
    state = parse_state_list(words)
    assert (state.word, state.base, state.flags) == (word, base, flags)


def test_unknown_words_are_kept_and_end_nothing() -> None:
    state = parse_state("EXPLODED")
    assert (state.word, state.flags, state.phase) == ("EXPLODED", ("EXPLODED",), Phase.UNKNOWN)
    assert parse_state("?").phase is Phase.UNKNOWN


def test_case_059_revoked_is_a_sibling_and_no_failure() -> None:
    words = [line.split("|")[2] for line in case("059", 2).decode().splitlines()]
    assert [parse_state(word).phase for word in words] == [
        Phase.RUNNING,
        Phase.ELSEWHERE,
        Phase.CANCELLED,
    ]


def _rows(command: int) -> dict[str, list[str]]:
    rows = {}
    for line in case("019", command).decode().splitlines():
        if command == 1:
            name, state = line.split()
            rows[name.removeprefix("NodeName=")] = [state.removeprefix("State=")]
        else:
            name, *states = line.split("|")
            rows[name] = states
    return rows


_USABLE = {
    False: Usable.NO,
    "after power-up": Usable.AFTER_POWER_UP,
    "spoken for": Usable.SPOKEN_FOR,
    "unknown flag: show it": Usable.UNKNOWN,
}


@pytest.mark.parametrize("command", [1, 2])
def test_case_019_the_table_holds_in_both_spellings(command: int) -> None:
    answer = expected("019")
    for name, texts in _rows(command).items():
        for text in texts:
            state = parse_node_state(text)
            usable = _USABLE[answer["usable_now"][name]]
            if name == "n13" and command == 2:
                # sinfo does not print the flag at all.
                usable = Usable.YES
            assert state.usable is usable, text
            assert state.may_run_jobs is answer["running_jobs_possible"].get(name, False), text
            assert state.text == text


def test_case_019_an_unknown_flag_is_kept() -> None:
    state = parse_node_state("IDLE+NEWFLAG")
    assert state.base == "IDLE"
    assert state.flags == state.unknown_flags == ("NEWFLAG",)


@pytest.mark.parametrize(
    ("text", "base", "flags", "usable", "may_run"),
    [
        ("idle", "IDLE", (), Usable.YES, False),
        ("mix", "MIXED", (), Usable.YES, True),
        ("allocated", "ALLOCATED", (), Usable.NO, True),
        ("drained*", None, ("DRAIN", "NOT_RESPONDING"), Usable.NO, False),
        ("drng", None, ("DRAIN",), Usable.NO, True),
        ("failing", None, ("FAIL",), Usable.NO, True),
        ("failg*", None, ("FAIL", "NOT_RESPONDING"), Usable.NO, True),
        ("fail*", None, ("FAIL", "NOT_RESPONDING"), Usable.NO, False),
        ("comp", None, ("COMPLETING",), Usable.NO, True),
        ("resv", None, ("RESERVED",), Usable.NO, False),
        ("reserved", None, ("RESERVED",), Usable.NO, False),
        ("plnd", None, ("PLANNED",), Usable.SPOKEN_FOR, False),
        ("allocated-", "ALLOCATED", ("PLANNED",), Usable.NO, True),
        ("idle#", "IDLE", ("POWERING_UP",), Usable.AFTER_POWER_UP, False),
        ("idle!", "IDLE", ("POWER_DOWN",), Usable.NO, False),
        ("idle%", "IDLE", ("POWERING_DOWN",), Usable.NO, False),
        ("mix$", "MIXED", ("MAINTENANCE",), Usable.NO, True),
        ("mix@", "MIXED", ("REBOOT_REQUESTED",), Usable.NO, True),
        ("boot^", None, ("REBOOT_ISSUED",), Usable.NO, False),
        ("futr", "FUTURE", (), Usable.NO, False),
        ("unk", "UNKNOWN", (), Usable.UNKNOWN, False),
        ("unknown*", "UNKNOWN", ("NOT_RESPONDING",), Usable.NO, False),
        ("IDLE+CLOUD+POWERING_UP", "IDLE", ("CLOUD", "POWERING_UP"), Usable.AFTER_POWER_UP, False),
        ("IDLE+RESERVED", "IDLE", ("RESERVED",), Usable.NO, False),
        ("MIXED+COMPLETING", "MIXED", ("COMPLETING",), Usable.YES, True),
        ("DOWN*+DRAIN", "DOWN", ("NOT_RESPONDING", "DRAIN"), Usable.NO, False),
        ("IDLE+EXTERNAL", "IDLE", ("EXTERNAL",), Usable.NO, False),
        ("MIXED+REBOOT_CANCELED", "MIXED", ("REBOOT_CANCELED",), Usable.YES, True),
        ("?", None, (), Usable.UNKNOWN, False),
        ("", None, (), Usable.UNKNOWN, False),
        ("strange", None, ("STRANGE",), Usable.UNKNOWN, False),
    ],
)
def test_every_spelling_of_section_7(
    text: str, base: str | None, flags: tuple[str, ...], usable: Usable, may_run: bool
) -> None:
    state = parse_node_state(text)
    assert (state.base, state.flags, state.usable, state.may_run_jobs) == (
        base,
        flags,
        usable,
        may_run,
    )


def test_a_json_list_says_the_same_as_the_text() -> None:
    listed = parse_node_state_list(["IDLE", "DRAIN", "NOT_RESPONDING"])
    assert listed == parse_node_state("IDLE+DRAIN+NOT_RESPONDING")


_WORDS = st.sampled_from([*_BASES, *_FLAGS, "CANCELLED by 0", "CANCELLED by x", "+", "?"])


@given(st.text(max_size=30) | _WORDS, st.lists(st.text(max_size=12) | _WORDS, max_size=5))
def test_any_word_is_in_exactly_one_bucket(word: str, words: list[str]) -> None:
    assert parse_state(word).phase in Phase
    assert parse_state(word).word != ""
    assert parse_state_list(words).phase in Phase
    state = parse_node_state(word)
    assert state.text == word
    if state.unknown_flags:
        assert state.usable in (Usable.UNKNOWN, Usable.NO)


@given(st.lists(_WORDS, min_size=1, max_size=5), st.randoms())
def test_the_order_of_a_list_never_matters(words: list[str], order: object) -> None:
    bases = [word for word in words if word in _BASES]
    words = [word for word in words if word not in _BASES] + bases[:1]
    before = parse_state_list(words)
    order.shuffle(words)  # type: ignore[attr-defined]
    after = parse_state_list(words)
    assert (before.word, before.base) == (after.word, after.base) or before.base is None
    assert set(before.flags) == set(after.flags)
