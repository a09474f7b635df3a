"""Whose GPUs are on a node by the queue, and who tells a job's GPU use."""

from dataclasses import replace
from datetime import timedelta

from slurmtop.model.ids import JobKey
from slurmtop.store.gpu_use import JobUse
from slurmtop.store.jobs import JobBook
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.gpu_feed import hosts_of, share_on_nodes, shares_on
from tests.build import make_job
from tests.fakes import START
from tests.ui.harness import Bench

OURS = make_job("4711", gpus=16, nodes="gpu[01-02]", node_count=2)


def test_of_several_nodes_the_share_is_told_only_as_an_even_one() -> None:
    found = share_on_nodes(OURS)
    assert (found.gpus, found.even) == (None, 8)
    one = share_on_nodes(replace(OURS, node_count=1))
    assert (one.gpus, one.even) == (16, None)


def test_other_jobs_on_the_nodes_are_those_that_hold_gpus_now() -> None:
    book = JobBook()
    jobs = (
        OURS,
        make_job("1", gpus=4, nodes="gpu02"),
        make_job("2", gpus=4, nodes="gpu03"),
        make_job("3", gpus=0, nodes="gpu02"),
        make_job("4", "COMPLETED", gpus=4, nodes="gpu02"),
        make_job("5", "COMPLETING", gpus=2, nodes="gpu01"),
        make_job("6", gpus=4, nodes="gpu[0"),
    )
    book.apply(jobs, START)
    found = shares_on(book, ("gpu01", "gpu02"), OURS)
    assert {host: [one.job for one in shares] for host, shares in found.items()} == {
        "gpu01": ["5"],
        "gpu02": ["1"],
    }


def test_a_host_list_that_cannot_be_read_has_no_hosts() -> None:
    assert hosts_of("gpu[01-02]") == ("gpu01", "gpu02")
    assert hosts_of("gpu[01") == ()


def _app(told: JobUse | None) -> SlurmtopApp:
    return Bench(job_gpu_use=lambda key: told).app()


def _seen(app: SlurmtopApp, minutes: float) -> None:
    at = START + timedelta(minutes=minutes)
    app.gpus.uses.note(OURS.key, at=at, mean_percent=10.0, known=16, held=16)


async def test_of_exporter_and_last_look_the_newer_counts() -> None:
    told = JobUse(at=START, mean_percent=80.0, known=16, source="exporter")
    app = _app(told)
    assert app.gpus.use_of(OURS.key) == told
    _seen(app, -1)
    assert app.gpus.use_of(OURS.key) == told
    _seen(app, 1)
    use = app.gpus.use_of(OURS.key)
    assert use is not None
    assert use.mean_percent == 10.0
    assert _app(None).gpus.use_of(JobKey("", "1")) is None


async def test_the_column_is_there_where_somebody_tells() -> None:
    assert _app(None).gpus.knows_use
    assert not Bench().app().gpus.knows_use
