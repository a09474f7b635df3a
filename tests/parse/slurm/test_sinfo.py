from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.node import Node, Usable
from slurmtop.model.snapshot import Parsed
from slurmtop.parse.slurm.sinfo import (
    SINFO_FIELDS,
    SINFO_LETTERS,
    SINFO_NAMES,
    parse_sinfo,
    sinfo_format,
)
from tests.parse.slurm.support import FIXTURES, VERSIONS, case, expected, fixture

_MARK = b"\x1eq7Vd2k"
#: ``sinfo_nodes`` of the captures.
_CAPTURED = (
    "name",
    "state",
    "state_compact",
    "gres",
    "gres_used",
    "cpus",
    "mem_total",
    "mem_free",
    "cpu_load",
    "reason",
    "reason_user",
    "reason_at",
    "partition",
)


def _parse(data: bytes, fields: tuple[str, ...], separator: bytes = b"|") -> dict[str, Node]:
    parsed = parse_sinfo(data, fields=fields, separator=separator, record_mark=b"\n")
    assert parsed.bad == 0
    return {node.name: node for node in parsed.rows}


def test_the_format_is_the_one_that_real_sinfo_was_asked_for() -> None:
    asked = (FIXTURES / "22.05.8" / "nodes_marked.cmd").read_text(encoding="utf-8")
    assert sinfo_format(_MARK).replace("\x1f", "\\x1f").replace("\x1e", "\\x1e") in asked
    assert SINFO_FIELDS[-1][1] == "reason"


def test_real_marked_nodes() -> None:
    parsed = parse_sinfo(fixture("22.05.8", "nodes_marked"), record_mark=_MARK, cluster="alpha")
    assert parsed.bad == 0
    assert [node.name for node in parsed.rows] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    for node in parsed.rows:
        assert (node.partitions, node.default_partition) == (("low", "gpu"), "gpu")
        assert (node.cluster, node.mem_total_mib, node.cpus_total) == ("alpha", 1_024_000, 128)
        assert (node.reason, node.reason_user, node.reason_at) == (None, None, None)
    third = parsed.rows[2]
    assert (third.state.base, third.state.usable) == ("MIXED", Usable.YES)
    assert third.gpus() == (8, 3)
    assert third.gres is not None
    assert third.gres[0].index == (0, 1, 2)
    assert (third.cpus_alloc, third.cpus_idle, third.mem_free_mib) == (4, 124, 23_281)
    assert third.cpu_load == pytest.approx(1.27)
    assert parsed.rows[3].state.usable is Usable.SPOKEN_FOR


@pytest.mark.parametrize("version", VERSIONS)
def test_real_nodes(version: str) -> None:
    parsed = parse_sinfo(
        fixture(version, "sinfo_nodes"), fields=_CAPTURED, separator=b"|", record_mark=b"|\n"
    )
    assert parsed.bad == 0
    nodes = {node.name: node for node in parsed.rows}
    assert list(nodes) == ["gpu01", "gpu02", "gpu03", "gpu04"]
    first, last = nodes["gpu01"], nodes["gpu04"]
    assert first.gpus() == (8, 8)
    assert first.default_partition == "gpu-large"
    assert first.partitions[0] == "gpu-large"
    if version == "22.05.8":
        assert first.partitions == ("gpu-large", "preempt")
        assert (first.cpus_alloc, first.cpus_total, last.state.base) == (8, 8, "MIXED")
        assert last.gpus() == (8, 0)
        return
    assert first.partitions == ("gpu-large",)
    assert (last.state.base, last.state.usable) == ("DOWN", Usable.NO)
    assert last.state.flags == ("NOT_RESPONDING",)
    assert (last.reason, last.reason_user) == ("xid 79 fallen off the bus", "root")
    # Never reported: no free memory is known, and that is not 0.
    assert (last.mem_free_mib, last.reason_at) == (None, None)
    assert first.state.usable is (Usable.YES if version == "24.11.5" else Usable.SPOKEN_FOR)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_drained_node(version: str) -> None:
    fields = tuple(SINFO_LETTERS[letter] for letter in "NTtEHu")
    node = _parse(fixture(version, "sinfo_drained"), fields)["gpu01"]
    assert node.state.flags == ("DRAIN",)
    assert node.state.usable is Usable.NO
    assert node.state.may_run_jobs is (version != "22.05.8")
    assert (node.reason, node.reason_user) == ("slurmtop: hung job", "root")
    minute = {"22.05.8": (49, 37), "24.11.5": (36, 14), "26.05.5": (49, 36)}[version]
    assert node.reason_at == datetime(2026, 11, 30, 4, *minute, tzinfo=UTC)


def test_case_018_nodes_with_gpus_in_use() -> None:
    nodes = _parse(case("018"), ("name", "state", "gres", "gres_used"), b" ")
    for row in expected("018")["rows"]:
        assert nodes[row["node"]].gpus() == (row["total"], row["used"])
    assert nodes["gpu04"].state.usable is Usable.NO


def test_case_021_each_node_once_with_all_its_partitions() -> None:
    nodes = _parse(case("021"), ("name", "partition_name", "partition", "state", "cpus"), b" ")
    answer = expected("021")
    for name, row in answer["nodes"].items():
        node = nodes[name]
        assert list(node.partitions) == row["partitions"]
        assert [node.cpus_alloc, node.cpus_idle, node.cpus_other, node.cpus_total] == row["cpus"]
    totals = answer["totals"]
    assert len(nodes) == totals["nodes"]
    assert sum(node.cpus_total or 0 for node in nodes.values()) == totals["cpus_total"]
    assert sum(node.cpus_idle or 0 for node in nodes.values()) == totals["cpus_idle"]
    assert {node.default_partition for node in nodes.values()} == {
        answer["default_partition"],
        None,
    }


def test_case_061_an_unknown_partition_gives_no_nodes() -> None:
    assert _parse(case("061", 4), ("partition",)) == {}


def test_a_host_list_is_taken_apart() -> None:
    assert list(_parse(b"gpu[01-02]|idle\n", ("name", "state"))) == ["gpu01", "gpu02"]


def test_bad_records_are_counted_and_cost_no_neighbour() -> None:
    data = b"gpu01|idle|gpu\n|idle|gpu\ngpu[1|idle|gpu\nshort\ngpu02|idle|gpu\n"
    parsed = parse_sinfo(
        data, fields=("name", "state", "partition"), separator=b"|", record_mark=b"\n"
    )
    assert [node.name for node in parsed.rows] == ["gpu01", "gpu02"]
    assert parsed.bad == 3
    assert parsed.first_bad is not None
    assert (parsed.first_bad.index, parsed.first_bad.why) == (1, "no node name")


_HOSTILE = st.text(alphabet=st.sampled_from([*"a\x1f\x1e\n|[]*"]), min_size=1, max_size=15)


@given(_HOSTILE, _HOSTILE)
def test_a_reason_never_changes_another_value(first: str, second: str) -> None:
    data = b""
    for name, reason in (("gpu01", first), ("gpu02", second)):
        plain = [name, "idle", "gpu:8", "gpu:2", "1/2/0/3", "4", "5", "0.5", "root", "x", "gpu*"]
        data += "\x1f".join([*plain, reason]).encode() + _MARK + b"\n"
    parsed: Parsed[Node] = parse_sinfo(data, record_mark=_MARK)
    assert parsed.bad == 0
    assert [node.reason for node in parsed.rows] == [first, second]
    for node in parsed.rows:
        assert (node.state.base, node.partitions, node.gpus()) == ("IDLE", ("gpu",), (8, 2))


@given(
    st.binary(max_size=300),
    st.lists(st.sampled_from([*SINFO_NAMES, "partition_name", "x"]), max_size=6),
    st.sampled_from([b"\x1e", b"\n", _MARK]),
)
def test_any_bytes_never_raise(data: bytes, fields: list[str], mark: bytes) -> None:
    parsed = parse_sinfo(data, fields=fields, separator=b"|", record_mark=mark)
    assert len({node.name for node in parsed.rows}) == len(parsed.rows)
    assert (parsed.bad > 0) is (parsed.first_bad is not None)


def test_gpus_are_unknown_where_gres_was_not_asked_for() -> None:
    parsed = parse_sinfo(b"n1|idle\n", fields=("name", "state"), separator=b"|", record_mark=b"\n")
    assert parsed.rows[0].gpus() == (None, None)
