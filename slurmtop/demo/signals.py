"""What a signal does to a job: it saves, it does not care, or it dies, as its script has it."""

from slurmtop.demo.jobs import DemoJob, Prepared, Run
from slurmtop.demo.signal_words import NUMBERS
from slurmtop.demo.stories import Teller, step_at
from slurmtop.demo.values import View
from slurmtop.demo.world import KILL_DELAY_S

SAVE_S = 4
_HARMLESS = frozenset({"CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG"})


def send(view: View, job: DemoJob, signal: str, *, shell: bool, steps: bool) -> None:
    """Deliver ``signal`` to the batch shell, to what srun started, or to both.

    Measured on 22.05.8: of a step that dies the job ends FAILED with 128 and the signal, of a
    batch shell that dies with ``0:10``.
    """
    run = job.run
    steps = steps and job.spec.steps
    if run is None or signal in _HARMLESS:
        return
    handled = job.spec.prepared if signal == "USR1" and job.spec.steps else Prepared.NOTHING
    if (shell and handled is Prepared.TRAP) or (steps and handled is Prepared.RANKS):
        _save(view, job, run, signal)
    if shell and handled is not Prepared.TRAP:
        view.world.at(view.t + KILL_DELAY_S, "shell dies", job, NUMBERS[signal])
    elif steps and handled is not Prepared.RANKS:
        view.world.at(view.t + KILL_DELAY_S, "step dies", job, NUMBERS[signal])


def _save(view: View, job: DemoJob, run: Run, signal: str) -> None:
    teller = Teller(view.start, job, run, len(job.runs) - 1)
    step = step_at(teller, view.t)
    where = "" if step is None else f" at step {step}"
    if step is not None:
        run.saved.append((view.t + 1 + SAVE_S, step))
    run.marks.append((view.t + 1, f"got {signal}, saving a checkpoint\n"))
    run.marks.append((view.t + 1 + SAVE_S, f"checkpoint saved{where}\n"))
