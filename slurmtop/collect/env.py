"""The environment that children get: the user's own, less what silently changes an answer.

``SQUEUE_STATES=RUNNING`` in a login script makes squeue hide every pending job, and
``SCANCEL_INTERACTIVE`` makes scancel ask a question that nobody can answer.
"""

from collections.abc import Mapping

_REMOVED_PREFIXES = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SCANCEL_")
_REMOVED = frozenset(
    {"SLURM_TIME_FORMAT", "SLURM_JSON", "SLURM_YAML", "SLURM_DEBUG_FLAGS", "SLURM_CLUSTERS"}
)
#: What tells a command how to reach the controller, and as whom.
_WHERE_SLURM_IS = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"})
#: Without ``SLURM_BITSTR_LEN=0`` Slurm cuts the ids of large arrays, throttle and all.
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_BITSTR_LEN": "0"}


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` as a child may see it: no filters or formats, UTC, no cut array ids."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _REMOVED and not name.startswith(_REMOVED_PREFIXES)
    }
    return kept | _SET


def srun_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` for an ``srun`` that is told by options alone what to do.

    Inside an allocation ``SLURM_JOB_ID``, ``SLURM_NNODES`` and some fifty others, and ``SRUN_*``
    and ``PMI*``, would change what the same command means.
    """
    return {
        name: value
        for name, value in child_environment(environ).items()
        if name in _WHERE_SLURM_IS or not name.startswith(("SLURM", "SRUN_", "PMI", "SBATCH_"))
    }


def wanted_clusters(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The clusters named by ``SLURM_CLUSTERS``, in order and once each; ``()`` for the local one.

    Each is passed on as an explicit ``-M``, one command a cluster: one answer about several
    clusters does not say which row is whose. The word ``all`` is returned as it stands.
    """
    names = (name.strip() for name in environ.get("SLURM_CLUSTERS", "").split(","))
    return tuple(dict.fromkeys(name for name in names if name))
