"""``#SBATCH`` lines, held against what sbatch 22.05.8 says that it found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.jobscript.directives import read_directives, split_directive
from slurmtop.jobscript.reading import read_script
from slurmtop.jobscript.signals import signal_word
from slurmtop.model.script import SignalRequest

#: The words that ``sbatch -vvvv --test-only`` printed as ``Found in script, argument "…"``.
SEEN = """\
#!/bin/bash
#SBATCH --job-name="my job" -t 5 # a comment --nice=1
#SBATCH--comment=nospace
  #SBATCH --begin=now
# SBATCH --begin=now
##SBATCH --begin=now
#SBATCH\t--signal B:USR1@300
#SBATCH --comm='a b'"c d"
#SBATCH -n2 -N1   --open-mode=append#x
#SBATCH --requeue --comment="a#b" --comment=a#b

echo hi
#SBATCH --nice=5
"""


def test_directives_are_what_sbatch_found() -> None:
    reading = read_script(SEEN)
    assert reading.directives == (
        (2, "--job-name", "my job"),
        (2, "-t", "5"),
        (3, "--comment", "nospace"),
        (7, "--signal", "B:USR1@300"),
        (8, "--comm", "a bc d"),
        (9, "-n", "2"),
        (9, "-N", "1"),
        (9, "--open-mode", "append"),
        (10, "--requeue", None),
        (10, "--comment", "a#b"),
        (10, "--comment", "a"),
    )
    assert reading.signal == SignalRequest("USR1", 300, True, 7)
    assert (reading.open_mode, reading.requeue) == ("append", True)
    assert reading.unsure == ()


def test_a_blank_behind_a_backslash_ends_the_word_as_it_does_for_sbatch() -> None:
    assert split_directive(r" --comment=a\ b") == ["--comment=a", "b"]
    assert split_directive(r' --comment="a\"b"') == ['--comment=a"b']


def test_a_stray_word_ends_the_directives() -> None:
    reading = read_script("#!/bin/bash\n#SBATCH stray --requeue\n#SBATCH --signal=USR1\n")
    assert reading.directives == ()
    assert "line 2" in reading.unsure[0]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("--signal=USR1", ("USR1", 60, False)),
        ("--signal=SIGusr2@90", ("USR2", 90, False)),
        ("--signal=B:10@300", ("USR1", 300, True)),
        ("--signal R:TERM@5", ("TERM", 5, False)),
        ("--sig=b:HUP@0", ("HUP", 0, True)),
    ],
)
def test_the_signal_that_the_job_asks_for(written: str, wanted: tuple[str, int, bool]) -> None:
    signal = read_script(f"#!/bin/sh\n#SBATCH {written}\n").signal
    assert signal == SignalRequest(*wanted, 2)


@pytest.mark.parametrize("written", ["--signal=X:USR1", "--signal=NONE@5", "--signal=USR1@soon"])
def test_a_signal_that_cannot_be_read_is_said(written: str) -> None:
    reading = read_script(f"#!/bin/sh\n#SBATCH {written}\n")
    assert reading.signal is None
    assert "line 2" in reading.unsure[0]


def test_the_last_one_counts_and_other_parts_of_a_het_job_do_not() -> None:
    lines = [
        "#!/bin/bash",
        "#SBATCH --requeue --open-mode=truncate",
        "#SBATCH --no-requeue",
        "#SBATCH hetjob",
        "#SBATCH --requeue",
    ]
    found = read_directives(lines)
    assert (found.requeue, found.open_mode) == (False, "truncate")
    assert "line 4" in found.unsure[0]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\\'\"#"), min_size=1)))
def test_quoted_words_come_back(words: list[str]) -> None:
    plain = [word for word in words if not set(word) & set("\n\r\v\f\x1c\x1d\x1e\x1f\x85")]
    assert split_directive(" ".join(f'"{word}"' for word in plain)) == plain


@given(st.text())
def test_any_text_is_split(text: str) -> None:
    found = split_directive(text)
    assert sum(map(len, found)) <= len(text)


@given(st.text())
def test_any_word_is_a_signal_or_none(word: str) -> None:
    name = signal_word(word)
    assert name is None or signal_word(name) == name
