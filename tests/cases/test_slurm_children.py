"""What children get and may do: case 039."""

import os
from pathlib import Path

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.squeue import QueueSource
from slurmtop.model.ports import Command
from tests.cases.product import CaseRunner, rows_of, until_done
from tests.cases.support import load, sentence


def _program(folder: Path, body: str) -> str:
    path = folder / "stand-in"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


async def _child(folder: Path, body: str, environ: dict[str, str], **how: float) -> bytes:
    command = Command((_program(folder, body),), **how)  # type: ignore[arg-type]
    base = {"PATH": os.defpath}
    async with LocalRunner(SystemClock(), base | environ) as runner:
        return (await runner.run(command)).stdout


@sentence(
    "039",
    "children run with SQUEUE_*, SACCT_*, SINFO_*, SCONTROL_*, SCANCEL_*, SLURM_TIME_FORMAT,"
    " SLURM_JSON, SLURM_YAML, SLURM_DEBUG_FLAGS removed and SLURM_BITSTR_LEN=0",
)
async def test_case_039_must_clean_the_environment_of_children(tmp_path: Path) -> None:
    given = {name: "x" for step in load("039").steps for name in step.env}
    given |= dict.fromkeys(
        (
            *("SQUEUE_FORMAT2", "SQUEUE_SORT", "SQUEUE_PRIORITY", "SACCT_FORMAT", "SINFO_FORMAT"),
            *("SCONTROL_ALL", "SCANCEL_STATE", "SCANCEL_WCKEY", "SLURM_TIME_FORMAT"),
            *("SLURM_JSON", "SLURM_YAML", "SLURM_DEBUG_FLAGS", "SLURM_BITSTR_LEN"),
        ),
        "x",
    )
    kept = {"SLURM_CONF": "/etc/slurm/slurm.conf", "SSH_AUTH_SOCK": "/run/a", "HOME": "/home/a"}
    printed = (await _child(tmp_path, "env", given | kept)).decode()
    seen = dict(line.partition("=")[::2] for line in printed.splitlines())
    assert {name for name in given if name in seen} == {"SLURM_BITSTR_LEN"}
    assert seen["SLURM_BITSTR_LEN"] == "0"
    assert kept.items() <= seen.items()


@sentence("039", "stdin is /dev/null (that alone makes the fourth worse)")
async def test_case_039_must_give_children_no_stdin(tmp_path: Path) -> None:
    asked = 'readlink /proc/self/fd/0; if read -r line; then echo "$line"; else echo end; fi'
    assert await _child(tmp_path, asked, {}) == b"/dev/null\nend\n"


@sentence("039", "output of a child is bounded")
async def test_case_039_must_bound_what_a_child_prints(tmp_path: Path) -> None:
    prompt = load("039")[4].stdout[:70].decode()
    program = _program(tmp_path, f"while :; do echo '{prompt}'; done")
    async with LocalRunner(SystemClock(), {"PATH": os.defpath}) as runner:
        done = await runner.run(Command((program,), timeout_s=30.0, max_bytes=100_000))
    assert len(done.stdout) <= 100_000
    assert done.truncated
    assert done.rc != 0


@sentence("039", "the list has 3 jobs")
async def test_case_039_must_see_all_jobs() -> None:
    runner = CaseRunner()
    runner.queue(rows_of(load("039")[3]))
    answer = await until_done(runner.clock, QueueSource(runner, runner.clock).fetch())
    assert [job.key.id for job in answer.rows] == ["8201", "8202", "8203"]
    (argv,) = runner.asked("squeue")
    assert not {"-p", "--partition", "-w", "--name"} & set(argv)
