"""A real hang is saved, judged again where there is no Slurm, and saved before it is cancelled."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.planted import COMMENT, ENVIRONMENT, LOG, SCRIPT, SECRETS
from tests.cluster.desk import slurmtop
from tests.cluster.fixtures import Cluster
from tests.cluster.test_why_live import stopped
from tests.cluster.training import Training, trains
from tests.cluster.verdicts import check_verdict

TOLD = ("state", "class", "culprits", "summary")


@pytest.fixture(scope="module")
def telling(cluster: Cluster) -> Iterator[Training]:
    """A training whose environment, comment and log hold secrets."""
    plain = dict(os.environ)
    os.environ.update(word.partition("=")[::2] for word in ENVIRONMENT if "MASTER" not in word)
    try:
        with trains(cluster, comment=" ".join(COMMENT), open_mode="append") as training:
            with cluster.log(training.job).open("a") as log:
                log.write("".join(f"{line}\n" for line in (*SCRIPT, *LOG)))
            yield training
    finally:
        os.environ.clear()
        os.environ.update(plain)


def elsewhere(path: Path, home: Path) -> dict[str, Any]:
    """What the command says in an empty environment: no Slurm, no home of one's own."""
    done = subprocess.run(
        ["/usr/bin/env", "-i", sys.executable, "-m", "slurmtop", "triage", "--json", str(path)],
        capture_output=True,
        cwd=home,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr.decode()
    print(done.stderr.decode(), end="")
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_a_hang_is_saved_and_judged_again_anywhere(
    cluster: Cluster, telling: Training, tmp_path: Path
) -> None:
    rank = telling.ranks[3]
    to, packed = tmp_path / "b", tmp_path / "b.tar.gz"
    with stopped(cluster, telling, rank):
        live = slurmtop("triage", telling.job, "--json", "--save", str(to))
        print(live.err, end="")
        second = slurmtop("triage", telling.job, "--json", "--save", str(packed))
    check_verdict(live.data)
    assert live.data["state"] == "hung", live.out
    assert [(one["rank"], one["host"]) for one in live.data["culprits"]] == [(rank.rank, rank.host)]
    assert f"saved: {to}" in live.err
    kept = b"".join(one.read_bytes() for one in sorted(to.iterdir()))
    print(f"{len(kept) / 1e6:.2f} MB as a folder, {packed.stat().st_size / 1e6:.2f} MB packed")
    assert [one for one in SECRETS if one.encode() in kept] == []
    assert [one for one in SECRETS if one in live.out] == []
    with tarfile.open(packed) as tar:
        members = [tar.extractfile(one) for one in tar]
        inside = b"".join(one.read() for one in members if one is not None)
    assert [one for one in SECRETS if one.encode() in inside] == []
    for path, said in ((to, live), (packed, second)):
        again = elsewhere(path, tmp_path)
        # Printed, for an assertion would cut it short.
        print("\n".join(_differ(again, said.data)))
        assert again == said.data


def _differ(again: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """What differs, field by field."""
    return [
        f"{name}: {json.dumps(again[name])}\n was: {json.dumps(said[name])}"
        for name in said
        if again[name] != said[name]
    ]


def test_a_suspect_is_saved_before_it_is_cancelled(
    cluster: Cluster, telling: Training, tmp_path: Path
) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    healthy = slurmtop("cancel", telling.job, "--dry-run", "--yes", environ=state)
    assert "saves what is known first" not in healthy.err
    rank = telling.ranks[5]
    cluster.ssh(rank.host, "kill", "-STOP", str(rank.pid))
    try:
        cluster.wait_for("a log that stands", lambda: _stands(cluster, telling), 20)
        long_ago = time.time() - 120
        os.utime(cluster.log(telling.job), (long_ago, long_ago))
        done = slurmtop("cancel", telling.job, "--yes", "--json", environ=state)
    finally:
        cluster.ssh(rank.host, f"kill -KILL {rank.pid} 2>/dev/null; true")
    print(done.err, f"{done.took_s:.1f} s")
    assert done.rc == 0, done.err
    (path,) = done.data["saved"]
    assert "saves what is known first: " + path in done.err
    log = (tmp_path / "state/slurmtop/actions.jsonl").read_text()
    assert [json.loads(line)["details"] for line in log.splitlines()] == [{"saved": [path]}] * 2
    again = elsewhere(Path(path), tmp_path)
    assert (again["state"], again["job"]) == ("hung", telling.job)
    assert [(one["rank"], one["host"]) for one in again["culprits"]] == [(rank.rank, rank.host)]
    kept = b"".join(one.read_bytes() for one in Path(path).iterdir()) + log.encode()
    assert [one for one in SECRETS if one.encode() in kept] == []
    shutil.rmtree(tmp_path / "state")


def _stands(cluster: Cluster, training: Training) -> bool:
    log = cluster.log(training.job)
    return time.time() - log.stat().st_mtime > 3
