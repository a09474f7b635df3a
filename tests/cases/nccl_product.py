"""Slurmtop's answers over the known cases, made once in this process: no child a case."""

import asyncio
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from slurmtop.collect.clock import SystemClock
from slurmtop.collect.left_behind import read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.model.trace import Traces, joined
from slurmtop.model.verdict import Culprit, Verdict, verdict_dict
from slurmtop.parse.logs.reading import read_bytes
from slurmtop.triage.judge import explain_traces
from tests.cases.constants import CASES
from tests.cases.score import (
    Answer,
    find_cases,
    judge,
    line_of,
    load_expected,
    read_families,
    start_row,
)


@dataclass(frozen=True)
class Judged:
    case: Path
    expected: Answer
    verdict: Verdict
    row: Answer

    @property
    def answer(self) -> Answer:
        return verdict_dict(self.verdict)


async def _read_all(cases: list[Path]) -> list[Traces]:
    async with LocalRunner(SystemClock(), os.environ) as runner:
        return [await read_traces(runner, [str(case / "input")]) for case in cases]


@lru_cache(maxsize=1)
def judged() -> tuple[Judged, ...]:
    """Every case, gathered, read and judged as the command does it."""
    cases = find_cases(CASES)
    families = read_families(CASES)
    out = []
    for case, traces in zip(cases, asyncio.run(_read_all(cases)), strict=True):
        expected = load_expected(case)
        verdict = explain_traces(traces)
        row = {**start_row(case.name, expected), **judge(expected, verdict_dict(verdict), families)}
        out.append(Judged(case, expected, verdict, row))
    return tuple(out)


@lru_cache(maxsize=1)
def inputs() -> dict[str, dict[str, bytes]]:
    """The files of each case: {case: {name: bytes}}."""
    return {
        case.name: {
            path.name: path.read_bytes()
            for path in sorted((case / "input").rglob("*"))
            if path.is_file()
        }
        for case in find_cases(CASES)
    }


def verdict_of(files: dict[str, bytes]) -> Verdict:
    """The verdict on files that stand nowhere."""
    return explain_traces(joined(read_bytes(name, data) for name, data in files.items()))


def newly_blamed(verdict: Verdict, before: Verdict) -> list[Culprit]:
    """Who is named now and was not named before, neither by rank nor by host.

    A link alone names nobody.
    """
    ranks = {one.rank for one in before.culprits} - {None}
    hosts = {one.host for one in before.culprits} - {None}
    named = (one for one in verdict.culprits if (one.rank, one.host) != (None, None))
    return [one for one in named if one.rank not in ranks and one.host not in hosts]


def table(rows: list[Answer]) -> str:
    """What is wrong, one line a case, for the message of a failed test."""
    return "\n" + "\n".join(line_of(row) for row in rows)
