"""Mismatches, skew, missing ranks and timeouts: what is found, and who is named."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from slurmtop.model.events.launch import Interrupted
from slurmtop.model.events.nccl import Call, CommCalls, NcclAddress, NcclWarn, Warn
from slurmtop.model.events.program import (
    Closing,
    Doing,
    Phase,
    ProgramSays,
    PyException,
    RankSeen,
    Step,
)
from slurmtop.model.events.reports import FlightReport, HorovodStall, RasComm, RasProcess, RasRank
from slurmtop.model.events.torch import (
    Desync,
    DumpSignal,
    FailedStack,
    Fingerprint,
    FingerprintMismatch,
    GlooError,
    GlooTrouble,
    Group,
    Heartbeat,
    MonitoredBarrier,
    NcclError,
    ParamsDiffer,
    TakenDown,
)
from slurmtop.model.trace import Event, Source, Traces
from slurmtop.triage.finding import Finding, Weight
from slurmtop.triage.join import join
from slurmtop.triage.picture import Picture
from slurmtop.triage.rules import call_lines, collectives, missing, reported, timeouts
from tests.triage.traces import DEFAULT_PG, init, status, timed_out, traces, where

RULES: tuple[Callable[[Picture], Iterable[Finding]], ...] = (
    collectives.find,
    reported.find,
    call_lines.find,
    missing.find,
    timeouts.find,
)


def found(*events: Event, sources: Iterable[str | Source] = ()) -> dict[str | None, Finding]:
    return found_in(traces(*events, sources=sources))


def found_in(read: Traces) -> dict[str | None, Finding]:
    picture = join(read)
    return {finding.cls: finding for rule in RULES for finding in rule(picture)}


def named(finding: Finding) -> list[int | None]:
    return [culprit.rank for culprit in finding.culprits]


def world(size: int) -> RankSeen:
    return RankSeen(at=where(f"world size: {size}"), world=size)


# Mismatches


def test_two_operations_at_one_position_with_two_ranks_seen_blame_nobody() -> None:
    finding = found(world(8), timed_out(0, 9, "ALLREDUCE"), timed_out(5, 9, "BROADCAST"))[
        "collective-op-mismatch"
    ]
    assert (finding.weight, finding.culprits) == (Weight.CAUSE, ())
    assert finding.collective is not None
    assert finding.collective.mismatch == "allreduce on rank 0, broadcast on rank 5"
    assert finding.collective.expected_ranks == tuple(range(8))


def test_the_one_rank_that_called_something_else_is_named_where_all_are_seen() -> None:
    others = [timed_out(rank, 9, "BROADCAST") for rank in range(1, 4)]
    finding = found(world(4), timed_out(0, 9), *others)["collective-op-mismatch"]
    assert named(finding) == [0]
    assert finding.shown[0].at.rank == 0


def test_the_one_rank_is_not_named_where_the_unseen_might_be_with_it() -> None:
    others = [timed_out(rank, 9, "BROADCAST") for rank in range(1, 4)]
    assert not found(world(8), timed_out(0, 9), *others)["collective-op-mismatch"].culprits
    assert not found(timed_out(0, 9), *others)["collective-op-mismatch"].culprits


def test_a_world_of_two_has_no_majority() -> None:
    both = (timed_out(0, 9), timed_out(1, 9, "BROADCAST"))
    assert not found(world(2), *both)["collective-op-mismatch"].culprits


def test_without_a_name_of_the_group_a_mismatch_is_likely_and_names_nobody() -> None:
    events = [
        timed_out(rank, None, op, group=None)
        for rank, op in enumerate(("ALLREDUCE", "BROADCAST", "BROADCAST"))
    ]
    finding = found(*events)["collective-op-mismatch"]
    assert (finding.weight, finding.culprits) == (Weight.PATTERN, ())


def test_sizes_that_differ_at_one_position() -> None:
    finding = found(timed_out(0, 9, numel=64), timed_out(1, 9, numel=65))[
        "collective-shape-mismatch"
    ]
    assert finding.collective is not None
    assert "65 elements" in (finding.collective.mismatch or "")


def test_sizes_are_told_by_shapes_in_older_versions() -> None:
    events = [
        replace(timed_out(rank, 9, numel=None), shape=shape)
        for rank, shape in enumerate(("8, 4", "8, 2"))
    ]
    assert "collective-shape-mismatch" in found(*events)


@pytest.mark.parametrize("op", ["ALLTOALL", "ALLTOALL_BASE", "GATHER", "SCATTER"])
def test_operations_whose_sizes_may_differ_are_no_mismatch(op: str) -> None:
    events = (timed_out(0, 9, op, numel=64), timed_out(1, 9, op, numel=65))
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_a_mismatch_explains_the_timeouts() -> None:
    finding = found(timed_out(0, 9), timed_out(1, 9, "BROADCAST"))["collective-op-mismatch"]
    assert "watchdog-timeout-unattributed" in finding.explains


def test_nccls_own_comparison_names_nobody() -> None:
    warn = NcclWarn(at=where("Mismatched collective detected"), kind=Warn.CALLS_DIFFER, text="…")
    assert not found(warn)["collective-op-mismatch"].culprits


# Skew


def test_a_rank_that_is_two_operations_ahead_is_off_and_nobody_is_named() -> None:
    waiting = [timed_out(rank, 532_339, "BROADCAST", group=None) for rank in (1, 2)]
    finding = found(*waiting, timed_out(0, 532_341, "_ALLGATHER_BASE", group=None))
    assert finding["collective-order-skew"].culprits == ()


def test_the_root_of_a_broadcast_may_be_ahead() -> None:
    events = (timed_out(0, 5_730, "BROADCAST"), timed_out(3, 5_729, "BROADCAST"))
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_who_has_launched_as_much_as_the_others_is_not_behind() -> None:
    events = (timed_out(0, 30, "BROADCAST"), timed_out(3, 29), status(3, 29, 64, 28))
    assert "collective-order-skew" not in found(*events)


def test_positions_far_apart_without_a_name_are_those_of_two_groups() -> None:
    events = (timed_out(0, 96_120, group=None), timed_out(7, 64_088, "BROADCAST", group=None))
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_a_barrier_after_the_end_of_the_training_was_called_once_too_often() -> None:
    over = ProgramSays(at=where("`Trainer.fit` stopped"), closing=Closing.FINISHED)
    finding = found(over, timed_out(0, None, numel=1, group=None))["collective-order-skew"]
    assert finding.culprits == ()


def test_a_large_operation_after_the_end_of_the_training_is_not_explained() -> None:
    over = ProgramSays(at=where("`Trainer.fit` stopped"), closing=Closing.FINISHED)
    assert "collective-order-skew" not in found(over, timed_out(0, 9, numel=4096))


# Transfers between two ranks


def test_a_receive_that_timed_out_found_no_sender() -> None:
    finding = found(timed_out(1, 4, "RECV"))["unmatched-p2p"]
    assert (finding.weight, finding.culprits) == (Weight.PATTERN, ())


def test_a_transfer_that_waits_beside_a_collective_may_be_late_for_the_same_reason() -> None:
    assert "unmatched-p2p" not in found(timed_out(1, 4, "RECV"), timed_out(2, 9))


# Fingerprints


def mismatch(here: Fingerprint, there: Fingerprint | None) -> FingerprintMismatch:
    return FingerprintMismatch(
        at=where("Detected mismatch between collectives"), here=here, there=there
    )


def shaped(rank: int, seq: int, op: str = "ALLREDUCE", shape: str = "8, 4") -> Fingerprint:
    return Fingerprint(rank, seq, op, shape, "Float")


@pytest.mark.parametrize(
    ("here", "there", "cls"),
    [
        (shaped(1, 4), shaped(2, 4, "BROADCAST"), "collective-op-mismatch"),
        (shaped(1, 4), shaped(2, 4, shape="8, 2"), "collective-shape-mismatch"),
        (shaped(1, 4), Fingerprint(2, 4, "ALLREDUCE", "8, 4", "Long"), "collective-shape-mismatch"),
        (shaped(1, 4), shaped(2, 5, "BROADCAST"), "collective-order-skew"),
        (shaped(1, 101), Fingerprint(7, 0, "REDUCE", empty=True), "collective-order-skew"),
        (shaped(1, 4), None, "collective-op-mismatch"),
        (
            Fingerprint(1, 1, "BARRIER", empty=True),
            Fingerprint(2, 0, "BARRIER", empty=True),
            "debug-tool-artifact",
        ),
    ],
    ids=["op", "shape", "dtype", "apart", "empty", "cut", "barriers"],
)
def test_what_the_check_of_collectives_found(
    here: Fingerprint, there: Fingerprint | None, cls: str
) -> None:
    finding = found(mismatch(here, there))[cls]
    assert finding.culprits == ()


def test_the_one_fingerprint_that_differs_from_all_others_is_named() -> None:
    events = [mismatch(shaped(rank, 4), shaped(3, 4, "BROADCAST")) for rank in range(3)]
    assert named(found(world(4), *events)["collective-op-mismatch"]) == [3]


# Flight recorder


def report(**more: object) -> FlightReport:
    values: dict[str, object] = {
        "seq": 39,
        "group": "0:default_pg",
        "op": "nccl:all_reduce",
        **more,
    }
    return FlightReport(at=where("Collective 39 at entry 38 errors"), **values)  # type: ignore[arg-type]


def test_ranks_whose_size_differs_from_most_are_named() -> None:
    wrong = tuple((rank, "SIZE_OR_SYNTAX_MISMATCH", "…") for rank in (22, 110))
    finding = found(report(culprits=wrong, world=128))["collective-shape-mismatch"]
    assert (named(finding), finding.weight) == ([22, 110], Weight.OUTRIGHT)


def test_where_most_differ_from_the_rank_it_measured_by_nobody_is_named() -> None:
    wrong = tuple((rank, "COLLECTIVE_TYPE_MISMATCH", "…") for rank in (1, 2, 3))
    assert not found(report(culprits=wrong, world=4))["collective-op-mismatch"].culprits


def test_states_that_differ_near_a_hang_are_no_fault() -> None:
    wrong = ((1, "COLLECTIVE_STATE_MISMATCH", "…"),)
    assert found(report(culprits=wrong, world=4)) == {}


def test_ranks_that_the_flight_recorder_misses_are_named() -> None:
    finding = found(report(missing=(3, 4), expected=tuple(range(8))))["missing-rank"]
    assert named(finding) == [3, 4]
    assert finding.collective is not None
    assert finding.collective.missing_ranks == (3, 4)


def test_a_rank_that_waits_in_one_group_is_not_to_blame_in_another() -> None:
    one = report(missing=(1,), expected=(0, 1))
    other = report(missing=(2,), expected=(1, 2), group="5:mesh_tp")
    blamed = {rank for rule in RULES for f in rule(join(traces(one, other))) for rank in named(f)}
    assert blamed == {2}


# Missing ranks by other words


def test_horovod_tells_who_is_not_ready_below_the_highest_ready_rank() -> None:
    stall = HorovodStall(at=where("Stalled ops"), ready=(5, 1, 4, 7, 2, 3), tensors=("a",))
    assert named(found(stall)["missing-rank"]) == [0, 6]


def test_horovod_names_nobody_where_different_tensors_miss_different_ranks() -> None:
    stalls = [HorovodStall(at=where("…"), ready=ready) for ready in ((1, 3), (0, 2, 3))]
    assert found(*stalls)["missing-rank"].culprits == ()


def test_the_ranks_that_a_monitored_barrier_lists_are_named() -> None:
    event = MonitoredBarrier(at=where("Ranks 4, 5 failed to pass"), late=(4, 5), group_rank=0)
    assert named(found(event)["missing-rank"]) == [4, 5]


def test_where_to_read_on_is_no_accusation() -> None:
    event = MonitoredBarrier(at=where("check rank 0 logs", rank=3), reached=3)
    assert found(event)["missing-rank"].culprits == ()


def test_the_lagging_ranks_of_a_desync_report_are_named() -> None:
    event = Desync(at=where("ranks [1, 3] are the lagging ranks"), lagging=(1, 3))
    assert named(found(event)["missing-rank"]) == [1, 3]


def test_a_process_that_ras_calls_dead_is_named_by_host_and_rank() -> None:
    event = RasComm(
        at=where("1 job process is considered dead"),
        comm_id=None,
        errors=("DEAD",),
        dead=True,
        processes=(RasProcess(1003, "10.0.0.4", "3"),),
    )
    at = where("OOB eth0:10.0.0.4<0>", host="n4", pid=1003)
    address = NcclAddress(at=at, interface="eth0", address="10.0.0.4")
    finding = found(event, address, init(3, 8, host="n4"))["peer-died"]
    (culprit,) = finding.culprits
    assert (culprit.rank, culprit.host, culprit.pid) == (3, "n4", 1003)


def test_a_rank_that_ras_has_no_data_of_is_told_and_not_named() -> None:
    gone = (RasRank(21, node="10.0.0.4"),)
    event = RasComm(at=where("INCOMPLETE"), comm_id="a", errors=("INCOMPLETE",), missing=gone)
    finding = found(event)["missing-rank"]
    assert finding.culprits == ()
    assert finding.collective is not None
    assert finding.collective.missing_ranks == (21,)


def dump(rank: int, enqueued: int, completed: int) -> DumpSignal:
    return DumpSignal(
        at=where("Received a dump signal", rank=rank),
        group_rank=rank,
        group=DEFAULT_PG,
        enqueued=enqueued,
        completed=completed,
    )


def test_a_rank_that_had_launched_nothing_of_what_others_wait_in_never_came() -> None:
    waiting = [timed_out(rank, 137) for rank in (0, 1, 2)]
    finding = found(world(8), *waiting, dump(5, 136, 136))["missing-rank"]
    assert named(finding) == [5]


def test_a_rank_that_waits_in_another_group_is_not_behind_by_its_own_fault() -> None:
    waiting = [timed_out(rank, 137) for rank in (0, 1, 2)]
    elsewhere = replace(timed_out(5, 3, group=Group(id=4, guid="9")), group_rank=1)
    assert "missing-rank" not in found(world(8), *waiting, dump(5, 136, 136), elsewhere)


def test_an_idle_default_group_says_nothing_of_a_timeout_in_another_one() -> None:
    events = (dump(5, 136, 136), timed_out(2, 40, group=Group(id=4, guid="9")))
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_counts_that_differ_at_one_look_name_nobody() -> None:
    comm = RasComm(
        at=where("MISMATCH"),
        comm_id="fa",
        errors=("MISMATCH",),
        op="AllGather",
        counts=((30, 640), (2, 641)),
        ranks=(RasRank(12), RasRank(13)),
    )
    finding = found(comm)["ras-count-skew"]
    assert (finding.culprits, finding.weight) == ((), Weight.SYMPTOM)


# Data


def epoch_done(rank: int, **more: Any) -> ProgramSays:
    at = where(f"Worker {rank} completed its entire epoch", **more)
    return ProgramSays(at=at, closing=Closing.EPOCH_DONE, rank=rank)


def test_a_worker_at_the_end_of_its_data_while_others_wait() -> None:
    events = [epoch_done(0), *(timed_out(rank, 9) for rank in (1, 2))]
    assert named(found(*events)["data-exhausted"]) == [0]


def test_a_worker_at_the_end_of_its_data_and_then_a_person() -> None:
    assert named(found(epoch_done(0), Interrupted(at=where("^C")))["data-exhausted"]) == [0]


def test_workers_that_all_come_to_the_end_are_no_fault() -> None:
    events = [*(epoch_done(rank) for rank in range(2)), Interrupted(at=where("^C"))]
    assert found(*events)["data-exhausted"].culprits == ()


def test_a_worker_that_makes_steps_after_its_epoch_went_on() -> None:
    events = [epoch_done(0), Step(at=where("step 5"), done=5), timed_out(1, 9)]
    assert "data-exhausted" not in found(*events)


def test_an_iterator_at_its_end_that_nobody_caught_names_nobody_alone() -> None:
    at = where("StopIteration", rank=3)
    events = (
        PyException(at=at, name="StopIteration", message=""),
        ProgramSays(at=at, closing=Closing.OUT_OF_DATA),
    )
    assert found(*events)["data-exhausted"].culprits == ()
    assert named(found(*events, timed_out(1, 9))["data-exhausted"]) == [3]
    assert "data-exhausted" not in found(events[1])


# Host work


def phase(doing: Doing = Doing.EVALUATING, *, over: bool = False, **more: Any) -> Phase:
    return Phase(at=where("Evaluating bbox...", **more), doing=doing, over=over)


def test_the_rank_that_evaluated_while_the_others_waited_is_named() -> None:
    events = [phase(rank=2), *(timed_out(rank, 9) for rank in (1, 3))]
    finding = found(*events)["host-work-exceeds-timeout"]
    assert named(finding) == [2]
    assert finding.shown[0].at.text == "Evaluating bbox..."


def test_a_line_without_a_rank_is_nobodys_though_one_rank_alone_is_silent() -> None:
    events = [phase(), *(timed_out(rank, 9) for rank in (1, 2, 3))]
    assert named(found(*events)["host-work-exceeds-timeout"]) == []


def test_in_several_logs_an_unmarked_line_is_nobodys() -> None:
    events = [phase(), *(timed_out(rank, 9) for rank in (1, 3))]
    finding = found(*events, sources=["train.log", "rank5.log"])["host-work-exceeds-timeout"]
    assert finding.culprits == ()


def test_a_hole_in_the_log_may_hold_the_end_of_the_evaluation() -> None:
    events = [phase(), *(timed_out(rank, 9) for rank in (1, 3))]
    holed = Source(name="train.log", unread=((100, 10),))
    assert found(*events, sources=[holed])["host-work-exceeds-timeout"].culprits == ()


def test_an_evaluation_of_a_rank_that_waits_itself_explains_nothing() -> None:
    events = [phase(), *(timed_out(rank, 9) for rank in (0, 1, 3))]
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_an_evaluation_that_is_over_explains_nothing() -> None:
    events = [phase(), phase(over=True), *(timed_out(rank, 9) for rank in (1, 3))]
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_a_step_after_the_evaluation_ends_it() -> None:
    events = [phase(), Step(at=where("step 9"), done=9), *(timed_out(rank, 9) for rank in (1, 3))]
    assert set(found(*events)) == {"watchdog-timeout-unattributed"}


def test_the_bar_of_the_evaluation_itself_does_not_end_it() -> None:
    training = Step(at=where("40%| 400/1000"), done=400, total=1000)
    begun, later = phase(), where("a bar")
    waits = [timed_out(rank, 9) for rank in (1, 3)]
    own = Step(at=later, done=31, total=67)
    assert "host-work-exceeds-timeout" in found(training, begun, own, *waits)
    full = replace(own, done=67)
    assert "host-work-exceeds-timeout" not in found(training, begun, full, *waits)
    moved = replace(training, at=later, done=410)
    assert "host-work-exceeds-timeout" not in found(training, begun, moved, *waits)


def test_data_that_one_process_prepares_for_all_are_host_work_even_at_the_start() -> None:
    events = [phase(Doing.PREPARING), *(timed_out(rank, 1) for rank in (1, 3))]
    assert found(*events)["host-work-exceeds-timeout"].culprits == ()


def test_loading_before_the_first_collective_is_a_late_start() -> None:
    events = [phase(Doing.LOADING), *(timed_out(rank, 1) for rank in (1, 3))]
    finding = found(*events)["startup-skew"]
    assert finding.culprits == ()
    assert "first-collective-stuck" in finding.explains


def test_every_rank_loads_so_an_unmarked_line_of_it_is_nobodys() -> None:
    events = [phase(Doing.LOADING), *(timed_out(rank, 9) for rank in (1, 3))]
    assert found(*events)["host-work-exceeds-timeout"].culprits == ()


def test_a_phase_long_before_the_others_began_to_wait_explains_nothing() -> None:
    early, late = phase(seconds=0), phase(seconds=8_000)
    waits = [timed_out(rank, 9, seconds=9_000) for rank in (1, 3)]
    assert "host-work-exceeds-timeout" not in found(early, *waits)
    assert "host-work-exceeds-timeout" in found(late, *waits)


# Timeouts that stay unexplained


def test_a_timeout_alone_names_nobody() -> None:
    (finding,) = found(
        timed_out(118, 2_398_459), status(118, 2_398_459, 2_398_578, 2_398_458)
    ).values()
    assert (finding.cls, finding.culprits) == ("watchdog-timeout-unattributed", ())
    assert finding.collective is not None
    assert (finding.collective.seq, finding.collective.group) == (2_398_459, "default_pg")
    assert len(finding.shown) == 2


def test_a_stack_of_the_failed_collective_alone_is_a_timeout() -> None:
    stack = FailedStack(
        at=where("Stack trace of the failed collective"), frames=("broadcast at x",)
    )
    finding = found(stack)["watchdog-timeout-unattributed"]
    assert finding.collective is not None
    assert finding.collective.op == "broadcast"


def test_what_the_watchdog_says_after_an_error_is_no_timeout() -> None:
    down = TakenDown(at=where("To avoid data inconsistency, we are taking the entire process down"))
    error = NcclError(at=where("NCCL error in: …"), result="ncclRemoteError")
    assert set(found(down)) == {"watchdog-timeout-unattributed"}
    assert found(error, down, status(0, 9, 9, 8)) == {}


def test_a_wait_over_gloo_that_ended_is_a_timeout() -> None:
    event = GlooError(at=where("Timed out waiting 1800000ms"), kind=GlooTrouble.TIMED_OUT)
    assert set(found(event)) == {"watchdog-timeout-unattributed"}


def test_the_first_operation_of_a_group_that_never_ended() -> None:
    events = [timed_out(rank, 1, "ALLGATHER", group=None) for rank in (1, 4)]
    assert found(*events)["first-collective-stuck"].culprits == ()


def test_a_later_operation_is_not_the_first() -> None:
    assert "first-collective-stuck" not in found(timed_out(0, 2), timed_out(1, 1, "BROADCAST"))


def test_no_parameters_from_the_other_side_means_that_nothing_arrived() -> None:
    event = ParamsDiffer(at=where("inconsistent 0 params"), rank=3, other=0, none_there=True)
    assert found(event)["first-collective-stuck"].culprits == ()


def test_a_stuck_watchdog_names_nobody_even_where_queues_differ() -> None:
    beats = [
        Heartbeat(at=where("Heartbeat monitor", rank=rank), pending=pending)
        for rank, pending in ((0, 84), (1, 103), (2, 103))
    ]
    assert found(*beats)["heartbeat-unattributed"].culprits == ()


def test_a_healthy_log_gives_no_finding() -> None:
    assert found(Step(at=where("step 5"), done=5), phase(), status(0, None, 5, 5)) == {}


# NCCL's lines of calls


def called(
    rank: int, ops: list[Call], *, nranks: int = 4, stream: str = "0x1", moves: bool = True
) -> CommCalls:
    pid = 1000 + rank
    lines = [
        where(f"opCount 0 {n} stream {stream}", host="node-a", pid=pid) for n, _ in enumerate(ops)
    ]
    return CommCalls(
        at=lines[-1],
        comm=f"0x{rank + 1:x}",
        nranks=nranks,
        collectives=len(ops),
        last=tuple(ops),
        last_at=tuple(lines),
        first_at=lines[0],
        op_count_moves=moves,
    )


def call(op: str = "AllReduce", count: int = 64, *, root: int = 0, redop: int = 0) -> Call:
    return Call(op, count, 7, redop, root, 0)


def comms(*tables: list[Call], **more: object) -> list[Event]:
    inits: list[Event] = [init(rank, len(tables)) for rank in range(len(tables))]
    return [
        *inits,
        *(called(rank, ops, nranks=len(tables), **more) for rank, ops in enumerate(tables)),  # type: ignore[arg-type]
    ]


SAME = [call(), call("Broadcast"), call(count=8)]


def test_calls_that_agree_give_no_finding_wherever_each_log_ends() -> None:
    assert found(*comms(SAME, SAME[:2], SAME, SAME)) == {}


def test_one_rank_of_four_that_called_another_operation_is_named() -> None:
    other = [call(), call("Reduce"), call(count=8)]
    finding = found(*comms(SAME, SAME, other, SAME))["collective-op-mismatch"]
    assert named(finding) == [2]
    assert finding.collective is not None
    assert finding.collective.seq == 2


def test_roots_must_agree_and_user_reductions_need_not() -> None:
    roots = [[call("Broadcast", root=rank)] for rank in (0, 0, 1)]
    assert "collective-op-mismatch" in found(*comms(*roots))
    handles = [[call(redop=5 + rank), call()] for rank in range(3)]
    assert found(*comms(*handles)) == {}


def test_counts_that_differ_in_one_call() -> None:
    wrong = [call(), call("Broadcast", 65), call(count=8)]
    assert named(found(*comms(SAME, SAME, wrong))["collective-shape-mismatch"]) == [2]


def test_a_rank_with_one_call_more_is_out_of_order_and_nobody_is_named() -> None:
    early = [call(), call("Broadcast"), call(count=8), call("AllGather")]
    late = [call(), call("Reduce", 3), call("Broadcast"), call(count=8)]
    finding = found(*comms(early, early, late))["collective-order-skew"]
    assert finding.culprits == ()


def test_several_streams_on_one_communicator_out_of_order_are_concurrent_use() -> None:
    early = [call(), call("Broadcast"), call(count=8)]
    late = [call(), call(count=8), call("Broadcast")]
    events = comms(early, early, late)
    last = events[-1]
    assert isinstance(last, CommCalls)
    first, second, third = last.last_at
    streams = (first, replace(second, text="opCount 0 stream 0x2"), third)
    events[-1] = replace(last, last_at=streams)
    assert found(*events)["concurrent-use"].culprits == ()


def test_a_counter_that_stays_at_0_tells_nothing() -> None:
    events = [called(rank, SAME[: 3 - rank], nranks=2, moves=False) for rank in range(2)]
    finding = found(*events)["opcount-not-usable"]
    assert (finding.weight, finding.culprits) == (Weight.NOTE, ())


def test_a_communicator_of_one_process_needs_no_counter() -> None:
    assert found(called(0, SAME, nranks=1, moves=False)) == {}


def test_ranks_that_made_one_call_and_no_more_may_be_stuck_in_it() -> None:
    finding = found(*comms([call()], [call()]))["first-collective-stuck"]
    assert (finding.weight, finding.culprits) == (Weight.NOTE, ())


def test_sends_and_receives_that_are_not_as_many_at_a_standstill() -> None:
    sender = replace(called(0, [call()], nranks=2), sends=((1, 5),))
    receiver = replace(called(1, [call()], nranks=2), receives=((0, 4),))
    both = [init(0, 2), init(1, 2), sender, receiver]
    assert "unmatched-p2p" not in found(*both)
    assert found(*both, timed_out(0, 9))["unmatched-p2p"].culprits == ()
