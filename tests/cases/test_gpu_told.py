"""Whose GPUs are seen, and what the kernel says of them: cases 024 and 029."""

import math
import re
from dataclasses import replace
from typing import Any

from slurmtop.model.gpu import GpuSample, KernelEvent
from slurmtop.parse.logs.kernel import parse_kernel
from slurmtop.triage.gpu_share import NOT_VISIBLE, Attributed, JobShare, attribute_gpus
from slurmtop.triage.xid import event_meaning, fold_events
from tests.cases.gpu_product import UUID, of
from tests.cases.support import GPU, Case


@GPU.values("029")
def test_values(path: str, wanted: Any) -> None:
    assert GPU.found(path) == wanted


def _seen() -> tuple[GpuSample, ...]:
    return of("024", 3).samples


def _shares() -> dict[str, Attributed]:
    """What each job of the queue holds on the node, by what the queue says it asked for."""
    rows = GPU.load("024")[1].stdout.decode().split()
    jobs = [JobShare(row.split("|")[0], int(row.rpartition(":")[2])) for row in rows]
    return {one.job: one for one in attribute_gpus(_seen(), jobs)}


@GPU.sentence(
    "024",
    '4 visible GPUs belong to 5002 (newest job); 5001\'s two GPUs are "not visible from here", '
    "not idle",
)
def test_case_024_must_give_the_visible_to_the_newest_job() -> None:
    shares = _shares()
    assert shares["5002"].gpus == _seen()
    assert len(_seen()) == 4
    assert (shares["5001"].gpus, shares["5001"].says) == (None, "not visible from here")


@GPU.sentence("024", "index 0–3 are renumbered: do not join with IDX 4-5 of 5001")
def test_case_024_must_not_join_by_index() -> None:
    told = GPU.load("024")[2].stdout.decode()
    assert re.findall(r"IDX:([\d-]+)", told) == ["4-5"]
    numbered = [
        replace(gpu, index=number) for gpu, number in zip(_seen(), (4, 5, 0, 1), strict=True)
    ]
    jobs = [JobShare("5001", 2), JobShare("5002", 4)]
    assert [one.gpus is None for one in attribute_gpus(numbered, jobs)] == [True, False]


@GPU.sentence("024", "key by UUID/bus id")
def test_case_024_must_name_cards_by_uuid_and_bus() -> None:
    assert [gpu.uuid for gpu in _seen()] == [UUID.format(n) for n in (2, 3, 6, 7)]
    assert [gpu.bus_id for gpu in _seen()] == [
        "0000:5d:00.0",
        "0000:9a:00.0",
        "0000:ca:00.0",
        "0000:da:00.0",
    ]


@GPU.sentence("024", "show GPU 0/1 as those of job 5001")
def test_case_024_must_not_give_the_first_two_to_the_older_job() -> None:
    for order in (("5001", 2), ("5002", 4)), (("5002", 4), ("5001", 2)):
        jobs = [JobShare(job, gpus) for job, gpus in order]
        shares = {one.job: one.gpus for one in attribute_gpus(_seen(), jobs)}
        assert shares["5001"] is None


@GPU.sentence("024", '"job 5001 has lost its GPUs"')
def test_case_024_must_not_call_unseen_gpus_lost() -> None:
    assert _shares()["5001"].says == NOT_VISIBLE
    assert of("024", 3).lost == ()


def _events() -> tuple[KernelEvent, ...]:
    return fold_events(parse_kernel(GPU.load("029")[1].stdout).events)


@GPU.product("029")
def answer_029(case: Case) -> Any:
    del case
    made = {}
    for place, event in enumerate(_events(), 1):
        meaning = event_meaning(event)
        made[str(place)] = {
            "bus": event.bus_id.removeprefix("0000:"),
            "xid": event.code,
            "cls": meaning.cls.value,
            "pid": event.pid,
            "says": meaning.says,
            "action": meaning.action,
            "follow_ups": {str(code): count for code, count in event.follow_ups},
        }
    return {"events": made}


@GPU.sentence("029", "45 is folded under 31")
def test_case_029_must_fold_the_cleanup() -> None:
    assert [event.code for event in _events()] == [31, 94, 79, 154, 119, 999, None]
    assert _events()[0].follow_ups == ((45, 2),)


@GPU.sentence("029", "second command: not allowed to read the kernel log; say nothing or once")
def test_case_029_must_say_once_that_the_log_is_closed() -> None:
    step = GPU.load("029")[2]
    log = parse_kernel(step.stdout, step.exit, step.stderr)
    assert log.events == ()
    assert log.failure is not None
    assert "may not read the kernel log" in log.failure.sentence
    assert log.failure.retry_after_s == math.inf
