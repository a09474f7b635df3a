"""Fingerprints, monitored barriers, desync reports and DDP's complaints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.torch import (
    Desync,
    Fingerprint,
    FingerprintMismatch,
    MonitoredBarrier,
    ParamsDiffer,
    RunningCollective,
    UnusedParameters,
)
from slurmtop.parse.logs.torch_checks import CheckReader
from tests.parse.logs.messages import read

OPTIONS = "TensorDeviceTypes=TensorOptions(dtype=float (default), memory_format=(nullopt))"


def print_of(seq: int, op: str, shape: str) -> str:
    return (
        f"CollectiveFingerPrint(SequenceNumber={seq}, OpType={op}, TensorShape=[{shape}], "
        f"TensorDtypes=Long, {OPTIONS})"
    )


WHOLE = (
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
    f"{print_of(4, '_ALLGATHER_BASE', '8, 4')}, but Rank 2 is running collective: "
    f"{print_of(5, 'BROADCAST', '')}.Collectives differ in the following aspects: "
    "\t Sequence number: 4vs 5"
)


def mismatch(text: str) -> FingerprintMismatch:
    (event,) = read(CheckReader(), text)
    assert isinstance(event, FingerprintMismatch)
    return event


def test_both_sides_of_a_mismatch_are_read() -> None:
    event = mismatch(WHOLE)
    assert event.here == Fingerprint(1, 4, "_ALLGATHER_BASE", "8, 4", "Long")
    assert event.there == Fingerprint(2, 5, "BROADCAST", "", "Long")


def test_a_side_without_tensors_is_empty() -> None:
    event = mismatch(
        "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1OpType=BARRIER), but "
        "Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=0OpType=BARRIER)."
    )
    assert event.here == Fingerprint(1, 1, "BARRIER", empty=True)
    assert event.there == Fingerprint(2, 0, "BARRIER", empty=True)


@pytest.mark.parametrize("end", range(120, len(WHOLE), 11))
def test_a_cut_mismatch_tells_no_half_words(end: int) -> None:
    event = mismatch(WHOLE[:end])
    for side, whole in (
        (event.here, (4, "_ALLGATHER_BASE", "8, 4")),
        (event.there, (5, "BROADCAST", "")),
    ):
        if side is not None:
            assert side.seq in (None, whole[0])
            assert side.op in (None, whole[1])
            assert side.shape in (None, whole[2])
            assert not side.empty


def test_the_words_of_torch_1_are_a_mismatch_too() -> None:
    event = mismatch(
        "Detected mismatch between collectives on ranks. Rank 0 is running inconsistent "
        "collective: "
        "CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[20], TensorDtypes=Float, x=y)"
    )
    assert event.here == Fingerprint(0, None, "ALLREDUCE", "20", "Float")
    assert event.there is None


def test_of_the_running_collectives_the_last_of_each_rank_are_kept() -> None:
    lines = [
        f"[Rank {rank}] Running collective: {print_of(seq, 'ALLREDUCE', '1')}"
        for seq in range(100)
        for rank in (0, 1)
    ]
    events = read(CheckReader(), lines)
    assert [one.at.order for one in events] == sorted(one.at.order for one in events)
    last = [one for one in events if isinstance(one, RunningCollective)][-1]
    assert (last.group_rank, last.print.seq, last.print.rank) == (1, 99, 1)
    assert len(events) < 50


@pytest.mark.parametrize(
    ("text", "late", "reached", "group_rank"),
    [
        ("[Rank 0]: Rank 3 failed to pass monitoredBarrier in 10000 ms", (3,), None, 0),
        ("[Rank 0]: Ranks 4, 5, 6 failed to pass monitoredBarrier in 1 ms", (4, 5, 6), None, 0),
        (
            "RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
            (),
            2,
            2,
        ),
        ("Rank 0 timed out in monitoredBarrier after 10000 ms.", (), None, 0),
    ],
)
def test_a_monitored_barrier_names_the_late_ones(
    text: str, late: tuple[int, ...], reached: int | None, group_rank: int
) -> None:
    (event,) = read(CheckReader(), text)
    assert isinstance(event, MonitoredBarrier)
    assert (event.late, event.reached, event.group_rank) == (late, reached, group_rank)


def test_a_desync_report_is_read_to_its_end() -> None:
    (event,) = read(
        CheckReader(),
        "[Rank 0]\t - [0] Timeout at collective: ALLREDUCE, #7\n"
        "\t - To our best knowledge, ranks [1, 3] are the lagging ranks that caused this timeout. "
        "They "
        "never joined any collectives\n"
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync "
        "are:\n"
        "\t   - [4] joined but didn't finish collective #6 (count from 1)\n"
        "\t     [5] finished collective #6, but didn't join collective #7 (count from 1)\n"
        "\t - Snapshot of ranks' latest states:\n"
        "\t   #7 started ranks:\n"
        "\t     [0, 2] started ALLREDUCE\n"
        "something else",
    )
    assert isinstance(event, Desync)
    assert event.lagging == (1, 3, 5)
    assert event.group_rank == 0
    assert (0, "started ALLREDUCE #7") in event.states
    assert any(rank == 4 and text.startswith("joined") for rank, text in event.states)


@pytest.mark.parametrize(
    ("text", "rank", "other", "none_there"),
    [
        (
            "DDP expects same model across all ranks, but Rank 3 has 2247 params, while rank 0 has "
            "inconsistent 0 params.",
            3,
            0,
            True,
        ),
        (
            "same model across all ranks, but Rank 3 has 20 params, while rank 1 has inconsistent "
            "10 "
            "params.",
            3,
            1,
            False,
        ),
        (
            "[2]: params[0] in this process with sizes [10, 5] appears not to match sizes of the "
            "same "
            "param in process 0.",
            2,
            0,
            False,
        ),
    ],
)
def test_models_that_differ_name_both_ranks(
    text: str, rank: int, other: int, none_there: bool
) -> None:
    (event,) = read(CheckReader(), text)
    assert isinstance(event, ParamsDiffer)
    assert (event.rank, event.other, event.none_there) == (rank, other, none_there)


def test_unused_parameters_are_told_and_the_advice_about_them_is_not() -> None:
    assert [
        type(one)
        for one in read(
            CheckReader(),
            "Expected to have finished reduction in the prior iteration before starting a new "
            "one.\n"
            "find_unused_parameters=True was specified in DDP constructor, but did not find any "
            "unused",
        )
    ] == [UnusedParameters]


@given(st.text(max_size=200), st.sampled_from([word.decode() for word in CheckReader.words]))
def test_any_text_is_read_without_an_error(text: str, word: str) -> None:
    read(
        CheckReader(),
        [f"Rank 1 is running collective: {text[:90]}{word}{text[90:]}", f"[1] {text}"],
    )
