"""Code inside a traceback is passed over, and what is told stays the same to the letter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.program import PyException
from slurmtop.parse.logs import reading
from slurmtop.parse.logs.code_lines import is_code, is_frame
from slurmtop.parse.logs.reading import read_bytes

FRAME = b'[rank3]:   File "/w/train.py", line 88, in step'


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"[rank3]:     return self._loader(path)", True),
        (b"[rank3]:            ^^^^^^^^^^^^", True),
        (b"[rank3]:     x = y[0] + 1", True),
        # Of another writer, of the message's own depth, no code at all.
        (b"[rank4]:     return 1 + 2", False),
        (b"[rank3]:  return 1 + 2", False),
        (b"[rank3]: ValueError: x", False),
        # What could be an exception, an edge of a group, a wrapped or a torn line.
        (b"[rank3]:     queue.Empty", False),
        (b"[rank3]:     my.Own: it broke", False),
        (b"[rank3]:     | raise x from y", False),
        (b"[rank3]:     x = y[0]", False),
        (b"[rank3]:     return 1 + [rank5]: my.Own: it broke", False),
        (b"[rank3]:     a\r[rank5]: b", False),
        (b"", False),
    ],
)
def test_what_is_plainly_code(line: bytes, code: bool) -> None:
    assert is_code(line, FRAME, 2) is code
    assert not is_code(line, b"[rank3]: step 5", 2)


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 20))
def test_any_bytes_are_code_or_not(line: bytes, before: bytes, deep: int) -> None:
    assert isinstance(is_code(line, before, deep), bool)
    assert isinstance(is_frame(line), bool)


PARTS = st.sampled_from(
    [
        "{0}Traceback (most recent call last):",
        '{0}  File "/w/train.py", line 5, in step',
        "{0}    return self.go(x)",
        "{0}           ^^^^^^^^^^",
        "{0}    queue.Empty",
        "{0}    my.Own: broke",
        "{0}ValueError: batch 5 is empty",
        "{0}my.Own: it broke",
        "{0}During handling of the above exception, another exception occurred:",
        "{0}  + Exception Group Traceback (most recent call last):",
        '{0}  |   File "/w/x.py", line 5, in main',
        "{0}  |     raise ExceptionGroup(a, b)",
        "{0}WARNING: retry",
        "{0}step 5 loss 2.5",
        "        x = 5",
        "",
    ]
)
TAGS = st.sampled_from(["", "[rank3]: ", "[rank4]: ", "[default0]:", "        "])


@given(st.lists(st.tuples(PARTS, TAGS).map(lambda both: both[0].format(both[1])), max_size=40))
def test_passing_over_code_changes_nothing(lines: list[str]) -> None:
    data = "\n".join([*lines, ""]).encode()
    fast = read_bytes("x", data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "is_code", lambda *_: False)
        assert read_bytes("x", data) == fast


def test_code_of_a_whole_traceback_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []

    def counted(line: bytes, before: bytes, deep: int) -> bool:
        told.append(is_code(line, before, deep))
        return told[-1]

    monkeypatch.setattr(reading, "is_code", counted)
    code = [b"[rank3]:     return self.go(x)", b"[rank3]:            ^^^^^^^^^^^^"]
    frames = [line for at in range(5) for line in (FRAME + b"x" * 30 * at, *code)]
    lines = [b"[rank3]: Traceback (most recent call last):", *frames, b"[rank3]: ValueError: no"]
    (event,) = read_bytes("x", b"\n".join([*lines, b""])).of(PyException)
    assert (event.name, len(event.frames)) == ("ValueError", 5)
    assert told.count(True) == 10
