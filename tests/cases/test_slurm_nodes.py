"""Nodes and what they hold: cases 014, 016, 018, 019, 021."""

from typing import Any

import pytest

from slurmtop.model.node import GresPool, Node, Usable
from slurmtop.parse.slurm.sacct import parse_sacct
from slurmtop.parse.slurm.scontrol import parse_scontrol_nodes
from slurmtop.parse.slurm.sinfo import parse_sinfo
from slurmtop.parse.slurm.states import parse_node_state
from slurmtop.parse.slurm.tres import parse_gres, parse_tres
from tests.cases.product import sacct_fields, sinfo_fields
from tests.cases.support import Case, found, load, product, prose, sentence, values


@values("014", "016", "018", "019", "021")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


# 014: the same GPUs counted twice


@product("014")
def answer_014(case: Case) -> Any:
    parsed = parse_sacct(case[1].stdout, fields=sacct_fields(case[1]), separator=b"|")
    assert parsed.bad == 0
    return {
        "rows": {
            record.id.text: {
                "id": record.id.base,
                "gpus": record.allocated.gpus,
                "by_type": dict(record.allocated.gpus_by_type),
                "mem_bytes": record.allocated.mem_bytes,
                "energy": record.allocated.energy_j,
                "shards": record.allocated.shards,
            }
            for record in parsed.rows
        }
    }


@prose("014/rows/6605/note")
def test_case_014_nothing_is_known_where_there_is_no_record_yet() -> None:
    row = answer_014(load("014"))["rows"]["6605"]
    assert row["gpus"] is None
    assert row["mem_bytes"] is None
    assert row["shards"] is None


@sentence("014", "16 GPUs for 6601")
def test_case_014_must_not_count_16_for_6601() -> None:
    row = answer_014(load("014"))["rows"]["6601"]
    assert row["gpus"] == sum(row["by_type"].values()) == 8


@sentence("014", "12 for 6602")
def test_case_014_must_not_count_12_for_6602() -> None:
    row = answer_014(load("014"))["rows"]["6602"]
    assert row["gpus"] == sum(row["by_type"].values()) == 6


# 016: shards and MIG slices


def _node_016() -> Node:
    (node,) = parse_scontrol_nodes(load("016")[1].stdout).rows
    return node


def _pools_016() -> tuple[GresPool, ...]:
    return _node_016().gres or ()


def _pool(kind: str) -> GresPool:
    (pool,) = [pool for pool in _pools_016() if pool.kind == kind]
    return pool


def _counts(pool: GresPool) -> dict[str, Any]:
    return {
        "type": pool.type,
        "total": pool.total,
        "used": pool.used,
        "idx": None if pool.index is None else list(pool.index),
        "per_gpu": [f"{used}/{total}" for used, total in pool.shares],
    }


@product("016")
def answer_016(case: Case) -> Any:
    return {
        "node": {
            "name": _node_016().name,
            "full_gpus": _counts(_pool("gpu")),
            "mig_slices": _counts(_pool("slice")),
            "shards": _counts(_pool("shard")),
        }
    }


@sentence("016", "label slices and shards apart from whole GPUs")
def test_case_016_must_label_slices_and_shards_apart() -> None:
    kinds = [(pool.kind, pool.total) for pool in _pools_016()]
    assert sorted(kinds) == [("gpu", 2), ("shard", 16), ("slice", 7)]
    assert _node_016().gpus() == (2, 1)
    job = parse_tres("cpu=8,gres/gpu=3,gres/gpu:1g.10gb=3,gres/shard=4")
    assert (job.gpus, job.slices_by_type, job.shards) == (0, (("1g.10gb", 3),), 4)


@sentence("016", "gres/gpu=9 in CfgTRES counts MIG slices as GPUs")
def test_case_016_must_not_take_the_untyped_count_for_gpus() -> None:
    fields = dict(_node_016().fields)
    assert "gres/gpu=9" in fields["CfgTRES"]
    total, used = _node_016().gpus()
    assert (total, used) == (2, 1)
    assert _pool("gpu").total + _pool("slice").total == 9  # type: ignore[operator]


@sentence("016", "split GresUsed at every comma")
def test_case_016_must_not_split_inside_parentheses() -> None:
    assert len(_pools_016()) == 3
    assert _pool("slice").index == (2, 3, 8)
    assert _pool("shard").shares == ((2, 8), (4, 8))


# 018: GresUsed of sinfo


def _nodes_018() -> dict[str, Node]:
    parsed = parse_sinfo(
        load("018")[1].stdout,
        fields=("name", "state", "gres", "gres_used"),
        separator=b" ",
        record_mark=b"\n",
    )
    assert parsed.bad == 0
    return {node.name: node for node in parsed.rows}


@product("018")
def answer_018(case: Case) -> Any:
    rows = {}
    for name, node in _nodes_018().items():
        pools = [pool for pool in node.gres or () if pool.kind == "gpu"]
        indices = [pool.index for pool in pools]
        total, used = node.gpus()
        rows[name] = {
            "node": node.name,
            "total": total,
            "used": used,
            "idx": None if None in indices else [n for index in indices for n in index or ()],
            "by_type": {pool.type: [pool.used, pool.total] for pool in pools},
        }
    return {"rows": rows}


@sentence("018", "gpu04 is drained and not responding: its 8 GPUs are not free capacity")
def test_case_018_must_not_offer_gpus_of_a_drained_node() -> None:
    node = _nodes_018()["gpu04"]
    assert node.state.usable is Usable.NO
    assert {"DRAIN", "NOT_RESPONDING"} <= set(node.state.flags)
    total, used = node.gpus()
    assert total is not None
    assert used is not None
    assert total - used == 0


# 019: compound states


def _states_019(n: int) -> dict[str, Node]:
    step = load("019")[n]
    if n == 1:
        parsed = parse_scontrol_nodes(step.stdout)
    else:
        parsed = parse_sinfo(
            step.stdout, fields=sinfo_fields(step), separator=b"|", record_mark=b"\n"
        )
    assert parsed.bad == 0
    return {node.name: node for node in parsed.rows}


def _usable(node: Node) -> Any:
    return {Usable.YES: True, Usable.NO: False}.get(node.state.usable, str(node.state.usable))


@product("019")
def answer_019(case: Case) -> Any:
    nodes = _states_019(1)
    return {
        "usable_now": {name: _usable(node) for name, node in nodes.items()},
        "running_jobs_possible": {name: node.state.may_run_jobs for name, node in nodes.items()},
    }


@pytest.mark.parametrize("name", [f"n{n:02}" for n in range(1, 13)])
def test_case_019_sinfo_says_the_same(name: str) -> None:
    wanted = load("019").expected
    node = _states_019(2)[name]
    assert _usable(node) == wanted["usable_now"][name]
    assert node.state.may_run_jobs == wanted["running_jobs_possible"].get(name, False)


@prose("019/usable_now/n13")
def test_case_019_unknown_flag_is_no_yes() -> None:
    state = _states_019(1)["n13"].state
    assert state.usable is Usable.UNKNOWN
    assert state.unknown_flags == ("NEWFLAG",)


@sentence("019", "n01 and n02 are drained/draining although the base says IDLE/MIXED")
def test_case_019_must_see_draining_behind_the_base() -> None:
    for n in (1, 2):
        nodes = _states_019(n)
        assert "DRAIN" in nodes["n01"].state.flags
        assert "DRAIN" in nodes["n02"].state.flags
        assert not nodes["n01"].state.may_run_jobs
        assert nodes["n02"].state.may_run_jobs
    assert [_states_019(1)[name].state.base for name in ("n01", "n02")] == ["IDLE", "MIXED"]


@sentence("019", "idle* is not free")
def test_case_019_must_not_take_a_silent_node_for_free() -> None:
    state = _states_019(2)["n04"].state
    assert (state.text, state.usable) == ("idle*", Usable.NO)


@sentence("019", "an unknown flag is kept and shown")
def test_case_019_must_keep_unknown_flags() -> None:
    for text in ("IDLE+NEWFLAG", "IDLE+CLOUD+FANCY_NEW", "MIXED+SOMETHING"):
        state = parse_node_state(text)
        assert text.rsplit("+", 1)[1] in state.flags
        assert state.text == text


@sentence("019", 'prefix match "idle" or "mix" only')
@pytest.mark.parametrize(
    "text",
    ["IDLE+DRAIN", "MIXED+DRAIN", "idle*", "IDLE+MAINTENANCE", "idle$", "mixed*", "IDLE+BLOCKED"],
)
def test_case_019_must_not_match_prefixes(text: str) -> None:
    assert parse_node_state(text).usable is Usable.NO


# 021: one line a partition


def _nodes_021() -> tuple[Node, ...]:
    step = load("021")[1]
    parsed = parse_sinfo(step.stdout, fields=sinfo_fields(step), separator=b" ", record_mark=b"\n")
    assert parsed.bad == 0
    return parsed.rows


def _sum(name: str) -> int:
    return sum(getattr(node, name) for node in _nodes_021())


@product("021")
def answer_021(case: Case) -> Any:
    nodes = _nodes_021()
    (default,) = {node.default_partition for node in nodes} - {None}
    return {
        "nodes": {
            node.name: {
                "partitions": list(node.partitions),
                "cpus": [node.cpus_alloc, node.cpus_idle, node.cpus_other, node.cpus_total],
            }
            for node in nodes
        },
        "totals": {
            "nodes": len(nodes),
            **{
                name: _sum(name) for name in ("cpus_total", "cpus_alloc", "cpus_idle", "cpus_other")
            },
        },
        "default_partition": default,
    }


@sentence("021", "count gpu01 three times")
def test_case_021_must_not_count_a_node_three_times() -> None:
    assert [node.name for node in _nodes_021()] == ["gpu01", "gpu02", "cpu01"]


@sentence("021", "keep the * as part of the partition name")
def test_case_021_must_not_keep_the_star_of_the_default() -> None:
    for node in _nodes_021():
        assert not any("*" in name for name in node.partitions)
        assert "*" not in (node.default_partition or "")


# Other numbers, types and places of the same kinds


@pytest.mark.parametrize("gpu_type", ["h100", "tesla_v100-sxm3-32gb", "nvidia_gh200_480gb", "a40"])
@pytest.mark.parametrize("count", [1, 8, 16])
@pytest.mark.parametrize("typed_first", [True, False])
def test_kind_014_typed_and_untyped_are_the_same_gpus(
    gpu_type: str, count: int, typed_first: bool
) -> None:
    pair = [f"gres/gpu:{gpu_type}={count}", f"gres/gpu={count}"]
    text = ",".join(["cpu=4", *(pair if typed_first else pair[::-1]), "mem=1G"])
    tres = parse_tres(text)
    assert tres.gpus == count
    assert dict(tres.gpus_by_type) == {gpu_type: count}


@pytest.mark.parametrize("profile", ["1g.5gb", "2g.20gb", "a100_3g.40gb", "nvidia_a100_7g.80gb"])
def test_kind_016_every_profile_is_a_slice(profile: str) -> None:
    pools = parse_gres(
        f"gpu:a100:4(S:0-1),gpu:{profile}:6(S:1)", f"gpu:a100:2(IDX:0,3),gpu:{profile}:2(IDX:4,6)"
    )
    found_pools = {pool.kind: (pool.type, pool.total, pool.used, pool.index) for pool in pools}
    assert found_pools == {
        "gpu": ("a100", 4, 2, (0, 3)),
        "slice": (profile, 6, 2, (4, 6)),
    }


@pytest.mark.parametrize(
    ("index", "wanted"),
    [("0", (0,)), ("0-3", (0, 1, 2, 3)), ("1,3-4,7", (1, 3, 4, 7)), ("N/A", ())],
)
def test_kind_018_index_lists(index: str, wanted: tuple[int, ...]) -> None:
    (pool,) = parse_gres("gpu:h200:8(S:0-1)", f"gpu:h200:{len(wanted)}(IDX:{index})")
    assert (pool.total, pool.used, pool.index) == (8, len(wanted), wanted)


@pytest.mark.parametrize(
    ("scontrol", "sinfo", "usable"),
    [
        ("DOWN+DRAIN", "down", Usable.NO),
        ("IDLE+POWERING_DOWN", "idle%", Usable.NO),
        ("MIXED+NOT_RESPONDING", "mixed*", Usable.NO),
        ("ALLOCATED+DRAIN", "draining", Usable.NO),
        ("IDLE", "idle", Usable.YES),
        ("MIXED", "mix", Usable.YES),
        ("MIXED+MAINTENANCE", "mixed$", Usable.NO),
        ("IDLE+REBOOT_ISSUED", "idle^", Usable.NO),
    ],
)
def test_kind_019_both_spellings_agree(scontrol: str, sinfo: str, usable: Usable) -> None:
    assert parse_node_state(scontrol).usable is usable
    assert parse_node_state(sinfo).usable is usable


@pytest.mark.parametrize("separator", [" ", "|", "\x1f", ";"])
def test_kind_021_any_separator(separator: str) -> None:
    lines = [
        ("n1", "a", "a*", "mixed", "1/2/0/3"),
        ("n1", "b", "b", "mixed", "1/2/0/3"),
        ("n[2-3]", "b", "b", "idle", "0/3/0/3"),
    ]
    data = "".join(separator.join(line) + "\n" for line in lines).encode()
    parsed = parse_sinfo(
        data,
        fields=("name", "partition_name", "partition", "state", "cpus"),
        separator=separator.encode(),
        record_mark=b"\n",
    )
    assert [(n.name, n.partitions, n.default_partition) for n in parsed.rows] == [
        ("n1", ("a", "b"), "a"),
        ("n2", ("b",), None),
        ("n3", ("b",), None),
    ]
