"""Prefixes in any nesting tell who wrote a line; a number that is no rank never becomes one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.trace import Clock, RankFrom
from slurmtop.parse.logs.peel import SHOWN_CHARS, peel, shown_text
from slurmtop.parse.logs.shape import Shape

TAG, MPI, WORDS = RankFrom.TAG, RankFrom.MPI, RankFrom.WORDS
NCCL = "NCCL INFO Connected all rings"


def told(text: str, shape: Shape | None = None) -> tuple[str, dict[str, Any]]:
    prefix = peel(text, shape or Shape())
    names = ("rank", "rank_from", "local_rank", "task", "host", "label", "pid")
    fields = {name: getattr(prefix, name) for name in names}
    return text[prefix.end :], {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize(
    ("text", "rest", "fields"),
    [
        ("[rank3]: x", "x", {"rank": 3, "rank_from": TAG}),
        ("[rank3]:     return f(x)", "    return f(x)", {"rank": 3, "rank_from": TAG}),
        ("[rank: 3] Received SIGTERM: 15", "Received SIGTERM: 15", {"rank": 3, "rank_from": TAG}),
        (
            "[RANK 1] 2026-05-19 10:10:29,701 [ERROR] x",
            "[ERROR] x",
            {"rank": 1, "rank_from": WORDS},
        ),
        (
            "[rank1]:[E1003 18:37:01.832146912 ProcessGroupNCCL.cpp:607] [Rank 5] Watchdog",
            "[Rank 5] Watchdog",
            {"rank": 1, "rank_from": TAG},
        ),
        ("[E ProcessGroupNCCL.cpp:828] [Rank 6] Watchdog", "[Rank 6] Watchdog", {}),
        (
            "[rank3[]:[E508 07:35:59.4 ProcessGroupNCCL.cpp:733] Stack",
            "Stack",
            {"rank": 3, "rank_from": TAG},
        ),
        (
            "[default0]:[rank12]:[E817 17:40:34.2 P.cpp:15] [PG 0 Rank 12] P",
            "[PG 0 Rank 12] P",
            {"rank": 12, "rank_from": TAG, "local_rank": 0},
        ),
        (
            "[trainer3]:node-a:1958:1959 [3] " + NCCL,
            NCCL,
            {"local_rank": 3, "host": "node-a", "pid": 1958},
        ),
        ("[trainer0|0]:Last error:", "Last error:", {"local_rank": 0}),
        (
            "[node-a:5]:[rank5]:[E213 16:38:44.6 P.cpp:616] [Rank 5] W",
            "[Rank 5] W",
            {"rank": 5, "rank_from": TAG, "local_rank": 5, "host": "node-a"},
        ),
        (
            "[1,12]<stdout>:node-d:815:864 [0] " + NCCL,
            NCCL,
            {"rank": 12, "rank_from": MPI, "host": "node-d", "pid": 815},
        ),
        ("2019-06-02T16:13:44.884Z: [1,12]<stderr>:x", "x", {"rank": 12, "rank_from": MPI}),
        ("Fri Aug 11 12:31:45 2023[1,0]<stdout>:x", "x", {"rank": 0, "rank_from": MPI}),
        ("[prterun-n1-12@1,3]<stdout>: x", "x", {"rank": 3, "rank_from": MPI}),
        ("[0]<stderr>:x", "x", {"rank": 0, "rank_from": MPI}),
        (
            "(RayWorkerWrapper pid=92234, ip=10.0.0.110) mlx5: x",
            "mlx5: x",
            {"pid": 92234, "label": "10.0.0.110"},
        ),
        ("(raylet, ip=10.0.0.7) A worker died", "A worker died", {"label": "10.0.0.7"}),
        ("(raylet) A worker died", "A worker died", {}),
        (
            "(EngineCore_DP0 pid=12) INFO 07-21 19:05:29 [core.py:80] x",
            "INFO 07-21 19:05:29 [core.py:80] x",
            {"pid": 12},
        ),
        (
            "[2025-05-10 00:18:21] (W pid=12, ip=w-0) [rank15]:[E510 00:18:19.3 P.cpp:6] [PG 0] W",
            "[PG 0] W",
            {"rank": 15, "rank_from": TAG, "label": "w-0", "pid": 12},
        ),
        ('node-d:   File "train.py"', '  File "train.py"', {"label": "node-d"}),
        (
            "10.0.0.10: node-a:13:14 [0] " + NCCL,
            NCCL,
            {"label": "10.0.0.10", "host": "node-a", "pid": 13},
        ),
        (
            "2025-08-12 09:37:03.463948 worker-9 >> [2025-08-12 01:37:03] :166:12 [0] " + NCCL,
            NCCL,
            {"label": "worker-9", "pid": 166},
        ),
        (
            '[2024-02-27T21:35:28.7Z] fa88a9df [rank=2] ||   File "x"',
            '  File "x"',
            {"rank": 2, "rank_from": TAG},
        ),
        (
            "[pod/worker-0/pytorch] node-a:1:2 [0] " + NCCL,
            NCCL,
            {"label": "pod/worker-0/pytorch", "host": "node-a", "pid": 1},
        ),
        ("2025-08-12T09:37:02.216313123Z stdout F [rank2]: x", "x", {"rank": 2, "rank_from": TAG}),
        ("trainer-1  | [rank2]: x", "x", {"label": "trainer-1", "rank": 2, "rank_from": TAG}),
        ("11: [rank11]:[E617 1:0 x", "[E617 1:0 x", {"task": 11, "rank": 11, "rank_from": TAG}),
        (" 3: node-a:1:2 [0] " + NCCL, NCCL, {"task": 3, "host": "node-a", "pid": 1}),
        (
            "0 | 2021-03-02 00:46:12,994 - WARNING - x",
            "WARNING - x",
            {"rank": 0, "rank_from": WORDS},
        ),
        ("Aug 11 12:31:45 n1 kernel: [74785.660366] NVRM: Xid", "NVRM: Xid", {"host": "n1"}),
        ("Aug 11 12:31:45 n1 python[77]: Traceback", "Traceback", {"host": "n1", "pid": 77}),
        (
            "Aug 11 12:31:45 n1 slurmd[77]: error: x",
            "slurmd[77]: error: x",
            {"host": "n1", "pid": 77},
        ),
        ("kernel: NVRM: Xid", "NVRM: Xid", {}),
        ("| distributed init (rank 4)", "distributed init (rank 4)", {}),
        ("│ x", "x", {}),
        ("> [rank3]: x", "x", {"rank": 3, "rank_from": TAG}),
        (
            "**node-a:2918:3333 [0] net.cc:200 NCCL WARN x",
            "net.cc:200 NCCL WARN x",
            {"host": "node-a", "pid": 2918},
        ),
        (
            "W1026 03:51:31.222 2521679 torch/api.py:908] Sending process 42",
            "Sending process 42",
            {"pid": 2521679},
        ),
        (
            "[node-a:5283 :0:5704] Caught signal 7",
            "Caught signal 7",
            {"host": "node-a", "pid": 5283},
        ),
        (
            "[node-a:12345] *** Process received signal ***",
            "*** Process received signal ***",
            {"host": "node-a", "pid": 12345},
        ),
    ],
)
def test_prefixes_are_peeled(text: str, rest: str, fields: dict[str, Any]) -> None:
    assert told(text) == (rest, fields)


@pytest.mark.parametrize(
    ("head", "host", "pid"),
    [
        ("64:219:636 [4] ", "64", 219),
        (":219:636 [4] ", None, 219),
        ("<2nd node server>:5359:5359 [0] ", "<2nd node server>", 5359),
        ("node-01:XXXXXX [5] ", "node-01", None),
        ("[redacted]:12:13 [0] ", "[redacted]", 12),
        ("10.0.0.1:12:13 [-1] ", "10.0.0.1", 12),
        ("[2026-03-13 22:26:02] n1:12:13 [0] ", "n1", 12),
    ],
)
def test_any_host_of_nccl_is_taken_as_it_stands(
    head: str, host: str | None, pid: int | None
) -> None:
    rest, fields = told(head + "misc/socket.cc:484 NCCL WARN x")
    assert rest == "misc/socket.cc:484 NCCL WARN x"
    assert (fields.get("host"), fields.get("pid"), fields.get("rank")) == (host, pid, None)


@pytest.mark.parametrize(
    "text",
    [
        "3: foo",
        "  0: std::backtrace::Backtrace",
        "ValueError: [rank3] foo",
        "srun: error: node-a: task 0: Terminated",
        "slurmstepd-node-a: error: Detected",
        "[Rank 1] Watchdog caught",
        "[PG 0 Rank 3] Heartbeat",
        "[Gpu 3] x",
        "[epoch3]: loss",
        "[train.py:12]: x",
        "WARNING: Traceback (most recent call last):",
        "loss: 3",
        "node-a: loss 3",
        "GPU 3 has 5 GiB",
        "{'loss': 3}",
        "mlx5_core 0000:0c:00.0 ib0: Link down",
    ],
)
def test_words_that_only_look_like_prefixes_stay(text: str) -> None:
    assert told(text) == (text, {})


def test_labels_that_most_lines_carry_are_believed() -> None:
    shape = Shape(labelled=True, labels=frozenset({"node-a"}))
    assert told("3: foo", shape) == ("foo", {"task": 3})
    assert told("3:", shape) == ("", {"task": 3})
    assert told("node-a: loss 3", shape) == ("loss 3", {"label": "node-a"})
    assert told("node-a: 3: foo", shape) == ("foo", {"label": "node-a", "task": 3})


def test_the_strongest_rung_tells_the_rank() -> None:
    assert told("[1,4]<stdout>:[rank3]: x")[1] == {"rank": 3, "rank_from": TAG}
    assert told("[rank3]:[1,4]<stdout>: x")[1] == {"rank": 3, "rank_from": TAG}


def test_the_outermost_clock_on_the_wall_counts() -> None:
    both = peel("[2025-05-10 00:18:21] [rank15]:[E510 00:18:19.3 P.cpp:6] x").stamp
    assert both == peel("[2025-05-10 00:18:21] x").stamp
    kernel = peel("[74785.660366] Aug 11 12:31:45 x").stamp
    assert kernel is not None
    assert kernel.clock is Clock.WALL


def test_the_stream_of_a_rank_holds_its_tags_and_no_times() -> None:
    prefix = peel("2025-08-12 09:37:03 [default0]:[rank12]: Traceback")
    assert prefix.tags == ["[default0]:", "[rank12]:"]


def test_what_is_shown_begins_where_the_message_has_room() -> None:
    text = (
        "[2025-05-10 00:18:21] (W pid=12, ip=w-0) [rank15]:[E510 00:18:19.3 P.cpp:6] " + "x" * 390
    )
    shown = shown_text(text, [], peel(text))
    assert len(shown) <= SHOWN_CHARS
    assert shown.startswith("[E510")
    assert shown in text


PARTS = st.sampled_from(
    [
        "[rank3]:",
        "[rank",
        "3: ",
        "node-a: ",
        "node-a:1:2 [0] ",
        "[1,3]<stdout>:",
        "[E508 07:35:59.4 ",
        "ProcessGroupNCCL.cpp:733] ",
        "(W pid=1, ip=2) ",
        "2026-05-05 06:16:47 ",
        "[",
        "]",
        ":",
        "<",
        ">",
        " ",
        "\t",
        "|",
        "│",
        "**",
        "kernel: ",
        "NCCL WARN ",
        "x",
        "Aug 11 12:31:45 ",
        ">> ",
        "|| ",
    ]
)


@given(st.lists(PARTS | st.text(max_size=5), max_size=25).map("".join))
def test_any_nesting_is_peeled_without_an_exception(text: str) -> None:
    prefix = peel(text)
    assert 0 <= prefix.end <= len(text)
    assert (prefix.rank is None) == (prefix.rank_from is None)
    shown_text(text, [], prefix)
