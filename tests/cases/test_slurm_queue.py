"""What stands in the queue, and how it changes: cases 004, 054, 056, 058, 059, 063."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slurmtop.collect.env import wanted_clusters
from slurmtop.collect.squeue import QueueSource
from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.commands import cluster_allowed
from slurmtop.model.ids import JobId
from slurmtop.model.job import Job, Phase
from slurmtop.model.snapshot import Parsed
from slurmtop.parse.slurm.ids import federation_parts, parse_job_id
from slurmtop.parse.slurm.log_paths import expand_log_path
from slurmtop.parse.slurm.sacct import parse_sacct
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from slurmtop.parse.slurm.squeue_forms import parse_squeue_clusters
from slurmtop.parse.slurm.squeue_json import parse_squeue_json
from slurmtop.parse.slurm.states import parse_state
from slurmtop.store.jobs import JobBook, JobEnded, JobEvent, JobRequeued, JobVanished
from slurmtop.store.view import JobView
from slurmtop.ui.present.jobs import needs_somebody
from tests.cases.product import (
    answering,
    by_id,
    cells,
    hosts,
    sacct_fields,
    squeue,
    squeue_fields,
)
from tests.cases.support import Case, found, load, product, sentence, values
from tests.fakes import START, FakeRunner


@values("004", "054", "056", "058", "059", "063")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


# 004: completing, then pending again


def _played() -> tuple[JobBook, list[tuple[JobEvent, ...]], list[Job]]:
    """The book after the three answers, with the events of each."""
    book, events = JobBook(), []
    jobs: list[Job] = []
    for n in (1, 2, 3):
        answer = squeue(load("004")[n]).rows
        events.append(book.apply(answer, START + timedelta(seconds=20 * n)))
        jobs.extend(answer)
    return book, events, jobs


@product("004")
def answer_004(case: Case) -> Any:
    return {"states": [job.state.word for step in case.steps for job in squeue(step).rows]}


@sentence("004", 'no "job ended" event between the second and third answer')
def test_case_004_must_not_tell_an_end_of_a_requeued_job() -> None:
    _, events, _ = _played()
    assert not any(isinstance(event, JobEnded | JobVanished) for event in events[2])


@sentence("004", "report one requeue")
def test_case_004_must_report_one_requeue() -> None:
    _, events, _ = _played()
    told = [event for answer in events for event in answer]
    assert sum(isinstance(event, JobRequeued) for event in told) == 1
    assert [type(event) for event in events[2]] == [JobRequeued]


@sentence("004", "log/metric files keep one job identity, attempt 2")
def test_case_004_must_keep_one_identity_and_count_attempts() -> None:
    book, events, jobs = _played()
    (key,) = {job.key for job in jobs}
    assert book.attempt(key) == 2
    (requeued,) = events[2]
    assert isinstance(requeued, JobRequeued)
    assert requeued.attempt == 2
    logs = {expand_log_path("run-%j.out", replace(job, workdir="/w")) for job in jobs}
    assert logs == {"/w/run-5521.out"}


@sentence("004", "CG must not be coloured as success or failure")
def test_case_004_must_not_colour_completing_as_an_end() -> None:
    job = _played()[2][1]
    assert job.state.word == "COMPLETING"
    assert not job.state.ended
    text, role = cells(job)["state"]
    assert role not in ("good", "bad")
    assert text not in ("done", "FAILED")


# 054: several clusters in one answer


def _clusters(n: int) -> tuple[dict[str, Parsed[Job]], tuple[str, ...]]:
    step = load("054")[n]
    return parse_squeue_clusters(
        step.stdout, fields=squeue_fields(step), separator=b"|", record_mark=b"\n"
    )


@product("054")
def answer_054(case: Case) -> Any:
    rows = {}
    for cluster, answer in _clusters(1)[0].items():
        (job,) = answer.rows
        assert answer.bad == 0
        rows[cluster] = {
            "cluster": job.key.cluster,
            "id": job.key.id,
            "state": job.state.word,
        }
    return {"first": {"rows": rows}}


@sentence("054", "second form is ambiguous and must not be used")
async def test_case_054_must_ask_one_cluster_at_a_time() -> None:
    names = wanted_clusters({"SLURM_CLUSTERS": "alpha,beta"})
    assert names == ("alpha", "beta")
    assert not cluster_allowed("alpha,beta")
    runner = FakeRunner()
    runner.on_call("squeue *", answering([]))
    for name in names:
        await QueueSource(runner, runner.clock, cluster=name).fetch()
    for name, call in zip(names, runner.calls, strict=True):
        assert call.argv[call.argv.index("-M") + 1] == name
    both = {job.key for job in squeue(load("054")[2], cluster="alpha").rows}
    assert len(both) == 1, "without a header the rows of two clusters cannot be told apart"


@sentence("054", "third: alpha fresh, beta stale")
def test_case_054_must_name_the_cluster_that_did_not_answer() -> None:
    answers, silent = _clusters(3)
    assert [job.state.word for job in answers["alpha"].rows] == ["RUNNING"]
    assert silent == ("beta",)
    assert "beta" not in answers


@sentence("054", "keys are (cluster, id)")
def test_case_054_must_key_by_cluster_and_id() -> None:
    answers, _ = _clusters(1)
    jobs = [job for answer in answers.values() for job in answer.rows]
    assert [(job.key.cluster, job.key.id) for job in jobs] == [("alpha", "100"), ("beta", "100")]
    book = JobBook()
    book.apply(jobs, START)
    assert len(book.jobs) == 2


# 056: job_resources changed its shape


def _only(data: bytes) -> Job:
    (job,) = parse_squeue_json(data).rows
    return job


@product("056")
def answer_056(case: Case) -> Any:
    jobs = {str(step.n): _only(step.stdout) for step in case.steps}
    return {"rows": {n: {"id": job.key.id, "nodes": hosts(job.nodes)} for n, job in jobs.items()}}


@sentence("056", 'top-level "nodes" is the stable place')
def test_case_056_must_take_nodes_from_the_top_level() -> None:
    for n in (1, 2):
        document = json.loads(load("056")[n].stdout)
        document["jobs"][0]["nodes"] = "node[7-9]"
        assert hosts(_only(json.dumps(document).encode()).nodes) == ["node7", "node8", "node9"]


@sentence("056", "job_resources may be {}, null, old or new shape")
def test_case_056_must_take_any_shape_of_job_resources() -> None:
    shapes = [json.loads(load("056")[n].stdout)["jobs"][0]["job_resources"] for n in (1, 2)]
    for shape in ({}, None, [], "", 7, *shapes):
        document = json.loads(load("056")[1].stdout)
        document["jobs"][0]["job_resources"] = shape
        answer = parse_squeue_json(json.dumps(document).encode())
        assert answer.bad == 0
        assert hosts(answer.rows[0].nodes) == ["gpu01", "gpu02"]
    document["jobs"][0].pop("job_resources")
    assert hosts(_only(json.dumps(document).encode()).nodes) == ["gpu01", "gpu02"]


@sentence("056", "count UNALLOCATED cores")
def test_case_056_must_not_count_cores_that_are_not_allocated() -> None:
    document = json.loads(load("056")[2].stdout)
    # What is not said stays unknown; where it is counted, 16 are allocated.
    assert _only(load("056")[2].stdout).tres.cpus in (None, 16)
    sockets = document["jobs"][0]["job_resources"]["nodes"]["allocation"][0]["sockets"]
    before = _only(json.dumps(document).encode()).tres
    sockets[0]["cores"] += [{"index": n, "status": ["UNALLOCATED"]} for n in range(2, 40)]
    assert _only(json.dumps(document).encode()).tres == before


# 058: het jobs


def _groups() -> dict[str, list[Job]]:
    case = load("058")
    view, book = JobView(), JobBook()
    book.apply([*squeue(case[1]).rows, *squeue(case[6]).rows], START)
    view.update(book, START)
    return {
        row.key.id: sorted(row.group.jobs, key=lambda job: job.id.het_offset or 0)
        for row in view.rows
        if row.group is not None
    }


@product("058")
def answer_058(case: Case) -> Any:
    return {
        "groups": {
            leader: {
                "leader": leader,
                "components": [job.id.text for job in jobs],
                # For the part that has none, %b prints N/A, which says nothing.
                "gpus": sum(job.tres.gpus for job in jobs if job.tres.gpus is not None),
                "nodes": [name for job in jobs for name in hosts(job.nodes)],
            }
            for leader, jobs in _groups().items()
        }
    }


def _planned(jobs: list[Job]) -> Action:
    action = plan_cancel(jobs, Asker(me="", now=START))
    assert isinstance(action, Action)
    return action


@sentence(
    "058",
    "scancel of one component is refused while waiting (exit 60) but ends that component alone"
    " when running",
)
def test_case_058_must_never_cancel_one_component() -> None:
    for jobs in _groups().values():
        for job in jobs:
            (argv,) = _planned([job]).argvs
            assert argv == ("scancel", job.id.base)
            assert job.raw_id is not None
    step = load("058")[5]
    (said,) = parse_scancel(step.exit, step.stderr)
    assert (said.job, said.kind) == ("9303", ScancelKind.HET_COMPONENT)


@sentence("058", "one entry with two parts; actions go to the leader")
def test_case_058_must_show_one_entry_and_act_on_the_leader() -> None:
    view, book = JobView(), JobBook()
    book.apply(squeue(load("058")[6]).rows, START)
    view.update(book, START)
    (row,) = view.rows
    assert row.group is not None
    assert (row.key.id, row.group.kind, len(row.group.jobs)) == ("9302", "het", 2)
    assert "2 parts" in cells(row.job, row=row)["why"][0]
    action = _planned(list(row.jobs))
    assert action.argvs == (("scancel", "9302"),)
    assert len(action.targets) == 1


@sentence("058", "scancel 9300 ends both")
def test_case_058_must_say_that_the_whole_job_ends() -> None:
    jobs = _groups()["9300"]
    for chosen in (jobs, jobs[:1], jobs[1:]):
        action = _planned(chosen)
        assert action.argvs == (("scancel", "9300"),)
        assert any("all of its parts end" in text for text in action.warnings)
    assert _planned(jobs).targets[0].parts == tuple(job.key for job in jobs)


def test_case_058_waiting_het_job_has_one_row_in_accounting() -> None:
    case = load("058")
    running = parse_sacct(case[2].stdout, fields=sacct_fields(case[2]), separator=b"|").rows
    assert [(r.id.base, r.id.het_offset) for r in running] == [("9300", 0), ("9300", 1)]
    (waiting,) = parse_sacct(case[7].stdout, fields=sacct_fields(case[7]), separator=b"|").rows
    assert (waiting.id.base, waiting.id.het_offset) == ("9302", None)


# 059: federation


@product("059")
def answer_059(case: Case) -> Any:
    jobs = {}
    for key, job in by_id(squeue(case[1]).rows).items():
        parts = federation_parts(job.id)
        assert parts is not None
        jobs[key] = {
            "id": job.key.id,
            "origin_cluster_id": parts[0],
            "local_id": parts[1],
            "state": job.state.word,
        }
    return {"jobs": jobs}


@sentence("059", "REVOKED rows are siblings, not failures")
def test_case_059_must_take_revoked_rows_for_siblings() -> None:
    step = load("059")[2]
    records = parse_sacct(step.stdout, fields=sacct_fields(step), separator=b"|").rows
    assert [record.cluster for record in records] == ["fed1", "fed2", "fed3"]
    phases = [record.state.phase for record in records]
    assert phases[:2] == [Phase.RUNNING, Phase.ELSEWHERE]
    assert not records[1].state.ended
    job = replace(squeue(load("059")[1]).rows[0], state=parse_state("REVOKED"))
    assert not needs_somebody(job)
    assert cells(job)["state"][1] != "bad"


@sentence("059", "show the full id; the split is only an explanation")
@pytest.mark.parametrize("origin", [1, 2, 63])
def test_case_059_must_show_the_full_id(origin: int) -> None:
    for job in squeue(load("059")[1]).rows:
        assert cells(job)["id"][0].strip() == job.id.text == job.key.id
        assert _planned([job]).argvs == (("scancel", job.id.text),)
    text = str((origin << 26) + 815)
    assert federation_parts(parse_job_id(text)) == (origin, 815)
    assert federation_parts(JobId("815", "815")) is None


# 063: one job in several partitions


@product("063")
def answer_063(case: Case) -> Any:
    counts = {len(squeue(step).rows) for step in case.steps}
    ids = {tuple(job.key.id for job in squeue(step).rows) for step in case.steps}
    assert len(counts) == len(ids) == 1
    return {"jobs": {"count": counts.pop(), "ids": list(ids.pop())}}


@sentence("063", "one job per id in counts, all partitions listed")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_case_063_must_count_a_job_once(n: int) -> None:
    view, book = JobView(), JobBook()
    book.apply(squeue(load("063")[n]).rows, START)
    view.update(book, START)
    assert {count.label: count.count for count in view.totals()} == {"R": 1, "PD": 1}
    job = next(job for job in book.jobs if job.key.id == "9501")
    assert job.partitions == ("gpu", "gpu-long", "preempt")
    assert cells(job)["partition"][0] == "gpu,gpu-long,preempt"
