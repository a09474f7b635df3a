"""Rules on start-up and settings: who came, who has which number, what has to be the same."""

from typing import Any

from slurmtop.model.events.nccl import (
    Channel,
    CommInit,
    InitPhase,
    InitTimings,
    NcclNetwork,
    NcclSetting,
    NcclVersion,
    NcclWarn,
    Warn,
)
from slurmtop.model.events.program import PyException
from slurmtop.model.events.torch import NcclError, StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.rules import settings, startup
from tests.triage.traces import init, traces, where


def found(*events: Event) -> dict[str | None, Finding]:
    picture = join(traces(*events))
    return {one.cls: one for one in (*startup.find(picture), *settings.find(picture))}


def store(kind: StoreTrouble, joined: int | None, expected: int | None, **more: Any) -> StoreEvent:
    key = more.pop("key", "store_based_barrier_key:1")
    at = where(f"(world_size={expected}, worker_count={joined})", **more)
    return StoreEvent(at=at, kind=kind, joined=joined, expected=expected, key=key)


def warn(kind: Warn, text: str = "", **more: Any) -> NcclWarn:
    names = ("ranks", "sizes", "device", "error")
    extra = {name: more.pop(name) for name in names if name in more}
    return NcclWarn(at=where(f"NCCL WARN {text}", **more), kind=kind, text=text, **extra)


def setting(name: str, value: str, host: str) -> NcclSetting:
    return NcclSetting(at=where(f"{name} set to {value}", host=host), name=name, value=value)


def named(finding: Finding) -> list[tuple[int | None, str | None]]:
    return [(one.rank, one.host) for one in finding.culprits]


WAITS, TIMEOUT = StoreTrouble.BARRIER_WAITS, StoreTrouble.BARRIER_TIMEOUT


def test_a_barrier_that_waits_for_others_hangs_and_names_none_of_those_who_came() -> None:
    finding = found(store(WAITS, 5, 16, rank=3), store(WAITS, 7, 16, rank=4))["rendezvous-timeout"]
    assert (finding.state, finding.culprits) == (State.HUNG, ())
    assert "7 of 16" in finding.summary


def test_a_barrier_that_all_reached_is_no_finding() -> None:
    assert found(store(WAITS, 7, 16), store(WAITS, 16, 16)) == {}


def test_a_barrier_does_not_matter_once_a_communicator_is_ready() -> None:
    assert found(store(WAITS, 7, 16), init(0, 16)) == {}


def test_a_barrier_that_timed_out_failed() -> None:
    finding = found(store(WAITS, 7, 16), store(TIMEOUT, 15, 16))["rendezvous-timeout"]
    assert (finding.state, finding.culprits) == (State.FAILED, ())


def test_more_workers_than_ranks_are_of_an_earlier_attempt() -> None:
    findings = found(store(TIMEOUT, 16, 8, rank=0))
    assert set(findings) == {"stale-rendezvous"}
    assert findings["stale-rendezvous"].culprits == ()


def test_a_key_that_nobody_wrote_is_a_symptom() -> None:
    finding = found(store(StoreTrouble.KEY_TIMEOUT, None, None, rank=3))["rendezvous-timeout"]
    assert (finding.weight, finding.culprits) == (Weight.SYMPTOM, ())


def test_a_port_that_is_taken_explains_the_exception_that_follows() -> None:
    taken = StoreEvent(at=where("in use"), kind=StoreTrouble.PORT_IN_USE, port=47531)
    finding = found(taken)["port-in-use"]
    assert "47531" in finding.summary
    assert "python-exception" in finding.explains


def test_a_port_that_is_taken_is_read_from_an_exception_too() -> None:
    thrown = PyException(at=where("OSError"), name="OSError", message="Address already in use")
    assert "port-in-use" in found(thrown)


def test_a_port_that_was_taken_does_not_matter_once_the_job_runs() -> None:
    taken = StoreEvent(at=where("in use"), kind=StoreTrouble.PORT_IN_USE, port=29500)
    assert found(taken, init(0, 2)) == {}


def test_a_port_that_is_taken_while_the_job_runs_stops_what_comes_after() -> None:
    taken = PyException(at=where("[::]:8000"), name="OSError", message="address already in use")
    assert "port-in-use" not in found(taken, init(0, 2))
    ready = init(0, 2, source="train.log")
    late = PyException(at=where("[::]:8000"), name="OSError", message="address already in use")
    assert "8000" in found(ready, late)["port-in-use"].summary


def test_lines_that_end_in_set_up_are_neither_well_nor_a_hang() -> None:
    channel = Channel(at=where("Channel 00"), sender=0, receiver=1, via="NET/IB/0")
    finding = found(channel)[None]
    assert (finding.state, finding.weight) == (State.UNKNOWN, Weight.NOTE)
    assert found(channel, init(0, 2)) == {}


def test_a_rank_that_registers_twice_is_named_in_the_whole_communicator() -> None:
    twice = warn(Warn.DUPLICATE_RANK, "rank 1 of 8 ranks has already checked in", ranks=(1, 8))
    assert named(found(twice)["duplicate-rank"]) == [(1, None)]


def test_a_rank_of_a_smaller_group_is_not_taken_for_a_global_one() -> None:
    twice = warn(Warn.DUPLICATE_RANK, ranks=(1, 2))
    assert named(found(init(0, 8), init(7, 8), twice)["duplicate-rank"]) == []


def test_two_ranks_on_one_gpu_are_both_named_with_their_host() -> None:
    pairs = ((2, 0), (0, 1))
    told = [warn(Warn.DUPLICATE_GPU, ranks=two, rank=two[0], host="node-c") for two in pairs]
    assert named(found(*told)["duplicate-gpu"]) == [(0, "node-c"), (1, "node-c"), (2, "node-c")]


def test_numbers_of_a_group_are_not_taken_for_the_ranks_of_the_writers() -> None:
    told = warn(Warn.DUPLICATE_GPU, ranks=(1, 0), rank=5, host="n1")
    assert named(found(told)["duplicate-gpu"]) == [(5, "n1")]


def test_processes_that_count_differently_disagree_about_the_ranks() -> None:
    assert "rank-count-mismatch" in found(warn(Warn.RANK_COUNT, sizes=(8, 16)))
    assert "rank-count-mismatch" in found(warn(Warn.USAGE, "Invalid rank requested : 2/2"))
    assert "rank-count-mismatch" in found(init(0, 8), init(1, 16))
    assert "rank-count-mismatch" in found(store(WAITS, 1, 8), store(WAITS, 1, 16))


def test_a_split_has_another_size_than_its_parent() -> None:
    split = CommInit(
        at=where("Init COMPLETE", host="node-a", pid=1000),
        phase=InitPhase.COMPLETE,
        comm="0x9",
        rank=0,
        nranks=2,
        comm_id="ab12",
        parent="0x1",
        color=0,
    )
    assert found(init(0, 8), split) == {}


def timing(total_s: float, nranks: int = 8, **more: Any) -> InitTimings:
    parts = (("kernels", total_s * 0.9), ("topo", 1.0))
    return InitTimings(
        at=where("Init timings", **more), rank=0, nranks=nranks, total_s=total_s, parts=parts
    )


def test_a_slow_set_up_is_slow_and_not_stuck() -> None:
    verdict = explain_traces(traces(timing(55.0), init(0, 8)))
    assert (verdict.cls, verdict.state) == ("slow-init", State.SLOW)
    assert "kernels" in verdict.summary


def test_a_usual_set_up_is_no_finding() -> None:
    assert found(timing(3.0)) == {}
    assert found(timing(35.0, nranks=2048)) == {}


def test_settings_that_differ_between_hosts_are_no_finding_until_something_breaks() -> None:
    differ = (setting("NCCL_PROTO", "LL", "n1"), setting("NCCL_PROTO", "Simple", "n2"))
    assert found(*differ) == {}
    sizes = warn(Warn.SIZE_MISMATCH, sizes=(8, 4), host="n1")
    finding = found(*differ, sizes)["env-mismatch"]
    assert (finding.weight, finding.culprits) == (Weight.CAUSE, ())
    assert "NCCL_PROTO" in finding.summary


def test_settings_that_may_differ_are_no_finding() -> None:
    assert (
        found(
            setting("NCCL_SOCKET_IFNAME", "eth0", "n1"),
            setting("NCCL_SOCKET_IFNAME", "eth1", "n2"),
            setting("NCCL_IB_HCA", "mlx5_0", "n1"),
            setting("NCCL_IB_HCA", "mlx5_1", "n2"),
        )
        == {}
    )


def test_hosts_that_use_different_networks_differ() -> None:
    nets = [
        NcclNetwork(at=where("Using network", host=host), name=name)
        for host, name in (("n1", "IB"), ("n2", "Socket"))
    ]
    error = NcclError(at=where("ncclSystemError"), result="ncclSystemError")
    assert found(*nets, error)["env-mismatch"].weight is Weight.PATTERN


def test_hosts_with_different_versions_of_nccl_are_told() -> None:
    versions = [
        NcclVersion(at=where("NCCL version", host=host), version=version)
        for host, version in (("n1", "2.21.5"), ("n1", "2.27.5"), ("n2", "2.27.5"))
    ]
    assert found(*versions) == {}
    closed = warn(Warn.CLOSED)
    assert found(versions[0], versions[2]) == {}
    assert "version-mismatch" in found(versions[0], versions[2], closed)
    torn = NcclWarn(at=where("received 1024"), kind=Warn.SIZE_MISMATCH, text="", call="bootstrap")
    assert found(torn)["version-mismatch"].weight is Weight.PATTERN
    assert found(warn(Warn.VERSION_MISMATCH))["version-mismatch"].weight is Weight.CAUSE
