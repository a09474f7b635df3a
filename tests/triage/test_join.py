"""Ranks, hosts, attempts and groups, joined over sources."""

from dataclasses import replace

import pytest

from slurmtop.model.events.launch import ElasticFailure, WorkersRestart
from slurmtop.model.events.nccl import CommCalls, InitPhase, NcclAddress, NcclVersion
from slurmtop.model.events.program import RankSeen
from slurmtop.model.events.torch import DumpSignal, Fingerprint, Group, RunningCollective
from slurmtop.model.trace import Source, Traces
from slurmtop.triage.join import join
from slurmtop.triage.picture import GroupView, Picture
from tests.triage.traces import DEFAULT_PG, calls, init, status, timed_out, traces, where


def view(picture: Picture, key: str) -> GroupView:
    (found,) = [group for group in picture.groups if group.key == key]
    return found


# Ranks


def test_a_process_without_a_tag_has_its_rank_from_the_largest_communicator() -> None:
    banner = NcclVersion(at=where("NCCL version 2.27", host="n1", pid=7), version="2.27")
    small = init(0, 2, host="n1", pid=7, comm="0x9", comm_id="55")
    picture = join(traces(banner, small, init(5, 8, host="n1", pid=7)))
    assert picture.rank_of(banner.at) == 5
    assert picture.rank_hosts == {5: "n1"}


def test_a_tag_wins_over_the_communicator_of_its_process() -> None:
    line = NcclVersion(at=where("[rank9]: NCCL …", rank=9, host="n1", pid=7), version="2.27")
    later = NcclVersion(at=where("NCCL …", host="n1", pid=7), version="2.27")
    picture = join(traces(line, later, init(1, 8, host="n1", pid=7)))
    assert picture.rank_of(line.at) == 9
    assert picture.rank_of(later.at) == 9


def test_two_tags_of_one_process_leave_its_other_lines_without_a_rank() -> None:
    events = [
        NcclVersion(at=where("…", host="n1", pid=7, rank=rank), version="2") for rank in (3, 4)
    ]
    bare = NcclVersion(at=where("…", host="n1", pid=7), version="2")
    picture = join(traces(*events, bare))
    assert picture.rank_of(bare.at) is None
    assert picture.rank_of(events[0].at) == 3


def test_two_processes_with_one_rank_of_the_largest_communicator_have_none_by_it() -> None:
    events = [init(0, 4, host="n1", pid=pid, comm_id=f"a{pid}") for pid in (1, 2)]
    picture = join(traces(*events))
    assert [picture.rank_of(event.at) for event in events] == [None, None]


def test_labels_of_srun_are_ranks_where_a_label_above_0_stands_beside_that_rank() -> None:
    tied = NcclVersion(at=where("11: [rank11]: …", rank=11, task=11), version="2")
    bare = NcclVersion(at=where("3: …", task=3), version="2")
    assert join(traces(tied, bare)).rank_of(bare.at) == 3


@pytest.mark.parametrize(("task", "rank"), [(0, 0), (1, 8)])
def test_labels_of_srun_may_as_well_be_nodes(task: int, rank: int) -> None:
    tied = NcclVersion(at=where("…", rank=rank, task=task), version="2")
    bare = NcclVersion(at=where("3: …", task=3), version="2")
    assert join(traces(tied, bare)).rank_of(bare.at) is None


def test_hosts_of_ranks_come_from_torchrun_too_and_a_rank_on_two_hosts_has_none() -> None:
    told = [
        ElasticFailure(at=where("rank : 3"), rank=3, host="n1"),
        ElasticFailure(at=where("rank : 4"), rank=4, host="n1"),
        ElasticFailure(at=where("rank : 4"), rank=4, host="n2"),
    ]
    assert join(traces(*told)).rank_hosts == {3: "n1"}


def test_a_world_told_in_two_ways_is_not_known() -> None:
    one = RankSeen(at=where("world 8"), world=8)
    assert join(traces(one)).world_size == 8
    assert join(traces(one, RankSeen(at=where("world 4"), world=4))).world_size is None


# Hosts


def test_an_address_is_called_by_the_host_that_listens_on_it() -> None:
    at = where("Bootstrap : Using eth0:10.0.0.1<0>", host="node-a", pid=1)
    picture = join(traces(NcclAddress(at=at, interface="eth0", address="10.0.0.1")))
    assert picture.name_of("10.0.0.1") == "node-a"


def test_an_address_that_two_hosts_have_is_nobodys() -> None:
    events = [
        NcclAddress(at=where("…", host=host, pid=1), interface="br0", address="192.168.0.1")
        for host in ("a", "b")
    ]
    assert join(traces(*events)).name_of("192.168.0.1") == "192.168.0.1"


def test_a_full_name_and_its_short_one_are_one_host() -> None:
    long = ElasticFailure(at=where("host : n1.cluster"), rank=3, host="n1.cluster")
    picture = join(traces(long, init(3, 4, host="n1")))
    assert picture.name_of("n1.cluster") == "n1"
    assert picture.rank_hosts == {3: "n1"}


def test_one_short_name_of_two_domains_stays_two_hosts() -> None:
    events = [
        ElasticFailure(at=where("…"), rank=n, host=f"n1.{domain}")
        for n, domain in enumerate(("east", "west"))
    ]
    picture = join(traces(*events))
    assert picture.name_of("n1.east") == "n1.east"


def test_names_that_look_alike_are_not_one_host() -> None:
    picture = join(traces(init(0, 2, host="node48"), init(1, 2, host="node-48")))
    assert picture.name_of("node48") != picture.name_of("node-48")


def test_a_collectors_label_beside_the_hosts_own_name_ties_them() -> None:
    picture = join(traces(init(0, 2, host="node48", label="10.0.0.48")))
    assert picture.name_of("10.0.0.48") == "node48"


def test_a_host_is_called_by_the_name_under_which_its_launcher_reaches_it() -> None:
    picture = join(traces(init(0, 2, host="vm-14", label="node-a")))
    assert picture.name_of("vm-14") == picture.name_of("node-a") == "node-a"


def test_a_host_with_two_labels_is_called_by_none_of_them() -> None:
    picture = join(traces(*(init(n, 2, host="n1", label=f"worker-{n}") for n in range(2))))
    assert picture.name_of("worker-0") == "worker-0"


def test_dotted_addresses_are_not_shortened() -> None:
    picture = join(traces(init(0, 2, host="10.0.0.7")))
    assert picture.name_of("10.0.0.7") == "10.0.0.7"


# Attempts


def test_what_an_earlier_attempt_left_is_history() -> None:
    old = replace(timed_out(0), at=where("old", rank=0, attempt=0))
    restart = WorkersRestart(at=where("2/3 attempts left"))
    new = NcclVersion(at=where("NCCL version", attempt=1), version="2.27")
    picture = join(traces(old, restart, new))
    assert picture.attempt == 1
    assert picture.of(type(old)) == ()
    assert picture.groups == ()


def test_an_attempt_that_left_only_the_launchers_words_is_not_the_newest() -> None:
    old = timed_out(0)
    last = ElasticFailure(at=where("exitcode : -6", attempt=1), rank=0, exit_code=-6)
    assert join(traces(old, last)).of(type(old)) == (old,)


def test_a_source_that_tells_of_no_restart_keeps_its_lines() -> None:
    launcher = NcclVersion(at=where("…", source="job.log", attempt=2), version="2")
    rank = timed_out(0, source="rank0.log")
    assert join(traces(launcher, rank)).of(type(rank)) == (rank,)


# Groups of PyTorch


def test_places_are_joined_by_the_name_of_the_group() -> None:
    picture = join(traces(timed_out(0, 6), status(0, 6, 9, 5), timed_out(3, 6)))
    group = view(picture, "0")
    assert (group.world, group.desc) == (True, "default_pg")
    assert [(p.rank, p.timed_out, p.enqueued, p.completed) for p in group.places] == [
        (0, 6, 9, 5),
        (3, 6, None, None),
    ]


def test_a_timeout_without_a_group_takes_that_of_the_status_behind_it() -> None:
    group = Group(id=4, guid="20", desc="mesh_tp")
    picture = join(
        traces(
            timed_out(15, 3, "BROADCAST", group=None, group_rank=1),
            replace(status(15, 3, 3, 2, group=group), group_rank=1),
        )
    )
    (place,) = view(picture, "20").places
    assert (place.rank, place.global_rank, place.op) == (1, 15, "broadcast")


def test_a_timeout_cut_before_its_status_is_in_the_default_group_at_the_same_high_position() -> (
    None
):
    picture = join(
        traces(
            timed_out(0, 4_832, group=None),
            status(0, 4_832, 4_832, 4_831),
            timed_out(5, 4_832, "BROADCAST", group=None),
        )
    )
    assert [place.rank for place in view(picture, "0").places] == [0, 5]


def test_a_low_position_ties_no_group() -> None:
    picture = join(
        traces(timed_out(0, 3, group=None), status(0, 3, 3, 2), timed_out(5, 3, group=None))
    )
    assert [place.rank for place in view(picture, "0").places] == [0]


def test_one_rank_at_several_positions_without_a_name_means_several_groups() -> None:
    events = [timed_out(0, seq, group=None) for seq in (96_120, 96_117)]
    assert join(traces(*events, timed_out(7, 64_088, group=None))).groups == ()


def test_a_name_that_two_ranks_share_with_one_group_rank_is_that_of_several_groups() -> None:
    group = Group(id=3, guid="mesh_tp")
    events = [timed_out(rank, 3, group=group, group_rank=1) for rank in (1, 9)]
    assert join(traces(*events)).groups == ()


def test_an_id_without_a_name_counts_the_groups_of_one_process_only() -> None:
    events = [timed_out(rank, 3, group=Group(id=2)) for rank in (0, 1)]
    assert [len(group.places) for group in join(traces(*events)).groups] == [1, 1]


def test_the_first_group_of_a_process_is_the_default_one() -> None:
    events = [timed_out(rank, 3, group=Group(id=0)) for rank in (0, 1)]
    assert [place.rank for place in view(join(traces(*events)), "0").places] == [0, 1]


def test_the_size_of_a_group_follows_from_a_gather_of_equal_parts() -> None:
    event = replace(timed_out(2, 5, "_ALLGATHER_BASE"), numel_in=10, numel_out=80)
    assert view(join(traces(event)), "0").size == 8


def test_the_status_of_every_half_a_minute_is_no_place() -> None:
    picture = join(traces(timed_out(0, 9), status(1, None, 3, 3)))
    assert [place.rank for place in view(picture, "0").places] == [0]


def test_a_dump_signal_is_a_place() -> None:
    signal = DumpSignal(
        at=where("…", rank=5), group_rank=5, group=DEFAULT_PG, enqueued=136, completed=136
    )
    (place,) = view(join(traces(signal)), "0").places
    assert (place.enqueued, place.completed, place.timed_out) == (136, 136, None)


def test_sends_and_receives_count_apart() -> None:
    picture = join(traces(timed_out(0, 6), timed_out(1, 6, "SEND")))
    assert {group.key: len(group.places) for group in picture.groups} == {"0": 1, "0 pairs": 1}


def test_fingerprints_stand_where_each_rank_is_last() -> None:
    events = [
        RunningCollective(
            at=where("…"), group_rank=rank, print=Fingerprint(rank, seq, "ALLREDUCE", "1")
        )
        for rank, seq in ((0, 3), (1, 3), (0, 4))
    ]
    group = view(join(traces(*events)), "fingerprints")
    assert [(place.rank, place.enqueued) for place in group.places] == [(0, 4), (1, 3)]


# Communicators


def called(
    rank: int, ops: list[str], *, first: str = "opCount 0 sendbuff", **more: object
) -> CommCalls:
    pid = 1000 + rank
    lines = [where(f"AllReduce: {first} {n}", host="node-a", pid=pid) for n in range(len(ops))]
    values: dict[str, object] = {
        "at": lines[-1],
        "comm": f"0x{rank + 1:x}",
        "nranks": 4,
        "collectives": len(ops),
        "last": calls(ops)[-64:],
        "last_at": tuple(lines)[-64:],
        "first_at": lines[0],
        **more,
    }
    return CommCalls(**values)  # type: ignore[arg-type]


def test_calls_are_counted_by_line_on_the_communicator_of_their_id() -> None:
    events = [init(rank, 4) for rank in range(2)]
    picture = join(traces(*events, called(0, ["AllReduce"] * 3), called(1, ["AllReduce"] * 2)))
    group = view(picture, "ab12")
    assert [(p.rank, p.enqueued, p.op) for p in group.places] == [
        (0, 3, "allreduce"),
        (1, 2, "allreduce"),
    ]
    assert group.from_calls


def test_a_log_that_begins_in_the_middle_has_no_positions() -> None:
    late = called(1, ["AllReduce"] * 2, first="opCount 4b2 sendbuff")
    picture = join(traces(init(0, 4), init(1, 4), called(0, ["AllReduce"]), late))
    assert [place.enqueued for place in view(picture, "ab12").places] == [None, None]


def test_a_hole_among_the_calls_leaves_no_positions() -> None:
    own = called(0, ["AllReduce"] * 3)
    assert own.first_at is not None
    source = Source(name="train.log", unread=((own.first_at.offset + 1, 50),))
    picture = join(traces(init(0, 4), own, sources=[source]))
    assert view(picture, "ab12").places[0].enqueued is None


def test_a_split_has_the_key_of_its_parent_with_number_and_colour() -> None:
    events = [init(rank, 4) for rank in range(2)]
    events += [
        replace(
            init(rank, 2, comm=f"0x{rank + 9:x}", comm_id=None, pid=1000 + rank),
            parent=f"0x{rank + 1:x}",
            split=1,
            color=0,
        )
        for rank in range(2)
    ]
    group = view(join(traces(*events)), "ab12/1/0")
    assert (group.size, [place.rank for place in group.places]) == (2, [0, 1])


def test_a_pointer_is_used_again_after_its_communicator_was_destroyed() -> None:
    events = [
        init(0, 4, comm_id="aa"),
        init(0, 4, comm_id="aa", phase=InitPhase.DESTROYED),
        init(0, 4, comm_id="bb"),
    ]
    assert [group.key for group in join(traces(*events)).groups] == ["aa", "bb"]


def test_without_an_id_the_size_ties_only_ranks_that_do_not_clash() -> None:
    one = [init(rank, 16, comm_id=None) for rank in range(3)]
    assert view(join(traces(*one)), "nranks=16").complete == (0, 1, 2)
    again = init(0, 16, comm_id=None, pid=9)
    assert join(traces(*one, again)).groups == ()


def test_ranks_that_began_and_ranks_that_are_complete_are_told_apart() -> None:
    events = [init(rank, 4, phase=InitPhase.START) for rank in range(2)]
    group = view(join(traces(*events, init(0, 4))), "ab12")
    assert (group.started, group.complete) == ((0, 1), (0,))


# Order


def test_the_earliest_event_is_told_by_the_clock_across_sources() -> None:
    late = timed_out(0, source="a.log", seconds=50)
    early = timed_out(1, source="b.log", seconds=40)
    assert join(traces(late, early)).earliest((late, early)) == early


def test_stamps_with_and_without_a_zone_are_not_compared() -> None:
    one = timed_out(0, source="a.log", seconds=50, zoned=True)
    other = timed_out(1, source="b.log", seconds=40)
    picture = join(traces(one, other))
    assert picture.before(other.at, one.at) is None
    assert picture.earliest((one, other)) == one


def test_nothing_gives_an_empty_picture() -> None:
    picture = join(Traces())
    assert (picture.groups, picture.world_size, picture.attempt) == ((), None, 0)
    assert picture.earliest(()) is None


def test_the_largest_communicator_is_the_world_where_the_default_group_was_called_on() -> None:
    set_up = [init(n, 2, pid=1000 + n) for n in range(2)]
    assert join(traces(*set_up)).world_size is None
    assert join(traces(*set_up, timed_out(0), timed_out(1))).world_size == 2
    assert join(traces(*set_up, timed_out(0), timed_out(5))).world_size is None
