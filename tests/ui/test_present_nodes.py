"""Lines of the Nodes screen: widths, words, and any text that a cluster may hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.look import HostLook
from slurmtop.model.text import cell_width
from slurmtop.store.nodes import NodeRow, count_nodes
from slurmtop.triage.fits import find_fit, parse_wish
from slurmtop.triage.node_words import free_text, reason_text, state_word, type_text, used_text
from slurmtop.ui.present.fits import fit_lines
from slurmtop.ui.present.health import Condition, HealthWords
from slurmtop.ui.present.node_card import Admission, NodeCard
from slurmtop.ui.present.node_detail import detail_lines
from slurmtop.ui.present.nodes import (
    NODE_COLUMNS,
    NodesNow,
    lay_out_nodes,
    node_line,
    nodes_header_line,
    size_text,
)
from slurmtop.ui.present.nodes_head import NodesHead, nodes_header_lines
from slurmtop.ui.present.spans import line_width, plain
from tests.build import make_job, make_node
from tests.fakes import START

FRESH = HealthWords(Condition.FRESH, "answered 1 s ago", "dim")


@pytest.mark.parametrize("width", [10, 20, 40, 60, 79, 80, 100, 140, 250])
def test_every_width_is_filled_and_never_exceeded(width: int) -> None:
    layout = lay_out_nodes(width, name_cells=12)
    row = NodeRow(make_node("gpu01", "drained", reason="x" * 300), (make_job(),))
    line = node_line(row, layout, NodesNow(START), cursor=True)
    assert line_width(line) <= width
    assert line_width(nodes_header_line(layout, "name", False)) <= width
    if width >= 80:
        assert {"name", "state", "used", "free", "why"} <= {column.name for column, _ in layout}
    if width >= 140:
        assert len(layout) == len(NODE_COLUMNS)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("idle", "○ idle"),
        ("mix", "◐ mixed"),
        ("alloc+", "● allocated"),
        ("comp", "● ending"),
        ("idle*", "✗ no answer"),
        ("down*", "✗ down*"),
        ("down", "✗ down"),
        ("drain", "▽ drained"),
        ("drained*", "✗ drained*"),
        ("drng", "▼ draining"),
        ("MIXED+DRAIN", "▼ draining"),
        ("fail", "✗ failing"),
        ("idle$", "◇ maint"),
        ("mix@", "◇ reboot"),
        ("idle^", "◇ rebooting"),
        ("idle~", "~ power off"),
        ("idle#", "~ power up"),
        ("idle%", "◇ power down"),
        ("resv", "◇ reserved"),
        ("plnd", "◔ planned"),
        ("mix-", "◔ planned"),
        ("inval", "✗ invalid"),
        ("futr", "◇ future"),
        ("unk", "? unknown"),
        ("?", "? unknown"),
        ("IDLE+SPARKLING", "? unknown"),
    ],
)
def test_state_words(state: str, word: str) -> None:
    node = make_node(state=state)
    if state in ("drain", "IDLE+SPARKLING", "?"):
        assert free_text(node) in ("(8)", "?")
    assert " ".join(state_word(node)) == word


def test_words_of_a_node_without_gpus_and_of_one_that_tells_nothing() -> None:
    cpu = make_node(gres="", used="")
    assert (used_text(cpu), free_text(cpu), type_text(cpu)) == ("", "", "")
    silent = make_node(gres=None)
    assert (used_text(silent), free_text(silent), type_text(silent)) == ("?/?", "?", "?")
    assert type_text(make_node(gres="gpu:4", used="gpu:0")) == "GPU"
    assert type_text(make_node(gres="gpu:1g.10gb:7", used="")) == "MIG"
    assert [size_text(mib) for mib in (980, 9_000, 523_000, 2_063_360)] == [
        *("980M", "8.8G", "511G"),
        "2.0T",
    ]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=20))
def test_any_text_is_harmless_and_in_its_place(name: str, reason: str, state: str) -> None:
    node = make_node(name or "n", state or "idle", reason=reason or None, partitions=(reason,))
    row = NodeRow(node, (make_job(name=reason, user=name),))
    layout = lay_out_nodes(80, name_cells=12)
    lines = [node_line(row, layout, NodesNow(START), cursor=False)]
    card = NodeCard(
        row=row,
        now=START,
        data_now=START,
        zone=None,
        me="anna",
        all_users=True,
        admission=Admission(True),
        look=HostLook(host=name, hints=(reason,)),
    )
    lines += detail_lines(card, 80)
    wish = parse_wish("1x8", [node])
    assert not isinstance(wish, str)
    lines += fit_lines(find_fit(wish, [node]), START, 80)
    head = NodesHead(cluster=name, totals=count_nodes([node]), health=FRESH, calls=1)
    lines += nodes_header_lines(head, 80)
    for line in lines:
        assert cell_width(plain(line)) <= 80
        assert "\x1b" not in plain(line)
        assert "\n" not in plain(line)
    assert "\n" not in reason_text(node, START)
