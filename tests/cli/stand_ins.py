"""Stand-ins for Slurm's programs in a folder of their own, answering from one JSON file.

They print in the forms that were captured from Slurm 24.11: the queue as asked with ``-O``,
``scontrol show job`` as whole text, ``sacct -P``. Every call is noted in ``calls.jsonl``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAMS = ("squeue", "scontrol", "sacct", "scancel", "sinfo", "sacctmgr")

_SCRIPT = r"""#!PYTHON -IS
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
program, argv = os.path.basename(sys.argv[0]), sys.argv[1:]
with open(os.path.join(here, "calls.jsonl"), "a") as log:
    log.write(json.dumps([program, *argv]) + "\n")
path = os.path.join(here, "data.json")
with open(path) as file:
    data = json.load(file)

def leave(out="", err="", rc=0):
    sys.stdout.buffer.write(out.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
    sys.stderr.write(err)
    sys.exit(rc)

def value(*names):
    for place, word in enumerate(argv):
        for name in names:
            if word == name:
                return argv[place + 1]
            if name.startswith("--") and word.startswith(name + "="):
                return word[len(name) + 1:]
    return None

if data.get("bell"):
    with open(data["bell"], "wb") as bell:
        bell.write(b"!")
wait = data.get("slow_s", {}).get(program)
if wait:
    time.sleep(wait)
refused = data.get("refuse", {}).get(program)
if refused:
    leave(err=refused[0] + "\n", rc=refused[1])

def named(job, ids):
    text = job["JobArrayID"]
    own = {text, job["JobID"], text.split("_")[0].split("+")[0]}
    # Which tasks a rest holds is left to the reader.
    rest = any("_[" in text and text.split("_")[0] == id.split("_")[0] for id in ids)
    return rest or bool(own & set(ids))

def save():
    with open(path, "w") as file:
        json.dump(data, file)

def act(verb, text):
    # What hold, release and requeue do to the queue.
    said, lines = data.get("scontrol", {}), []
    for id in text.split(",") if "[" not in text else [text]:
        found = [job for job in data.get("jobs", []) if named(job, [id])]
        if id in said or not found:
            words = said.get(id, "Invalid job id specified")
            lines.append("%s for job %s" % (words, id))
            continue
        for job in found:
            if verb == "hold":
                job.update(PriorityLong="0", Reason="JobHeldUser")
            elif verb == "release":
                job.update(PriorityLong="5", Reason="None")
            else:
                job.update(State="PENDING", Reason="BeginTime", StartTime="N/A", EndTime="N/A",
                           NodeList="", RestartCnt=str(int(job["RestartCnt"]) + 1))
                job["SubmitTime"] = "2031-05-05T11:59:00"
            if verb == "requeuehold":
                job.update(PriorityLong="0", Reason="job requeued in held state")
    save()
    leave(err="".join(line + "\n" for line in lines), rc=1 if lines else 0)

if program == "squeue":
    jobs = data.get("jobs", [])
    ids = value("-j", "--jobs")
    if ids is not None:
        wanted = ids.split(",")
        jobs = [job for job in jobs if named(job, wanted)]
        if not jobs and len(wanted) == 1:
            leave(err="slurm_load_jobs error: Invalid job id specified\n", rc=1)
    elif "--me" in argv:
        jobs = [job for job in jobs if job["UserName"] == data["me"]]
    elif value("-u") is not None:
        jobs = [job for job in jobs if job["UserName"] == value("-u")]
    steps = "-s" in argv
    if steps:
        ids = [job["JobArrayID"] for job in jobs]
        jobs = [step for step in data.get("steps", []) if step["StepID"].split(".")[0] in ids]
    if value("-O") is None:
        letters = {"i": "JobArrayID", "A": "JobID", "x": "ExcNodes"}
        out = ""
        for job in jobs:
            text = value("-o")
            for letter, name in letters.items():
                text = text.replace("%" + letter, job.get(name, "(null)"))
            out += text + "\n"
        leave(out)
    fields = [field.partition(":") for field in value("-O").split(",")]
    out = ""
    for job in jobs:
        low = {name.lower(): text for name, text in job.items()}
        out += "".join(low.get(name.lower(), "N/A") + end for name, _, end in fields) + "\n"
    leave(out)
if program == "scontrol":
    if argv[-1] == "ping":
        leave("Slurmctld(primary) at ctl1 is UP\n")
    if "show" in argv and "job" in argv:
        text = data.get("details", {}).get(argv[-1])
        if text is None:
            leave(err="slurm_load_jobs error: Invalid job id specified\n", rc=1)
        leave(text)
    if "config" in argv:
        leave("ClusterName = mini\nSLURM_VERSION = 24.11.5\n")
    if "write" in argv:
        script = data.get("scripts", {}).get(argv[-2])
        if script is None:
            leave(err="job script retrieval failed: Job script not specified\n", rc=1)
        leave(script)
    if argv[-2] in ("hold", "release", "requeue", "requeuehold"):
        act(argv[-2], argv[-1])
    leave()
if program == "sinfo":
    fields = [field.partition(":") for field in value("-O").split(",")]
    out = ""
    for node in data.get("nodes", []):
        low = {name.lower(): text for name, text in node.items()}
        out += "".join(low.get(name.lower(), "N/A") + end for name, _, end in fields) + "\n"
    leave(out)
if program == "sacctmgr":
    leave(data.get("sacctmgr", data["me"] + "|ml|None|\n"))
if program == "sacct":
    rows = data.get("sacct", [])
    ids = value("-j", "--jobs")
    if ids is not None:
        rows = [row for row in rows if row["JobID"].split(".")[0].split("_")[0] in
                [text.split("_")[0].split("+")[0] for text in ids.split(",")]]
    names = value("-o", "--format").split(",")
    between = value("--delimiter") or "|"
    lines = []
    for row in rows:
        low = {name.lower(): text for name, text in row.items()}
        lines.append(between.join(low.get(name.split("%")[0].lower(), "") for name in names))
    leave("".join(line + "\n" for line in lines))
if program == "scancel" and argv == ["--version"]:
    leave("slurm %s\n" % data.get("version", "22.05.8"))
if program == "scancel":
    signal = value("--signal")
    data["steps"] = [step for step in data.get("steps", []) if signal or step["StepID"] not in argv]
    said = data.get("scancel", {})
    ids = [word for word in argv if word[0].isdigit()]
    for job in data.get("jobs", []):
        if not signal and named(job, ids) and job["JobArrayID"] not in said:
            job["State"] = "CANCELLED"
            job["EndTime"] = "2031-05-05T12:00:00"
    save()
    lines = [said[text] for text in ids if text in said]
    leave(err="".join(line[0] + "\n" for line in lines), rc=lines[-1][1] if lines else 0)
leave()
"""


class StandIns:
    """A folder with the programs, to be put first in ``PATH``."""

    def __init__(self, folder: Path, me: str) -> None:
        self.folder = folder
        self.me = me
        folder.mkdir()
        script = folder / "slurm"
        script.write_text(_SCRIPT.replace("PYTHON", sys.executable))
        script.chmod(0o755)
        for name in PROGRAMS:
            (folder / name).symlink_to("slurm")
        self.say()

    def say(self, **data: Any) -> None:
        """What the cluster looks like from now on."""
        (self.folder / "data.json").write_text(json.dumps({"me": self.me, **data}))

    @property
    def calls(self) -> list[list[str]]:
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def environ(self, home: Path, **more: str) -> dict[str, str]:
        """The environment of a child: these programs, a home of its own, nothing inherited."""
        return {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "HOME": str(home),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "LANG": "C",
            "TZ": "Pacific/Chatham",
            **more,
        }


def slurmtop(
    environ: Mapping[str, str], *arguments: str, python: tuple[str, ...] = (), timeout_s: float = 60
) -> "subprocess.CompletedProcess[str]":
    """Run the command as a person does, without a terminal."""
    return subprocess.run(
        [sys.executable, *python, "-m", "slurmtop", *arguments],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd="/",
    )


def queue_row(id: str, state: str = "RUNNING", **changes: str) -> dict[str, str]:
    """A record of the queue by the names of ``squeue -O``."""
    row = {
        "JobArrayID": id,
        "JobID": id.split("_")[0].split("+")[0],
        "State": state,
        "Reason": "None",
        "Partition": "gpu",
        "UserName": current_name(),
        "Account": "ml",
        "QOS": "normal",
        "SubmitTime": "2031-05-05T08:00:00",
        "EligibleTime": "2031-05-05T08:00:00",
        "StartTime": "2031-05-05T09:00:00" if state != "PENDING" else "N/A",
        "EndTime": "2031-05-06T09:00:00" if state != "PENDING" else "N/A",
        "TimeLimit": "1-00:00:00",
        "NumNodes": "2",
        "NodeList": "gpu[01-02]" if state != "PENDING" else "",
        "tres-alloc": "cpu=32,mem=64G,node=2,gres/gpu=16",
        "PriorityLong": "4294901758",
        "RestartCnt": "0",
        "Requeue": "1",
        "BatchFlag": "1",
        "BatchHost": "gpu01",
        "HetJobID": "N/A",
        "ArrayJobID": id.split("_")[0],
        "Dependency": "(null)",
        "Name": "llm-pretrain",
        "Comment": "(null)",
        "WorkDir": "/w",
        "Command": "/w/train.sh",
        "STDOUT": f"/w/slurm-{id}.out",
        "STDERR": f"/w/slurm-{id}.out",
    }
    row.update(changes)
    return row


def node_row(name: str, state: str = "idle", used: int = 0, **changes: str) -> dict[str, str]:
    """One line of sinfo by its names for ``-O``."""
    row = {
        "NodeList": name,
        "StateLong": state,
        "Gres": "gpu:h100:8(S:0-1)",
        "GresUsed": f"gpu:h100:{used}(IDX:0-{used - 1})" if used else "gpu:h100:0(IDX:N/A)",
        "CPUsState": "32/96/0/128" if used else "0/128/0/128",
        "Memory": "2063360",
        "FreeMem": "1500000",
        "CPUsLoad": "1.50",
        "User": "Unknown",
        "Timestamp": "Unknown",
        "Partition": "gpu*",
        "Reason": "none",
    }
    return {**row, **changes}


def current_name() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def detail_text(id: str, state: str, **changes: str) -> str:
    """``scontrol show job`` of a plain job, in its usual lines."""
    values = {
        "reason": "None",
        "exit": "0:0",
        "out": f"/w/slurm-{id}.out",
        "start": "2031-05-05T09:00:00",
        "end": "2031-05-05T10:00:00",
        "dependency": "(null)",
    }
    values.update(changes)
    return (
        f"JobId={id} JobName=llm-pretrain\n"
        f"   UserId={current_name()}({os.getuid()}) GroupId=ml(1001) MCS_label=N/A\n"
        "   Priority=4294901758 Nice=0 Account=ml QOS=normal\n"
        f"   JobState={state} Reason={values['reason']} Dependency={values['dependency']}\n"
        f"   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={values['exit']}\n"
        "   DerivedExitCode=0:0\n"
        "   RunTime=01:00:00 TimeLimit=1-00:00:00 TimeMin=N/A\n"
        "   SubmitTime=2031-05-05T08:00:00 EligibleTime=2031-05-05T08:00:00\n"
        f"   StartTime={values['start']} EndTime={values['end']} Deadline=N/A\n"
        "   Partition=gpu AllocNode:Sid=login1:1454\n"
        "   NodeList=gpu[01-02]\n"
        "   BatchHost=gpu01\n"
        "   NumNodes=2 NumCPUs=32 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
        "   ReqTRES=cpu=32,mem=64G,node=2,gres/gpu=16\n"
        "   AllocTRES=cpu=32,mem=64G,node=2,gres/gpu=16\n"
        "   Command=/w/train.sh\n"
        "   WorkDir=/w\n"
        f"   StdErr={values['out']}\n"
        "   StdIn=/dev/null\n"
        f"   StdOut={values['out']}\n\n"
    )
