"""What the cluster says about itself: its name, version and the settings that matter here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from slurmtop.collect.asking import check, on_cluster, run_slurm
from slurmtop.model.ports import Command, Runner, RunnerError
from slurmtop.parse.slurm.scontrol import parse_scontrol_config

_SECONDS = re.compile(r"\s*(\d+)\s*(?:sec\w*)?\s*$")
_VERSION = re.compile(r"\b(\d{2})\.(\d{2})\b", re.ASCII)
_SENDS_MANY_SINCE = (23, 11)
_VERSION_TIMEOUT_S = 5.0
_NONE = ("", "(null)", "none", "n/a")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """None wherever the controller did not say.

    ``kill_wait_s`` is the time from TERM to KILL, ``min_job_age_s`` how long an ended job is
    remembered. ``private_data`` names what other users may not see. ``accounting`` is the
    storage plugin; ``has_accounting`` False where there is none. ``slurm_user`` is the name of
    the user that the controller runs as, who may do anything to any job.
    """

    name: str | None = None
    version: str | None = None
    min_job_age_s: int | None = None
    kill_wait_s: int | None = None
    requeues_by_default: bool | None = None
    private_data: tuple[str, ...] = ()
    accounting: str | None = None
    has_accounting: bool | None = None
    slurm_user: str | None = None

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
        slurm_user=_user(settings.get("SlurmUser")),
    )


async def scancel_sends_many(runner: Runner) -> bool:
    """Does the installed scancel hand all its ids to the controller in one request (23.11 and
    later)? Where it does not say, it does not. Asks no controller: ``scancel --version``."""
    try:
        done = await runner.run(Command(("scancel", "--version"), timeout_s=_VERSION_TIMEOUT_S))
    except RunnerError:
        return False
    return done.rc == 0 and takes_many(done.stdout.decode("utf-8", "replace"))


def takes_many(version: str) -> bool:
    """``slurm 24.11.5``, ``slurm-wlm 22.05.8``: is it 23.11 or later?"""
    found = _VERSION.search(version)
    return found is not None and (int(found[1]), int(found[2])) >= _SENDS_MANY_SINCE


def _word(text: str | None) -> str | None:
    return None if text is None or text.strip().lower() in _NONE else text.strip()


def _user(text: str | None) -> str | None:
    """``slurm(64030)``: the name alone."""
    word = _word(text)
    return word.partition("(")[0] or None if word is not None else None


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
