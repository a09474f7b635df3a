"""The Nodes screen, driven by keys over nodes that answer when told to."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from slurmtop.model.gpu import GpuProcess
from slurmtop.model.nic import NicKind, NicPort
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.rights import Rights
from slurmtop.model.snapshot import Failure, SourceHealth, Trouble
from slurmtop.ui.present.spans import plain
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.screens.nodes import NodesScreen
from slurmtop.ui.widgets.node_pane import NodePane
from slurmtop.ui.widgets.rows import Rows
from tests.build import make_job, make_node
from tests.ui.golden import Golden, screen_text
from tests.ui.nodes_bench import NodesBench, a_look, nodes_screen, some_nodes

DOWN = "The Slurm controller on ctl1 does not answer."
OWN = make_job("4711", name="llama-70b", nodes="gpu[01-02]", node_count=2, gpus=11, ran_s=11_045)
OWN_TOO = make_job("4715", name="eval", nodes="gpu02", node_count=1, gpus=1, ran_s=65)
XID = b"[Mon May  5 10:00:01 2031] NVRM: Xid (PCI:0000:12:00): 94, pid=2118, name=python, Contained"


# Each state of the data has its own look


async def test_all_states_at_80(golden: Golden) -> None:
    bench = NodesBench(calls_last_minute=lambda: 8)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, some_nodes(), [OWN, OWN_TOO])
        golden("nodes-80", app)


async def test_all_states_at_140(golden: Golden) -> None:
    bench = NodesBench(calls_last_minute=lambda: 8, way_to_nodes=lambda: "ssh")
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, some_nodes(), [OWN, OWN_TOO])
        golden("nodes-140", app)


async def test_asking(golden: Golden) -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.nodes_asking(pilot)
        golden("nodes-loading", app)


async def test_a_controller_that_is_silent_is_no_empty_cluster(golden: Golden) -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.nodes_fail(pilot, DOWN)
        golden("nodes-silent", app)
        assert "not an empty cluster" in screen_text(app)


async def test_stale_keeps_the_rows_and_says_so(golden: Golden) -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, some_nodes())
        before = app.nodes.health
        await bench.advance(pilot, 61)
        await bench.nodes_fail(pilot, DOWN, since=before)
        golden("nodes-stale", app)
        assert app.screen.query_one(Rows).old


async def test_no_nodes_looks_like_none_and_nothing_else() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, [])
        assert "Slurm names no nodes" in screen_text(app)


async def test_records_that_cannot_be_read_are_told() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.tell_nodes(pilot, some_nodes(), bad=2)
        assert "2 records unreadable" in screen_text(app)


# The node under the cursor


async def test_somebody_elses_node_is_not_entered_and_the_pane_says_who_may(
    golden: Golden,
) -> None:
    bench = NodesBench()
    bench.world.known_rights = Rights(operator=False)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, some_nodes(), [OWN])
        text = await bench.press(pilot, "enter")
        await bench.settled(pilot)
        golden("nodes-refused", app)
        text = screen_text(app)
        assert "only who has one, an operator or root" in " ".join(text.split())
        await bench.advance(pilot, 5)
        assert bench.watches == []
        assert bench.world.asked.count("rights") == 1
        assert bench.runner.calls == []


async def test_ones_own_node_is_watched_after_a_rest(golden: Golden) -> None:
    bench = NodesBench(way_to_nodes=lambda: "ssh")
    bench.world.known_rights = Rights(operator=False)
    bench.runner.on("/bin/sh *slurmtop-kernel*", XID)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await bench.open(pilot, some_nodes(), [OWN, OWN_TOO])
        index = [row.name for row in screen.view.rows].index("gpu02")
        await pilot.press(*"j" * index)
        assert bench.watches == [], "who runs through the table opens nothing"
        await bench.advance(pilot, 2)
        (watch,) = bench.watches
        assert (watch.hosts, watch.job) == (("gpu02",), OWN)
        nics = (
            NicPort(name="mlx5_0/1", kind=NicKind.IB, state="ACTIVE", speed="400 Gb/sec (4X NDR)"),
            NicPort(name="mlx5_1/1", kind=NicKind.IB, state="DOWN", errors=17),
        )
        await bench.look(pilot, a_look(bench.clock, nics=nics))
        text = " ".join((await bench.press(pilot, "enter")).split())
        golden("nodes-gpus", app)
        for words in (
            "hardware thermal slowdown",
            "2 uncorrected memory errors",
            "memory rows wait for remapping",
            "GPU 0: last Xid 31, time unknown: GPU memory page fault",
            "Xid 94 on 0000:12:00 by python: contained: only this process dies",
            "do: restart the job; reset the GPU when free",
            "mlx5_1/1 ib DOWN, 17 errors",
        ):
            assert words in text, words


async def test_the_look_moves_on_with_the_cursor_and_ends_with_the_screen() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes())
        await bench.advance(pilot, 2)
        await pilot.press("j")
        await bench.advance(pilot, 2)
        assert [watch.closed for watch in bench.watches] == [True, False]
        assert bench.watches[0].hosts != bench.watches[1].hosts
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobsScreen)
        await bench.advance(pilot, 61)
        assert [watch.closed for watch in bench.watches] == [True, True]


async def test_a_look_that_fails_is_told_with_what_was_seen_before() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=3)])
        await bench.advance(pilot, 2)
        await bench.look(pilot, a_look(bench.clock))
        failure = Failure(Trouble.DENIED, "gpu02 refuses the login: your key is not known there.")
        soon = bench.clock.now() + timedelta(seconds=30)
        look = a_look(bench.clock, failure=failure, failing_since=bench.clock.now(), next_at=soon)
        await bench.look(pilot, replace(look, gpus_at=bench.clock.now() - timedelta(seconds=240)))
        text = screen_text(app)
        assert "gpu02 refuses the login: your key is not known there. (next try in" in text
        assert "4 min old" in text


async def test_full_use_at_little_power_is_not_shown_as_work() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=8)])
        await bench.advance(pilot, 2)
        look = a_look(bench.clock)
        assert look.gpus is not None
        idle = replace(look.gpus.samples[0], util_percent=100, power_w=170, sm_active=None)
        await bench.look(pilot, replace(look, gpus=replace(look.gpus, samples=(idle,))))
        assert "perhaps WAITS (full use at little power)" in screen_text(app)


async def test_the_gpus_of_all_ones_jobs_are_marked_and_no_others() -> None:
    bench = NodesBench()
    third = make_job("4720", user="bob", nodes="gpu02", node_count=1, gpus=1)
    app = bench.app()
    async with app.run_test(size=(140, 60)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=4)], [OWN, OWN_TOO, third])
        await bench.advance(pilot, 2)
        look = a_look(bench.clock)
        assert look.gpus is not None
        uuids = [gpu.uuid for gpu in look.gpus.samples]
        on = {0: "4711", 2: "4711", 3: "4715", 5: "4720"}
        gpus = replace(
            look.gpus,
            processes=tuple(GpuProcess(pid=100 + at, gpu_uuid=uuids[at]) for at in on),
        )
        processes = NodeProcesses(
            host="gpu02",
            at=bench.clock.now(),
            processes=tuple(
                NodeProcess(host="gpu02", pid=100 + at, start_ticks=1, job=job)
                for at, job in on.items()
            ),
        )
        await bench.look(pilot, replace(look, gpus=gpus, processes=processes))
        text = await bench.press(pilot, "enter")
        assert "* of your jobs" in text
        found = re.findall(r"GPU (\d)\*", text)
        assert sorted(found) == ["0", "2", "3"], text


async def test_gpus_that_are_not_seen_are_told() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=8)])
        await bench.advance(pilot, 2)
        look = a_look(bench.clock)
        assert look.gpus is not None
        few = replace(look, gpus=replace(look.gpus, samples=look.gpus.samples[:3]))
        await bench.look(pilot, few)
        assert "3 of 8 GPUs are seen: the others are hidden" in screen_text(app)
        later = bench.clock.now() + timedelta(seconds=5)
        await bench.look(pilot, replace(few, inside="4711", gpus_at=later))
        assert "3 of 8 GPUs are shown to this login: it is inside job 4711" in screen_text(app)


async def test_lost_gpus_of_a_look_stand_in_the_table() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=3)])
        await bench.advance(pilot, 2)
        look = a_look(bench.clock)
        assert look.gpus is not None
        gpus = replace(look.gpus, samples=look.gpus.samples[:7], lost=("0000:17:00.0",))
        await bench.look(pilot, replace(look, gpus=gpus))
        row = next(line for line in screen_text(app).splitlines() if "> " in line)
        assert "3/8    5    1 h100" in row
        assert "a GPU fell off the bus" in screen_text(app)


async def test_the_kernel_log_is_read_once_a_minute_and_never_after_a_refusal() -> None:
    bench = NodesBench(uid=0)
    refused = "dmesg: read kernel buffer failed: Operation not permitted"
    bench.runner.on("/bin/sh *slurmtop-kernel*", rc=1, stderr=refused)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed"), make_node("gpu03", "mixed")])
        await bench.advance(pilot, 2)
        assert bench.runner.calls == [], "not before the node has let us in"
        await bench.look(pilot, a_look(bench.clock))
        await bench.advance(pilot, 200)
        assert len(bench.runner.calls) == 1
        text = " ".join((await bench.press(pilot, "enter")).split())
        assert "You may not read the kernel log of this node" in text
        assert "kernel.dmesg_restrict=0" in text
        await bench.press(pilot, "escape")
        bench.runner.on("/bin/sh *slurmtop-kernel*", XID)
        await pilot.press("j")
        await bench.advance(pilot, 2)
        await bench.look(pilot, a_look(bench.clock, "gpu03"))
        await bench.advance(pilot, 130)
        assert [call.host for call in bench.runner.calls] == ["gpu02", "gpu03", "gpu03", "gpu03"]


async def test_a_node_that_is_switched_off_or_cannot_be_asked_is_left_alone() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, [make_node("gpu09", "idle~")])
        await bench.advance(pilot, 3)
        assert bench.watches == []
        assert "powered down: there is nothing to look at" in screen_text(app)
    none = NodesBench(watch_gpus=None)
    app = none.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await none.open(pilot, [make_node()], [OWN])
        assert "cannot look into nodes here" in screen_text(app)


# Keys


async def test_the_pane_takes_the_keys_and_opens_the_job() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=8)], [OWN, OWN_TOO])
        text = await bench.press(pilot, "enter")
        assert "> 4711 llama-70b" in text
        text = await bench.press(pilot, "j")
        assert "> 4715 eval" in text
        text = await bench.press(pilot, "escape")
        assert "> 4715" not in text
        assert isinstance(app.screen, NodesScreen)
        assert app.screen.current_job == OWN_TOO.key


@pytest.mark.parametrize("keys", [("o",), ("enter", "enter"), ("2",)])
async def test_ways_to_the_job_on_a_node(keys: tuple[str, ...]) -> None:
    bench = NodesBench()
    app = bench.app()
    opened: list[str] = []
    app.open_job = lambda key: opened.append(key.id)  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=8)], [OWN])
        await bench.press(pilot, *keys)
        assert opened == ["4711"]


async def test_three_comes_back_from_a_job_to_the_same_node() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes(), [OWN])
        await pilot.press("s", "j", "j")
        row = nodes_screen(app).view.cursor_row
        assert row is not None
        await pilot.press("1")
        await bench.settled(pilot)
        assert isinstance(app.screen, JobsScreen)
        assert bench.nodes[-1].stopped
        await pilot.press("3")
        await bench.settled(pilot)
        again = nodes_screen(app)
        assert again.view.sort == "name"
        assert again.view.cursor_row is row
        assert len(app.screen_stack) == 2
        await pilot.press("3")
        assert len(app.screen_stack) == 2


async def test_the_cursor_stays_on_its_node_through_an_answer() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await bench.open(pilot, some_nodes())
        await pilot.press(*"jjjjj")
        row = screen.view.cursor_row
        assert row is not None
        broken = [make_node(f"aaa{n}", "down*", reason="dead") for n in range(4)]
        await bench.tell_nodes(pilot, [*broken, *some_nodes()])
        now = screen.view.cursor_row
        assert now is not None
        assert now.name == row.name


async def test_filter_problems_and_escape() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes(), [OWN])
        text = await bench.press(pilot, "slash", *"part", "colon", *"cpu", "enter")
        assert "1 of 13 nodes" in text
        assert "gpu03" not in text
        text = await bench.press(pilot, "escape", "exclamation_mark")
        assert "only problems" in text
        assert "gpu03" not in text
        assert "gpu05" in text
        text = await bench.press(pilot, "escape")
        assert "gpu03" in text
        text = await bench.press(pilot, "slash", *"nothing-such", "enter")
        assert "No node matches 'nothing-such': esc shows 13 nodes again" in text
        await bench.press(pilot, "escape", "escape")
        assert isinstance(app.screen, JobsScreen)


async def test_a_filter_is_there_again_when_the_screen_is() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes())
        await bench.press(pilot, "slash", *"drained", "enter", "1")
        text = await bench.press(pilot, "3")
        assert "1 of 13 nodes" in text
        assert "drained" in text


async def test_where_would_it_fit(golden: Golden) -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await bench.open(pilot, some_nodes(), [OWN])
        text = await bench.press(pilot, "f", *"2x", "enter")
        assert "nodes x GPUs a node is wanted" in text
        text = await bench.press(pilot, "f", *"8", "enter")
        golden("nodes-fit", app)
        assert "1 of 2 now in gpu" in text
        assert [row.name for row in screen.view.rows if screen.marked(row)] == ["gpu03"]
        text = await bench.press(pilot, "escape")
        assert "now in gpu" not in text
        assert not any(screen.marked(row) for row in screen.view.rows)


async def test_everybodys_jobs_are_one_key_away() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, [make_node("gpu02", "mixed", used=8)])
        assert "others'" in screen_text(app)
        await bench.press(pilot, "a")
        await bench.advance(pilot, 2)
        await bench.answer(pilot, [replace(OWN, user="bob", name="secret-model")])
        text = screen_text(app)
        assert "bob" in text
        assert "others'" not in text


# What it costs


async def test_slurm_is_asked_only_while_the_screen_is_shown() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.answer(pilot, [])
        await bench.advance(pilot, 5)
        assert bench.nodes == []
        await bench.open(pilot, some_nodes(), [OWN])
        assert len(bench.nodes) == 1
        await bench.press(pilot, "question_mark")
        assert [one.stopped for one in bench.nodes] == [False], "still seen below the help"
        await bench.press(pilot, "escape", "escape")
        assert [one.stopped for one in bench.nodes] == [True]
        await bench.press(pilot, "3")
        assert len(bench.nodes) == 1, "back within a minute: nobody is asked"
        await bench.advance(pilot, 61)
        assert len(bench.nodes) == 2


async def test_refresh_asks_at_once() -> None:
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes())
        await bench.press(pilot, "r")
        assert bench.nodes[-1].pokes == 1
        await bench.press(pilot, "1", "3")
        await bench.advance(pilot, 3)
        await bench.press(pilot, "r")
        assert len(bench.nodes) == 2


async def test_idle_asks_less_often_and_opens_nothing() -> None:
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot, some_nodes())
        await bench.advance(pilot, 602)
        assert bench.nodes[-1].factor == 6.0
        assert all(watch.closed for watch in bench.watches)
        await bench.press(pilot, "j")
        await bench.advance(pilot, 2)
        assert bench.nodes[-1].factor == 1.0
        assert not bench.watches[-1].closed


async def test_5000_nodes_paint_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = 0
    real = NodesScreen.line

    def counted(self: NodesScreen, row: object, width: int, *, cursor: bool) -> object:
        nonlocal lines
        lines += 1
        return real(self, row, width, cursor=cursor)  # type: ignore[arg-type]

    monkeypatch.setattr(NodesScreen, "line", counted)
    nodes = [make_node(f"n{n:04}", "mixed", used=n % 9) for n in range(5_000)]
    bench = NodesBench()
    app = bench.app()
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await bench.open(pilot, nodes)
        assert lines <= 100
        # The pane has come and made the table shorter: all is painted once more, and that is it.
        await bench.tell_nodes(pilot, [replace(node) for node in nodes])
        lines = 0
        await bench.tell_nodes(pilot, [replace(node) for node in nodes])
        assert lines <= 2, "nothing changed"
        assert screen.view.rebuilds == 1
        await bench.press(pilot, "j")
        assert lines <= 6
        lines = 0
        await bench.press(pilot, "G")
        assert lines <= 40
        row = screen.view.cursor_row
        assert row is not None
        assert row.name == "n4999"


# Hostile text


async def test_hostile_reasons_names_and_answers_stay_harmless(golden: Golden) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 [bold]x[/bold] \u202egnp.exe\u202c\nNODE  STATE " + "A" * 300
    node = make_node("gpu\x1b[31m", "mixed", used=3, reason=evil, reason_user="ro\x07ot")
    bench = NodesBench(uid=0)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, [node], [replace(OWN, name=evil, nodes=node.name)])
        await bench.advance(pilot, 2)
        look = a_look(bench.clock, node.name, hints=(evil,))
        assert look.gpus is not None
        gpus = replace(look.gpus, remarks=(evil,))
        nic = NicPort(name=evil, kind=NicKind.ETH, state=evil, speed=evil)
        await bench.look(pilot, replace(look, gpus=gpus, nics=(nic,)))
        text = await bench.press(pilot, "enter")
        golden("nodes-hostile", app)
        for char in ("\x1b", "\x07", "\u202e"):
            assert char not in text
        pane = app.screen.query_one(NodePane)
        whole = "\n".join(plain(line) for line in pane.lines)
        for char in ("\x1b", "\x07", "\u202e", "[31m\n"):
            assert char not in whole
        assert whole.count("gpu␛[31m") >= 1


def test_the_health_of_a_new_poller_has_the_past_of_the_old() -> None:
    bench = NodesBench()
    app = bench.app()
    feed = app.nodes
    good = SourceHealth("nodes", good_at=bench.clock.now(), took_s=0.1, interval_s=60.0)
    feed._on_news = lambda: None
    feed._health_came(good)
    feed._health_came(SourceHealth("nodes", asking_since=bench.clock.now()))
    assert feed.health.good_at == good.good_at
    feed._health_came(SourceHealth("nodes", failure=Failure(Trouble.DOWN, DOWN)))
    assert feed.health.good_at == good.good_at
    assert feed.health.failure is not None
