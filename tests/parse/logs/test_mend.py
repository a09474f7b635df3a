"""Torn, glued and wrapped records come out as they were written; other lines are left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.mend import goes_on, joined, may_go_on, pieces
from slurmtop.parse.logs.shape import Shape
from tests.parse.logs.seen import read, texts

HEAD = "[rank2]:[E816 00:34:01.133910474 ProcessGroupNCCL.cpp:629] "
WORK = (
    "WorkNCCL(SeqNum=137429, OpType=_ALLGATHER_BASE, NumelIn=71552, NumelOut=572416, "
    "Timeout(ms)=600000)"
)
WATCHDOG = (
    f"[Rank 2] Watchdog caught collective operation timeout: {WORK} ran for 600004 milliseconds "
    "before timing out."
)
STATUS = (
    "[PG ID 1 PG GUID 1 Rank 2]  failure detected by watchdog at work sequence id: 137429 PG "
    "status: last enqueued work: 137430, last completed work: 137428"
)
OTHER = "[rank0]:[E816 00:34:01.151101643 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught it"


def pane(text: str, width: int, *, filled: bool) -> list[str]:
    cut = [text[at : at + width] for at in range(0, len(text), width)]
    return [part.ljust(width) if filled else part.rstrip() for part in cut]


def test_a_pane_that_was_filled_with_blanks_is_joined() -> None:
    for width in (100, 137, 168):
        lines = [
            line
            for text in (HEAD + WATCHDOG, HEAD + STATUS, OTHER)
            for line in pane(text, width, filled=True)
        ]
        assert texts("\n".join(lines).encode())[:2] == [WATCHDOG, STATUS], width


def test_lines_that_a_terminal_broke_are_joined() -> None:
    for width in (90, 113, 168):
        lines = [
            line
            for text in (HEAD + WATCHDOG, HEAD + STATUS, OTHER)
            for line in pane(text, width, filled=False)
        ]
        got = [" ".join(text.split()) for text in texts("\n".join(lines).encode())]
        assert got[0] == " ".join(WATCHDOG.split()), width


def test_the_parts_stand_in_the_shown_text_as_they_do_in_the_file() -> None:
    lines = pane(HEAD + WATCHDOG, 120, filled=True) + pane(HEAD + STATUS, 120, filled=True)
    messages, _ = read("\n".join(lines).encode())
    assert [message.at.line for message in messages] == [1, 4]
    assert messages[0].at.text == "\n".join(line.rstrip() for line in lines[:3])


def test_what_a_tmux_counter_hides_is_filled_in_where_one_operation_fits() -> None:
    first = (HEAD + WATCHDOG)[: (HEAD + WATCHDOG).index("SE, NumelI")] + "[451/1919]"
    rest = WATCHDOG[WATCHDOG.index("n=71552") :]
    assert texts(f"{first}\n{rest}\n{OTHER}\n".encode())[0] == WATCHDOG


def test_digits_beside_a_tmux_counter_are_not_believed() -> None:
    got = joined(["… NumelIn=71[451/1919]", "52, NumelOut=572416"], Shape())
    assert "NumelIn=71" not in got
    assert "NumelOut=572416" in got


def test_a_record_that_somebody_broke_at_blanks_is_joined() -> None:
    text = (
        b"[Rank 0] Watchdog caught collective operation timeout:\n"
        b"  WorkNCCL(SeqNum=3, OpType=ALLREDUCE,\n  NumelIn=1, NumelOut=1, Timeout(ms)=1800000)\n"
        b"  ran for 1800090 milliseconds before timing out.\nsrun: error: n1: task 0: Aborted\n"
    )
    assert texts(text) == [
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800090 "
        "milliseconds before timing out.",
        "srun: error: n1: task 0: Aborted",
    ]


SLURMS = (
    "slurmstepd: error: *** JOB 4711 ON gpu-node-0123 CANCELLED AT 2031-05-05T11:00:00 DUE TO"
    " TIME LIMIT ***"
)


def test_a_line_of_slurm_that_was_broken_anywhere_is_joined() -> None:
    first = SLURMS.index("4711") + 2
    for at in range(first, len(SLURMS)):
        got = texts(f"step 1\n{SLURMS[:at]}\n{SLURMS[at:]}\nstep 2\n".encode())
        assert ["".join(text.split()) for text in got][1:2] == ["".join(SLURMS.split())], at
    broken = SLURMS.replace(" DUE", "\nDUE").encode()
    assert texts(broken) == [SLURMS]


@pytest.mark.parametrize(
    "behind",
    [
        SLURMS,
        "srun: error: gpu01: task 0: Killed ***",
        "[rank0]: stopped ***",
        "*** the end ***",
        "done",
    ],
)
@pytest.mark.parametrize("cut", [SLURMS[:60], SLURMS[:80], SLURMS[:90]])
def test_a_line_of_slurm_that_is_cut_takes_no_other_one(cut: str, behind: str) -> None:
    assert texts(f"{cut}\n{behind}\n".encode())[0] == cut


def test_the_next_record_never_joins_one_that_is_cut() -> None:
    cut = HEAD + WATCHDOG[:90]
    assert texts(f"{cut}\n{OTHER}\n".encode()) == [
        WATCHDOG[:90].rstrip(),
        "[Rank 0] Watchdog caught it",
    ]
    assert texts(f"{cut}\nTraceback (most recent call last):\n".encode())[1].startswith("Traceback")


def test_two_lines_of_one_length_are_no_terminal() -> None:
    lines = [
        "W0616 16:14:04.059000 3791882 api.py:1012] Sending process 3792016 closing signal INT",
        "W0616 16:14:04.059000 3791882 api.py:1012] Sending process 3792017 closing signal INT",
        "Exception ignored in atexit callback: <function x>",
    ]
    assert texts("\n".join(lines).encode())[2] == lines[2]


def test_a_bar_glued_to_an_error_is_another_message() -> None:
    bar = "  1%|#         | 24/1752 [01:08<1:22:56,  2.88s/it]"
    messages, _ = read(f"{bar}{HEAD}{WATCHDOG}\n".encode())
    assert [message.text for message in messages] == [bar, WATCHDOG]
    assert [message.at.rank for message in messages] == [None, 2]
    assert messages[1].at.text.startswith("[rank2]:[E816")
    assert messages[0].at.order < messages[1].at.order


def test_tags_right_before_a_glued_head_belong_to_it() -> None:
    bar = "[node-a:0]:  0%|          | 3/1685 [00:23<3:27:44,  7.41s/it]"
    messages, _ = read(f"{bar}[node-a:5]:[rank5]:[E213 16:38:44.6 P.cpp:616] [Rank 5] W\n".encode())
    assert [(m.at.local_rank, m.at.rank, m.text) for m in messages] == [
        (0, None, " 0%|          | 3/1685 [00:23<3:27:44,  7.41s/it]"),
        (5, 5, "[Rank 5] W"),
    ]


def test_two_ranks_torn_into_one_line_are_told_apart() -> None:
    messages, _ = read(f"{HEAD}[Rank 2] Watchdog caught coll{OTHER}\n".encode())
    assert [(m.at.rank, m.text) for m in messages] == [
        (2, "[Rank 2] Watchdog caught coll"),
        (0, "[Rank 0] Watchdog caught it"),
    ]


def test_slurm_glued_to_a_ranks_line_is_not_that_ranks_word() -> None:
    messages, _ = read(b"[rank3]: step 4slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT x ***\n")
    assert [(m.at.rank, m.text[:10]) for m in messages] == [(3, "step 4"), (None, "slurmstepd")]


def test_a_launchers_label_holds_for_all_of_its_line() -> None:
    messages, _ = read(b"3: bar [1/2]node-a:7:8 [0] NCCL INFO x\n2: y\n2: z\n1: y\n3: v\n")
    assert [(m.at.task, m.at.pid) for m in messages[:2]] == [(3, None), (3, 7)]


def test_an_interrupt_stands_alone() -> None:
    assert texts(b"^CTraceback (most recent call last):\n") == [
        "^C",
        "Traceback (most recent call last):",
    ]
    assert texts(b"^C^C\nx\n") == ["^C", "^C", "x"]


BITS = st.sampled_from(
    [
        HEAD,
        WORK,
        WATCHDOG,
        STATUS[:99],
        "[451/1919]",
        "^C",
        "srun: error: ",
        "n=71552",
        "ran for 3",
        ", ",
        "(",
        ")",
        " ",
        "\n",
        "x" * 70,
        "node-a:1:2 [0] NCCL WARN ",
        "[rank",
        "OpType=_ALL",
    ]
)


@given(st.lists(BITS, max_size=8).map("".join), st.lists(BITS, max_size=5).map("".join))
def test_any_two_lines_are_judged_without_an_exception(first: str, second: str) -> None:
    for shape in (Shape(), Shape(width=70)):
        if may_go_on(first, shape):
            goes_on(first, second, shape)
        joined([first, second], shape)
        spans = [(start, end) for start, end, _ in pieces(first, shape)]
        assert spans == sorted(spans)
