"""What children see, and who we are."""

import os
import pwd

import pytest

from slurmtop.collect.env import child_environment, srun_environment, wanted_clusters
from slurmtop.collect.who import Who, current_user


def test_039_filters_and_formats_are_removed_and_the_rest_kept() -> None:
    removed = {
        "SQUEUE_STATES": "RUNNING",
        "SQUEUE_FORMAT2": "x",
        "SACCT_FORMAT": "x",
        "SINFO_PARTITION": "x",
        "SCONTROL_ALL": "1",
        "SCANCEL_INTERACTIVE": "true",
        "SLURM_TIME_FORMAT": "relative",
        "SLURM_JSON": "x",
        "SLURM_YAML": "x",
        "SLURM_DEBUG_FLAGS": "x",
        "SLURM_CLUSTERS": "alpha",
    }
    kept = {
        "SLURM_CONF": "/etc/slurm.conf",
        "SSH_AUTH_SOCK": "/run/agent",
        "PATH": "/bin",
        "SLURM_JOB_ID": "7",
        "HOME": "/home/anna",
    }
    changed = {"LC_ALL": "de_DE", "TZ": "Pacific/Chatham", "SLURM_BITSTR_LEN": "64"}
    assert child_environment(removed | kept | changed) == kept | {
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SLURM_BITSTR_LEN": "0",
    }


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        ("", ()),
        ("alpha", ("alpha",)),
        ("alpha, beta,,alpha", ("alpha", "beta")),
        ("all", ("all",)),
    ],
)
def test_clusters_of_the_environment(text: str, clusters: tuple[str, ...]) -> None:
    assert wanted_clusters({"SLURM_CLUSTERS": text}) == clusters
    assert wanted_clusters({}) == ()


def test_C19_the_user_comes_from_the_password_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "somebody-else")
    uid = os.getuid()
    assert current_user() == Who(uid, pwd.getpwuid(uid).pw_name)


def test_an_unknown_uid_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_001_234)
    assert current_user() == Who(4_000_001_234, "4000001234")


def test_srun_gets_nothing_of_an_allocation_around_it() -> None:
    around = {
        "SLURM_JOB_ID": "7",
        "SLURM_NNODES": "4",
        "SLURM_CPU_BIND": "quiet",
        "SLURMD_NODENAME": "gpu01",
        "SRUN_DEBUG": "3",
        "SBATCH_GPUS": "8",
        "PMIX_RANK": "0",
    }
    kept = {"SLURM_CONF": "/etc/slurm.conf", "SLURM_JWT": "x", "PATH": "/bin", "HOME": "/home/anna"}
    given = srun_environment({**around, **kept})
    assert not set(around) & set(given)
    assert {name: given[name] for name in kept} == kept
