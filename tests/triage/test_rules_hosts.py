"""Rules on hosts: memory, shared memory, descriptors, the PCI tree."""

from typing import Any

from slurmtop.model.events.launch import Crash, ElasticFailure
from slurmtop.model.events.nccl import NcclChain, NcclWarn, Warn
from slurmtop.model.events.program import PyException
from slurmtop.model.events.slurm import OomKill, TaskExit
from slurmtop.model.events.system import HostHardware, KernelOom, Limit, LimitHit, MemoryUse
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.join import join
from slurmtop.triage.rules import hosts
from tests.triage.traces import init, timed_out, traces, where


def found(*events: Event) -> list[Finding]:
    return list(hosts.find(join(traces(*events))))


def only(*events: Event) -> Finding:
    (one,) = found(*events)
    return one


def hit(limit: Limit, **more: Any) -> LimitHit:
    return LimitHit(at=where("a limit", **more), limit=limit)


def grows(*gib: float, **more: Any) -> list[MemoryUse]:
    return [MemoryUse(at=where("RSS", **more), bytes=int(one * 2**30)) for one in gib]


def topology(**more: Any) -> NcclWarn:
    text = "Could not find real path of /sys/class/pci_bus"
    return NcclWarn(at=where(text, **more), kind=Warn.TOPOLOGY, text=text)


def test_slurms_word_on_memory_names_the_host_of_the_task() -> None:
    finding = only(
        OomKill(at=where("Detected 1 oom-kill event"), step="7.0", host="node-a"),
        TaskExit(at=where("srun"), hosts=("node-a",), tasks=(0,), out_of_memory=True),
    )
    assert (finding.cls, finding.weight) == ("host-oom", Weight.OUTRIGHT)
    assert [one.host for one in finding.culprits] == ["node-a"]
    assert {one.family for one in finding.shown} == {"slurm"}
    assert {"user-interrupt", "task-exit"} <= finding.explains


def test_a_kill_without_a_host_names_nobody() -> None:
    finding = only(OomKill(at=where("Detected 1 oom_kill event"), step="7.0"))
    assert (finding.weight, finding.culprits) == (Weight.OUTRIGHT, ())


def test_the_kernels_kill_names_the_rank_of_that_process() -> None:
    kill = KernelOom(at=where("Killed process 1002", source="dmesg", host="node-a"), pid=1002)
    finding = only(init(2, 4, host="node-a", pid=1002), kill)
    assert [(one.host, one.rank, one.pid) for one in finding.culprits] == [("node-a", 2, 1002)]


def test_a_loader_that_was_killed_names_its_rank() -> None:
    finding = only(hit(Limit.MEMORY, rank=3), timed_out(1))
    assert [one.rank for one in finding.culprits] == [3]


def test_a_limit_that_the_program_survived_is_no_finding() -> None:
    at = where("OSError: [Errno 24] Too many open files", rank=0)
    survived = PyException(at=at, name="OSError", message="", swallowed=True)
    assert found(LimitHit(at=at, limit=Limit.FILES), survived) == []


def test_memory_that_climbs_to_the_end_is_named_without_calling_it_failed() -> None:
    finding = only(*grows(5.1, 5.1, 46, 105, 161, 212, rank=0))
    assert (finding.cls, finding.state) == ("host-oom", State.UNKNOWN)
    assert [one.rank for one in finding.culprits] == [0]
    assert finding.shown[0].at.order > finding.shown[-1].at.order


def test_memory_that_came_down_again_or_grows_a_little_is_no_finding() -> None:
    assert found(*grows(5, 46, 105, 6, rank=0)) == []
    assert found(*grows(50, 51, 52, 53, rank=0)) == []
    assert found(*grows(0.1, 0.2, 0.4, 0.8, rank=0)) == []


def test_each_rank_has_its_own_series() -> None:
    one, two = grows(5, 50, rank=0), grows(60, 70, rank=1)
    assert found(one[0], two[0], one[1], two[1]) == []


def test_a_full_shared_memory_names_its_host() -> None:
    text = "Call to posix_fallocate failed : No space left on device"
    finding = only(NcclWarn(at=where(text, host="node-a"), kind=Warn.SHM, text=text))
    assert (finding.cls, finding.weight) == ("shm-exhausted", Weight.OUTRIGHT)
    assert finding.culprits[0].host == "node-a"
    assert finding.next[0].command == "ssh node-a df -h /dev/shm"


def test_bus_errors_inside_nccl_are_the_hosts_shared_memory() -> None:
    crashes = [
        Crash(at=where("Caught signal 7", host="node-a", pid=pid), signal=7, text="", in_nccl=True)
        for pid in (1, 2)
    ]
    finding = only(*crashes)
    assert (finding.cls, finding.weight) == ("shm-exhausted", Weight.CAUSE)
    assert [one.host for one in finding.culprits] == ["node-a"]


def test_an_end_by_a_bus_error_leaves_room_for_another_cause() -> None:
    failed = ElasticFailure(at=where("exitcode: -7"), rank=5, host="n1", signal=7)
    finding = only(failed)
    assert (finding.cls, finding.weight) == ("shm-exhausted", Weight.PATTERN)
    assert [(one.host, one.rank) for one in finding.culprits] == [("n1", 5)]


def test_another_signal_is_no_shared_memory() -> None:
    assert found(Crash(at=where("Caught signal 11"), signal=11, text="")) == []


def test_no_descriptor_left_names_the_process() -> None:
    finding = only(hit(Limit.FILES, rank=2), timed_out(0))
    assert (finding.cls, finding.culprits[0].rank) == ("fd-limit", 2)


def test_an_unreadable_tree_that_stops_set_up_names_the_host() -> None:
    chain = NcclChain(at=where("graph/xml.cc:469 -> 2", host="n1"), file="graph/xml.cc", result=2)
    finding = only(topology(host="n1"), chain)
    assert (finding.cls, finding.weight) == ("topology-detection", Weight.CAUSE)
    assert finding.culprits[0].host == "n1"


def test_an_unreadable_tree_does_not_matter_once_set_up_is_complete() -> None:
    assert found(topology(host="node-a", pid=1000), init(0, 2)) == []


def test_broken_hardware_of_the_host_has_no_class_but_a_name() -> None:
    finding = only(HostHardware(at=where("mce: Machine check exception", host="n4")))
    assert (finding.cls, finding.culprits[0].host) == (None, "n4")
