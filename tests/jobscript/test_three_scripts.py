"""One script that saves, one whose agent is spared, one that nothing is prepared in."""

import pytest

from slurmtop.jobscript.prepared import prepared_for
from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.script import Fate, Recipient

SAVES = """\
#!/bin/bash
#SBATCH --nodes=2 --signal=B:USR1@120
save() { touch save.now; wait; }
trap save USR1
srun python train.py &
wait
"""
SPARES = """\
#!/bin/bash
#SBATCH --signal=USR1@300
srun bash -c 'trap "" USR1; exec torchrun --nproc-per-node 8 train.py' &
wait
"""
BARE = """\
#!/bin/bash
#SBATCH --nodes=2
module load cuda
srun torchrun --nproc-per-node 8 train.py
"""


def fates(text: str, recipient: Recipient, signal: str = "USR1") -> dict[str, Fate]:
    return {row.who: row.fate for row in reactions(read_script(text), signal, recipient)}


def test_a_trap_with_a_waiting_shell_saves() -> None:
    assert prepared_for(read_script(SAVES)) == (
        "prepared for USR1: trap in line 4, and --signal=B:USR1@120 in line 2"
    )
    (shell,) = reactions(read_script(SAVES), "USR1", Recipient.BATCH)
    assert (shell.who, shell.fate, shell.line) == ("batch shell", Fate.HANDLES, 4)
    assert "runs at once; the script waits on" in shell.why
    assert "line 2" in shell.why
    assert fates(SAVES, Recipient.BATCH, "USR2") == {"batch shell": Fate.DIES}


def test_an_ignored_signal_spares_the_agent_and_not_the_batch_shell() -> None:
    assert fates(SPARES, Recipient.STEPS) == {
        "srun step: torchrun agent": Fate.IGNORES,
        "srun step: ranks (train.py)": Fate.IGNORES,
    }
    ranks = reactions(read_script(SPARES), "USR1", Recipient.STEPS)[1]
    assert "a handler that they set themselves still runs" in ranks.why
    assert "asks Slurm for USR1 to its steps (line 2)" in ranks.why
    assert fates(SPARES, Recipient.EVERYTHING) == {
        "batch shell": Fate.DIES,
        "srun itself": Fate.CONTINUES,
        "srun step: torchrun agent": Fate.IGNORES,
        "srun step: ranks (train.py)": Fate.IGNORES,
    }
    assert prepared_for(read_script(SPARES)) == (
        "prepared for USR1: ignored by what line 3 starts, and --signal=USR1@300 in line 2"
    )


@pytest.mark.parametrize("signal", ["TERM", "INT", "HUP", "QUIT"])
def test_the_agent_ends_its_workers_of_what_it_handles_itself(signal: str) -> None:
    text = SPARES.replace('"" USR1', f'"" USR1 {signal}')
    assert fates(text, Recipient.STEPS, signal)["srun step: torchrun agent"] is Fate.DIES


def test_nothing_prepared_is_told_as_that() -> None:
    reading = read_script(BARE)
    assert prepared_for(reading) == "nothing in the script is prepared for a signal"
    agent, ranks = reactions(reading, "USR1", Recipient.STEPS)
    assert (agent.fate, ranks.fate) == (Fate.DIES, Fate.UNKNOWN)
    assert "live on without it" in agent.why
    assert "USR1 kills them" in ranks.why
    assert fates(BARE, Recipient.BATCH) == {"batch shell": Fate.DIES}
