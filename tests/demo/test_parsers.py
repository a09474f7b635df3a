"""The rest of the project's parsers on what the demo prints."""

from datetime import timedelta

from slurmtop.demo.scenario import HOSTILE_COMMENT, HOSTILE_NAME
from slurmtop.model.job import AccountingRecord, Phase
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.exit_codes import explain_exit
from slurmtop.parse.slurm.failures import explain_failure
from slurmtop.parse.slurm.log_paths import expand_log_path
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.sacct import SACCT_FIELDS, newest_run, parse_sacct
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from slurmtop.parse.slurm.scontrol import (
    parse_ping,
    parse_scontrol_config,
    parse_scontrol_jobs,
    parse_scontrol_nodes,
)
from slurmtop.parse.slurm.squeue import parse_squeue, queue_format
from tests.demo.kit import Lab, lab
from tests.fakes import START


async def history(demo: Lab, *argv: str) -> tuple[AccountingRecord, ...]:
    names = ",".join(name for name, _ in SACCT_FIELDS)
    done = await demo.done("sacct", "-n", "-P", "--delimiter=\x1f", "-o", names, *argv)
    assert (done.rc, done.stderr) == (0, b"")
    parsed = parse_sacct(done.stdout)
    assert parsed.bad == 0, parsed.first_bad
    return parsed.rows


async def test_every_job_block_is_read_with_its_name() -> None:
    demo = lab()
    names = {str(job.id): job.spec.name for job in demo.world.remembered()}
    for form in ((), ("-o",), ("-d",)):
        done = await demo.done("scontrol", *form, "show", "job")
        parsed = parse_scontrol_jobs(done.stdout, names=names)
        assert parsed.bad == 0, parsed.first_bad
        assert len(parsed.rows) == len(names)
        found = {detail.job.raw_id: detail for detail in parsed.rows}
        for job in demo.world.remembered():
            detail = found[str(job.id)]
            assert detail.job.state.word == job.state
            assert detail.job.user == job.spec.user
            assert detail.user_id == job.spec.uid
            assert detail.requeueable == job.spec.requeue
            assert detail.run_time_s == job.used_s(0)
            assert detail.exit_code is not None
            assert (detail.exit_code.code, detail.exit_code.signal) == job.exit
            assert detail.requested.gpus == job.spec.gpus * job.node_count
        assert found["4826"].job.name == HOSTILE_NAME


async def test_nodes_settings_and_ping_are_read() -> None:
    demo = lab()
    nodes = parse_scontrol_nodes((await demo.done("scontrol", "show", "node")).stdout)
    assert nodes.bad == 0
    assert [node.gpus()[0] for node in nodes.rows] == [8] * 8
    assert nodes.rows[6].reason == "Xid 79 on gpu 3"
    config = parse_scontrol_config((await demo.done("scontrol", "show", "config")).stdout)
    assert config["ClusterName"] == "aurora"
    assert config["MinJobAge"] == "172800 sec"
    assert config["PrivateData"] == "none"
    assert config["NEXT_JOB_ID"] == "4923"
    ping = parse_ping((await demo.done("scontrol", "ping")).stdout)
    assert ping == (("primary", "login1", True),)


async def test_accounting_reads_every_row() -> None:
    demo = lab()
    rows = await history(demo, "-a", "-D", "-S", "now-30days")
    by_id = {row.id.text: row for row in rows}
    assert len(by_id) > 200
    assert by_id["4826"].name == HOSTILE_NAME.replace('"', "`")
    assert by_id["4826"].comment == HOSTILE_COMMENT
    assert by_id["4788"].state.by_uid == 1001
    assert by_id["4702"].end == START - timedelta(days=3) + timedelta(minutes=95)
    runs = [row for row in rows if row.id.stable == "4822"]
    assert [row.state.word for row in runs] == ["REQUEUED", *["CANCELLED"] * 2, *["RUNNING"] * 3]
    newest = newest_run(runs)
    assert {row.state.word for row in newest} == {"RUNNING"}
    assert by_id["4910"].start is None


async def test_what_has_ended_is_explained() -> None:
    demo = lab()
    rows = {row.id.text: row for row in await history(demo, "-j", "4788,4801,4803,4805,4809")}
    told = {
        job: explain_exit(row.state, row.exit_code, row.derived_exit_code, from_sacct=True)
        for job, row in rows.items()
    }
    assert told["4809"].ok is True
    assert (told["4788"].ended_by, told["4805"].ended_by) == ("user", "slurm")
    assert told["4801"].ended_by == "self"
    assert "memory" in told["4803"].sentence


async def test_every_reason_has_a_meaning_and_every_started_job_a_log() -> None:
    demo = lab()
    mark = b"\x1eQwErTy"
    done = await demo.done("squeue", "-h", "-a", "-t", "all", "-O", queue_format(mark))
    opened = 0
    for job in parse_squeue(done.stdout, record_mark=mark).rows:
        if job.state.phase is Phase.PENDING and job.reason is not None:
            assert explain_reason(job.reason).kind != "unknown"
            continue
        path = expand_log_path(job.stdout or "", job)
        assert path is not None
        try:
            stat = await demo.runner.stat(path)
        except PermissionError:
            assert job.user == "carol"
            continue
        opened += 1
        assert stat.size > 0
    assert opened > 80


async def test_refusals_are_understood() -> None:
    demo = lab()

    async def kinds(*argv: str) -> list[ScancelKind]:
        done = await demo.done("scancel", *argv)
        return [says.kind for says in parse_scancel(done.rc, done.stderr)]

    assert await kinds("4826") == [ScancelKind.DENIED]
    assert await kinds("4919") == [ScancelKind.HET_COMPONENT]
    assert await kinds("-s", "USR1", "99999") == [ScancelKind.UNKNOWN_JOB]
    assert await kinds("-s", "NOPE", "4817") == [ScancelKind.BAD_SIGNAL]
    assert await kinds("99999") == [ScancelKind.SILENT]
    done = await demo.done("squeue", "-h", "-j", "99999")
    assert explain_failure("squeue", done.rc, done.stderr).trouble is Trouble.UNKNOWN_JOB
    done = await demo.done("scontrol", "hold", "4826")
    assert explain_failure("scontrol", done.rc, done.stderr).trouble is Trouble.DENIED
    done = await demo.done("nosuch")
    assert explain_failure("nosuch", done.rc, done.stderr).trouble is Trouble.NO_SLURM
