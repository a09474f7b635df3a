"""``doctor``, ``gpus`` and ``export`` as a person runs them; the nodes are this machine."""

import json
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.stand_ins import StandIns, current_name, detail_text, queue_row, slurmtop
from tests.cli.test_commands import alive, wait_until

#: It "logs in" by running the command here, or fails as ssh does.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
echo "$1" >>"{folder}/logins"
case $1 in
gpu02)
    echo "ssh: connect to host gpu02 port 22: Connection refused" >&2
    exit 255 ;;
gpu03)
    echo $$ >"{folder}/pid.new"
    mv "{folder}/pid.new" "{folder}/pid"
    exec sleep 1000 ;;
esac
shift
PATH={folder}:$PATH exec sh -c "$*"
"""
#: Two GPUs, in whatever fields are asked for.
SMI = """#!/bin/sh
case "$*" in
*compute-apps*) exit 0 ;;
*--query-gpu=*) ;;
*) exit 6 ;;
esac
for word; do case $word in --query-gpu=*) fields=${word#*=} ;; esac; done
for gpu in 0 1; do
    row=
    for field in $(echo "$fields" | tr , ' '); do
        case $field in
        index) value=$gpu ;;
        uuid) value=GPU-$gpu ;;
        name) value="NVIDIA H100 80GB HBM3" ;;
        utilization.gpu) value=97 ;;
        power.draw*) value=612.00 ;;
        power.limit | enforced.power.limit) value=700.00 ;;
        memory.used) value=61440 ;;
        memory.total) value=81559 ;;
        *) value="[N/A]" ;;
        esac
        row="$row${row:+, }$value"
    done
    echo "$row"
done
"""


@pytest.fixture
def environ(slurm: StandIns, home: Path) -> dict[str, str]:
    """Two running nodes of one job; the second one's sshd is stopped. Only the ssh command is
    used, and that is a stand-in."""
    for name, text in (("ssh", SSH.replace("{folder}", str(slurm.folder))), ("nvidia-smi", SMI)):
        program = slurm.folder / name
        program.write_text(text)
        program.chmod(0o755)
    folder = home / ".config" / "slurmtop"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("node_access: openssh\n")
    running(slurm)
    return slurm.environ(home)


def running(slurm: StandIns, **changes: str) -> None:
    row = queue_row("4711", **{"tres-alloc": "cpu=32,node=2,gres/gpu=4"}, **changes)
    slurm.say(jobs=[row], details={"4711": detail_text("4711", "RUNNING")})


def logins(slurm: StandIns) -> list[str]:
    path = slurm.folder / "logins"
    return path.read_text().split() if path.exists() else []


def as_json(environ: dict[str, str], *arguments: str, rc: int = 0) -> dict[str, Any]:
    done = slurmtop(environ, *arguments, "--json")
    assert (done.returncode, done.stderr) == (rc, "")
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def rows_of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = {row["source"]: row for row in found["rows"]}
    assert len(rows) == len(found["rows"])
    return rows


def test_doctor(slurm: StandIns, environ: dict[str, str]) -> None:
    found = as_json(environ, "doctor")
    assert found["schema"] == "slurmtop.doctor/1"
    assert (found["job"], found["node"]) == ("4711", "gpu01")
    rows = rows_of(found)
    assert rows["own queue"]["status"] == "reachable"
    assert rows["details of a job"]["why"] == "of 4711"
    assert rows["ssh command to gpu01"]["status"] == "reachable"
    assert rows["GPU values"]["status"] == "reachable"
    assert rows["GPU values"]["why"] == f"{slurm.folder / 'nvidia-smi'}: 2 GPUs"
    assert rows["settings files"]["status"] == "reachable"
    assert rows["terminal"]["status"] == "not asked"
    assert set(logins(slurm)) == {"gpu01"}


def test_doctor_tells_a_tool_that_is_there_and_gives_nothing(
    slurm: StandIns, environ: dict[str, str]
) -> None:
    words = "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."
    for name, says, rc in (("nvidia-smi", words, 9), ("dcgmi", "Error: unable to connect", 1)):
        tool = slurm.folder / name
        tool.write_text(f"#!/bin/sh\necho '{says}'; exit {rc}\n")
        tool.chmod(0o755)
    rows = rows_of(as_json(environ, "doctor"))
    assert rows["GPU values"]["status"] == "refused"
    assert "driver" in rows["GPU values"]["why"]
    assert rows["GPU activity (DCGM)"]["status"] == "not asked"


def test_doctor_for_a_person(environ: dict[str, str]) -> None:
    done = slurmtop(environ, "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line and line[0] not in " s"] == [
        "Slurm",
        "Logs",
        "Here",
        "Ways onto nodes",
        "On the node",
    ]
    assert max(len(line) for line in lines if "/" not in line) <= 80


def test_doctor_on_the_node_of_the_job(slurm: StandIns, environ: dict[str, str]) -> None:
    """What is read there needs no way onto it, and the refusals of the others say no more."""
    here = {**environ, "SLURMD_NODENAME": "gpu02"}
    rows = rows_of(as_json(here, "doctor", "gpu02", "gpu09"))
    assert rows["here on gpu02"]["status"] == "reachable"
    assert rows["here on gpu02"]["why"].startswith("this is the node: as ")
    assert rows["ssh command to gpu02"]["status"] == "refused"
    assert "here on gpu09" not in rows
    assert rows["GPU values"]["host"] == "gpu02"
    assert rows["GPU values"]["status"] == "reachable"


def test_doctor_on_named_nodes(slurm: StandIns, environ: dict[str, str]) -> None:
    rows = rows_of(as_json(environ, "doctor", "gpu02", "gpu09"))
    assert rows["ssh command to gpu02"]["status"] == "refused"
    assert "refuses connections on port 22" in rows["ssh command to gpu02"]["why"]
    assert rows["ssh command to gpu02"]["opens"]
    assert rows["ssh command to gpu09"]["status"] == "reachable"
    assert logins(slurm).count("gpu02") == 1, "one try where it fails"
    assert set(logins(slurm)) == {"gpu02", "gpu09"}


@pytest.mark.parametrize(
    "words", [("0012",), ("--hosts", "12"), ("--hosts", "4711,12"), ("[12-12]",)]
)
def test_doctor_on_a_node_whose_name_is_a_number(
    slurm: StandIns, environ: dict[str, str], words: tuple[str, ...]
) -> None:
    rows = rows_of(as_json(environ, "doctor", *words))
    name = words[-1].split(",")[-1].strip("[]").partition("-")[0]
    assert f"ssh command to {name}" in rows
    assert name in logins(slurm)


def test_doctor_on_an_unknown_number_says_how_a_node_is_named(environ: dict[str, str]) -> None:
    rows = rows_of(as_json(environ, "doctor", "12"))
    assert rows["nodes"]["why"].endswith("a node of that name: slurmtop doctor --hosts 12")


def test_doctor_without_a_job_tries_no_node(slurm: StandIns, environ: dict[str, str]) -> None:
    slurm.say(jobs=[])
    rows = rows_of(as_json(environ, "doctor"))
    assert rows["nodes"]["status"] == "not asked"
    assert "pam_slurm_adopt" in rows["nodes"]["why"]
    assert logins(slurm) == []


def test_doctor_where_slurm_is_silent(slurm: StandIns, environ: dict[str, str]) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"squeue": [words, 1], "scontrol": [words, 1]})
    rows = rows_of(as_json(environ, "doctor", rc=1))
    assert rows["own queue"]["status"] == "refused"
    assert rows["settings files"]["status"] == "reachable"


def test_doctor_without_slurm_tells_what_is_here(environ: dict[str, str], tmp_path: Path) -> None:
    done = slurmtop({**environ, "PATH": str(tmp_path)}, "doctor", "--json")
    assert done.returncode == 1
    assert "Slurm is not here" in done.stderr
    rows = rows_of(json.loads(done.stdout))
    assert rows["Slurm"]["status"] == "absent"
    assert rows["log of actions"]["status"] == "reachable"


def test_doctor_with_nodes_closed_by_the_settings(
    slurm: StandIns, environ: dict[str, str], home: Path
) -> None:
    (home / ".config" / "slurmtop" / "config.yaml").write_text("node_access: off\n")
    rows = rows_of(as_json(environ, "doctor"))
    assert rows["nodes"]["status"] == "not asked"
    assert "node_access" in rows["nodes"]["why"]
    assert logins(slurm) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", "4711", "gpu01"),
        ("doctor", "4711", "--hosts", "gpu01"),
        ("doctor", "--", "-oProxyCommand=x"),
        ("doctor", "gpu[01-99]"),
        ("gpus", "--hosts", "a;b"),
        ("gpus", "--hosts", "gpu01\nid"),
        ("gpus", "gpu01"),
    ],
)
def test_words_that_are_neither_job_nor_node(
    slurm: StandIns, environ: dict[str, str], arguments: tuple[str, ...]
) -> None:
    done = slurmtop(environ, *arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.count("\n") == 1
    assert slurm.calls == []
    assert logins(slurm) == []


def test_gpus(slurm: StandIns, environ: dict[str, str]) -> None:
    found = as_json(environ, "gpus", "4711")
    assert found["schema"] == "slurmtop.gpus/1"
    (job,) = found["jobs"]
    assert (job["hosts_answered"], job["hosts_asked"], job["gpus_allocated"]) == (1, 2, 4)
    assert job["mean_util_percent"] is None
    assert [gpu["uuid"] for gpu in job["gpus"]] == ["GPU-0", "GPU-1"]
    assert {gpu["util_percent"] for gpu in job["gpus"]} == {97.0}
    assert {gpu["temp_c"] for gpu in job["gpus"]} == {None}
    first, second = job["hosts"]
    assert (first["way"], first["failure"]) == ("openssh", None)
    assert first["sources"] == ["nvidia-smi"]
    assert "refuses connections" in second["failure"]
    assert second["gpus_seen"] is None


def test_gpus_for_a_person(environ: dict[str, str]) -> None:
    done = slurmtop(environ, "gpus")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("4711 llm-pretrain: 1 of 2 hosts answered, 2 of 4 GPUs seen\n")
    assert "\n  gpu02 refuses connections" in done.stdout


def test_gpus_of_a_named_job_are_parted_from_those_of_other_own_jobs(
    slurm: StandIns, environ: dict[str, str]
) -> None:
    """A login is put into one of them: the two GPUs that it sees may be either job's."""
    two = {"NumNodes": "1", "NodeList": "gpu01", "tres-alloc": "cpu=32,node=1,gres/gpu=2"}
    details = {id: detail_text(id, "RUNNING") for id in ("4711", "4712")}
    slurm.say(jobs=[queue_row("4711", **two)], details=details)
    assert len(as_json(environ, "gpus", "4711")["jobs"][0]["gpus"]) == 2
    slurm.say(jobs=[queue_row(id, **two) for id in details], details=details)
    (job,) = as_json(environ, "gpus", "4711")["jobs"]
    assert (job["job"], job["gpus"]) == ("4711", [])
    assert "not told apart" in " ".join(job["hosts"][0]["says"])
    assert [one["gpus"] for one in as_json(environ, "gpus")["jobs"]] == [[], []]


def test_gpus_of_a_job_without_gpus_opens_no_node(slurm: StandIns, environ: dict[str, str]) -> None:
    row = queue_row("4711", **{"tres-alloc": "cpu=32,mem=64G,node=2,billing=32"})
    slurm.say(jobs=[row], details={"4711": detail_text("4711", "RUNNING")})
    done = slurmtop(environ, "gpus", "4711")
    assert (done.returncode, done.stdout) == (1, "")
    assert "job 4711 holds no GPU" in done.stderr
    assert logins(slurm) == []


def test_gpus_where_no_node_answers_fails(environ: dict[str, str]) -> None:
    done = slurmtop(environ, "gpus", "--hosts", "gpu02")
    assert done.returncode == 1
    assert "0 of 1 host answered" in done.stdout


def test_gpus_without_a_job(slurm: StandIns, environ: dict[str, str]) -> None:
    slurm.say(jobs=[queue_row("4711", "PENDING")])
    done = slurmtop(environ, "gpus")
    assert done.returncode == 0
    assert done.stdout.startswith(f"no running job of {current_name()} holds a GPU")
    done = slurmtop(environ, "gpus", "4711")
    assert done.returncode == 1
    assert "holds no nodes now (PENDING)" in done.stderr
    done = slurmtop(environ, "gpus", "99")
    assert done.returncode == 1
    assert "no such job in the queue" in done.stderr


def metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def test_export(environ: dict[str, str], home: Path) -> None:
    done = slurmtop(environ, "export")
    assert (done.returncode, done.stderr) == (0, "")
    found = metrics(done.stdout)
    assert found["slurmtop_up"] == [({}, 1.0)]
    assert {labels["uuid"] for labels, _ in found["slurmtop_gpu_power_watts"]} == {"GPU-0", "GPU-1"}
    assert found["slurmtop_node_reachable"] == [
        ({"host": "gpu01"}, 1.0),
        ({"host": "gpu02"}, 0.0),
    ]
    path = home / "metrics" / "slurmtop.prom"
    assert "there is no folder" in slurmtop(environ, "export", "--textfile", str(path)).stderr
    path.parent.mkdir()
    path.write_text("old")
    done = slurmtop(environ, "export", "--textfile", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert metrics(path.read_text())["slurmtop_job_gpus"] == [({"job": "4711"}, 4.0)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [one.name for one in path.parent.iterdir()] == ["slurmtop.prom"]


def test_export_says_how_many_jobs_it_did_not_look_at(
    slurm: StandIns, environ: dict[str, str]
) -> None:
    held = {"tres-alloc": "cpu=1,node=1,gres/gpu=1", "NodeList": "gpu01"}
    plain = {"tres-alloc": "cpu=1,mem=1G,node=1,billing=1", "NodeList": "cpu01"}
    on_gpus = [queue_row(str(number), **held) for number in range(5001, 5011)]
    without = [queue_row(str(number), **plain) for number in range(6001, 6004)]
    slurm.say(jobs=[*on_gpus, *without])
    found = metrics(slurmtop(environ, "export").stdout)
    assert found["slurmtop_jobs_not_looked_at"] == [
        ({"what": "gpus"}, 2.0),
        ({"what": "logs"}, 5.0),
    ]
    assert len(found["slurmtop_job_gpus_seen"]) == 8
    slurm.say(jobs=on_gpus[:1])
    found = metrics(slurmtop(environ, "export").stdout)
    assert found["slurmtop_jobs_not_looked_at"] == [
        ({"what": "gpus"}, 0.0),
        ({"what": "logs"}, 0.0),
    ]


def test_export_of_an_outage(slurm: StandIns, environ: dict[str, str], tmp_path: Path) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm.say(refuse={"squeue": [words, 1]})
    path = tmp_path / "slurmtop.prom"
    done = slurmtop(environ, "export", "--textfile", str(path))
    assert done.returncode == 1
    assert "the queue cannot be read" in done.stderr
    found = metrics(path.read_text())
    assert found["slurmtop_up"] == [({}, 0.0)]
    assert not [name for name in found if "job" in name]


def test_a_name_with_every_sign_of_the_format(slurm: StandIns, environ: dict[str, str]) -> None:
    name = 'a"b\\c{d="e"} 7'
    running(slurm, Name=name)
    ((labels, _),) = metrics(slurmtop(environ, "export").stdout)["slurmtop_job_info"]
    assert labels["name"] == name


def test_output_that_cannot_be_written(environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -m slurmtop export >/dev/full', sys.executable],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_recording_shows_the_same_gpus_and_asks_nobody(
    slurm: StandIns, environ: dict[str, str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "recording")
    live = json.loads(slurmtop(environ, "gpus", "--json", "--record", folder).stdout)
    asked = logins(slurm)
    found = as_json(environ, "gpus", "--replay", folder)
    assert found["recorded_at"] is not None
    (job,), (before,) = found["jobs"], live["jobs"]
    assert [gpu["uuid"] for gpu in job["gpus"]] == [gpu["uuid"] for gpu in before["gpus"]]
    assert job["hosts_answered"] == 1
    assert job["hosts"][1]["failure"]
    assert logins(slurm) == asked


def test_a_recording_without_nodes_says_so(
    slurm: StandIns, environ: dict[str, str], tmp_path: Path
) -> None:
    folder = str(tmp_path / "recording")
    assert slurmtop(environ, "jobs", "--record", folder).returncode == 0
    done = slurmtop(environ, "gpus", "--replay", folder)
    assert done.returncode == 1
    assert "0 of 2 hosts answered" in done.stdout
    assert "slurmtop-gpus on gpu01" in done.stdout
    assert "PATH=" not in done.stdout
    rows = rows_of(as_json(environ, "doctor", "--replay", folder))
    assert "recording" in rows["nodes"]["why"]
    assert logins(slurm) == []


def test_a_recording_tells_of_its_own_person_and_machine(
    slurm: StandIns, environ: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "recording"
    assert slurmtop(environ, "jobs", "--record", str(folder)).returncode == 0
    session = json.loads((folder / "session.json").read_text())
    assert session["user"] == current_name()
    for who in ({"uid": 4242, "user": "alice"}, {"uid": None, "user": None}):
        (folder / "session.json").write_text(json.dumps(session | who))
        found = as_json(environ, "doctor", "--replay", str(folder))
        assert {key: found[key] for key in ("uid", "user")} == who
        assert found["machine"] is None
        rows = rows_of(found)
        assert rows.pop("own queue")["status"] == "reachable"
        assert {row["status"] for row in rows.values()} == {"not asked"}, rows
        title = slurmtop(environ, "doctor", "--replay", str(folder)).stdout.splitlines()[0]
        assert ("a recording of alice" in title) == (who["user"] == "alice")
        assert socket.gethostname() not in title


@pytest.mark.parametrize("command", ["doctor", "gpus"])
def test_an_interrupt_leaves_no_login_behind(
    slurm: StandIns, environ: dict[str, str], command: str
) -> None:
    words = ("gpu03",) if command == "doctor" else ("--hosts", "gpu03")
    process = subprocess.Popen(
        [sys.executable, "-m", "slurmtop", command, *words],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_until((slurm.folder / "pid").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")
    wait_until(lambda: not alive(int((slurm.folder / "pid").read_text())), 10.0)
