"""Who gets a signal and what it does to them, one fact a test (docs/signals.md)."""

import pytest

from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.job import Step
from slurmtop.model.script import Fate, Reaction, Recipient
from tests.build import make_id

HEAD = "#!/bin/bash\n"


def told(body: str, recipient: Recipient, signal: str = "USR1") -> dict[str, Reaction]:
    rows = reactions(read_script(HEAD + body), signal, recipient)
    return {row.who: row for row in rows}


def step(id: str, name: str = "") -> Step:
    return Step(job=make_id("4711"), id=id, name=name)


def test_the_batch_shell_alone_is_reached_by_batch() -> None:
    assert list(told("python train.py\n", Recipient.BATCH)) == ["batch shell"]


def test_everything_reaches_what_the_shell_started_itself() -> None:
    rows = told("python train.py\n", Recipient.EVERYTHING)
    assert {who: row.fate for who, row in rows.items()} == {
        "batch shell": Fate.DIES,
        "ranks (train.py)": Fate.UNKNOWN,
    }


def test_the_steps_of_a_script_without_srun_are_nobody() -> None:
    assert told("python train.py &\nwait\n", Recipient.STEPS) == {}


def test_srun_passes_usr1_on_and_ends_its_step_of_term() -> None:
    body = "trap : USR1 TERM\nsrun python train.py &\nwait\n"
    assert told(body, Recipient.EVERYTHING)["srun itself"].fate is Fate.CONTINUES
    assert told(body, Recipient.EVERYTHING, "TERM")["srun itself"].fate is Fate.DIES


def test_tasks_of_srun_inherit_nothing_from_the_batch_shell() -> None:
    far = told("trap '' USR1\nsrun torchrun t.py &\nwait\n", Recipient.EVERYTHING)
    assert far["batch shell"].fate is Fate.IGNORES
    assert far["srun step: torchrun agent"].fate is Fate.DIES
    near = told("trap '' USR1\ntorchrun t.py &\nwait\n", Recipient.EVERYTHING)
    assert near["torchrun agent"].fate is Fate.IGNORES
    late = told("torchrun t.py &\ntrap '' USR1\nwait\n", Recipient.EVERYTHING)
    assert late["torchrun agent"].fate is Fate.DIES


def test_a_shell_above_the_work_gets_it_too() -> None:
    rows = told("srun bash -c 'cd x; python t.py; echo done'\n", Recipient.STEPS)
    assert rows["srun step: bash"].fate is Fate.DIES
    trapped = told("srun bash -c 'trap save USR1; python t.py'\n", Recipient.STEPS)
    assert trapped["srun step: bash"].fate is Fate.UNKNOWN
    assert "only when" in trapped["srun step: bash"].why
    replaced = told("srun bash -c 'cd x; exec python t.py'\n", Recipient.STEPS)
    assert "srun step: bash" not in replaced


def test_exec_puts_srun_in_the_place_of_the_shell_and_its_trap() -> None:
    rows = told("trap save USR1\nexec srun python t.py\n", Recipient.BATCH)
    assert "batch shell" not in rows
    assert rows["srun itself"].fate is Fate.CONTINUES
    assert rows["srun step: ranks (t.py)"].fate is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("trap 'x; wait' USR1\nsrun a &\nwait\n", "the script waits on"),
        ("trap x USR1\nsrun a &\nwhile :; do wait; done\n", "the script waits on"),
        ("trap x USR1\nsrun a &\nwait\n", "the wait in line 4 is over"),
        ("trap 'x; exit 1' USR1\nsrun a &\nwait\n", "ends the script, and the job with it"),
        ("f() { scontrol requeue 1; }\ntrap f USR1\nsrun a &\nwait\n", "requeues the job"),
    ],
)
def test_what_becomes_of_the_job_behind_a_trap(body: str, words: str) -> None:
    shell = told(body, Recipient.BATCH)["batch shell"]
    assert shell.fate is Fate.HANDLES
    assert words in shell.why


@pytest.mark.parametrize(
    ("signal", "fate"),
    [
        ("USR2", Fate.DIES),
        ("TERM", Fate.DIES),
        ("CONT", Fate.CONTINUES),
        ("WINCH", Fate.CONTINUES),
        ("TSTP", Fate.STOPS),
        ("STOP", Fate.STOPS),
        ("KILL", Fate.DIES),
    ],
)
def test_a_shell_without_a_trap(signal: str, fate: Fate) -> None:
    assert told("srun a &\nwait\n", Recipient.BATCH, signal)["batch shell"].fate is fate


def test_int_waits_for_the_foreground_command_of_a_shell() -> None:
    assert told("srun a\n", Recipient.BATCH, "INT")["batch shell"].fate is Fate.UNKNOWN


def test_a_trap_that_is_taken_back_saves_nobody() -> None:
    body = "trap save USR1\ntrap - USR1\nsrun a &\nwait\n"
    assert told(body, Recipient.BATCH)["batch shell"].fate is Fate.DIES


def test_a_trap_behind_a_condition_is_not_counted_on() -> None:
    body = "if [ -e x ]; then trap '' USR1; fi\ntorchrun t.py &\nwait\n"
    rows = told(body, Recipient.EVERYTHING)
    assert rows["batch shell"].fate is Fate.UNKNOWN
    assert rows["torchrun agent"].fate is Fate.UNKNOWN


def test_a_program_known_to_have_no_handler_dies() -> None:
    assert told("srun sleep 60\n", Recipient.STEPS)["srun step: ranks (sleep)"].fate is Fate.DIES
    piped = told("srun python t.py | tee log\n", Recipient.EVERYTHING)
    assert piped["tee"].fate is Fate.DIES


def test_ranks_are_told_alone() -> None:
    assert list(told("srun torchrun t.py\n", Recipient.RANKS)) == ["srun step: ranks (t.py)"]


def test_a_step_is_known_by_its_name_where_that_helps() -> None:
    reading = read_script(HEAD + "srun python a.py &\nsrun torchrun b.py &\nwait\n")
    named = reactions(reading, "USR1", Recipient.STEP, step("1", "torchrun"))
    assert [row.line for row in named] == [3, 3]
    unnamed = reactions(reading, "USR1", Recipient.STEP, step("1", "other"))
    assert {row.line for row in unnamed} == {2, 3}
    batch = reactions(reading, "USR1", Recipient.STEP, step("batch"))
    assert [row.who for row in batch] == ["batch shell"]
    assert reactions(reading, "USR1", Recipient.STEP, step("extern")) == ()


def test_what_no_shell_runs_is_not_known() -> None:
    reading = read_script("#!/usr/bin/env python3\n#SBATCH --signal=B:TERM@60\nprint()\n")
    (row,) = reactions(reading, "TERM", Recipient.BATCH)
    assert (row.who, row.fate) == ("batch script (python3)", Fate.UNKNOWN)


def test_many_launches_stay_a_short_list() -> None:
    body = "".join(f"srun python t{n}.py &\n" for n in range(50)) + "wait\n"
    rows = reactions(read_script(HEAD + body), "USR1", Recipient.STEPS)
    assert len(rows) == 13
    assert rows[-1].who == "others"


def test_a_trap_that_names_its_signals_by_a_variable_may_be_for_any_of_them() -> None:
    """Seen on 22.05: both shells handle it and live on."""
    body = (
        "for one in USR1 USR2; do trap 'echo saved' $one; done\n"
        "srun bash -c 'for one in USR1 USR2; do trap : $one; done; ./train; true' &\nwait\n"
    )
    assert told(body, Recipient.BATCH)["batch shell"].fate is Fate.UNKNOWN
    assert told(body, Recipient.STEPS)["srun step: bash"].fate is Fate.UNKNOWN
