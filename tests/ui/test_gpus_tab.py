"""The GPUs tab: what it shows in each situation, and when nodes are looked at."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from textual.pilot import Pilot

from slurmtop.model.gpu import Answer, GpuSample, MigSlice, NodeGpus
from slurmtop.model.job import Tres
from slurmtop.model.look import HostLook
from slurmtop.model.nic import NicKind, NicPort
from slurmtop.model.reach import Way
from slurmtop.model.rights import Rights
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.present.gpu_grid import GridRow
from slurmtop.ui.present.spans import Line
from slurmtop.ui.screens.job import JobScreen
from slurmtop.ui.widgets.gpus_tab import GpusTab
from tests.build import make_job
from tests.fakes import settle
from tests.ui.golden import Golden, screen_text
from tests.ui.gpu_bench import (
    TWO_NODES,
    GpuBench,
    make_gpu,
    make_gpus,
    with_gpu,
    with_ranks,
)

SIZES = [(80, 24), (140, 40)]
NO_KEY = Failure(
    Trouble.OTHER,
    "gpu02: its host key is not known here: ssh gpu02 once, compare the key with what your site"
    " tells, then press r",
)


def healthy(bench: GpuBench) -> None:
    for first, host in ((0, "gpu01"), (8, "gpu02")):
        fields = with_ranks(make_gpus(host), bench, first, 16, "4711")
        bench.look(fields.pop("gpus"), **fields)


def straggler(bench: GpuBench) -> None:
    bench.look(make_gpus("gpu01"))
    slow = {"util_percent": 41.0, "power_w": 250.0, "sm_active": 0.2, "events": 0x40}
    bench.look(with_gpu(make_gpus("gpu02"), 3, **slow))


def one_fails(bench: GpuBench) -> None:
    bench.look(make_gpus("gpu01"))
    bench.node_fails("gpu02", NO_KEY.sentence)


def one_fails_after_a_while(bench: GpuBench) -> None:
    bench.look(make_gpus("gpu01"))
    bench.node_fails("gpu02", "gpu02 does not answer any more", before=make_gpus("gpu02"))


def hang(bench: GpuBench) -> None:
    waits: dict[str, Any] = {
        "util_percent": 100.0,
        "power_w": 168.0,
        "tensor_active": 0.0,
        "dram_active": 0.01,
        "sm_active": 0.05,
        "nvlink_tx_bytes_s": 0.0,
        "nvlink_rx_bytes_s": 0.0,
    }
    bench.look(make_gpus("gpu01", **waits))
    bench.look(with_gpu(make_gpus("gpu02", **waits), 5, util_percent=0.0, power_w=75.0))


def gone_and_broken(bench: GpuBench) -> None:
    seven = make_gpus("gpu01", 7)
    lost = replace(
        seven,
        answer=Answer.GPU_LOST,
        lost=("0000:1e:00.0",),
        failure=Failure(Trouble.OTHER, "gpu01: a GPU is lost: drain the node"),
    )
    bench.look(lost)
    broken = {"util_percent": None, "words": (("util_percent", "[Unknown Error]"),)}
    bench.look(with_gpu(make_gpus("gpu02"), 1, **broken))


def mig(bench: GpuBench) -> None:
    cards = make_gpus("gpu01", 2, mig=True, util_percent=None, sm_active=None, power_w=438.0)
    slices = tuple(
        MigSlice(
            uuid=f"MIG-{n}", profile="3g.40gb", device=n % 2, parent_uuid=cards.samples[n // 2].uuid
        )
        for n in range(4)
    )
    bench.look(replace(cards, slices=slices), inside="4711")


def mixed(bench: GpuBench) -> None:
    a100 = {"name": "NVIDIA A100-SXM4-80GB", "power_limit_w": 400.0, "power_w": 380.0}
    bench.look(make_gpus("gpu01", 4, util_percent=95.0))
    both = make_gpus("gpu02", 4)
    for index in (2, 3):
        both = with_gpu(both, index, **a100)
    bench.look(both)


SMALL = replace(TWO_NODES, tres=Tres(gpus=8))
ONE_NODE_MIG = replace(
    TWO_NODES, nodes="gpu01", node_count=1, tres=Tres(gpus=0, slices_by_type=(("3g.40gb", 4),))
)


def gb200(bench: GpuBench) -> None:
    for n in range(1, 5):
        host = f"gb{n:02}"
        bench.look(make_gpus(host, 4, name="NVIDIA GB200", power_limit_w=1_200.0, power_w=1_010.0))


GB200 = replace(TWO_NODES, nodes="gb[01-04]", node_count=4, tres=Tres(gpus=16))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "job", "fill", "keys"),
    [
        ("healthy", TWO_NODES, healthy, ("j", "l", "l")),
        ("straggler", TWO_NODES, straggler, ("s", "l", "l", "l")),
        ("one_fails", TWO_NODES, one_fails, ("j",)),
        ("one_fails_later", TWO_NODES, one_fails_after_a_while, ("j",)),
        ("waits", TWO_NODES, hang, ("j",)),
        ("lost", TWO_NODES, gone_and_broken, ("G", "right")),
        ("mig", ONE_NODE_MIG, mig, ()),
        ("mixed", SMALL, mixed, ("j", "l", "l")),
        ("gb200", GB200, gb200, ()),
        ("loading", TWO_NODES, lambda bench: None, ()),
    ],
)
async def test_what_it_looks_like(
    golden: Golden, size: tuple[int, int], name: str, job: Any, fill: Any, keys: tuple[str, ...]
) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.gpus(pilot, job)
        fill(bench)
        await bench.told(pilot)
        await bench.press(pilot, *keys)
        golden(f"gpus_{name}_{size[0]}", app)


async def test_another_persons_job_is_not_looked_at(golden: Golden) -> None:
    bench = GpuBench()
    bench.world.known_rights = Rights(operator=False)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot, replace(TWO_NODES, user="bob"))
        golden("gpus_refused", app)
        assert bench.watches == []


@pytest.mark.parametrize(("uid", "operator"), [(0, False), (20_017, True)])
async def test_root_and_operators_look_at_any_job(uid: int, operator: bool) -> None:
    bench = GpuBench(uid=uid)
    bench.world.known_rights = Rights(operator=operator)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot, replace(TWO_NODES, user="bob"))
        assert bench.watch.hosts == ("gpu01", "gpu02")


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (make_job("4711", "PENDING", gpus=8), "It has no nodes yet"),
        (make_job("4711", gpus=0), "Slurm says that this job holds none"),
        (make_job("4711", "COMPLETED", gpus=8), "Its nodes are no longer asked"),
    ],
)
async def test_a_job_without_gpus_now_says_so(job: Any, says: str) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot, job)
        assert says in screen_text(app)
        assert bench.watches == []


async def test_where_nodes_are_not_asked_it_says_so() -> None:
    bench = GpuBench(watch_gpus=None)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        assert "node_access: off" in screen_text(app)


async def test_the_watch_lives_a_minute_longer_than_the_tab() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, TWO_NODES)
        assert bench.watches == [], "nobody has looked yet"
        await bench.show_tab(pilot)
        assert bench.watch.runs()
        assert bench.watch.job is not None
        await bench.show_tab(pilot, "Why")
        await bench.advance(pilot, 50)
        assert bench.watch.runs()
        await bench.show_tab(pilot)
        await bench.advance(pilot, 50)
        assert bench.watch.runs(), "it is shown again"
        assert len(bench.watches) == 1
        await bench.press(pilot, "escape")
        await bench.advance(pilot, 58)
        assert bench.watch.runs()
        await bench.advance(pilot, 4)
        assert not bench.watch.runs()
        assert bench.watch.ended == 1


async def test_a_screen_on_top_counts_as_left() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        await bench.press(pilot, "question_mark")
        await bench.advance(pilot, 62)
        assert not bench.watch.runs()
        await bench.press(pilot, "escape")
        assert bench.watch.runs()
        assert len(bench.watches) == 2


async def test_it_pauses_while_nobody_is_there_and_ends_with_the_app() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        bench.look(make_gpus("gpu01"))
        await bench.advance(pilot, 602)
        assert not bench.watch.runs()
        assert "paused" in screen_text(app)
        await bench.press(pilot, "j")
        await bench.advance(pilot, 2)
        assert bench.watch.runs()
        assert "paused" not in screen_text(app)
    assert not bench.watch.runs()


async def test_of_many_nodes_those_in_view_are_kept_fresh_and_the_others_counted() -> None:
    bench = GpuBench()
    app = bench.app()
    many = replace(TWO_NODES, nodes="n[0001-1000]", node_count=1_000, tres=Tres(gpus=8_000))
    async with app.run_test(size=(140, 40)) as pilot:
        tab = await bench.gpus(pilot, many)
        bench.watch.in_turn = 936
        bench.look(make_gpus("n0001"))
        await bench.told(pilot)
        page = tab.grid.page
        assert bench.watch.seen[0] == "n0001"
        assert set(bench.watch.seen) == {f"n{at:04}" for at in range(1, page + 5)}
        assert "64 watched, the others in turn" in screen_text(app)
        await bench.press(pilot, "G")
        await bench.advance(pilot, 2)
        assert bench.watch.seen[0] == "n1000"
        assert set(bench.watch.seen) == {f"n{at:04}" for at in range(1_000 - page - 3, 1_001)}
        await bench.press(pilot, "p")
        await bench.advance(pilot, 2)
        assert bench.watch.seen == ("n1000",)


async def test_a_job_that_ends_or_moves_is_followed() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        bench.look(make_gpus("gpu01"))
        await bench.told(pilot)
        moved = replace(TWO_NODES, nodes="gpu[03-04]", restarts=1)
        await bench.answer(pilot, (moved,))
        await bench.settled(pilot)
        assert bench.watches[0].ended == 1
        assert bench.watch.hosts == ("gpu03", "gpu04")
        bench.look(make_gpus("gpu03"))
        await bench.told(pilot)
        over = make_job("4711", "COMPLETED", nodes="gpu[03-04]", node_count=2, gpus=16)
        await bench.answer(pilot, (over,))
        await bench.settled(pilot)
        assert not bench.watch.runs()
        text = screen_text(app)
        assert "gpu03 [ 97 ] 97" in text, "what was seen stays"
        assert "over" in text


async def test_refresh_tries_the_nodes_again() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        await bench.advance(pilot, 3)
        await bench.press(pilot, "r")
        assert bench.watch.pokes == 1


async def test_a_watch_that_breaks_is_told() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await bench.gpus(pilot)

        async def broken() -> None:
            raise ValueError("[/bold]")

        bench.watch.run = broken  # type: ignore[method-assign]
        app.gpus.second_passed(idle=True)
        await settle()
        app.gpus.second_passed(idle=False)
        await settle()
        await bench.settled(pilot)
        assert "a background task broke (ValueError('[/bold]'))" in " ".join(
            note.message for note in app._notifications
        )


async def test_the_rank_on_a_gpu_is_told_with_how_it_was_told() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.gpus(pilot)
        healthy(bench)
        await bench.told(pilot)
        text = await bench.press(pilot, "j", "l", "l")
        assert "gpu02 GPU 2" in text
        assert "rank 10 (environment) pid 8110" in text


async def test_gpus_of_another_job_are_not_shown_as_ours() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        bench.look(make_gpus("gpu01", util_percent=0.0), inside="4999")
        await bench.told(pilot)
        text = screen_text(app)
        assert "not visible from here" in text
        assert "idle" not in text.lower()


async def test_values_that_grow_old_say_so() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.gpus(pilot)
        bench.look(make_gpus("gpu01"))
        bench.look(make_gpus("gpu02"))
        await bench.told(pilot)
        assert "data 1 s old" in screen_text(app)
        await bench.advance(pilot, 60)
        text = screen_text(app)
        assert "! data 61 s old" in text
        assert text.count("! 61 s old") == 2
        assert "! nothing new from gpu01 for 61 s" in text


async def test_the_metric_goes_round_and_the_network_has_its_ports() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        tab = await bench.gpus(pilot)
        ports = (
            NicPort(
                name="mlx5_0/1", kind=NicKind.IB, state="ACTIVE", rx_bytes_s=4e9, tx_bytes_s=4e9
            ),
            NicPort(name="mlx5_1/1", kind=NicKind.IB, state="DOWN", rx_bytes_s=0.0, tx_bytes_s=0.0),
        )
        bench.look(make_gpus("gpu01"), nics=ports)
        await bench.told(pilot)
        titles = []
        for _ in range(13):
            text = await bench.press(pilot, "m")
            titles.append(tab.metric.id)
        assert titles[-1] == "util"
        assert len(set(titles)) == 13
        while tab.metric.id != "network":
            text = await bench.press(pilot, "m")
        assert "7.5G" in text
        text = await bench.press(pilot, "l")
        assert "mlx5_1/1" in text
        assert "× down" in text


async def test_esc_closes_the_chart_first(golden: Golden) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        tab = await bench.gpus(pilot)
        for minute in range(30):
            bench.look(make_gpus("gpu01", util_percent=60.0 + minute))
            await bench.advance(pilot, 60)
        await bench.press(pilot, "p")
        golden("gpus_chart_gpu", app)
        await bench.press(pilot, "p")
        golden("gpus_chart_nodes", app)
        await bench.press(pilot, "escape")
        assert tab.charted == ""
        assert isinstance(app.screen, JobScreen)
        assert tab.grid.display


async def test_a_chart_without_a_value_says_why() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        tab = await bench.gpus(pilot)
        for host in ("gpu01", "gpu02"):
            bench.look(make_gpus(host, sm_active=None, util_percent=None))
        await bench.told(pilot)
        for _ in range(20):
            if tab.metric.id == "sm":
                break
            await bench.press(pilot, "m")
        for _ in range(2):
            text = await bench.press(pilot, "p")
            assert f"no source here tells {tab.metric.label}" in text
            assert "nothing was seen yet" not in text


async def test_a_chart_stands_in_the_place_of_no_notice() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        over = make_job("4711", "COMPLETED", nodes="gpu[01-02]", node_count=2, gpus=16)
        tab = await bench.gpus(pilot, over)
        assert "no longer asked" in screen_text(app)
        for _ in range(3):
            text = await bench.press(pilot, "p")
            assert "no longer asked" in text
            assert "nothing was seen yet" not in text
        assert tab.charted == ""


async def test_a_chart_without_plotext_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmtop.ui.widgets.plot._plotext", lambda: None)
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        bench.look(make_gpus("gpu01"))
        await bench.told(pilot)
        assert "charts unavailable" in await bench.press(pilot, "p")


async def test_a_click_selects_a_gpu() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        tab = await bench.gpus(pilot)
        bench.look(make_gpus("gpu01"))
        bench.look(make_gpus("gpu02"))
        await bench.told(pilot)
        line = next(row for row in screen_text(app).splitlines() if row.startswith(" gpu02"))
        await pilot.click("#gpu-grid", offset=(line.index("97") + 5, 2))
        await bench.settled(pilot)
        assert tab.row is not None
        assert tab.row.host == "gpu02"
        assert tab.cell is not None
        assert tab.cell.gpu is not None
        assert tab.cell.gpu.index == 1


async def _big(bench: GpuBench, pilot: Pilot[None], nodes: int) -> GpusTab:
    job = replace(
        TWO_NODES, nodes=f"n[001-{nodes:03}]", node_count=nodes, tres=Tres(gpus=8 * nodes)
    )
    tab = await bench.gpus(pilot, job)
    for n in range(1, nodes + 1):
        bench.look(make_gpus(f"n{n:03}"))
    await bench.told(pilot)
    return tab


async def test_a_burst_of_looks_builds_each_row_once_and_paints_what_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        tab = await _big(bench, pilot, 128)
        assert "128 of 128 answered" in screen_text(app)
        painted: list[str] = []
        line = tab.line

        def counted(row: GridRow, width: int, *, cursor: bool) -> Line:
            painted.append(row.host)
            return line(row, width, cursor=cursor)

        monkeypatch.setattr(tab, "line", counted)
        before = tab.model.built
        for _ in range(5):
            for n in range(1, 129):
                bench.look(make_gpus(f"n{n:03}"))
        await bench.told(pilot)
        assert tab.model.built - before == 128
        assert len(painted) <= 40
        before = tab.model.built
        bench.look(with_gpu(make_gpus("n007"), 2, util_percent=3.0, power_w=90.0))
        await bench.told(pilot)
        assert tab.model.built - before == 2, "once by itself, once as the odd one"
        painted.clear()
        await bench.press(pilot, "j")
        assert len(painted) <= 2


async def test_512_nodes_of_8_are_moved_through(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        tab = await _big(bench, pilot, 512)
        text = await bench.press(pilot, "G")
        assert ">n512" in text
        text = await bench.press(pilot, "s")
        assert "worst first" in text
        assert tab.grid.cursor == 0


async def test_sixteen_gpus_a_node_scroll_sideways_at_80_columns() -> None:
    bench = GpuBench()
    app = bench.app()
    job = replace(TWO_NODES, nodes="gpu01", node_count=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot, job)
        bench.look(make_gpus("gpu01", 16))
        await bench.told(pilot)
        text = await bench.press(pilot, *["l"] * 15)
        assert "gpu01 GPU 15" in text
        assert "‹" in text
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("size", [(20, 8), (40, 12), (80, 10), (200, 50), (1, 1)])
async def test_any_size_survives(size: tuple[int, int]) -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.gpus(pilot)
        straggler(bench)
        await bench.told(pilot)
        await bench.press(pilot, "l", "j", "s", "m", "p", "p", "p", "G")
        assert isinstance(app.screen, JobScreen)


async def test_text_of_the_node_is_harmless() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.gpus(pilot)
        evil = "\x1b[2J[/bold]\u202e"
        gpus = make_gpus("gpu01", name=evil, pstate=evil, recovery_action=evil)
        bench.look(gpus, hints=(evil,), sources=(evil,))
        bench.node_fails("gpu02", evil)
        await bench.told(pilot)
        text = screen_text(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "␛[2J[/bold]" in text


def _roles(app: SlurmtopApp, needle: str) -> set[str]:
    """The styles of the cells that hold ``needle``."""
    return {
        str(segment.style)
        for strip in app.screen._compositor.render_strips()
        for segment in strip
        if needle in segment.text
    }


async def test_without_colour_the_signs_still_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        hang(bench)
        await bench.told(pilot)
        text = screen_text(app)
        assert "100~" in text
        assert "~ full, but at low power: may only wait" in text
        assert all("color" not in style for style in _roles(app, "100~"))


async def test_the_looks_of_a_job_stand_on_the_jobs_screen_with_their_age() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(160, 30)) as pilot:
        await bench.gpus(pilot)
        for minute in range(3):
            bench.look(make_gpus("gpu01", util_percent=40.0 + 20 * minute))
            bench.look(make_gpus("gpu02", util_percent=40.0 + 20 * minute))
            await bench.advance(pilot, 60)
        text = await bench.press(pilot, "escape")
        assert "GPU USE" in text
        assert "80%   ▄▅▇" in text
        await bench.advance(pilot, 120)
        assert "80% 3 min" in screen_text(app)


async def test_a_node_that_fails_leaves_the_use_unknown() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(160, 30)) as pilot:
        await bench.gpus(pilot)
        one_fails(bench)
        await bench.told(pilot)
        assert app.gpus.use_of(TWO_NODES.key) is None
        text = await bench.press(pilot, "escape")
        assert "GPU USE" not in text


async def test_looks_of_views_that_were_left_end_where_another_looks_there() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        first = bench.watch
        await bench.show_tab(pilot, "Why")
        app.gpus.show("nodes", ("gpu02",))
        await settle()
        assert not first.runs()
        assert bench.watch.hosts == ("gpu02",)
        app.gpus.stop("nodes")
        await settle()
        assert not bench.watch.runs()


async def test_a_new_watch_waits_until_the_one_before_has_left_the_nodes() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        first = bench.watch
        first.leaving.clear()
        app.gpus.second_passed(idle=True)
        await settle()
        assert first.runs(), "it takes its time"
        app.gpus.second_passed(idle=False)
        await settle()
        assert first.started == 1
        first.leaving.set()
        await settle()
        assert (first.started, first.ended) == (2, 1)


def _odd_look(at_s: float, sample: GpuSample) -> HostLook:
    at = make_job().start
    assert at is not None
    return HostLook(
        host="gpu01",
        way=Way.SSH,
        gpus=NodeGpus(host="gpu01", samples=(sample,)),
        gpus_at=at + timedelta(seconds=at_s),
    )


async def test_the_book_is_one_for_all_screens() -> None:
    bench = GpuBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.gpus(pilot)
        bench.watch.on_look(_odd_look(1.0, make_gpu()))
        assert app.gpus.book.look("gpu01") is not None
        assert len(app.gpus.book.history("gpu01", make_gpu())) == 1
