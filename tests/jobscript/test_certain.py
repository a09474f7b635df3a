"""Handled or ignored is said only where the text makes it certain: condition, order, shell
level, indirection, reset. What each script does was tried with bash and dash, or on Slurm 22.05."""

import pytest

from slurmtop.jobscript.prepared import prepared_for
from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.script import Fate, Reaction, Recipient

BASH = "#!/bin/bash\n"
WORK = "srun python t.py &\nwait\n"
LOOP = "srun python t.py & PID=$!\nwhile kill -0 $PID; do wait $PID; done\n"
AGENT = "srun step: torchrun agent"
SURE = {Fate.HANDLES, Fate.IGNORES}


def told(
    text: str, recipient: Recipient = Recipient.EVERYTHING, signal: str = "USR1"
) -> dict[str, list[Reaction]]:
    out: dict[str, list[Reaction]] = {}
    for row in reactions(read_script(text), signal, recipient):
        out.setdefault(row.who, []).append(row)
    return out


def shell_of(body: str, signal: str = "USR1", first: str = BASH) -> Reaction:
    (row,) = told(first + body, Recipient.BATCH, signal)["batch shell"]
    return row


@pytest.mark.parametrize(
    "line",
    [
        "bash -c 'trap \"\" USR1; srun torchrun t.py' &",
        "bash -c 'trap \"\" USR1; exec srun torchrun t.py' &",
        "eval 'trap \"\" USR1; srun torchrun t.py' &",
        "(trap '' USR1; bash -c 'srun torchrun t.py') &",
        "trap '' USR1; srun torchrun t.py &",
        'bash -c \'trap "" USR1; srun bash -c "exec torchrun t.py"\' &',
    ],
)
def test_a_tasks_of_srun_inherit_nothing_of_any_shell_outside(line: str) -> None:
    rows = told(f"{BASH}{line}\nwait\n", Recipient.STEPS)
    assert [row.fate for row in rows[AGENT]] == [Fate.DIES]
    assert not {row.fate for found in rows.values() for row in found} & SURE
    assert set(rows) == {AGENT, "srun step: ranks (t.py)"}


@pytest.mark.parametrize(
    ("body", "signal"),
    [
        ("python t.py &\nwait\ntrap '' TERM USR1\nrsync -a a b\n", "TERM"),
        ("srun t.py\ntrap '' TERM USR1\nrsync -a a b\n", "USR1"),
        ("srun python t.py &\ntrap save USR1\nwait\n", "USR1"),
        ("set_up() { trap save USR1; }\nsrun t.py &\nwait\nset_up\n", "USR1"),
        ("srun a.py &\nwait\ntrap save USR1\nsrun b.py &\nwait\n", "USR1"),
        ("while :; do\nsrun x.py &\nwait\ntrap save USR1\ndone\n", "USR1"),
    ],
)
def test_b_and_i_a_trap_behind_the_work_does_not_hold_for_it(body: str, signal: str) -> None:
    row = shell_of(body, signal)
    assert row.fate is Fate.UNKNOWN
    assert "started work" in row.why or "in some cases" in row.why


@pytest.mark.parametrize(
    "body",
    [
        '[ -z "$SLURM_JOB_ID" ] && exec sbatch "$0" "$@"\nsrun t.py &\nwait\n',
        'if [ -z "$SLURM_JOB_ID" ]; then\n exec sbatch "$0"\nfi\nsrun t.py\n',
        'run() { exec srun "$@"; }\nsrun t.py\n',
        '[ "$(id -gn)" = lab ] || exec sg lab "$0"\npython t.py\n',
        "case $X in a) exec sbatch x;; esac\nsrun t.py &\nwait\n",
        "(exec srun a.py) &\nwait\n",
    ],
)
def test_c_an_exec_that_may_not_run_leaves_the_shell(body: str) -> None:
    assert shell_of(body).fate is Fate.DIES


def test_c_a_trap_is_not_counted_on_where_an_exec_may_have_replaced_the_shell() -> None:
    row = shell_of(f"trap save USR1\n[ -n $X ] && exec sg lab $0\n{WORK}")
    assert row.fate is Fate.UNKNOWN
    assert "another program in its place" in row.why
    assert shell_of(f"trap save USR1\n[ -z $X ] && exec sbatch $0\n{WORK}").fate is Fate.HANDLES
    assert shell_of("if [ $X ]; then exec srun a.py; fi\nsrun b.py\n").fate is Fate.UNKNOWN


def test_d_dash_knows_no_name_with_sig() -> None:
    for first in ("#!/bin/sh\n", "#!/usr/bin/env dash\n"):
        row = shell_of(f"trap save SIGUSR1\n{WORK}", first=first)
        assert row.fate is Fate.UNKNOWN
        assert "write USR1" in row.why
        assert shell_of(f"trap save USR1\n{WORK}", first=first).fate is Fate.HANDLES
    assert shell_of(f"trap save SIGUSR1\n{WORK}").fate is Fate.HANDLES
    rows = told(f"{BASH}srun sh -c 'trap \"\" SIGUSR1; exec torchrun t.py' &\nwait\n")
    assert rows[AGENT][0].fate is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("first", "body", "ends"),
    [
        (BASH, f"set -e\ntrap save USR1\n{LOOP}", True),
        (BASH, f"set -euo pipefail\ntrap save USR1\n{LOOP}", True),
        (BASH, f"set -o errexit\ntrap save USR1\n{LOOP}", True),
        ("#!/bin/bash -eu\n", f"trap save USR1\n{LOOP}", True),
        (BASH, f"[ $X ] && set -e\ntrap save USR1\n{LOOP}", True),
        (BASH, f"set -e\ntrap save USR1\nset +e\n{LOOP}", False),
        (BASH, f"set -e\ntrap save USR1\n{LOOP.replace('wait $PID', 'wait $PID || true')}", False),
        (BASH, "set -e\ntrap x USR1\nsrun a &\nuntil wait $!; do :; done\n", False),
        (BASH, f"set -e\ntrap 'touch x; wait' USR1\n{WORK}", False),
        (BASH, f"set -uo pipefail\ntrap save USR1\n{LOOP}", False),
        (BASH, f"trap save USR1\n{LOOP}", False),
        (BASH, "trap x USR1\nsrun a &\nwhile wait $!; do :; done\n", True),
        (BASH, "trap x USR1\nsrun a &\nwhile :; do wait $! || break; done\n", True),
        (BASH, "trap x USR1\nsrun a &\nwhile :; do wait $! && break; done\n", False),
        (BASH, "trap x USR1\nsrun a & srun b &\nfor p in $(jobs -p); do wait $p; done\n", True),
        (BASH, "trap x USR1\nsrun a & P=$!\nwait $P\nwait $P\n", False),
        (BASH, "set -e\ntrap x USR1\nsrun a & P=$!\nwait $P\nwait $P\n", True),
        (BASH, "trap 'save & wait $!' USR1\nsrun a &\nwait\n", True),
    ],
)
def test_e_whether_the_script_waits_on_behind_its_trap(first: str, body: str, ends: bool) -> None:
    row = shell_of(body, first=first)
    assert (row.fate, row.ends_job) == (Fate.HANDLES, ends)
    assert ("waits on" in row.why) is not ends
    if ends and "set -e" in body:
        assert "set -e" in row.why


@pytest.mark.parametrize(
    ("action", "ends"),
    [
        ("save; trap - USR1; kill -s USR1 $$", True),
        ("kill -USR1 -- -$$", True),
        ("kill 0", True),
        ("kill -TERM $PID", True),
        ("kill $(jobs -p); wait", True),
        ("scancel $SLURM_JOB_ID", True),
        ("a;b;c;d;e;g;h;i;j;k;l;m;n;o;exit 1", True),
        ("[ -e x ] && exit 1", True),
        ("exec ./save.sh", True),
        ("pkill python", True),
        ("kill -USR1 $PID", False),
        ("kill -0 $PID", False),
        ("scancel --signal=USR1 $SLURM_JOB_ID", False),
        ("(exit 1)", False),
        ("touch save.now", False),
    ],
)
def test_f_an_action_that_ends_the_script_or_its_work_ends_the_job(action: str, ends: bool) -> None:
    for text in (f"trap '{action}' USR1\n", f"on() {{ {action}; }}\ntrap on USR1\n"):
        row = shell_of(text + LOOP)
        assert (row.fate, row.ends_job) == (Fate.HANDLES, ends), text


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("./mon.sh &\nnextflow run main.nf\n", 4),
        ("./mon.sh &\ndocker run img python t.py\n", 4),
        ("./mon.sh &\nparallel -j8 ./one.sh ::: *.txt\nwait\n", 4),
        ("srun t.py &\ntail --pid=$! -f /dev/null\n", 4),
        ("srun t.py &\nfg\n", 4),
        ("srun t.py &\nread x < fifo\nwait\n", 4),
        ("srun t.py &\nX=$(nextflow run main.nf)\nwait\n", 4),
        ("srun t.py &\n$CMD\nwait\n", 4),
        ("srun t.py &\n(wait)\n", None),
        ("srun t.py &\n", None),
        ("f() { wait; }\nsrun t.py &\n", None),
        ("srun t.py &\n[ -n $X ] && wait\n", None),
        ("srun a.py &\nwait\nsrun b.py &\n", None),
    ],
)
def test_g_a_trap_runs_at_once_only_in_a_wait_of_the_shell(body: str, line: int | None) -> None:
    row = shell_of("trap save USR1\n" + body)
    assert row.fate is Fate.UNKNOWN
    where = f"foreground command in line {line}" if line else "no wait is seen"
    assert where in row.why


def test_g_what_is_over_at_once_does_not_keep_a_trap_waiting() -> None:
    body = "trap save USR1\nsrun t.py & PID=$!\necho $PID > pid; date | tee log\nwait $PID\n"
    assert shell_of(body).fate is Fate.HANDLES


@pytest.mark.parametrize(
    "body",
    [
        'arm() { trap save USR1; }\nif [ -n "$P" ]; then arm; fi\n',
        'arm() { trap save USR1; }\n[ "$P" = 1 ] && arm\n',
        "arm() { [ $X ] || return; trap save USR1; }\narm\n",
        "arm() { trap save USR1; }\nall() { if [ $X ]; then arm; fi; }\nall\n",
        "if [ $X ]; then\n arm() { trap save USR1; }\nfi\narm\n",
        "arm\narm() { trap save USR1; }\n",
        "case $X in a) trap save USR1;; esac\n",
        "[ $X ] && trap save USR1\n",
        "while [ $X ]; do trap save USR1; done\n",
    ],
)
def test_h_a_trap_behind_any_condition_is_not_certain(body: str) -> None:
    assert shell_of(body + WORK).fate is Fate.UNKNOWN


@pytest.mark.parametrize(
    "body",
    [
        "(trap save USR1)\n",
        "trap save USR1 &\n",
        "arm() ( trap save USR1 )\narm\n",
        "arm() { trap save USR1; }\narm | tee log\n",
        "arm() { trap save USR1; }\nX=$(arm)\n",
        "bash -c 'trap save USR1'\n",
        "trap save USR1\ntrap - USR1\n",
        "trap save USR1\neval 'trap - USR1'\n",
        'trap save USR1\neval "trap - USR1"\n',
        "trap save USR1\ntrap USR1\n",
        "arm() { trap save USR1; }\n",
    ],
)
def test_h_a_trap_of_another_shell_or_taken_back_before_the_work_is_none(body: str) -> None:
    assert shell_of(body + "srun python t.py &\nwait\n").fate is Fate.DIES


@pytest.mark.parametrize(
    "body",
    [
        "SIGS='USR1 TERM'\ntrap save USR1\ntrap - $SIGS\n",
        "trap save USR1\nfor s in USR1 TERM; do trap - $s; done\n",
        'S=USR1\ntrap save USR1\neval "trap - $S"\n',
        'trap save USR1\neval "$X"\n',
        "trap save USR1\nsource ./env.sh\n",
        "T=trap\ntrap save USR1\n$T - USR1\n",
        'on() { trap "$1" USR1; }\non -\n',
        'on() { trap "$@"; }\non save USR1\n',
        'OLD=-\ntrap "$OLD" USR1\n',
        'trap "$(cat action)" USR1\n',
        "trap $OLD USR1\n",
        "arm() { trap save USR1; }\narm() { :; }\narm\n",
        "arm() { trap save USR1; }\nunset -f arm\narm\n",
        "trap save USR1\n[ $X ] && trap - USR1\n",
        "trap 'trap - USR1' TERM\ntrap save USR1\n",
        "trap 'save; trap - USR1' USR1\n",
        "on() { source ./x.sh; }\ntrap on USR1\n",
    ],
)
@pytest.mark.parametrize("work", [WORK, LOOP])
def test_j_what_is_indirect_or_may_be_taken_back_is_not_known(body: str, work: str) -> None:
    row = shell_of(body + work)
    assert row.fate is Fate.UNKNOWN
    assert row.why


@pytest.mark.parametrize("behind", ["trap - USR1\n", "eval 'trap - USR1'\n", "trap '' USR1\n"])
def test_j_a_trap_that_is_changed_behind_the_work_does_not_hold(behind: str) -> None:
    assert shell_of(f"trap save USR1\n{WORK}{behind}").fate is Fate.UNKNOWN


def test_j_what_is_known_to_set_no_trap_takes_none_back() -> None:
    body = 'trap save USR1\neval "$(conda shell.bash hook)"\nsource venv/bin/activate\n'
    assert shell_of(body + WORK).fate is Fate.HANDLES


@pytest.mark.parametrize(
    ("inside", "fate"),
    [
        ('trap "" USR1; exec torchrun t.py', Fate.IGNORES),
        ('cd x; trap "" USR1; torchrun t.py; echo $?', Fate.IGNORES),
        ('(trap "" USR1; sleep 1); exec torchrun t.py', Fate.DIES),
        ('[ $SLURM_LOCALID = 0 ] && trap "" USR1; exec torchrun t.py', Fate.UNKNOWN),
        ('if [ $X ]; then trap "" USR1; fi; exec torchrun t.py', Fate.UNKNOWN),
        ('f() { trap "" USR1; }; exec torchrun t.py', Fate.DIES),
        ('f() { trap "" USR1; }; f; exec torchrun t.py', Fate.IGNORES),
        ('trap "" USR1 & exec torchrun t.py', Fate.DIES),
        ('trap "" USR1; trap - USR1; exec torchrun t.py', Fate.DIES),
        ('trap "" USR1; [ $X ] && trap - USR1; exec torchrun t.py', Fate.UNKNOWN),
        ('trap "" $SIGS; exec torchrun t.py', Fate.UNKNOWN),
        ("trap save USR1; torchrun t.py; true", Fate.DIES),
        ('torchrun t.py & trap "" USR1; wait', Fate.DIES),
        ("source ./env.sh; exec torchrun t.py", Fate.UNKNOWN),
        ('trap "" USR1; bash -c "trap - USR1; exec torchrun t.py"', Fate.UNKNOWN),
        ('trap "" USR1; exec env --default-signal=USR1 torchrun t.py', Fate.UNKNOWN),
        ('trap "" USR1; exec apptainer exec i.sif torchrun t.py', Fate.UNKNOWN),
        ('trap "" USR1; srun torchrun t.py', Fate.DIES),
    ],
)
def test_k_and_m_inside_a_step_the_same_holds(inside: str, fate: Fate) -> None:
    rows = told(f"{BASH}srun bash -c '{inside}' &\nwait\n", Recipient.STEPS)
    assert [row.fate for row in rows[AGENT]] == [fate]
    if fate is not Fate.IGNORES:
        assert all(row.fate not in SURE for row in rows.get("srun step: ranks (t.py)", []))


def test_k_signals_that_come_out_of_a_variable_of_the_script_are_not_certain() -> None:
    body = "S=USR1\nsrun bash -c \"trap '' $S; exec torchrun t.py\" &\nwait\n"
    assert told(BASH + body)[AGENT][0].fate is Fate.UNKNOWN
    body = 'C="trap - USR1"\nsrun bash -c "trap \'\' USR1; $C; exec torchrun t.py" &\nwait\n'
    assert told(BASH + body)[AGENT][0].fate is not Fate.IGNORES
    body = "srun bash -c \"trap '' USR1; $CMD; exec torchrun t.py\" &\nwait\n"
    assert told(BASH + body)[AGENT][0].fate is Fate.UNKNOWN


@pytest.mark.parametrize(
    ("body", "who"),
    [
        ("trap '' USR1\nif [ $X ]; then trap - USR1; fi\npython t.py &\nwait\n", "ranks (t.py)"),
        ("trap '' USR1\nfor n in 1 2; do python t.py & trap - USR1; done\nwait\n", "ranks (t.py)"),
        ("trap '' USR1\nenv --default-signal=USR1 python t.py &\nwait\n", "ranks (t.py)"),
        ("trap '' USR1\nexec docker run img python t.py\n", "ranks (docker)"),
        ("trap '' USR1\nmpirun -np 4 python t.py &\nwait\n", "ranks (t.py)"),
        ("trap '' USR1\nmpirun -np 4 python t.py &\nwait\n", "mpirun"),
        ("trap '' USR1\ntrap $X\npython t.py &\nwait\n", "ranks (t.py)"),
    ],
)
def test_l_and_m_children_are_not_said_to_ignore_what_they_may_not(body: str, who: str) -> None:
    assert [row.fate for row in told(BASH + body)[who]] == [Fate.UNKNOWN]


@pytest.mark.parametrize(
    "body",
    ["SIG=USR1\ntrap save $SIG\n", "for s in USR1 TERM; do trap save $s; done\n"],
)
def test_n_a_trap_for_what_is_in_a_variable_may_be_for_any(body: str) -> None:
    assert shell_of(body + WORK).fate is Fate.UNKNOWN
    words = prepared_for(read_script(BASH + body + WORK))
    assert "$" not in words
    assert "names its signals by a variable" in words


def test_o_all_that_a_step_starts_is_told() -> None:
    body = "srun bash -c 'python mon.py & trap \"\" USR1; exec torchrun t.py' &\nwait\n"
    rows = told(BASH + body, Recipient.STEPS)
    assert {who: [row.fate for row in found] for who, found in rows.items()} == {
        "srun step: ranks (mon.py)": [Fate.UNKNOWN],
        AGENT: [Fate.IGNORES],
        "srun step: ranks (t.py)": [Fate.IGNORES],
    }


def test_what_cannot_be_read_as_shell_is_not_counted_on() -> None:
    assert shell_of(f"trap save USR1\n{WORK}if then fi )\n").fate is Fate.UNKNOWN
