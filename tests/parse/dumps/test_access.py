"""What a node lets us read: the script as it really runs here, and any bytes in its place."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.access import NAME, SCRIPT
from slurmtop.model.access import NodeAccess
from slurmtop.model.stacks import StackTool
from slurmtop.parse.dumps.access import parse_access

ANSWER = (
    b"user\t20017 anna\n"
    b"groups\tml systemd-journal\n"
    b"system\tLinux 6.8.0 x86_64\n"
    b"ptrace\t1\n"
    b"dmesg_restrict\t1\n"
    b"dmesg\t1\n"
    b"journal\trefused\n"
    b"proc\trw,nosuid,relatime,hidepid=invisible\n"
    b"sees_others\tno\n"
    b"driver\tyes\n"
    b"cgroup\t0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special\n"
    b"processes\t12 1 9\n"
    b"set\tNCCL_DEBUG=INFO\n"
    b"tool\tnvidia-smi /usr/bin/nvidia-smi\n"
    b"tool\tdcgmi \n"
    b"tool\tamd-smi alias amd-smi='rm -rf'\n"
    b"stack-arch x86_64\n"
    b"stack-tool own /home/anna/env/bin/py-spy 0.4.3 -\n"
    b"stack-end\n"
    b"end\t1\n"
)


def test_an_answer() -> None:
    found = parse_access(ANSWER, "gpu01")
    assert found == NodeAccess(
        host="gpu01",
        uid=20017,
        user="anna",
        groups=("ml", "systemd-journal"),
        system="Linux 6.8.0 x86_64",
        tools=(("nvidia-smi", "/usr/bin/nvidia-smi"), ("dcgmi", ""), ("amd-smi", "")),
        stack_tools=(StackTool(path="/home/anna/env/bin/py-spy", version="0.4.3"),),
        driver=True,
        ptrace_known=True,
        ptrace_scope=1,
        dmesg_rc=1,
        dmesg_restrict=1,
        journal="refused",
        proc_options="rw,nosuid,relatime,hidepid=invisible",
        sees_others=False,
        own_processes=12,
        closed_processes=1,
        job_processes=9,
        settings=(("NCCL_DEBUG", "INFO"),),
        cgroup="0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special",
        inside_job="4711",
        inside_step="extern",
        complete=True,
    )
    assert found.tool("dcgmi") == ""
    assert found.tool("rocm-smi") is None


def test_an_answer_that_was_cut_says_so_and_its_gaps_are_not_known() -> None:
    found = parse_access(ANSWER[:60], "gpu01")
    assert not found.complete
    assert not found.ptrace_known
    assert found.own_processes is None


def test_a_limit_that_cannot_be_read_is_not_taken_for_none() -> None:
    assert parse_access(b"ptrace\tnone\n", "h").ptrace_known
    found = parse_access(b"ptrace\t?\n", "h")
    assert (found.ptrace_known, found.ptrace_scope) == (False, None)


@given(st.binary(max_size=2_000))
def test_any_bytes(data: bytes) -> None:
    parse_access(data, "gpu01")
    parse_access(ANSWER.replace(b"1", data), "gpu01")


def run_script(job: str, shell: str = "/bin/sh", **environ: str) -> NodeAccess:
    done = subprocess.run(
        [shell, "-c", SCRIPT, NAME, job],
        capture_output=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", **environ},
    )
    assert done.stderr == b""
    return parse_access(done.stdout, "here")


def test_the_script_finds_the_processes_of_the_job_and_their_settings(tmp_path: Path) -> None:
    spy = tmp_path / "py-spy"
    spy.write_text("#!/bin/sh\n")
    spy.chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    environ = {
        "SLURM_JOB_ID": "987654",
        "RANK": "3",
        "NCCL_DEBUG": "WARN",
        "API_TOKEN": "hunter2-hunter2",
    }
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    rank = subprocess.Popen(
        [str(tmp_path / "python"), "-c", code],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert rank.stdout is not None
        rank.stdout.readline()
        for shell in ("/bin/sh", "/bin/bash"):
            found = run_script("987654", shell)
            assert found.complete
            assert found.uid == os.getuid()
            assert found.job_processes == 1
            assert found.settings == (("NCCL_DEBUG", "WARN"),)
            # What the job has beside its Python was found, and is no program for this machine.
            assert found.stack_tools == ()
            assert found.no_stack_tool is not None
            assert str(spy) in found.no_stack_tool.sentence
            assert found.sees_others is not None
            assert found.ptrace_known or Path("/proc/sys/kernel/yama/ptrace_scope").exists()
        assert run_script("98765").job_processes == 0
        assert run_script("").job_processes == 0
    finally:
        rank.communicate()


def test_what_runs_in_our_own_step_is_not_taken_for_the_job() -> None:
    own = {"SLURM_JOB_ID": "987655", "SLURM_STEP_ID": "7"}
    other = subprocess.Popen(["/bin/sleep", "60"], env=own)
    try:
        assert run_script("987655", **own).job_processes == 0
        assert (run_script("987655").job_processes or 0) == 1
    finally:
        other.kill()
        other.wait()
