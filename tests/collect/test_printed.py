"""What slurmtop printed and somebody kept is never read as what a run said."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurmtop.collect.left_behind import read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_content import Content, content_of
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.join import join
from slurmtop.triage.judge import explain_traces
from slurmtop.triage.report import report_lines
from slurmtop.triage.timeline import timeline_lines
from slurmtop.triage.words import copy_block, four_lines
from tests.fakes import FakeClock

LINE = b"step 100 loss 2.1034 lr 0.0003 tokens 4096000\n"
OUT_OF_MEMORY = (
    b"2031-05-05 10:00:00 step 1/9 loss 2.0\n"
    b"[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3 has"
    b" a total capacity of 63.42 GiB of which 1.70 GiB is free.\n"
)
READ = read_bytes("r.log", OUT_OF_MEMORY)
VERDICT = explain_traces(READ)


@pytest.fixture
async def runner() -> AsyncIterator[LocalRunner]:
    made = LocalRunner(FakeClock(), os.environ)
    yield made
    await made.aclose()


def lines(*text: str) -> str:
    return "\n".join(text) + "\n"


@pytest.mark.parametrize("width", [40, 80, 100])
def test_what_slurmtop_printed_is_no_log(width: int) -> None:
    named = replace(VERDICT, job="4711_3")
    report = lines(*report_lines(VERDICT, width=width))
    four = lines(*four_lines(VERDICT, width))
    for text in (
        *(report, lines(*report_lines(named, width=width)), four, report + four, report[:-9]),
        *(copy_block(VERDICT, version="1"), copy_block(named, version="1")),
        *(lines(*timeline_lines(join(READ), width=width)), f"slurmtop: a note\n{report}"),
    ):
        data = text.encode()
        assert content_of(data) is Content.PRINTED, text
        # A log may begin with what its script had printed, and go on behind it.
        assert content_of(data.rstrip() + b"\n" + LINE) is Content.TEXT, text


async def test_a_report_of_an_older_run_says_nothing_of_the_logs_beside_it(
    runner: LocalRunner, tmp_path: Path
) -> None:
    (tmp_path / "triage.txt").write_text(lines(*report_lines(VERDICT)))
    (tmp_path / "new.log").write_bytes(LINE)
    (source,) = (await read_traces(runner, [str(tmp_path)])).sources
    assert source.name.endswith("new.log")
    (source,) = (await read_traces(runner, [str(tmp_path / "triage.txt")])).sources
    assert source.why == "it is what slurmtop printed, not what a run said"


@pytest.mark.parametrize(
    "text",
    [
        "FAILED  tests\n  one of them\nwho\n",
        "what   is this\nwho    knows\n",
        "-- 2031-05-05\nstep 3\n",
        "UNKNOWN\n  confidence interval low\n",
    ],
)
def test_what_others_print_alike_is_a_log(text: str) -> None:
    assert content_of(text.encode()) is Content.TEXT
