"""Any text is read: nothing raises, and what costs too much is given up and said."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.jobscript.prepared import prepared_for
from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import MAX_SCRIPT, read_script
from slurmtop.jobscript.shell import MAX_BYTES, Effort, parse_shell
from slurmtop.model.script import Fate, Recipient, ScriptReading

SCRIPTS = Path(__file__).parent / "scripts"
TEXTS = [path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.sbatch")]
SIGNALS = ["USR1", "SIGTERM", "10", "INT", "CONT", "TSTP", "KILL", "STOP", "RTMIN+1", "?"]
#: One report of the parser comes each 100 operations, so that it stops a little late.
LATE = 1_000


def held(reading: ScriptReading, text: str) -> None:
    """What is true of every reading."""
    last = text.count("\n") + 1
    lines = [one.line for one in reading.launches]
    lines += [one.line for one in reading.traps]
    lines += [one.line for one in reading.waits]
    assert all(1 <= line <= last for line in lines)
    assert len(reading.launches) <= 200
    assert len(prepared_for(reading)) > 0


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    held(read_script(text), text)
    held(read_script("#!/bin/bash\n" + text), "\n" + text)


@given(st.binary())
def test_any_bytes_are_read(data: bytes) -> None:
    text = "#!/bin/bash\n" + data.decode("utf-8", errors="replace")
    held(read_script(text), text)


@given(st.sampled_from(TEXTS), st.integers(0), st.integers(0), st.text(max_size=8))
def test_a_script_with_a_hole_is_read(text: str, start: int, size: int, put: str) -> None:
    start %= len(text)
    size %= 200
    broken = text[:start] + put + text[start + size :]
    held(read_script(broken), broken)


@given(st.lists(st.sampled_from("\n".join(TEXTS).splitlines()), max_size=25))
def test_lines_of_many_scripts_in_any_order_are_read(lines: list[str]) -> None:
    text = "\n".join(["#!/bin/bash", *lines])
    held(read_script(text), text)


@given(
    st.sampled_from(TEXTS),
    st.sampled_from(SIGNALS) | st.text(max_size=6),
    st.sampled_from(list(Recipient)),
)
def test_whoever_gets_a_signal_is_told_why(text: str, signal: str, recipient: Recipient) -> None:
    rows = reactions(read_script(text), signal, recipient)
    assert all(row.who and row.why for row in rows)
    assert len({(row.who, row.fate, row.why) for row in rows}) == len(rows)
    if signal == "KILL":
        assert {row.fate for row in rows} <= {Fate.DIES}
    if signal == "STOP":
        assert {row.fate for row in rows} <= {Fate.STOPS}


@pytest.mark.parametrize(
    "piece",
    [
        "(", ")", "((a ", "((a \n", "$(", "${", "$((", "`", '"$(', "if ", "<<A ", "<<A\n", "a[\n",
        "[[ ", "{ ", "case x in a) ", "<(", "<", ">", "|", "a|", "\0", "é", "x)\n", "|!",
        "srun bash -c 'srun x' &\n", "A=$A$A\n", "eval '$A'\n", "trap ')))))' USR1\n",
        "f() { f; }\nf\n",
    ],
)  # fmt: skip
def test_the_parser_stops_where_a_text_costs_too_much(piece: str) -> None:
    effort = Effort(20_000)
    shell = parse_shell(piece * (MAX_BYTES // len(piece.encode())), effort)
    assert effort.left > -LATE
    assert not (effort.spent and shell.complete)
    assert len(shell.commands) <= MAX_BYTES


@pytest.mark.parametrize("piece", [")", "srun python train.py &\n", "é", "#SBATCH --requeue\n"])
def test_a_long_text_is_cut_and_that_is_said(piece: str) -> None:
    reading = read_script("#!/bin/bash\n" + piece * (MAX_SCRIPT // len(piece) + 2))
    assert not reading.complete
    assert any("longer than 1 MiB" in sentence for sentence in reading.unsure)
    assert len(reading.launches) <= 200


def test_nothing_is_not_said_of_what_was_not_read() -> None:
    reading = read_script("#!/bin/bash\n" + "echo a\n" * MAX_BYTES)
    assert prepared_for(reading).startswith("not known")
    (shell,) = reactions(reading, "USR1", Recipient.BATCH)
    assert shell.fate is Fate.UNKNOWN
    (steps,) = reactions(reading, "USR1", Recipient.STEPS)
    assert steps.fate is Fate.UNKNOWN


def test_strings_in_strings_are_read_to_a_depth() -> None:
    text = "srun torchrun t.py"
    for _ in range(3):
        text = f"bash -c {_quoted(text)}"
    reading = read_script(f"#!/bin/bash\n{text}\n")
    assert [str(launch.inner) for launch in reading.launches] == ["torchrun"]
    for _ in range(6):
        text = f"bash -c {_quoted(text)}"
    deep = read_script(f"#!/bin/bash\n{text}\n")
    assert any("too deep" in sentence for sentence in deep.unsure)


def test_functions_that_call_functions_are_followed_to_a_limit() -> None:
    """60 calls in each of 60: nothing could run them all."""
    body = "f0() { trap - USR1; }\n"
    body += "".join(f"f{n}() {{ {f'f{n - 1}; ' * 60}}}\n" for n in range(1, 60))
    reading = read_script(f"#!/bin/bash\ntrap save USR1\n{body}f59\nsrun a &\nwait\n")
    (shell,) = reactions(reading, "USR1", Recipient.BATCH)
    assert shell.fate is Fate.UNKNOWN


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
