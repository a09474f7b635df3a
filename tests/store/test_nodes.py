"""The rows of the Nodes screen: order, filter, cursor, and what a refresh costs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.node import Node
from slurmtop.parse.slurm.hostlist import expand_hosts
from slurmtop.store.node_query import NODE_KEYS, parse_node_query
from slurmtop.store.nodes import NODE_SORTS, NodeView, count_nodes, natural_name
from tests.build import make_job, make_node

LOST = "gres/gpu count reported lower than configured (7 < 8)"


def view(*nodes: Node) -> NodeView:
    made = NodeView(expand=expand_hosts)
    made.set_nodes(nodes)
    return made


def names(of: NodeView) -> list[str]:
    return [row.name for row in of.rows]


def mixed() -> NodeView:
    return view(
        make_node("gpu10", "mixed", used=3),
        make_node("gpu2", "idle", partitions=("long",)),
        make_node("gpu3", "drained", reason="bad NVLink"),
        make_node("gpu4", "down*", reason="Not responding"),
        make_node("gpu5", "maint"),
        make_node("gpu6", "idle", reason=LOST),
        make_node("gpu7", "idle~"),
        make_node("gpu8", "shining"),
        make_node("gpu9", used=""),
    )


def test_trouble_stands_first_and_names_count_their_numbers() -> None:
    assert names(mixed()) == [
        *("gpu4", "gpu6"),
        "gpu3",
        "gpu8",
        "gpu5",
        *("gpu2", "gpu7", "gpu9", "gpu10"),
    ]


def test_every_order_and_what_is_not_known_last() -> None:
    rows = mixed()
    for sort in NODE_SORTS:
        rows.set_sort(sort)
        assert len(rows.rows) == 9
    rows.set_sort("free")
    assert names(rows)[-1] == "gpu9"
    assert names(rows)[0] == "gpu2"
    rows.set_sort("free", reverse=True)
    assert names(rows)[-1] == "gpu9", "unknown is neither more nor less"
    rows.set_sort("name")
    assert names(rows)[:2] == ["gpu2", "gpu3"]
    with pytest.raises(ValueError, match="no sort order"):
        rows.set_sort("colour")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("nvlink", ["gpu3"]),
        ("state:drain", ["gpu3"]),
        ("state:idle,mixed", ["gpu6", "gpu2", "gpu7", "gpu9", "gpu10"]),
        ("part:long", ["gpu2"]),
        ("-part:gpu", ["gpu2"]),
        ("free:>=8", ["gpu2", "gpu7"]),
        ("free:<8", ["gpu4", "gpu6", "gpu3", "gpu5", "gpu10"]),
        ("used>0", ["gpu10"]),
        ("gres:h100 node:gpu1", ["gpu10"]),
        ("gpu:8 reason:respond", ["gpu4"]),
        ("user:anna", ["gpu2", "gpu10"]),
        ("job:7", ["gpu2", "gpu10"]),
        ("train", ["gpu2", "gpu10"]),
    ],
)
def test_filters(text: str, found: list[str]) -> None:
    rows = mixed()
    rows.set_jobs([make_job("7", nodes="gpu[2,10]"), make_job("8", "PENDING")], version=1)
    query = parse_node_query(text)
    assert query.error is None
    rows.set_query(query)
    assert names(rows) == found


def test_a_wrong_filter_is_told_and_the_rest_holds() -> None:
    query = parse_node_query("colour:red gpu3")
    assert query.error is not None
    assert ", ".join(NODE_KEYS) in query.error
    assert "did you mean 'state'" in (parse_node_query("stat:idle").error or "")
    assert parse_node_query("free:many").error == "free: 'many' is no number"
    rows = mixed()
    rows.set_query(query)
    assert names(rows) == ["gpu3"]


@given(st.text())
def test_any_filter(text: str) -> None:
    rows = mixed()
    rows.set_query(parse_node_query(text))
    assert len(rows.rows) <= 9


def test_the_cursor_follows_the_name() -> None:
    rows = mixed()
    rows.move_to(names(rows).index("gpu2"))
    rows.set_nodes([make_node("gpu1", "down"), *[replace(node) for node in rows.nodes[1:]]])
    assert rows.cursor_row is not None
    assert rows.cursor_row.name == "gpu2"
    rows.set_sort("name")
    assert rows.cursor_row.name == "gpu2"
    rows.set_query(parse_node_query("drained"))
    assert rows.cursor_row.name == "gpu3", "what is left"
    rows.set_query(parse_node_query(""))
    assert rows.cursor_row.name == "gpu2", "and back where it was"


def test_only_what_changed_gets_a_new_row() -> None:
    rows = view(*(make_node(f"n{n}") for n in range(5_000)))
    before = list(rows.rows)
    assert not rows.set_nodes([replace(node) for node in rows.nodes])
    assert rows.rebuilds == 1
    changed = [replace(node) for node in rows.nodes]
    changed[17] = replace(changed[17], reason="hot")
    assert rows.set_nodes(changed)
    after = list(rows.rows)
    assert rows.rebuilds == 2
    assert len(set(map(id, after)) - set(map(id, before))) == 1
    assert rows.set_jobs([make_job("7", nodes="n3")], version=1)
    assert not rows.set_jobs([make_job("7", nodes="n3")], version=1)
    assert len(set(map(id, rows.rows)) - set(map(id, after))) == 1


def test_jobs_are_on_the_nodes_that_they_hold() -> None:
    rows = mixed()
    waiting = make_job("9", "PENDING", nodes="gpu2")
    rows.set_jobs([make_job("7", nodes="gpu[2-3]"), waiting, make_job("8", "FAILED")], version=1)
    assert [job.id.text for job in rows.jobs_on("gpu2")] == ["7"]
    assert rows.jobs_on("gpu10") == ()


def test_totals_count_each_node_once_and_say_what_was_not_told() -> None:
    totals = mixed().totals
    assert (totals.nodes, totals.broken, totals.drained, totals.away) == (9, 2, 1, 1)
    assert (totals.gpus, totals.used, totals.lost, totals.untold) == (72, 3, 1, 1)
    assert totals.free == 5 + 8 + 7 + 8, "mixed, idle, one GPU lost, switched off to save power"
    assert totals.idle == 3 * 8, "drained, down, in maintenance"
    assert count_nodes(()).nodes == 0


@given(st.text())
def test_any_name_has_a_place(name: str) -> None:
    assert len(sorted([name, "gpu1", "1", ""], key=natural_name)) == 4
