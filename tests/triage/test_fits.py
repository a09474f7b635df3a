"""Where a wish fits: what is free, what will be, and why the rest cannot."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import Job, LimitKind, TimeLimit
from slurmtop.model.node import Node
from slurmtop.triage.fits import Chance, NodeChance, Wish, find_fit, node_chance, parse_wish
from tests.build import make_job, make_node
from tests.fakes import START

EIGHT = Wish(nodes=1, gpus=8)


def wish(text: str, *nodes: Node) -> Wish:
    found = parse_wish(text, nodes)
    assert isinstance(found, Wish), found
    return found


def test_a_wish_is_read_with_type_and_partition() -> None:
    nodes = [make_node(partitions=("gpu", "long")), make_node("b", gres="gpu:A100:4", used="")]
    assert wish("4x8", *nodes) == Wish(nodes=4, gpus=8)
    assert wish(" 2 X 4 a100 long ", *nodes) == Wish(nodes=2, gpus=4, type="A100", partition="long")
    assert wish("1x1 part:gpu type:h100", *nodes).text == "1x1 h100 gpu"


def test_a_name_that_is_both_is_a_type_until_it_is_called_a_partition() -> None:
    nodes = [make_node(partitions=("h100",))]
    assert wish("1x8 h100", *nodes).type == "h100"
    assert wish("1x8 part:h100", *nodes).partition == "h100"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nodes x GPUs a node is wanted"),
        ("4", "nodes x GPUs a node is wanted"),
        ("4x8x2", "nodes x GPUs a node is wanted"),
        ("0x8", "at least one node"),
        ("4x8 h10", "did you mean 'h100'?"),
        ("4x8 nothing", "there are: gpu, h100"),
        ("4x8 h100 type:h100", "one GPU type is enough"),
        ("4x8 part:h100", "no GPU type or partition 'part:h100'"),
    ],
)
def test_what_is_no_wish_is_told(text: str, says: str) -> None:
    found = parse_wish(text, [make_node()])
    assert isinstance(found, str)
    assert says in found


@given(st.text())
def test_any_wish(text: str) -> None:
    found = parse_wish(text, [make_node()])
    if isinstance(found, Wish):
        find_fit(found, [make_node()])


def test_it_fits_now_and_the_nodes_are_named() -> None:
    nodes = [make_node(f"gpu{n:02}") for n in range(1, 6)]
    fit = find_fit(wish("4x8", *nodes), nodes)
    assert fit.fits_now
    assert fit.best is not None
    assert [node.name for node in fit.best.chosen] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert "4 nodes of 8 GPUs would fit now in gpu, 5 could take a share" in fit.says


def test_nodes_of_two_partitions_do_not_add_up() -> None:
    nodes = [make_node("a", partitions=("one",)), make_node("b", partitions=("two",))]
    fit = find_fit(wish("2x8", *nodes), nodes)
    assert not fit.fits_now
    assert "do not fit" in fit.says
    assert [one.partition for one in fit.partitions] == ["one", "two"]
    wide = [*nodes, make_node("c", partitions=("two",))]
    assert find_fit(wish("2x8", *wide), wide).says.startswith(
        "2 nodes of 8 GPUs would fit now in t"
    )


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("drained", "drained"),
        ("draining", "drained"),
        ("down*", "does not respond"),
        ("idle*", "does not respond"),
        ("down", "down"),
        ("maint", "in maintenance"),
        ("idle$", "in maintenance"),
        ("reserved", "reserved"),
        ("reboot^", "rebooting"),
        ("idle%", "powering down"),
        ("inval", "registered with less than is configured"),
        ("future", "not there yet"),
    ],
)
def test_a_state_keeps_jobs_off_however_free_the_node_is(state: str, says: str) -> None:
    chance = node_chance(make_node(state=state), EIGHT)
    assert (chance.chance, chance.says) == (Chance.NO, says)


def test_what_comes_of_itself_is_later_and_not_never() -> None:
    assert node_chance(make_node(state="idle~"), EIGHT).chance is Chance.POWER_UP
    planned = node_chance(make_node(state="planned"), EIGHT)
    assert planned.chance is Chance.LATER or planned.chance is Chance.UNKNOWN
    assert node_chance(make_node(state="idle-"), EIGHT).chance is Chance.LATER
    assert node_chance(make_node(state="completing"), EIGHT).chance is Chance.LATER
    full = node_chance(make_node(state="allocated", used=4), Wish(nodes=1, gpus=4))
    assert (full.chance, full.says) == (Chance.LATER, "4 GPUs free, but no CPU")


def test_never_eight_a_node_assumed() -> None:
    small = make_node(gres="gpu:gb200:4", used="gpu:gb200:0")
    assert node_chance(small, Wish(nodes=1, gpus=4)).chance is Chance.NOW
    eight = node_chance(small, EIGHT)
    assert (eight.chance, eight.says) == (Chance.NO, "has 4 GPUs")


def test_typed_and_untyped_are_never_counted_twice() -> None:
    both = make_node(gres="gpu:4,gpu:h100:4", used="gpu:1,gpu:h100:1")
    assert both.gpus() == (4, 1)
    assert node_chance(both, EIGHT).says == "has 4 GPUs"
    assert node_chance(both, Wish(nodes=1, gpus=3)).chance is Chance.NOW


def test_mixed_types_on_one_node() -> None:
    mixed = make_node(gres="gpu:a100:4,gpu:h100:4", used="gpu:a100:4(IDX:0-3),gpu:h100:0")

    def four(type: str | None) -> NodeChance:
        return node_chance(mixed, Wish(nodes=1, gpus=4, type=type))

    assert four(None).chance is Chance.NOW
    assert four("H100").chance is Chance.NOW
    assert four("a100").says == "0 of 4 a100 GPUs free"
    other = four("v100")
    assert (other.chance, other.says) == (Chance.NO, "a100, h100, not v100")


def test_the_nodes_of_one_type_are_chosen_and_a_mixture_is_told() -> None:
    nodes = [
        make_node("a1", gres="gpu:a100:8", used="gpu:a100:0"),
        make_node("h1"),
        make_node("h2"),
    ]
    fit = find_fit(wish("2x8", *nodes), nodes)
    assert fit.best is not None
    assert [node.name for node in fit.best.chosen] == ["h1", "h2"]
    assert fit.best.types == (("h100", 2), ("a100", 1))


def test_shards_and_slices_are_no_whole_gpus() -> None:
    shared = make_node(
        gres="gpu:a100:2(S:0),gpu:1g.10gb:7(S:1),shard:a100:16(S:0)",
        used="gpu:a100:0(IDX:N/A),gpu:1g.10gb:3(IDX:2-3,8),shard:a100:6(2/8,4/8)",
    )
    count = shared.gpu_count()
    assert (count.total, count.used, count.shared, count.free) == (2, 0, 2, 0)
    assert node_chance(shared, Wish(nodes=1, gpus=1)).chance is Chance.LATER
    assert node_chance(shared, EIGHT).says == "has 2 GPUs"
    slices = make_node(gres="gpu:1g.10gb:7", used="gpu:1g.10gb:0")
    assert "MIG" in node_chance(slices, Wish(nodes=1, gpus=1)).says
    assert node_chance(make_node(gres="", used=""), EIGHT).says == "no GPUs"


def test_what_is_not_known_stays_unknown() -> None:
    for node in (
        make_node(gres=None),
        make_node(used=""),
        make_node(gres="gpu:h100:8,shard:h100:64", used="gpu:h100:0,shard:h100:3"),
    ):
        assert node_chance(node, EIGHT).chance is Chance.UNKNOWN
    untyped = make_node(gres="gpu:8", used="gpu:0")
    assert node_chance(untyped, Wish(nodes=1, gpus=8, type="h100")).chance is Chance.UNKNOWN
    fit = find_fit(wish("1x8"), [make_node(used="")])
    assert "of some nodes it is not known" in fit.says


def test_lost_gpus_are_not_free() -> None:
    reason = "gres/gpu count reported lower than configured (7 < 8)"
    node = make_node(state="idle", reason=reason)
    assert node.gpu_count().free == 7
    assert node_chance(node, EIGHT).says == "has 8 GPUs, 1 of them lost"
    assert node_chance(node, Wish(nodes=1, gpus=7)).chance is Chance.NOW


def ends(hours: float, **fields: Any) -> Job:
    limit = TimeLimit(LimitKind.SECONDS, int(hours * 3_600))
    end = START + timedelta(hours=hours)
    return make_job(limit=limit, end=end, **fields)


def test_when_there_is_room_at_the_latest() -> None:
    nodes = [make_node("a", "mixed", used=8), make_node("b", "mixed", used=8), make_node("c")]
    jobs = {
        "a": [ends(2, text="1", gpus=4), ends(1, text="2", gpus=4)],
        "b": [ends(5, text="3", gpus=16, node_count=2)],
    }
    fit = find_fit(wish("2x8", *nodes), nodes, lambda name: jobs.get(name, ()))
    assert fit.best is not None
    assert fit.best.by == START + timedelta(hours=2)
    three = find_fit(wish("3x8", *nodes), nodes, lambda name: jobs.get(name, ()))
    assert three.best is not None
    assert three.best.by == START + timedelta(hours=5)
    assert "enough when jobs there have ended" in three.says


def test_an_even_spread_over_nodes_is_not_taken_for_granted() -> None:
    """Slurm may have given 3 and 1: then this node stays short when the job has ended."""
    nodes = [make_node("a", "mixed", used=8), make_node("b", "mixed", used=8)]
    cases = ((ends(1, gpus=4, node_count=2), None), (ends(1, gpus=2, node_count=1), 1))
    for job, hours in cases:
        fit = find_fit(wish("1x2", *nodes), nodes, {"a": [job], "b": []}.__getitem__)
        assert fit.best is not None
        assert fit.best.by == (None if hours is None else START + timedelta(hours=hours))
    # A node of 16 may hold 12 of these, and 4 be here.
    whole = {"a": [ends(1, gpus=16, node_count=2)], "b": [], "c": []}
    nodes.append(make_node("c", "mixed", gres="gpu:h100:16", used=16))
    fit = find_fit(wish("1x8", *nodes), nodes, whole.__getitem__)
    assert fit.best is not None
    assert fit.best.by is None
    unknown = [*nodes[:2], make_node("d", gres=None)]
    fit = find_fit(wish("1x8", *nodes), unknown, lambda _: whole["a"])
    assert fit.best is not None
    assert fit.best.by is None


def test_without_everybodys_jobs_no_time_is_made_up() -> None:
    nodes = [make_node("a", "mixed", used=8)]
    cases: tuple[tuple[Job, ...], ...] = (
        (),
        (ends(1, gpus=4),),
        (ends(1, gpus=9, node_count=2),),
        (make_job(gpus=8),),
    )
    for jobs in cases:
        fit = find_fit(wish("1x8", *nodes), nodes, {"a": jobs}.__getitem__)
        assert fit.best is not None
        assert fit.best.by is None
        assert fit.says.endswith("and not all of those are known")


def test_nodes_that_are_switched_off_count_once_they_have_started() -> None:
    nodes = [make_node("a"), make_node("b", "idle~"), make_node("c", "allocated", used=8)]
    fit = find_fit(wish("2x8", *nodes), nodes)
    assert not fit.fits_now
    assert fit.says.endswith("enough once nodes that are switched off have been started")
