"""What the chart of the GPUs tab draws: one GPU, or the means of a few nodes. Pure."""

from collections.abc import Sequence
from datetime import datetime

from slurmtop.model.gpu import GpuSample
from slurmtop.model.text import visible
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.store.gpus import HISTORY, POINT_S, GpuBook
from slurmtop.ui.present.chart import NOTHING, Chart, Series
from slurmtop.ui.present.gpu_grid import Cell, GridRow, metric_title

#: Lines of one chart, each with its digit.
MOST_NODES = 6
POINTS = int(HISTORY.total_seconds() // POINT_S)


def node_trend(
    book: GpuBook,
    host: str,
    gpus: Sequence[GpuSample],
    metric: GpuMetric,
    now: datetime,
    points: int,
) -> tuple[float | None, ...]:
    """The mean of a node's GPUs, ten seconds a value; None where nothing was seen."""
    trends = [book.trend(host, gpu, metric.pick, now=now, points=points) for gpu in gpus]
    out: list[float | None] = []
    for values in zip(*trends, strict=True):
        known = [value for value in values if value is not None]
        out.append(sum(known) / len(known) if known else None)
    return tuple(out)


def in_minutes(values: Sequence[float | None], scale: float = 1.0) -> Series:
    """Values ten seconds apart, the newest last, as points in minutes before now."""
    last = len(values) - 1
    return Series(
        tuple(
            ((index - last) * POINT_S / 60, None if value is None else value * scale)
            for index, value in enumerate(values)
        )
    )


def scale_of(metric: GpuMetric) -> float:
    """What a value is multiplied by so that the axis reads well: shares as per cent, GiB."""
    return {"share": 100.0, "bytes/s": 1 / float(1 << 30)}.get(metric.unit, 1.0)


def chart_title(
    metric: GpuMetric, row: GridRow, cell: Cell | None, nodes: Sequence[GridRow], all_nodes: int
) -> str:
    """What is drawn; of several nodes also which digit is which."""
    title = metric_title(metric).replace("B/s", "GiB/s")
    if not nodes:
        number = "?" if cell is None or cell.ref is None else cell.ref.name.removeprefix("GPU ")
        return f"{title}: {visible(row.host)} GPU {number}"
    names = "  ".join(f"{index + 1} {visible(one.host)}" for index, one in enumerate(nodes))
    of = f" ({len(nodes)} of {all_nodes} nodes)" if len(nodes) < all_nodes else ""
    return f"{title}, means: {names}{of}"


def make_chart(
    book: GpuBook,
    metric: GpuMetric,
    now: datetime,
    row: GridRow | None,
    cell: Cell | None,
    nodes: Sequence[GridRow],
    *,
    nothing: str = NOTHING,
) -> Chart:
    """The last hour of the means of ``nodes``, else of the GPU in ``cell``; ``nothing`` says why
    there is no value where there is none."""
    scale = scale_of(metric)
    series = [
        in_minutes(node_trend(book, one.host, one.samples, metric, now, POINTS), scale)
        for one in nodes
    ]
    if not nodes and row is not None and cell is not None and cell.gpu is not None:
        values = book.trend(row.host, cell.gpu, metric.pick, now=now, points=POINTS)
        series.append(in_minutes(values, scale))
    return Chart(
        series=tuple(series),
        x_from=-HISTORY.total_seconds() / 60,
        x_to=0.0,
        x_label="minutes ago",
        top=None if metric.full is None else metric.full * scale,
        nothing=nothing,
    )
