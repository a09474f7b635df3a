"""What stands in the grid of GPUs, piece by piece. Nothing unknown is ever 0, idle or healthy."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slurmtop.model.gpu import GpuSample, NodeGpus
from slurmtop.model.look import HostLook
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess, Rung
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.store.gpu_metrics import METRICS, metric_of
from slurmtop.store.gpu_use import JobUse
from slurmtop.triage.gpu_share import NOT_TOLD, NOT_VISIBLE, Attributed
from slurmtop.triage.gpu_work import Odd, ref_of
from slurmtop.ui.present.gpu_detail import detail_lines, rank_line
from slurmtop.ui.present.gpu_grid import (
    NETWORK,
    SHOWN,
    GridRow,
    build_row,
    kind_text,
    metric_title,
    short_value,
    sort_rows,
)
from slurmtop.ui.present.gpu_head import GpuHead, head_lines
from slurmtop.ui.present.gpu_lines import lay_out, row_line, row_words
from slurmtop.ui.present.gpu_use import WIDTH, use_span
from slurmtop.ui.present.spans import line_width, plain
from tests.fakes import START
from tests.ui.gpu_bench import make_gpu, make_gpus

UTIL = METRICS[0]


def row_of(gpus: NodeGpus, metric: Any = UTIL, **how: Any) -> GridRow:
    look = HostLook(host=gpus.host, gpus=gpus, gpus_at=START)
    return build_row(gpus.host, look, Attributed("4711", gpus.samples), metric, **how)


def cell_of(metric: Any = UTIL, **fields: Any) -> tuple[str, str]:
    gpus = NodeGpus(host="gpu01", samples=(make_gpu(**fields),))
    (cell,) = row_of(gpus, metric).cells
    return cell.text, cell.sign


@pytest.mark.parametrize(
    ("fields", "cell"),
    [
        ({}, ("97", " ")),
        ({"util_percent": 0.0}, ("0", "·")),
        ({"util_percent": None}, ("", "–")),
        ({"util_percent": None, "words": (("util_percent", "[Unknown Error]"),)}, ("", "?")),
        ({"util_percent": None, "mig": True}, ("MIG", "–")),
        (
            {
                "util_percent": 100.0,
                "power_w": 170.0,
                "tensor_active": None,
                "dram_active": None,
            },
            ("100", "~"),
        ),
        ({"events": 0x40}, ("97", "!")),
        ({"ecc_uncorrected": 2.0}, ("97", "*")),
    ],
)
def test_the_sign_of_a_gpu(fields: dict[str, Any], cell: tuple[str, str]) -> None:
    assert cell_of(**fields) == cell


def test_a_full_gpu_at_a_quarter_of_its_power_has_no_healthy_role() -> None:
    gpus = NodeGpus(
        host="gpu01",
        samples=(
            make_gpu(util_percent=100.0, power_w=175.0, tensor_active=None, dram_active=None),
        ),
    )
    (cell,) = row_of(gpus).cells
    assert cell.role != "good"


def test_gpus_of_the_job_that_are_not_seen_are_unknown() -> None:
    row = row_of(make_gpus("gpu01", 6), held=8)
    assert [cell.sign for cell in row.cells[6:]] == ["?", "?"]
    assert row.mean == 97.0


def test_a_lost_card_is_a_cell_of_its_own() -> None:
    gpus = replace(make_gpus("gpu01", 7), lost=("0000:1e:00.0",))
    row = row_of(gpus, held=8)
    assert [cell.sign for cell in row.cells] == [" "] * 7 + ["×"]


def test_what_is_not_visible_is_said_in_words() -> None:
    gpus = make_gpus("gpu01", 4, util_percent=0.0)
    look = HostLook(host="gpu01", gpus=gpus, gpus_at=START)
    row = build_row("gpu01", look, Attributed("4711", None, NOT_VISIBLE), UTIL)
    assert row.cells == ()
    assert row.words == NOT_VISIBLE


def test_a_node_whose_gpus_cannot_be_told_apart_has_answered_all_the_same() -> None:
    gpus = NodeGpus(host="gpu01", samples=(GpuSample(index=0, util_percent=97.0),))
    look = HostLook(host="gpu01", gpus=gpus, gpus_at=START)
    row = build_row("gpu01", look, Attributed("4711", None, NOT_TOLD), UTIL)
    assert row.cells == ()
    assert row.answered
    assert row.words == "asking whose its GPUs are …", "its processes may still tell"
    listed = replace(look, processes=NodeProcesses(host="gpu01", at=START))
    told = build_row("gpu01", listed, Attributed("4711", None, NOT_TOLD), UTIL)
    assert told.words == NOT_TOLD
    assert not replace(row, look=replace(look, failure=Failure(Trouble.DOWN, "x"))).answered
    mean = build_row("gpu02", look, Attributed("4711", gpus.samples), UTIL)
    head = GpuHead(metric=UTIL, held="GPUs")
    first = plain(head_lines(head, [row, mean], START, 100)[0])
    assert "2 of 2 answered" in first
    assert "mean" not in first, "of a part of its GPUs"


def test_a_node_without_gpus_in_sight_is_not_empty_but_in_trouble() -> None:
    gpus = NodeGpus(host="gpu01", failure=Failure(Trouble.OTHER, "gpu01: no GPU is visible"))
    row = row_of(gpus, held=2)
    assert [cell.sign for cell in row.cells] == ["?", "?"]
    assert row.words == "gpu01: no GPU is visible"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("util", 97.4, "97"),
        ("sm", 0.914, "91"),
        ("sm", 1.02, "100+"),
        ("clock", 1_980.0, "1980"),
        ("nvlink", 235e9, "219G"),
        ("nvlink", 3.2e9, "3.0G"),
        ("pcie", 52e6, "50M"),
        ("pcie", 12.0, "12"),
    ],
)
def test_short_values(metric: str, value: float, text: str) -> None:
    found = metric_of(metric)
    assert found is not None
    assert short_value(found, value) == text


def test_every_metric_has_a_title_of_its_own() -> None:
    assert len({metric_title(metric) for metric in SHOWN}) == len(SHOWN)
    assert NETWORK in SHOWN


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA", "NVIDIA"),
        (None, "?"),
    ],
)
def test_short_names_of_models(name: str | None, kind: str) -> None:
    assert kind_text(name) == kind


def test_the_worst_come_first() -> None:
    fine = row_of(make_gpus("a"))
    slow = row_of(make_gpus("b", util_percent=80.0))
    gpus = make_gpus("c")
    ref = ref_of("c", gpus.samples[2])
    odd = row_of(gpus, odd={ref: Odd(ref, 12.0, 97.0)})
    hot = row_of(make_gpus("d", events=0x40))
    failing = replace(
        row_of(make_gpus("e")),
        look=HostLook(host="e", failure=Failure(Trouble.DOWN, "gone")),
    )
    rows = [fine, slow, odd, hot, failing]
    hosts = [row.host for row in sort_rows(rows, UTIL, worst_first=True)]
    assert hosts == ["d", "c", "e", "b", "a"]
    assert sort_rows(rows, UTIL, worst_first=False) == rows


def test_a_node_with_a_lost_card_comes_first_where_nothing_is_known_of_one_of_the_job() -> None:
    seen = replace(make_gpus("b", 7), lost=("0000:1e:00.0",))
    look = HostLook(host="b", gpus=seen, gpus_at=START)
    known = row_of(make_gpus("a", 2), held=2)
    # Seven are seen, one of them is the job's, which holds two.
    lost = build_row("b", look, Attributed("4711", seen.samples[:1]), UTIL, held=2)
    assert [cell.sign for cell in lost.cells] == [" ", "?"]
    hosts = [row.host for row in sort_rows([known, lost], UTIL, worst_first=True)]
    assert hosts == ["b", "a"]


@pytest.mark.parametrize("count", [0, 1, 4, 8, 16, 72])
@pytest.mark.parametrize("width", [10, 40, 80, 140, 300])
@pytest.mark.parametrize("metric", [UTIL, METRICS[5], METRICS[7]])
def test_a_line_never_exceeds_the_screen(count: int, width: int, metric: Any) -> None:
    row = row_of(make_gpus("gpu01", count), metric)
    for column in {0, count // 2, max(0, count - 1)}:
        layout = lay_out((row,), width, column)
        line = row_line(row, layout, metric, width, START, column=column, trend="▁" * 30)
        assert line_width(line) <= width
        if count and width >= 40:
            assert "[" in plain(line), "the cell under the cursor is in sight"


def test_models_on_one_node_are_parted() -> None:
    samples = (make_gpu(0), make_gpu(1, name="NVIDIA A100-SXM4-80GB"))
    row = row_of(NodeGpus(host="gpu01", samples=samples))
    line = row_line(row, lay_out((row,), 80, 0), UTIL, 80, START, column=None)
    assert "H100+A100" in plain(line)
    assert "97 | 97" in plain(line)


def test_a_failing_node_says_its_age_its_next_try_and_why() -> None:
    look = HostLook(
        host="gpu01",
        gpus=make_gpus("gpu01"),
        gpus_at=START - timedelta(minutes=4),
        failure=Failure(Trouble.DOWN, "gpu01 does not answer"),
        next_at=START + timedelta(seconds=40),
    )
    assert look.gpus is not None
    row = build_row("gpu01", look, Attributed("4711", look.gpus.samples), UTIL)
    assert row_words(row, START) == ("! 4 min old · again in 40 s: gpu01 does not answer", "bad")
    later = START + timedelta(seconds=50)
    assert "trying again" in row_words(row, later)[0]
    assert not row.answered


def _rank(rank: int | None, rung: Rung) -> RankProcess:
    process = NodeProcess(host="gpu01", pid=8123, start_ticks=1)
    return RankProcess(process=process, rank=rank, rung=rung)


def test_a_rank_is_never_guessed() -> None:
    assert plain(rank_line((_rank(3, Rung.ENVIRONMENT),), 60)) == "rank 3 (environment) pid 8123"
    assert plain(rank_line((_rank(None, Rung.UNKNOWN),), 60)) == "rank unknown, pid 8123"
    assert plain(rank_line((), 60)) == "no process of the job seen on it"
    assert plain(rank_line(None, 60)) == "ranks not known"


def _use(**fields: Any) -> JobUse:
    given: dict[str, Any] = {"at": START, "mean_percent": 97.0, "known": 8, "trend": (50.0, 97.0)}
    return JobUse(**{**given, **fields})


def test_the_use_of_a_job_in_a_cell() -> None:
    assert use_span(None, START) == ("–", "dim")
    assert use_span(_use(), START)[0] == "97%   ▅█"
    assert use_span(_use(waits=7), START) == ("97%~  ▅█", "wait")
    assert use_span(_use(mean_percent=None, trend=(None,)), START)[0] == "n/a"
    old = use_span(_use(at=START - timedelta(minutes=12)), START)
    assert old == ("97% 12 min", "dim")
    widest = use_span(_use(mean_percent=100.0, waits=8, trend=(100.0,) * 8), START)[0]
    assert len(widest) <= WIDTH


def test_gpus_without_an_index_stand_last() -> None:
    samples = (GpuSample(uuid="GPU-b"), make_gpu(1), make_gpu(0))
    row = row_of(NodeGpus(host="gpu01", samples=samples))
    assert [cell.gpu.index if cell.gpu else None for cell in row.cells] == [0, 1, None]


def test_a_node_that_tells_no_network_card_has_no_unknown_gpu() -> None:
    row = row_of(make_gpus("gpu01", 2), NETWORK)
    (cell,) = row.cells
    said = "\n".join(plain(line) for line in detail_lines(row, cell, NETWORK, START, 100))
    assert "no network card told" in said
    assert "a GPU of this job" not in said
