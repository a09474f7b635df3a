"""The permission matrix: each row's word, why, and what opens it."""

from dataclasses import replace

import pytest

from slurmtop.model.access import (
    Access,
    AccessStatus,
    LogAccess,
    NodeAccess,
    SlurmAccess,
    WayTried,
)
from slurmtop.model.gpu import GpuSample, NodeGpus
from slurmtop.model.look import HostLook
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import StackTool
from slurmtop.parse.dumps.stack_tools import parse_stack_tools
from slurmtop.triage.access import log_rows, slurm_rows, way_rows
from slurmtop.triage.access_node import node_rows

YES, NO, GONE, NOT_ASKED = (
    AccessStatus.REACHABLE,
    AccessStatus.REFUSED,
    AccessStatus.ABSENT,
    AccessStatus.NOT_ASKED,
)
SLURM = SlurmAccess(
    queue_jobs=2, operator=False, coordinates=(), job="4711", scancel="slurm 24.11.5"
)
NODE = NodeAccess(
    host="gpu01",
    uid=1001,
    user="anna",
    groups=("ml",),
    tools=(("nvidia-smi", "/usr/bin/nvidia-smi"), ("dcgmi", "/usr/bin/dcgmi")),
    no_stack_tool=parse_stack_tools(("stack-end",), "gpu01")[1],
    ptrace_known=True,
    ptrace_scope=1,
    dmesg_rc=1,
    dmesg_restrict=1,
    journal="refused",
    proc_options="rw,hidepid=2",
    sees_others=False,
    own_processes=8,
    closed_processes=0,
    job_processes=8,
    settings=(("NCCL_DEBUG", "INFO"),),
    complete=True,
)


def by_source(rows: tuple[Access, ...]) -> dict[str, Access]:
    found = {row.source: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_slurm_that_answers() -> None:
    rows = by_source(slurm_rows(SLURM))
    assert {row.status for row in rows.values()} == {YES, NO}
    assert rows["own queue"].why == "2 jobs"
    assert rows["jobs of others"].status is NO
    assert "ordinary user" in rows["jobs of others"].why
    assert rows["batch script"].command == "scontrol write batch_script 4711 -"


def test_what_private_data_hides_is_told_and_not_from_an_operator() -> None:
    hidden = replace(SLURM, private_data=("jobs", "usage"))
    row = by_source(slurm_rows(hidden))["queue, everybody"]
    assert (row.status, "PrivateData=jobs,usage" in row.why) == (NO, True)
    assert row.opens
    row = by_source(slurm_rows(replace(hidden, operator=True)))["queue, everybody"]
    assert row.status is YES


def test_a_silent_controller_is_refused_in_its_own_words_and_the_rest_is_not_guessed() -> None:
    failure = Failure(Trouble.DOWN, "The controller does not answer.")
    rows = by_source(slurm_rows(replace(SLURM, queue=failure, config=failure, operator=None)))
    assert rows["own queue"].status is NO
    assert rows["own queue"].why == failure.sentence
    assert rows["queue, everybody"].status is NOT_ASKED
    assert "neither" in rows["jobs of others"].why


def test_without_a_job_nothing_is_asked_about_one() -> None:
    rows = by_source(slurm_rows(SlurmAccess(scancel=None, accounting_off=True)))
    assert rows["details of a job"].status is NOT_ASKED
    assert rows["batch script"].status is NOT_ASKED
    assert rows["accounting (sacct)"].status is GONE
    assert rows["cancel and signal"].status is GONE
    (row,) = log_rows(())
    assert row.status is NOT_ASKED


def test_logs() -> None:
    rows = log_rows(
        (
            LogAccess(job="1", path="/w/1.out", readable=True),
            LogAccess(job="2", path="/w/2.out", denied=True, why="this user may not read it"),
            LogAccess(job="3", path="/w/3.out", why="there is no such file"),
            LogAccess(job="4", path=None),
        )
    )
    assert [row.status for row in rows] == [YES, NO, GONE, GONE]
    assert rows[1].opens
    assert not rows[2].opens


def test_each_way_in_the_words_of_what_it_failed_with() -> None:
    sentence = "gpu01 refuses connections on port 22: no sshd is running there."
    rows = way_rows(
        (
            WayTried(host="gpu01", way=Way.SSH, failure=Failure(Trouble.DOWN, sentence)),
            WayTried(
                host="gpu01",
                way=Way.SRUN,
                access=replace(NODE, inside_job="4711", inside_step="3"),
                took_s=1.25,
            ),
            WayTried(host="gpu01", way=Way.OPENSSH, access=NODE),
        )
    )
    assert [row.status for row in rows] == [NO, YES, YES]
    assert rows[0].why == sentence
    assert "ask the site" in rows[0].opens
    assert rows[1].why == "as anna in 1.2 s, put into job 4711, step 3"
    assert rows[2].why == "as anna, in no job's cgroup"


LOOK = HostLook(
    host="gpu01",
    gpus=NodeGpus(host="gpu01", samples=(GpuSample(index=0), GpuSample(index=1))),
    sources=("nvidia-smi",),
)


def test_a_gpu_tool_counts_by_what_it_says_and_not_by_being_there() -> None:
    tools = (("nvidia-smi", "/usr/bin/nvidia-smi"), ("dcgmi", "/usr/bin/dcgmi"))
    node = replace(NODE, tools=tools)

    def told(look: HostLook | None) -> list[AccessStatus]:
        rows = by_source(node_rows(node, look=look))
        return [rows[name].status for name in ("GPU values", "GPU activity (DCGM)")]

    idle = AccessStatus.NOT_ASKED
    assert told(None) == [idle, idle]
    failure = Failure(Trouble.DOWN, "The NVIDIA driver of gpu01 does not run.")
    assert told(HostLook(host="gpu01", failure=failure)) == [NO, idle]
    why = by_source(node_rows(node, look=HostLook(host="gpu01", failure=failure)))["GPU values"].why
    assert failure.sentence in why
    assert told(LOOK) == [YES, NO]
    assert told(replace(LOOK, sources=("nvidia-smi", "dcgmi"))) == [YES, YES]
    hint = "DCGM on gpu01 has no profiling counters."
    rows = by_source(node_rows(node, look=replace(LOOK, hints=(hint,))))
    assert hint in rows["GPU activity (DCGM)"].why


def test_a_node() -> None:
    rows = by_source(node_rows(NODE, "4711", LOOK))
    assert rows["GPU values"].status is YES
    assert rows["GPU values"].why.endswith(": 2 GPUs")
    assert rows["py-spy"].status is GONE
    assert rows["py-spy"].opens == "pip install 'slurmtop-tui[stacks]'"
    assert rows["stacks (ptrace)"].status is NO
    assert "ptrace_scope=1" in rows["stacks (ptrace)"].why
    assert "dmesg_restrict=1" in rows["kernel log (Xid)"].why
    assert "(ml)" in rows["kernel log (Xid)"].why
    assert "hidepid=2" in rows["processes of the node"].why
    assert rows["environment of processes"].why == "8 own processes"
    assert rows["debug settings of ranks"].why == "NCCL_DEBUG=INFO"
    assert {row.host for row in rows.values()} == {"gpu01"}


def test_a_tool_for_stacks_with_its_version_or_why_it_is_not_used() -> None:
    tool = StackTool(path="/env/bin/py-spy", version="0.4.3")
    row = by_source(node_rows(replace(NODE, stack_tools=(tool,), no_stack_tool=None)))["py-spy"]
    assert (row.status, row.why) == (YES, "/env/bin/py-spy (0.4.3)")
    why = "/env/bin/py-spy is not used on gpu01: it may be written to by others"
    opens = "chmod go-w /env/bin/py-spy"
    left = Failure(Trouble.LOCAL, f"{why}: {opens}", copy=opens)
    row = by_source(node_rows(replace(NODE, no_stack_tool=left)))["py-spy"]
    assert (row.status, row.why, row.opens) == (NO, why, opens)


@pytest.mark.parametrize(
    ("scope", "uid", "status"),
    [(None, 1001, YES), (0, 1001, YES), (1, 1001, NO), (2, 1001, NO), (2, 0, YES), (3, 0, NO)],
)
def test_where_stacks_are_closed(scope: int | None, uid: int, status: AccessStatus) -> None:
    row = by_source(node_rows(replace(NODE, ptrace_scope=scope, uid=uid)))["stacks (ptrace)"]
    assert row.status is status
    assert bool(row.opens) is (status is NO)


def test_a_limit_that_nobody_could_read_is_no_open_door() -> None:
    row = by_source(node_rows(replace(NODE, ptrace_known=False, ptrace_scope=None)))
    assert row["stacks (ptrace)"].status is NO


def test_a_login_put_into_another_job_hides_the_gpus_of_this_one() -> None:
    rows = by_source(node_rows(replace(NODE, inside_job="4712"), "4711"))
    assert rows["GPUs of this job"].status is NO
    assert "4712" in rows["GPUs of this job"].why
    assert "GPUs of this job" not in by_source(node_rows(replace(NODE, inside_job="4711"), "4711"))


def test_a_node_of_amd_needs_no_dcgm() -> None:
    tools = (("nvidia-smi", ""), ("rocm-smi", "/opt/rocm/bin/rocm-smi"))
    spy = StackTool(path="/b/py-spy")
    node = replace(NODE, tools=tools, stack_tools=(spy,), no_stack_tool=None)
    rows = by_source(node_rows(node, look=LOOK))
    assert rows["GPU values"].why == "/opt/rocm/bin/rocm-smi: 2 GPUs"
    assert "GPU activity (DCGM)" not in rows
    assert rows["py-spy"].status is YES


def test_ranks_that_were_not_seen_are_not_said_to_lack_a_setting() -> None:
    row = by_source(node_rows(replace(NODE, job_processes=0, settings=()), "4711"))
    assert "could be read" in row["debug settings of ranks"].why
    row = by_source(node_rows(replace(NODE, settings=()), "4711"))
    assert "NCCL_DEBUG" in row["debug settings of ranks"].opens


def test_foreign_text_is_made_harmless() -> None:
    hostile = "\x1b[2J\u202eevil"
    settings = (("NCCL_DEBUG_FILE", hostile),)
    rows = (
        *node_rows(replace(NODE, settings=settings, groups=(hostile,)), "4711"),
        *log_rows((LogAccess(job="1", path=hostile, why=hostile),)),
        *way_rows((WayTried(host=hostile, way=Way.SSH, access=replace(NODE, user=hostile)),)),
    )
    for row in rows:
        assert "\x1b" not in row.why + row.source
        assert "\u202e" not in row.why + row.source
