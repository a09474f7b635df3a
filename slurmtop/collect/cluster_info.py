"""What the cluster says about itself: its name, version and the settings that matter here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from slurmtop.collect.asking import check, on_cluster, run_slurm
from slurmtop.model.ports import Runner
from slurmtop.parse.slurm.scontrol import parse_scontrol_config

_SECONDS = re.compile(r"\s*(\d+)\s*(?:sec\w*)?\s*$")
_NONE = ("", "(null)", "none", "n/a")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """None wherever the controller did not say.

    ``kill_wait_s`` is the time from TERM to KILL, ``min_job_age_s`` how long an ended job is
    remembered. ``private_data`` names what other users may not see. ``accounting`` is the
    storage plugin; ``has_accounting`` False where there is none.
    """

    name: str | None = None
    version: str | None = None
    min_job_age_s: int | None = None
    kill_wait_s: int | None = None
    requeues_by_default: bool | None = None
    private_data: tuple[str, ...] = ()
    accounting: str | None = None
    has_accounting: bool | None = None

    @property
    def hides_jobs(self) -> bool:
        """True where other users' jobs are silently left out of the queue."""
        return "jobs" in self.private_data or "all" in self.private_data


async def read_cluster_info(runner: Runner, *, cluster: str = "") -> ClusterInfo:
    """Ask once, with ``scontrol show config``.

    Raises :class:`~slurmtop.collect.poller.SourceFailed`.
    """
    argv = ("scontrol", *on_cluster(cluster), "show", "config")
    settings = parse_scontrol_config(check(argv, await run_slurm(runner, argv)))
    return cluster_info(settings)


def cluster_info(settings: Mapping[str, str]) -> ClusterInfo:
    """From the settings by name, e.g. ``{"KillWait": "30 sec", "PrivateData": "jobs,usage"}``."""
    accounting = _word(settings.get("AccountingStorageType"))
    return ClusterInfo(
        name=_word(settings.get("ClusterName")),
        version=_word(settings.get("SLURM_VERSION")),
        min_job_age_s=_seconds(settings.get("MinJobAge")),
        kill_wait_s=_seconds(settings.get("KillWait")),
        requeues_by_default=_yes(settings.get("JobRequeue")),
        private_data=_list(settings.get("PrivateData")),
        accounting=accounting,
        has_accounting=_stores(settings.get("AccountingStorageType")),
    )


def _word(text: str | None) -> str | None:
    return None if text is None or text.strip().lower() in _NONE else text.strip()


def _seconds(text: str | None) -> int | None:
    found = _SECONDS.match(text or "")
    return int(found[1]) if found else None


def _yes(text: str | None) -> bool | None:
    return {"1": True, "yes": True, "0": False, "no": False}.get((text or "").strip().lower())


def _list(text: str | None) -> tuple[str, ...]:
    words = (word.strip().lower() for word in (text or "").split(","))
    return tuple(word for word in words if word not in _NONE)


def _stores(text: str | None) -> bool | None:
    if text is None:
        return None
    plugin = text.strip().lower().removeprefix("accounting_storage/")
    # filetxt (up to 20.02) keeps a file that sacct cannot answer most questions from.
    return plugin not in (*_NONE, "filetxt")
