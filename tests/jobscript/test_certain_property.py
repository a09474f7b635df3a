"""A reset, a condition or a later place of its trap always costs a script its certainty; and
what is said of a shell is what a real shell does."""

import contextlib
import os
import shutil
import signal as signals
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.script import Fate, Reaction, Recipient

SURE = {Fate.HANDLES, Fate.IGNORES}
SIGNALS = ["USR1", "USR2", "TERM", "HUP"]
ACTIONS = ["save", "touch save.now; wait", "kill -USR1 $PID", "", "echo; exit 3"]
WORK = ["srun python t.py &", "python t.py &", "torchrun t.py &", "(cd x; ./run) &"]
WAITS = ["wait", "while :; do wait; done", "until wait; do :; done"]
BEFORE = ["cd x", "module load cuda", "echo $HOSTNAME", "export A=1", "f() { date; }"]
LIMIT_S = 30.0

traps = st.builds("trap '{}' {}".format, st.sampled_from(ACTIONS), st.sampled_from(SIGNALS))
before = st.lists(st.sampled_from(BEFORE), max_size=3)


def fates(lines: list[str], name: str) -> set[Fate]:
    """What is said of all that would get ``name``, except of what the script does not set up."""
    text = "\n".join(["#!/bin/bash", *lines, ""])
    return {row.fate for row in reactions(read_script(text), name, Recipient.EVERYTHING)}


@given(traps, before, st.sampled_from(WORK), st.sampled_from(WAITS))
def test_a_plain_trap_is_certain(trap: str, first: list[str], work: str, wait: str) -> None:
    assert fates([*first, trap, work, wait], trap.split()[-1]) & SURE


@given(
    traps,
    before,
    st.sampled_from(WORK),
    st.sampled_from(WAITS),
    st.sampled_from(
        [
            "if [ $X ]; then {}; fi",
            "[ $X ] && {}",
            "test -e x || {}",
            "case $X in a) {};; esac",
            "for x in $X; do {}; done",
            "while [ $X ]; do {}; break; done",
            "({})",
            "{} &",
            "{} | cat",
            "arm() {{ {}; }}",
            "arm() {{ {}; }}; [ $X ] && arm",
            "arm() {{ {}; }}; (arm)",
            "arm() {{ [ $X ] && return; {}; }}; arm",
            "arm() {{ {}; }}; arm() {{ :; }}; arm",
            "bash -c 'eval $X'; $({})",
        ]
    ),
)
def test_a_condition_or_another_shell_takes_certainty(
    trap: str, first: list[str], work: str, wait: str, around: str
) -> None:
    assert not fates([*first, around.format(trap), work, wait], trap.split()[-1]) & SURE


@given(traps, before, st.sampled_from(WORK), st.sampled_from(WAITS))
def test_a_trap_behind_the_launch_is_not_certain(
    trap: str, first: list[str], work: str, wait: str
) -> None:
    name = trap.split()[-1]
    assert not fates([*first, work, trap, wait], name) & SURE
    assert not fates([*first, work, wait, trap], name) & SURE


@given(traps, before, st.sampled_from(WORK), st.sampled_from(WAITS))
def test_a_reset_in_another_trap_takes_the_certainty_of_the_shell(
    trap: str, first: list[str], work: str, wait: str
) -> None:
    """What was started before that other trap runs keeps what it was started with."""
    name = trap.split()[-1]
    lines = ["#!/bin/bash", *first, trap, f"trap 'trap - {name}' EXIT ALRM", work, wait, ""]
    rows = reactions(read_script("\n".join(lines)), name, Recipient.BATCH)
    assert not {row.fate for row in rows} & SURE


@given(
    traps,
    before,
    st.sampled_from(WORK),
    st.sampled_from(WAITS),
    st.sampled_from(
        [
            "trap - {}",
            "trap -- - SIG{}",
            "[ $X ] && trap - {}",
            "S={}; trap - $S",
            "for s in {}; do trap - $s; done",
            "eval 'trap - {}'",
            'eval "trap - {} $X"',
            "off() {{ trap - {}; }}; off",
            "off() {{ trap - {}; }}; $X && off",
            "off() {{ trap - $1; }}; off {}",
            "source ./{}.sh",
        ]
    ),
)
def test_a_reset_takes_certainty(
    trap: str, first: list[str], work: str, wait: str, reset: str
) -> None:
    name = trap.split()[-1]
    reset = reset.format(name)
    assert not fates([*first, trap, reset, work, wait], name) & SURE
    (shell,) = _shell([*first, trap, work, reset, wait], name)
    assert shell.fate not in SURE


def _shell(lines: list[str], name: str) -> list[Reaction]:
    text = "\n".join(["#!/bin/bash", *lines, ""])
    return list(reactions(read_script(text), name, Recipient.BATCH))


# The same scripts, run by a shell

_STUB = "#!/bin/sh\nexec sleep 60\n"
_RUNS = [
    ("bash", "trap 'echo >> mark' USR1\n{}wait\n"),
    ("bash", "trap 'echo >> mark; exit 3' USR1\n{}while :; do wait; done\n"),
    ("bash", "trap 'echo >> mark' SIGUSR1\n{}while kill -0 $!; do wait $!; done\n"),
    ("bash", "set -e\ntrap 'echo >> mark' USR1\n{}while kill -0 $!; do wait $!; done\n"),
    ("bash", "set -e\ntrap 'echo >> mark' USR1\n{}until wait $!; do :; done\n"),
    ("bash", "trap 'echo >> mark' USR1\n{}while wait $!; do :; done\n"),
    ("bash", "trap 'echo >> mark' USR1\n{}while :; do wait $! || break; done\n"),
    ("bash", "trap 'echo >> mark; trap - USR1; kill -s USR1 $$' USR1\n{}wait\nwait\n"),
    ("bash", "trap 'echo >> mark; kill -KILL -- -$$' USR1\n{}wait\nwait\n"),
    ("bash", "trap '' USR1\n{}wait\n"),
    ("bash", "(trap '' USR1)\n{}wait\n"),
    ("bash", "arm() {{ trap 'echo >> mark' USR1; }}\narm | cat\n{}wait\n"),
    ("bash", "trap '' USR1\ntrap - USR1\n{}wait\n"),
    ("sh", "trap 'echo >> mark' USR1\n{}wait\n"),
    ("sh", "trap 'echo >> mark' USR1\n{}wait $!\nwait $!\n"),
]


def _until(what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)


def _waits(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return stat.rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize(("shell", "body"), _RUNS)
def test_a_real_shell_does_what_is_said_of_it(shell: str, body: str, tmp_path: Path) -> None:
    path = shutil.which(shell)
    assert path is not None
    (tmp_path / "srun").write_text(_STUB, encoding="ascii")
    (tmp_path / "srun").chmod(0o755)
    text = f"#!{path}\n" + body.format("srun t &\n")
    (row,) = reactions(read_script(text), "USR1", Recipient.BATCH)
    script = tmp_path / "job.sh"
    script.write_text(f"#!{path}\n" + body.format("srun t & : > ready\n"), encoding="ascii")
    job = subprocess.Popen(
        [path, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    mark = tmp_path / "mark"
    try:
        _until("ready", lambda: (tmp_path / "ready").exists() and _waits(job.pid))
        job.send_signal(signals.SIGUSR1)
        if row.fate is Fate.DIES:
            assert job.wait(LIMIT_S) == -signals.SIGUSR1
            assert not mark.exists()
        elif row.fate is Fate.IGNORES:
            job.send_signal(signals.SIGTERM)
            assert job.wait(LIMIT_S) == -signals.SIGTERM
        else:
            assert row.fate is Fate.HANDLES
            _until("saved", mark.exists)
            if row.ends_job:
                job.wait(LIMIT_S)
            else:
                _until("waits again", lambda: _waits(job.pid))
                job.send_signal(signals.SIGUSR1)
                _until("saved again", lambda: mark.read_text(encoding="ascii").count("\n") > 1)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signals.SIGKILL)
        job.wait(LIMIT_S)
