"""Rules on GPUs: whose fault a line tells, and whose it does not."""

from collections.abc import Iterable
from typing import Any

from slurmtop.model.events.nccl import Channel, NcclWarn, Warn
from slurmtop.model.events.reports import BenchRow
from slurmtop.model.events.system import PcieFatal, Xid
from slurmtop.model.events.torch import CudaError, CudaTrouble, NcclError
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.join import join
from slurmtop.triage.rules import gpu
from tests.triage.traces import init, timed_out, traces, where


def found(*events: Event) -> list[Finding]:
    return list(gpu.find(join(traces(*events))))


def only(findings: Iterable[Finding]) -> Finding:
    (one,) = findings
    return one


def cuda(kind: CudaTrouble, text: str = "CUDA error", **more: Any) -> CudaError:
    extra = {k: more.pop(k) for k in ("gpu", "other_process", "caught") if k in more}
    return CudaError(at=where(text, **more), kind=kind, text=text, **extra)


def warn(kind: Warn, text: str, **more: Any) -> NcclWarn:
    extra = {k: more.pop(k) for k in ("error", "status", "device", "ranks") if k in more}
    return NcclWarn(at=where(f"NCCL WARN {text}", **more), kind=kind, text=text, **extra)


def xid(code: int, bus: str = "0000:83:00", **more: Any) -> Xid:
    extra = {k: more.pop(k) for k in ("caused_by", "switch", "fatal") if k in more}
    return Xid(at=where(f"Xid (PCI:{bus}): {code}", **more), code=code, bus_id=bus, **extra)


def test_the_rank_that_ran_out_of_gpu_memory_is_named_with_its_device() -> None:
    finding = only(found(cuda(CudaTrouble.OUT_OF_MEMORY, rank=11, gpu=3), timed_out(2)))
    assert finding.cls == "gpu-oom"
    assert [(one.rank, one.gpu) for one in finding.culprits] == [(11, "3")]
    assert "watchdog-timeout-unattributed" in finding.explains


def test_out_of_memory_on_every_rank_names_none_of_them() -> None:
    finding = only(found(*(cuda(CudaTrouble.OUT_OF_MEMORY, rank=rank) for rank in range(4))))
    assert finding.culprits == ()


def test_out_of_memory_that_the_program_caught_is_no_finding() -> None:
    assert found(cuda(CudaTrouble.OUT_OF_MEMORY, rank=1, caught=True)) == []


def test_memory_inside_nccl_names_the_host_of_the_allocation_not_the_closed_peer() -> None:
    finding = only(
        found(
            warn(Warn.CLOSED, "Connection closed by remote peer", host="node-b"),
            warn(Warn.OUT_OF_MEMORY, "Cuda failure 'out of memory'", host="node-a"),
        )
    )
    assert finding.cls == "gpu-oom"
    assert [one.host for one in finding.culprits] == ["node-a"]


def test_an_ecc_error_is_hardware_of_the_rank_that_reports_it() -> None:
    finding = only(found(cuda(CudaTrouble.ECC, rank=12), timed_out(3)))
    assert (finding.cls, finding.weight) == ("gpu-hw-fault", Weight.OUTRIGHT)
    assert [one.rank for one in finding.culprits] == [12]


def test_a_gpu_off_the_bus_without_a_host_names_the_gpu_only() -> None:
    finding = only(found(xid(79)))
    assert (finding.cls, finding.state) == ("gpu-hw-fault", State.FAILED)
    assert [(one.rank, one.host, one.gpu) for one in finding.culprits] == [
        (None, None, "0000:83:00")
    ]


def test_the_bus_alone_tells_a_lost_gpu_but_not_a_lost_disk() -> None:
    gpu_lost = PcieFatal(at=where("nvidia 0000:02:00.0: device has no AER-aware driver"))
    assert only(found(gpu_lost)).cls == "gpu-hw-fault"
    assert found(PcieFatal(at=where("nvme 0000:05:00.0: Uncorrected (Fatal)"))) == []


def test_a_gpu_off_the_bus_is_named_with_the_host_of_its_kernel() -> None:
    finding = only(found(xid(79, host="n17")))
    assert finding.culprits[0].host == "n17"


def test_cleanups_tell_the_link_fault_that_they_follow_from() -> None:
    findings = found(xid(45, caused_by=149), xid(45, "0000:ed:00", caused_by=145))
    finding = only(findings)
    assert finding.cls == "nvlink-fault"
    assert "149" in finding.summary
    assert len(finding.shown) == 2


def test_a_cleanup_alone_is_no_finding() -> None:
    assert found(xid(45)) == []


def test_a_fault_of_the_program_on_a_gpu_is_no_hardware() -> None:
    finding = only(found(xid(31)))
    assert finding.cls is None
    assert finding.weight is Weight.SYMPTOM


def test_corrected_errors_are_only_worth_a_note() -> None:
    finding = only(found(xid(92)))
    assert (finding.cls, finding.weight, finding.state) == ("gpu-hw-fault", Weight.NOTE, None)


def test_a_remapped_row_leaves_room_for_another_cause() -> None:
    finding = only(found(xid(63)))
    assert (finding.cls, finding.weight, finding.state) == ("gpu-hw-fault", Weight.PATTERN, None)


def test_a_switch_that_survives_its_error_is_only_worth_a_note() -> None:
    assert only(found(xid(12028, switch=True, fatal=False))).weight is Weight.NOTE
    assert only(found(xid(20034, switch=True, fatal=True))).cls == "nvlink-fault"


def test_multicast_that_cannot_be_bound_points_to_the_fabric_manager_of_that_host() -> None:
    finding = only(found(warn(Warn.NVLS, "Failed to bind NVLink SHARP", host="node-d")))
    assert finding.cls == "fabric-manager"
    assert finding.culprits[0].host == "node-d"
    assert finding.next[0].command.startswith("ssh node-d systemctl")


def test_a_system_that_is_not_initialized_yet_is_the_fabric_manager() -> None:
    finding = only(found(cuda(CudaTrouble.DRIVER, "CUDA error: system not yet initialized")))
    assert finding.cls == "fabric-manager"


def test_another_refusal_of_cuda_inside_nccl_is_the_driver() -> None:
    refused = [
        warn(Warn.CUDA, "Cuda failure 'invalid argument'", error="invalid argument", rank=rank)
        for rank in (0, 3)
    ]
    finding = only(found(*refused, timed_out(1)))
    assert finding.cls == "cuda-driver-error"


def test_an_illegal_access_of_a_kernel_is_not_the_drivers() -> None:
    told = warn(Warn.CUDA, "Cuda failure 'an illegal memory access was encountered'", rank=1)
    assert found(told) == []


def test_a_failed_cuda_call_without_its_warning_is_a_symptom() -> None:
    error = NcclError(at=where("ncclUnhandledCudaError"), result="ncclUnhandledCudaError")
    finding = only(found(error))
    assert (finding.cls, finding.weight) == ("cuda-driver-error", Weight.SYMPTOM)


def test_wrong_values_of_a_test_are_data_corruption() -> None:
    row = BenchRow(at=where("524288 … 237858"), rows=9, wrong_rows=1)
    finding = only(found(row))
    assert (finding.cls, finding.state) == ("data-corruption", State.FAILED)
    assert finding.culprits == ()


def test_a_table_without_wrong_values_is_no_finding() -> None:
    assert found(BenchRow(at=where("# Out of bounds"), rows=9, out_of_bounds=0)) == []


def test_all_ranks_stuck_in_the_first_collective_over_direct_links_is_p2p() -> None:
    links = [
        Channel(at=where("via P2P", host="node-a"), sender=0, receiver=1, via="P2P/direct pointer")
    ]
    stuck = [timed_out(rank, 1) for rank in (0, 1)]
    finding = only(found(init(0, 2), init(1, 2), *links, *stuck))
    assert (finding.cls, finding.culprits) == ("p2p-hang", ())


def test_a_rank_that_waits_at_a_later_operation_is_not_p2p() -> None:
    link = Channel(at=where("via P2P", host="node-a"), sender=0, receiver=1, via="P2P/IPC")
    assert found(init(0, 2), init(1, 2), link, timed_out(0, 1), timed_out(1, 5)) == []


def test_a_strange_host_name_never_stands_in_a_command() -> None:
    finding = only(found(warn(Warn.NVLS, "nvls", host="-oProxyCommand=reboot x")))
    assert finding.next == ()
