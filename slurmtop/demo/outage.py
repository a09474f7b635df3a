"""The controller that does not answer: when, how long one waits, and what is said then.

The times are those of a person's watch and not of the cluster: at speed 60 an outage of
three simulated minutes would be over before the first question had timed out.
"""

from slurmtop.demo.clock import DemoClock
from slurmtop.demo.options import Answer, said
from slurmtop.demo.values import LOGIN

PERIOD_S = 600.0
BEGINS_S = 60.0
LASTS_S = 180.0
CONNECT_S = 9.5
"""What a client needs to give up on a controller that is gone."""
SHOW_JOB_S = 18.5
TIMED_OUT_S = 10.1
_GONE = "Unable to contact slurm controller (connect failure)"
_SLOW = "Socket timed out on send/recv operation"
_CALLS = {"node": "slurm_load_node", "partition": "slurm_load_partitions"}


def refused_now(clock: DemoClock) -> bool:
    """Is the controller away at this moment?"""
    return BEGINS_S <= clock.real_elapsed_s() % PERIOD_S < BEGINS_S + LASTS_S


def refusal(program: str, argv: tuple[str, ...], clock: DemoClock) -> Answer | None:
    """What the program says without a controller; None for what needs none.

    Every second outage is one of a controller that is up but too busy to answer.
    """
    slow = int(clock.real_elapsed_s() // PERIOD_S) % 2 == 1
    text, wait = (_SLOW, TIMED_OUT_S) if slow else (_GONE, CONNECT_S)
    words = [word for word in argv if not word.startswith("-")]
    if program == "squeue":
        return said(err=f"slurm_load_jobs error: {text}\n", rc=1, took_s=wait)
    if program == "sinfo":
        return said(err=f"slurm_load_partitions: {text}\n", rc=1, took_s=wait)
    if program == "sdiag":
        return said(err=f"slurm_get_statistics: {text}\n", rc=1, took_s=wait)
    if program == "scancel":
        lines = [f"scancel: error: Kill job error on job id {word}: {text}\n" for word in words]
        return said(err="".join(lines), rc=140 if slow else 8, took_s=wait)
    if program == "scontrol":
        return _scontrol(words, text, wait, slow=slow)
    return None


def _scontrol(words: list[str], text: str, wait: float, *, slow: bool) -> Answer | None:
    verb = words[0] if words else ""
    if verb == "ping":
        return said(f"Slurmctld(primary) at {LOGIN} is DOWN\n", rc=1, took_s=wait)
    if verb == "show":
        what = (words[1] if len(words) > 1 else "").rstrip("s")
        if what == "hostname":
            return None
        if what == "config":
            return said(err=f"slurm_load_ctl_conf error: {text}\n", rc=1, took_s=wait)
        call = _CALLS.get(what, "slurm_load_jobs")
        one_job = what == "job" and len(words) > 2 and not slow
        took = SHOW_JOB_S if one_job else wait
        return said(err=f"{call} error: {text}\n", rc=1, took_s=took)
    if verb in ("hold", "release", "requeue", "requeuehold", "update", "suspend", "resume"):
        lines = [f"{text} for job {word}\n" for word in words[1:]]
        if verb in ("hold", "release"):
            said_of = text if slow else "Unexpected message received"
            lines = [f"{said_of} for job {word}\n" for word in words[1:]]
            lines.append(f"slurm_suspend error: {said_of}\n")
        return said(err="".join(lines), rc=1, took_s=wait)
    return None
