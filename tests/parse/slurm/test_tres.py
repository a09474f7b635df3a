import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.model.job import NO_TRES, Tres
from slurmtop.model.node import GresPool, Node
from slurmtop.parse.slurm.tres import (
    is_slice,
    parse_count,
    parse_gres,
    parse_mem,
    parse_tres,
    times_nodes,
)
from tests.parse.slurm.support import VERSIONS, case, expected, fixture


def test_case_014_typed_and_untyped_are_the_same_gpus() -> None:
    for line, row in zip(case("014").decode().splitlines(), expected("014")["rows"], strict=True):
        id, _, text = line.partition("|")
        tres = parse_tres(text)
        assert id == row["id"]
        assert tres.gpus == row["gpus"]
        assert dict(tres.gpus_by_type) == row.get("by_type", {})
        assert tres.shards == row.get("shards")
        assert tres.energy_j is None
        if "mem_bytes" in row:
            assert tres.mem_bytes == row["mem_bytes"]


def test_A28_types_that_look_alike_are_both_counted() -> None:
    tres = parse_tres("cpu=1,gres/gpu:a100=8,gres/gpu:a100_80=2")
    assert tres.gpus == 10
    assert dict(tres.gpus_by_type) == {"a100": 8, "a100_80": 2}


@pytest.mark.parametrize(
    ("text", "gpus", "by_type"),
    [
        ("gres:gpu:4", 4, {}),
        ("gres:gpu:h100:4", 4, {"h100": 4}),
        ("gres/gpu:4", 4, {}),
        ("gres/gpu:h100:4", 4, {"h100": 4}),
        ("gres/gpu=4", 4, {}),
        ("gpu:4", 4, {}),
        ("gpu:h100:4", 4, {"h100": 4}),
        ("gpu", 1, {}),
        ("gpu:h100", 1, {"h100": 1}),
        ("gres:gpu:tesla_v100-sxm3-32gb:16", 16, {"tesla_v100-sxm3-32gb": 16}),
        ("gres:gpu:0", 0, {}),
    ],
)
def test_tres_per_node_in_every_release(text: str, gpus: int, by_type: dict[str, int]) -> None:
    tres = parse_tres(text)
    assert tres.gpus == gpus
    assert dict(tres.gpus_by_type) == by_type
    assert tres.cpus is None


@pytest.mark.parametrize("text", ["", "N/A", "(null)", "n/a", "None"])
def test_G9_not_said_is_not_zero(text: str) -> None:
    assert parse_tres(text) is NO_TRES
    assert parse_tres(text).gpus is None


def test_a_job_without_gpus_has_none_of_them() -> None:
    tres = parse_tres("cpu=1,mem=100M,node=1,billing=1")
    assert tres == Tres(cpus=1, nodes=1, mem_bytes=100 * 2**20, gpus=0)


@pytest.mark.parametrize(
    ("gpu_type", "slice_"),
    [
        ("1g.10gb", True),
        ("a100_3g.40gb", True),
        ("nvidia_a100_1g.5gb", True),
        ("nvidia_a100-sxm4-40gb_1g.5gb", True),
        ("1g.10gb.me", True),
        ("h100", False),
        ("tesla_v100-sxm3-32gb", False),
        ("nvidia_a100_80gb_pcie", False),
        ("a100_80gb", False),
    ],
)
def test_case_016_a_mig_slice_is_no_gpu(gpu_type: str, slice_: bool) -> None:
    assert is_slice(gpu_type) is slice_


def test_case_016_slices_are_taken_out_of_the_untyped_count() -> None:
    tres = parse_tres("cpu=128,gres/gpu=9,gres/gpu:1g.10gb=7,gres/gpu:a100=2,gres/shard=16")
    assert (tres.gpus, tres.shards) == (2, 16)
    assert tres.slices_by_type == (("1g.10gb", 7),)
    assert parse_tres("cpu=1,gres/gpu=1,gres/gpu:1g.10gb=1").gpus == 0


def test_usage_fields_are_no_gpus() -> None:
    tres = parse_tres("cpu=00:00:01,gres/gpumem=36266M,gres/gpuutil=200,mem=8500K")
    assert tres.gpus is None
    assert (tres.gpu_mem_bytes, tres.gpu_util_percent) == (36266 * 1024**2, 200)
    assert tres.cpus is None
    assert tres.mem_bytes == 8_500 * 1_024


def test_case_016_node_with_gpus_slices_and_shards() -> None:
    text = case("016").decode()
    total, used = (re.search(rf"{name}=(\S+)", text) for name in ("Gres", "GresUsed"))
    assert total is not None
    assert used is not None
    answer = expected("016")["node"]
    full, slices, shards = parse_gres(total[1], used[1])
    gpus = answer["full_gpus"]
    assert full == GresPool("gpu", "a100", gpus["total"], gpus["used"], tuple(gpus["idx"]))
    mig = answer["mig_slices"]
    assert slices == GresPool("slice", mig["type"], mig["total"], mig["used"], tuple(mig["idx"]))
    assert (shards.kind, shards.total, shards.used) == ("shard", 16, 6)
    assert [f"{used}/{size}" for used, size in shards.shares] == answer["shards"]["per_gpu"]


def test_case_018_gpus_in_use() -> None:
    for line, row in zip(case("018").decode().splitlines(), expected("018")["rows"], strict=True):
        name, _, gres, used = line.split(" ")
        pools = parse_gres(gres, used)
        assert name == row["node"]
        assert Node(name=name, gres=pools).gpus() == (row["total"], row["used"])
        for gpu_type, (in_use, total) in row.get("by_type", {}).items():
            (pool,) = (pool for pool in pools if pool.type == gpu_type)
            assert (pool.used, pool.total) == (in_use, total)
        if "idx" in row:
            index = [pool.index for pool in pools]
            flat = None if None in index else [n for part in index if part for n in part]
            assert flat == row["idx"]


@pytest.mark.parametrize(
    ("total", "used", "pools"),
    [
        ("gpu:4(S:0-1)", "gpu:(null):4(IDX:0-3)", (GresPool("gpu", None, 4, 4, (0, 1, 2, 3)),)),
        ("gpu:titanrtx:0", "", (GresPool("gpu", "titanrtx", 0),)),
        ("gpu:h100:8", "gpu:3(IDX:0-2)", (GresPool("gpu", "h100", 8, 3, (0, 1, 2)),)),
        ("gpu:8", "gpu:h100:3(IDX:0-2)", (GresPool("gpu", None, 8, 3, (0, 1, 2)),)),
        (
            "gpu:a100:4(S:0),gpu:a100:4(S:1)",
            "gpu:a100:1(IDX:0),gpu:a100:1(IDX:4)",
            (GresPool("gpu", "a100", 8, 2, (0, 4)),),
        ),
        ("gpu:a100:2,nic:2,lic:x:3", "", (GresPool("gpu", "a100", 2),)),
        ("(null)", "(null)", ()),
        ("", "gpu:h100:1(IDX:0)", (GresPool("gpu", "h100", None, 1, (0,)),)),
        ("gpu:h100:8", "N/A", (GresPool("gpu", "h100", 8),)),
    ],
)
def test_odd_gres_texts(total: str, used: str, pools: tuple[GresPool, ...]) -> None:
    assert parse_gres(total, used) == pools


def test_untyped_use_over_two_types_stays_unknown() -> None:
    pools = parse_gres("gpu:a100:2,gpu:v100:2", "gpu:3(IDX:0-2)")
    assert Node(name="n", gres=pools).gpus() == (4, None)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("62.50G", 67_108_864_000),
        ("29036860K", 29_733_744_640),
        ("4000M", 4_194_304_000),
        ("1T", 2**40),
        ("0", 0),
        ("8.50M", 8_912_896),
        ("43494977536", 43_494_977_536),
        ("", None),
        ("?", None),
        ("12?", None),
        ("N/A", None),
        ("-1M", None),
        ("1e9", None),
        ("inf", None),
        ("18446744073709551614", None),
        ("16777215T", None),
    ],
)
def test_sizes_are_bytes_of_base_1024(text: str, size: int | None) -> None:
    assert parse_mem(text) == size


def test_a_bare_size_has_the_unit_of_its_command() -> None:
    assert parse_mem("16000", "M") == 16_000 * 2**20
    assert parse_mem("16000") == 16_000
    assert parse_tres("cpu=1,mem=4000").mem_bytes == 4_000 * 2**20


def test_case_024_energy_is_base_1000_and_memory_is_not() -> None:
    rows = [line.split("|") for line in case("024").decode().splitlines()]
    assert parse_count(rows[2][8], 1_000) == pytest.approx(1_200_000)
    assert parse_mem(rows[3][5]) == 43_494_977_536
    assert parse_mem(rows[1][5]) == 8_912_896
    assert parse_mem(rows[4][5]) == 0
    assert parse_mem(rows[0][5]) is None


def test_per_node_times_nodes() -> None:
    per_node = parse_tres("gres/gpu:h100:4")
    assert times_nodes(per_node, 3).gpus == 12
    assert times_nodes(per_node, 3).gpus_by_type == (("h100", 12),)
    assert times_nodes(per_node, None) is NO_TRES


@pytest.mark.parametrize("version", VERSIONS)
def test_real_queue_counts_each_gpu_once(version: str) -> None:
    seen = set()
    for text in re.findall(rb"\|(cpu=[^|]*)\|", fixture(version, "squeue_O")):
        tres = parse_tres(text.decode())
        assert tres.gpus is not None
        assert sum(count for _, count in tres.gpus_by_type) in (0, tres.gpus)
        seen.add(tres.gpus)
    assert seen >= {0, 1}
    assert max(seen) == (4 if version == "24.11.5" else 512)


_TRES_TEXT = st.text(
    alphabet="gresgpushard/:=,()0123456789.KMGT?-N/A[]1cpumemnode²\x1f", max_size=80
)


@given(_TRES_TEXT, _TRES_TEXT)
@example("gres/gpu=" + "9" * 5_000, "gpu:" + "9" * 5_000)
@example("gpu:h100:8(", "gpu:h100:3(IDX:0-999999999)")
@example("shard:a:1(1/", "shard:a:1(9999999999999999999999/1)")
def test_any_text_is_taken(text: str, other: str) -> None:
    tres = parse_tres(text)
    for value in (tres.cpus, tres.gpus, tres.shards, tres.mem_bytes, tres.energy_j):
        assert value is None or 0 <= value < 2**63
    for pool in parse_gres(text, other):
        assert pool.kind in ("gpu", "slice", "shard")
        assert pool.index is None or len(pool.index) <= 4_096
    parse_mem(text)
    parse_count(text, 1_000)


@given(
    types=st.dictionaries(
        st.sampled_from(["h100", "a100", "v100-sxm3-32gb"]), st.integers(1, 64), min_size=1
    ),
    cpus=st.integers(1, 512),
    order=st.randoms(),
)
def test_order_and_totals_never_change_the_count(
    types: dict[str, int], cpus: int, order: object
) -> None:
    total = sum(types.values())
    typed = [f"gres/gpu:{name}={count}" for name, count in types.items()]
    items = [f"cpu={cpus}", "billing=99", f"gres/gpu={total}", *typed]
    order.shuffle(items)  # type: ignore[attr-defined]
    assert parse_tres(",".join(items)).gpus == total
    assert parse_tres(",".join([f"cpu={cpus}", *typed])).gpus == total


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("(null)", "gpu:0"),
        ("(null)", "gpu:0,shard:0"),
        ("(null)", "gpu:0(IDX:N/A)"),
        ("craynetwork:4", "gpu:0,craynetwork:0"),
    ],
)
def test_a_node_without_gpus_of_a_cluster_with_some_has_none(text: str, used: str) -> None:
    """Slurm 17.11 and later print what is in use of every kind that the cluster has."""
    node = Node(name="cpu01", gres=parse_gres(text, used))
    assert node.gpus() == (0, 0)
    assert node.gpu_count().free == 0


def test_gpus_in_use_where_no_total_is_told_stay_unknown_in_number() -> None:
    assert Node(name="gpu01", gres=parse_gres("(null)", "gpu:2")).gpus() == (None, 2)
    assert Node(name="gpu01", gres=parse_gres("", "gpu:0")).gpus() == (None, 0)


def test_a_gpu_that_mps_hands_out_in_shares_is_not_free() -> None:
    used = "gpu:v100:0(IDX:N/A),mps:v100:100(100/100,0/100)"
    node = Node(name="gpu01", gres=parse_gres("gpu:v100:2,mps:v100:200", used))
    count = node.gpu_count()
    assert (count.total, count.used, count.shared, count.free) == (2, 0, 1, 1)
    old = Node(name="gpu01", gres=parse_gres("gpu:v100:2,mps:v100:200", "gpu:v100:0,mps:v100:50"))
    assert old.gpu_count().free is None, "on which of the two nobody says"


def test_shares_of_mps_that_a_job_holds_are_no_gpus() -> None:
    tres = parse_tres("cpu=1,mem=1G,node=1,gres/mps=50,gres/mps:v100=50")
    assert (tres.gpus, tres.mps) == (0, 50)
    assert times_nodes(parse_tres("gres/mps:50"), 2).mps == 100
