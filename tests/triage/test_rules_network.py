"""Rules on the network: a host's own word beats its peers', and a single pair names nobody."""

from collections.abc import Iterable
from typing import Any

import pytest

from slurmtop.model.events.launch import WorkerLost
from slurmtop.model.events.nccl import (
    ClosedByLocalRank,
    CommInit,
    InitPhase,
    NcclAddress,
    NcclSetting,
    NcclWarn,
    Warn,
)
from slurmtop.model.events.program import Closing, ProgramSays, RankSeen, Step
from slurmtop.model.events.slurm import Ending, StepEnded
from slurmtop.model.events.system import KernelLink, LinkTrouble
from slurmtop.model.events.torch import NcclError, StoreEvent, StoreTrouble
from slurmtop.model.trace import Clock, Event, Stamp
from slurmtop.model.verdict import State
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.rules import endpoints, network
from slurmtop.triage.rules.network import event_class
from slurmtop.triage.rules.pairs import Pair, common_end
from tests.triage.traces import init, timed_out, traces, where


def found(*events: Event) -> dict[str | None, Finding]:
    picture = join(traces(*events))
    return {one.cls: one for one in (*network.find(picture), *endpoints.find(picture))}


def warn(kind: Warn, text: str = "", **more: Any) -> NcclWarn:
    names = ("peer", "status", "vendor", "call", "error", "device", "sizes", "quoted")
    extra = {name: more.pop(name) for name in names if name in more}
    return NcclWarn(at=where(f"NCCL WARN {text}", **more), kind=kind, text=text, **extra)


def lost(host: str, peer: str, **more: Any) -> NcclWarn:
    return warn(Warn.IB_COMPLETION, "Got completion", host=host, peer=peer, status=12, **more)


def named(finding: Finding) -> list[tuple[int | None, str | None]]:
    return [(c.rank, c.host) for c in finding.culprits if c.rank is not None or c.host]


@pytest.mark.parametrize(
    ("words", "cls"),
    [
        ("port error", "net-link-fault"),
        ("IBV_EVENT_PORT_ERR", "net-link-fault"),
        ("GID table change", "net-gid-change"),
        ("local catastrophic error", "net-hca-fault"),
        ("device fatal", "net-hca-fault"),
        ("CQ error", "net-hca-fault"),
        ("local access violation work queue error", "net-local-qp-error"),
        ("local work queue catastrophic error", "net-local-qp-error"),
        ("client reregistration", None),
        ("port active", None),
        ("SM change", None),
    ],
)
def test_an_event_of_the_adapter_has_the_class_of_its_words(words: str, cls: str | None) -> None:
    assert event_class(words) == cls


def test_a_port_error_names_its_own_host_and_explains_the_peers_timeouts() -> None:
    findings = found(
        warn(Warn.IB_EVENT, "Got async event", error="port error", host="node-48", pid=1),
        warn(Warn.IB_EVENT, "Got async event", error="port error", host="node-48", pid=2),
        lost("node-51", "node48"),
    )
    link = findings["net-link-fault"]
    assert named(link) == [(None, "node-48")]
    assert "net-timeout" in link.explains
    assert link.weight > findings["net-timeout"].weight


def test_an_adapter_that_failed_is_named_without_the_flush_of_its_peer() -> None:
    event = warn(Warn.IB_EVENT, error="local access violation work queue error", host="node-b")
    flush = warn(Warn.IB_COMPLETION, host="node-b", peer="10.0.1.2", status=5, vendor=249)
    assert named(found(event, flush)["net-local-qp-error"]) == [(None, "node-b")]


def test_ports_down_on_many_hosts_at_once_name_no_host() -> None:
    events = [warn(Warn.IB_EVENT, error="port error", host=f"n{one}") for one in range(6)]
    assert named(found(*events, timed_out(9, host="n9"))["net-link-fault"]) == []


def test_a_port_event_that_the_job_outlived_is_only_a_note() -> None:
    event = warn(Warn.IB_EVENT, error="port error", host="n1")
    finding = found(event, Step(at=where("step 2"), done=2))["net-link-fault"]
    assert (finding.weight, finding.state) == (Weight.NOTE, None)


def test_the_kernels_link_down_counts_when_the_transport_broke() -> None:
    down = KernelLink(at=where("Link down", source="dmesg", host="n3"), kind=LinkTrouble.DOWN)
    finding = found(down, lost("n1", "n3"))["net-link-fault"]
    assert (named(finding), finding.weight) == ([(None, "n3")], Weight.OUTRIGHT)
    assert finding.shown[0].family == "kernel"


def test_the_kernels_link_down_alone_is_only_a_note_for_a_run_that_began() -> None:
    down = KernelLink(at=where("Link down", source="dmesg", host="n3"), kind=LinkTrouble.DOWN)
    assert found(init(0, 2), down)["net-link-fault"].weight is Weight.NOTE


def down(seconds: float, clock: Clock = Clock.WALL, text: str = "Link down") -> KernelLink:
    at = where(text, source="dmesg", host="n3", stamp=Stamp(seconds, clock))
    return KernelLink(at=at, kind=LinkTrouble.DOWN)


def test_a_link_that_was_down_while_the_host_booted_is_none_of_this_run() -> None:
    assert "net-link-fault" not in found(down(30.0, Clock.BOOT), lost("n1", "n2"))
    assert "net-link-fault" in found(down(90_000.0, Clock.BOOT), lost("n1", "n2"))


def test_a_link_that_was_down_at_another_time_is_none_of_this_run() -> None:
    broke = lost("n1", "n2", stamp=Stamp(100_000.0))
    assert "net-link-fault" in found(down(99_900.0), broke)
    assert "net-link-fault" not in found(down(50_000.0), broke)


def test_a_link_that_came_back_leaves_room_for_another_cause() -> None:
    first = down(90_000.0, Clock.BOOT)
    back = KernelLink(at=where("up", source="dmesg", host="n3"), kind=LinkTrouble.UP)
    finding = found(first, back, lost("n1", "n2"))["net-link-fault"]
    assert finding.weight is Weight.CAUSE


def test_a_single_pair_names_the_connection_and_neither_end() -> None:
    finding = found(lost("node-a", "10.0.0.59"), lost("node-a", "10.0.0.59"))["net-timeout"]
    assert named(finding) == []
    assert finding.culprits[0].link == "10.0.0.59 - node-a"
    assert "between node-a and 10.0.0.59" in finding.summary


def test_the_end_that_several_hosts_lost_is_named() -> None:
    finding = found(lost("n1", "n9"), lost("n2", "n9"), lost("n3", "n9"))["net-timeout"]
    assert named(finding) == [(None, "n9")]


def test_a_ring_of_timeouts_names_nobody() -> None:
    assert named(found(lost("n1", "n2"), lost("n2", "n3"), lost("n3", "n1"))["net-timeout"]) == []


def test_the_common_end_is_one_host_by_all_its_names() -> None:
    pairs = [Pair("n1", "n9"), Pair("n2", "n9"), Pair("n9", "n1")]
    assert common_end(pairs) == "n9"
    assert common_end([*pairs, Pair("n4", "n5")]) is None
    assert common_end([Pair(None, "n9"), Pair(None, "n9")]) is None


def test_only_flushes_tell_no_class_and_name_nobody() -> None:
    flush = [warn(Warn.IB_COMPLETION, host="n1", peer="10.0.0.3", status=5) for _ in range(2)]
    finding = found(*flush)[None]
    assert (finding.weight, named(finding)) == (Weight.SYMPTOM, [])


def test_a_local_protection_error_is_gpu_direct_of_the_host_that_reports_it() -> None:
    bad = warn(Warn.IB_COMPLETION, host="n1", peer="10.0.0.3", status=4, vendor=81)
    finding = found(bad, timed_out(0, host="n2"))["net-gdr-config"]
    assert named(finding) == [(None, "n1")]


def test_the_same_protection_error_on_all_hosts_names_none() -> None:
    bad = [
        warn(Warn.IB_COMPLETION, host=f"n{one}", peer="x", status=4, vendor=81) for one in (1, 2)
    ]
    assert named(found(*bad)["net-gdr-config"]) == []


def test_an_unresponsive_end_of_efa_is_a_timeout_of_the_network() -> None:
    told = warn(Warn.IB_COMPLETION, call="libfabric", error="Unresponsive receiver", host="n1")
    assert "net-timeout" in found(told)


@pytest.mark.parametrize(
    ("kind", "call", "error", "cls"),
    [
        (Warn.IB_CALL, "ibv_modify_qp", "Connection timed out", "net-path-unreachable"),
        (Warn.IB_CALL, "ibv_modify_qp", "Network is unreachable", "net-path-unreachable"),
        (Warn.IB_MEMORY, "ibv_reg_mr", "Cannot allocate memory", "net-memory-registration"),
        (Warn.IB_MEMORY, "libfabric", "Invalid argument", "net-memory-registration"),
        (Warn.IB_MEMORY, "ibv_create_cq", "Cannot allocate memory", "net-memory-registration"),
        (Warn.IB_MEMORY, "ibv_reg_mr_iova2", "Bad address", "net-gdr-config"),
        (Warn.IB_MEMORY, "ibv_reg_dmabuf_mr", "Invalid argument", "net-gdr-config"),
        (Warn.IB_CALL, "ibv_get_async_event", None, "net-hca-fault"),
    ],
)
def test_a_refused_call_has_the_class_of_the_call_and_its_error(
    kind: Warn, call: str, error: str | None, cls: str
) -> None:
    told = warn(kind, f"Call to {call} failed", call=call, error=error, host="n1")
    assert set(found(told)) == {cls}


def test_no_route_between_two_adapters_names_neither_host() -> None:
    told = warn(Warn.IB_CALL, call="ibv_modify_qp", error="Connection timed out", host="n1")
    assert named(found(told)["net-path-unreachable"]) == []


def test_more_to_send_than_there_is_room_is_a_difference_of_settings() -> None:
    told = warn(Warn.SIZE_MISMATCH, host="n1", peer="10.0.0.6", sizes=(496640, 65536))
    finding = found(told)["env-mismatch"]
    assert named(finding) == []
    assert finding.culprits[0].link == "10.0.0.6 - n1"


@pytest.mark.parametrize("sizes", [(512, 4096), (4096, 0), (4096, -1), (4096, 2**40)])
def test_a_torn_note_of_the_peer_is_the_order_of_the_adapter(sizes: tuple[int, int]) -> None:
    told = warn(Warn.SIZE_MISMATCH, "collective mismatch error", host="n1", sizes=sizes)
    assert set(found(told)) == {"net-nic-ordering"}


def test_relaxed_ordering_that_was_forced_is_suspected_first() -> None:
    name = "NCCL_IB_PCI_RELAXED_ORDERING"
    asked = NcclSetting(at=where(name, host="n1"), name=name, value="1.")
    told = warn(Warn.SIZE_MISMATCH, "collective mismatch", host="n1", sizes=(4096, 512))
    assert set(found(asked, told)) == {"net-nic-ordering"}


def test_a_truncated_message_of_a_socket_is_no_matter_of_the_adapter() -> None:
    told = warn(Warn.SIZE_MISMATCH, "message truncated : receiving", sizes=(32768, 696320))
    assert set(found(told)) == {"env-mismatch"}


def test_a_missing_interface_names_the_only_one_that_speaks() -> None:
    told = warn(Warn.NO_INTERFACE, "no socket interface found", rank=0, quoted=True)
    assert named(found(told)["net-interface-config"]) == [(0, None)]


def test_a_missing_interface_on_every_rank_names_nobody() -> None:
    told = [warn(Warn.NO_INTERFACE, rank=rank) for rank in range(2)]
    assert named(found(*told)["net-interface-config"]) == []


def test_an_address_that_every_host_has_is_a_wrong_interface() -> None:
    told = warn(Warn.CONNECT, host="n1", peer="172.17.0.1", error="Connection refused")
    assert set(found(told, init(0, 2, host="n2"))) == {"net-interface-config"}


def test_two_ends_that_chose_different_networks_have_a_wrong_interface() -> None:
    own = NcclAddress(at=where("eth0", host="n1"), interface="eth0", address="192.168.1.5")
    told = warn(Warn.CONNECT, host="n1", peer="10.0.0.4", error="No route to host")
    assert set(found(own, told)) == {"net-interface-config"}
    near = NcclAddress(at=where("eth1", host="n1"), interface="eth1", address="10.0.9.9")
    assert set(found(own, near, told)) == {"bootstrap-unreachable"}


def test_a_connect_that_fails_is_the_bootstrap_and_outweighs_what_closes_after_it() -> None:
    findings = found(
        warn(Warn.CONNECT, host="n1", error="Connection timed out"),
        warn(Warn.CLOSED, host="n1"),
    )
    assert findings["bootstrap-unreachable"].weight > findings["peer-died"].weight
    assert "peer-died" in findings["bootstrap-unreachable"].explains


def test_a_refused_address_out_of_a_file_is_one_of_an_earlier_run() -> None:
    findings = found(
        RankSeen(at=where("init_method: file:///shared/x"), method="file:///shared/x"),
        warn(Warn.CONNECT, host="node-b", peer="10.0.0.112", error="Connection refused"),
    )
    stale = findings["stale-rendezvous"]
    assert named(stale) == []
    assert stale.weight > findings["bootstrap-unreachable"].weight
    assert "bootstrap-unreachable" in stale.explains


def test_a_store_that_was_out_of_reach_for_a_while_does_not_matter_once_set_up_is_over() -> None:
    refused = StoreEvent(at=where("refused"), kind=StoreTrouble.REFUSED)
    assert "bootstrap-unreachable" in found(refused)
    assert found(refused, init(0, 2)) == {}


def test_a_stranger_at_the_port_leaves_the_state_open() -> None:
    finding = found(warn(Warn.FOREIGN, "wrong magic", host="n1"))["foreign-connection"]
    assert (finding.state, named(finding)) == (None, [])


def test_a_reset_names_nobody_where_one_host_complains() -> None:
    finding = found(warn(Warn.RESET, peer="10.0.0.5", quoted=True))["socket-reset"]
    assert (finding.weight, named(finding)) == (Weight.SYMPTOM, [])


def test_the_far_end_that_several_hosts_lost_is_told_and_not_named() -> None:
    closed = [warn(Warn.CLOSED, host=f"n{one}", peer="n9") for one in (1, 2, 3)]
    finding = found(*closed)["peer-died"]
    assert named(finding) == []
    assert "towards n9" in finding.summary


def test_a_remote_error_without_its_warning_is_a_peer_that_has_gone() -> None:
    error = NcclError(at=where("ncclRemoteError"), result="ncclRemoteError")
    assert named(found(error)["peer-died"]) == []


def test_a_worker_that_its_supervisor_lost_is_named_by_its_address() -> None:
    gone = WorkerLost(at=where("A worker died or was killed"), address="10.0.0.110", pid=90738)
    finding = found(gone)["peer-died"]
    assert named(finding) == [(None, "10.0.0.110")]
    assert finding.culprits[0].pid == 90738


def closed_by(local_rank: int, devices: Iterable[int]) -> list[ClosedByLocalRank]:
    return [
        ClosedByLocalRank(
            at=where(f"[{device}] NCCL INFO Connection closed", host="n1", pid=50 + pid),
            local_rank=local_rank,
        )
        for pid, device in enumerate(devices)
    ]


def test_a_local_rank_that_all_others_name_has_gone() -> None:
    finding = found(*closed_by(7, range(7)))["peer-died"]
    assert named(finding) == [(None, "n1")]
    assert (finding.weight, finding.state) == (Weight.PATTERN, State.FAILED)
    assert "local rank 7" in finding.summary


def test_connections_that_close_in_turn_are_a_normal_end() -> None:
    assert found(*closed_by(7, range(3)), *closed_by(6, range(3))) == {}
    over = ProgramSays(at=where("done"), closing=Closing.FINISHED)
    assert found(*closed_by(7, range(7)), over) == {}
    destroyed = CommInit(at=where("Destroy COMPLETE"), phase=InitPhase.DESTROYED, comm="0x1")
    assert found(*closed_by(7, range(7)), destroyed) == {}


def test_a_local_rank_that_tells_its_own_end_went_of_its_own_will() -> None:
    assert found(*closed_by(0, range(4))) == {}


def test_in_logs_of_their_own_the_one_that_all_name_may_only_be_lost() -> None:
    apart = [
        ClosedByLocalRank(
            at=where(
                f"n1:1:2 [{rank}] NCCL INFO [Service thread] Connection closed by localRank 3",
                host="n1",
                source=f"rank{rank}.log",
            ),
            local_rank=3,
        )
        for rank in range(3)
    ]
    assert named(found(*apart)["peer-died"]) == []
    assert found(*apart[:2]) == {}


def test_writers_that_all_see_one_device_do_not_tell_who_is_silent() -> None:
    assert found(*closed_by(3, (0, 0, 0, 0))) == {}


def ended(ending: Ending, **more: Any) -> StepEnded:
    return StepEnded(at=where("CANCELLED", **more), step="1.0", ending=ending, first_host="n1")


def test_connections_that_close_while_slurm_ends_the_job_are_its_effect() -> None:
    closed = warn(Warn.CLOSED, host="n1", peer="n2")
    assert explain_traces(traces(closed, ended(Ending.TIME_LIMIT))).cls == "slurm-time-limit"
    assert found(closed, ended(Ending.CANCELLED))["peer-died"].weight is Weight.SYMPTOM
    early = warn(Warn.CLOSED, host="n1", peer="n2", seconds=0)
    late = ended(Ending.TIME_LIMIT, seconds=7200)
    assert found(early, late)["peer-died"].weight is Weight.SYMPTOM


def test_timeouts_towards_a_node_that_failed_name_the_failure() -> None:
    events = (lost("n1", "n7"), lost("n2", "n7"), ended(Ending.NODE_FAILURE))
    assert explain_traces(traces(*events)).cls == "slurm-node-fail"


def reset(asking: int | None, owner: int | None = 0) -> StoreEvent:
    at = where("store->get('0') got error: Connection reset by peer", rank=asking)
    return StoreEvent(at=at, kind=StoreTrouble.RESET, asking=asking, owner=owner)


def test_the_owner_of_a_lost_store_is_not_named_for_being_silent() -> None:
    finding = found(reset(14), reset(9), reset(3))["peer-died"]
    assert named(finding) == []
    assert "its log has the cause" in finding.summary


def test_a_port_error_wins_over_everything_that_the_others_report() -> None:
    verdict = explain_traces(
        traces(
            warn(Warn.IB_EVENT, error="port error", host="n3"),
            lost("n1", "n3"),
            lost("n2", "n3"),
            warn(Warn.CLOSED, host="n4", peer="n1"),
            timed_out(5, host="n5"),
        )
    )
    assert verdict.cls == "net-link-fault"
    assert [one.host for one in verdict.culprits] == ["n3"]


def test_harmless_warnings_are_no_findings() -> None:
    assert found(warn(Warn.BENIGN, error="client reregistration", host="n1"), init(0, 2)) == {}
