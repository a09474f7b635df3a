"""Draw the README's pictures from the real screen of the demo: ``python -m tests.ui.picture``."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

from slurmtop.cli.demo import NoLog, open_demo
from slurmtop.cli.tui import make_services
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.config import Config
from slurmtop.control.execute import Executor
from slurmtop.control.read_back import QueueReadBack
from slurmtop.ui.app import SlurmtopApp

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Pictures must not make a reader's browser fetch anything.
_FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")
_SIZE = (100, 26)


async def draw() -> None:
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
    wiring = open_demo("busy", 20.0)
    info = await read_cluster_info(wiring.runner)
    executor = Executor(
        wiring.runner,
        wiring.clock,
        NoLog(),
        read_only=False,
        read_back=QueueReadBack(wiring.runner),
    )
    config = Config(dcgm="on")
    app = SlurmtopApp(make_services(wiring, config, executor, info, read_only=False, demo="busy"))
    async with app.run_test(size=_SIZE) as pilot:
        await _until(lambda: bool(app.book.sampled_at))
        await pilot.pause()
        _write("jobs.svg", app)
        await pilot.press("j", "enter")
        await _until(lambda: "nodes looked at twice" in _text(app))
        _write("job.svg", app)
        await pilot.press("tab")
        await _until(lambda: "odd one" in _text(app))
        _write("gpus.svg", app)


def _text(app: SlurmtopApp) -> str:
    return app.export_screenshot().replace("&#160;", " ")


async def _until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not met():  # noqa: ASYNC110 - the app tells nobody that it has painted
            await asyncio.sleep(0.1)


def _write(name: str, app: SlurmtopApp) -> None:
    svg = _FONTS.sub("", app.export_screenshot(title="slurmtop"))
    (DOCS / name).write_text(svg, encoding="utf-8")
    print(DOCS / name)


if __name__ == "__main__":
    asyncio.run(draw())
