"""Tracebacks of Python, whole, cut and between each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.program import PyException
from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.python import PythonReader
from tests.parse.logs.messages import message, read

WHOLE = """\
Traceback (most recent call last):
  File "/opt/app/main.py", line 9, in <module>
    main()
    ~~~~^^
  File "/opt/app/loader.py", line 75, in load
    raise ValueError("File not found.")
ValueError: File not found."""


def exceptions(text: str) -> list[PyException]:
    return [one for one in read(PythonReader(), text) if isinstance(one, PyException)]


def streams(lines: list[tuple[int, str]]) -> list[PyException]:
    reader = PythonReader()
    events: list[Event] = []
    for order, (rank, text) in enumerate(lines):
        whole = message(text, order, rank=rank)
        events += reader.see(Message(text, f"[rank{rank}]:", whole.at))
    events += reader.finish()
    return [one for one in events if isinstance(one, PyException)]


def test_a_traceback_gives_its_exception_and_its_frames() -> None:
    (event,) = exceptions(WHOLE)
    assert (event.name, event.message) == ("ValueError", "File not found.")
    assert event.frames == ("main.py:9 in <module>", "loader.py:75 in load")
    assert event.at.line == 7
    assert not event.cut
    assert not event.swallowed


def test_of_deep_tracebacks_the_innermost_frames_are_kept() -> None:
    frames = "\n".join(f'  File "/x.py", line {line}, in f' for line in range(1, 50))
    (event,) = exceptions(f"Traceback (most recent call last):\n{frames}\nRecursionError: deep")
    assert len(event.frames) == 8
    assert event.frames[-1] == "x.py:49 in f"


@pytest.mark.parametrize("end", range(1, 6))
def test_a_traceback_without_its_end_is_cut(end: int) -> None:
    (event,) = exceptions("\n".join(WHOLE.split("\n")[:end]))
    assert event.cut
    assert event.name == ""


@pytest.mark.parametrize("start", [1, 4, 6])
def test_a_traceback_without_its_head_still_names_its_exception(start: int) -> None:
    (event,) = exceptions("\n".join(WHOLE.split("\n")[start:]))
    assert (event.name, event.cut) == ("ValueError", False)


def test_tracebacks_of_two_ranks_between_each_other_are_kept_apart() -> None:
    lines = [(rank, line.replace("75", str(rank))) for line in WHOLE.split("\n") for rank in (3, 6)]
    found = streams(lines)
    assert [(one.at.rank, one.frames[-1]) for one in found] == [
        (3, "loader.py:3 in load"),
        (6, "loader.py:6 in load"),
    ]


def test_two_writers_without_a_tag_that_fail_at_once_both_count() -> None:
    doubled = "\n".join(line for line in WHOLE.split("\n") for _ in range(2))
    assert [one.name for one in exceptions(doubled)] == ["ValueError", "ValueError"]


@pytest.mark.parametrize(
    "link",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_a_chain_counts_from_its_cause(link: str) -> None:
    second = WHOLE.replace("ValueError: File", "my.app.LoadFailed: File")
    third = WHOLE.replace("ValueError: File", "RuntimeError: File")
    found = exceptions(f"{WHOLE}\n\n{link}\n\n{second}\n\n{link}\n\n{third}\n{WHOLE}")
    assert [(one.name, one.chain) for one in found] == [
        ("ValueError", 0),
        ("my.app.LoadFailed", 1),
        ("RuntimeError", 2),
        ("ValueError", 0),
    ]


def test_a_traceback_in_a_table_is_indented_but_its_head_need_not_be() -> None:
    lines = [f"  {line}" for line in WHOLE.split("\n")]
    lines[0] = "Traceback (most recent call last):"
    assert [one.name for one in exceptions("\n".join(lines))] == ["ValueError"]
    lines[0] = "  traceback : Traceback (most recent call last):"
    assert [one.name for one in exceptions("\n".join(lines))] == ["ValueError"]


def test_the_frames_of_a_pane_may_end_in_its_border() -> None:
    bordered = "\n".join(f"{line:<60}│" for line in WHOLE.split("\n"))
    (event,) = exceptions(bordered)
    assert event.message == "File not found."


@pytest.mark.parametrize(
    "before",
    [
        "Exception ignored in: <function _Iter.__del__ at 0x7f9c>",
        "Exception ignored in atexit callback: <function f at 0x7f>",
        "WARNING:root:cannot reach the server, going on",
        "2026-01-01 00:00:00 - WARNING - app - no tokenizer",
        "download failed, retrying in 5 s",
    ],
)
def test_what_the_program_goes_on_after_is_swallowed(before: str) -> None:
    (event,) = exceptions(f"{before}\n{WHOLE}")
    by_python = before.startswith("Exception ignored")
    assert (event.swallowed, event.hedged) == (by_python, not by_python)


def test_a_warning_further_up_does_not_swallow() -> None:
    (event,) = exceptions(f"WARNING:root:slow disk\nepoch 3 begins\n{WHOLE}")
    assert not event.swallowed


@pytest.mark.parametrize(
    ("text", "name", "swallowed"),
    [
        ("RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass", "RuntimeError", False),
        ("torch.distributed.DistStoreError: Timed out", "torch.distributed.DistStoreError", False),
        ("KeyboardInterrupt", "KeyboardInterrupt", False),
        ("2026 ERROR trainer: failed: ValueError: bad shape", "ValueError", False),
        (
            "2026 WARNING hub: retrying after requests.ConnectionError: no",
            "requests.ConnectionError",
            True,
        ),
        ("ray.exceptions.RayTaskError(ValueError): ray::f()", "ray.exceptions.RayTaskError", False),
    ],
)
def test_an_exception_in_a_line_by_itself_is_read(text: str, name: str, swallowed: bool) -> None:
    (event,) = exceptions(text)
    assert (event.name, event.swallowed) == (name, swallowed)


@pytest.mark.parametrize(
    "text",
    [
        "/x/app.py:3: UserWarning: this is old",
        "FutureWarning: use y",
        "MeanSquaredError: 0.123",
        "epoch 3 | AbsoluteError: 0.5 | lr 1",
        "Error: 3",
        "num_errors: 0, Exceptions 5",
        "class MyError(Exception): pass",
    ],
)
def test_warnings_and_measures_are_no_exceptions(text: str) -> None:
    assert exceptions(text) == []


def test_every_exception_of_a_group_is_read() -> None:
    found = exceptions(
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "<stdin>", line 1, in <module>\n'
        "  | ExceptionGroup: eg (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/x/q.py", line 4, in z\n'
        "    | ValueError: 1\n"
        "    +---------------- 2 ----------------\n"
        "    | TypeError: 2\n"
        "    +------------------------------------\n"
        "after that"
    )
    assert [(one.name, one.chain) for one in found] == [
        ("ExceptionGroup", 1),
        ("ValueError", 0),
        ("TypeError", 0),
    ]


def test_a_master_without_an_address_is_trouble_of_the_store() -> None:
    events = read(
        PythonReader(),
        "Traceback (most recent call last):\n"
        '  File "/t/torch/distributed/rendezvous.py", line 9, in _create_c10d_store\n'
        "    x()\nsocket.gaierror: [Errno -2] Name or service not known",
    )
    assert [one.kind for one in events if isinstance(one, StoreEvent)] == [StoreTrouble.NO_HOST]


def test_a_traceback_that_nobody_ends_is_given_up() -> None:
    reader = PythonReader()
    list(reader.see(message("Traceback (most recent call last):", 0)))
    assert reader.open
    events = list(reader.see(message("WARNING", 5_000)))
    assert [one.cut for one in events if isinstance(one, PyException)] == [True]
    assert not reader.open


@given(
    st.lists(
        st.sampled_from(WHOLE.split("\n"))
        | st.text(max_size=40)
        | st.sampled_from(
            [
                "  + Exception Group Traceback (most recent call last):",
                "  | ValueError: x",
                "During handling of the above exception",
            ]
        ),
        max_size=40,
    )
)
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(PythonReader(), lines)
