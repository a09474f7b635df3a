"""The verdict on public failures with a known answer: who is blamed, and floors for the rest.

What is asserted are floors over these cases. The ones held back decide; see ``nccl/README.md``.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slurmtop.triage.catalogue import CATALOGUE
from tests.cases.constants import CASES, CONSTANTS, figures
from tests.cases.nccl_product import Judged, judged, table
from tests.cases.score import (
    Answer,
    alternatives,
    check,
    read_families,
    squeeze,
    total,
    word,
)

SURE = ("certain", "likely")
#: Cases over which the command itself is run once.
COMMAND_CASES = ("013-slurm-host-oom-kill", "067-user-ctrl-c-not-a-fault", "114-", "016-healthy")


def rows() -> list[Answer]:
    return [one.row for one in judged()]


def sure_rows() -> list[Answer]:
    return [row for row in rows() if row["confidence"] in SURE]


def test_the_case_files_are_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(CASES) == 0, capsys.readouterr().out


def test_every_class_of_the_cases_is_in_the_catalogue_in_the_same_family() -> None:
    told = {slug: entry.family for slug, entry in CATALOGUE.items()}
    assert read_families(CASES).items() <= told.items()


def test_nobody_is_blamed_wrongly() -> None:
    wrong = [row for row in rows() if row["culprit"] == "wrong blame"]
    assert not wrong, table(wrong)


def test_nobody_is_blamed_who_must_not_be() -> None:
    hit = [row for row in rows() if row["must_not_blame_hit"]]
    assert not hit, table(hit)


def test_the_state_of_what_is_no_fault_is_always_right() -> None:
    wrong = [row for row in rows() if row["not_a_fault"] and not row["state_right"]]
    assert not wrong, table(wrong)


def test_what_is_no_fault_gets_its_class_or_none() -> None:
    wrong = [
        one.row
        for one in judged()
        if one.row["not_a_fault"] and not one.row["class_right"] and one.row["got"]["class"]
    ]
    assert not wrong, table(wrong)


def test_nobody_is_named_for_what_is_no_fault_unless_the_case_names_them() -> None:
    wrong = [
        one.row
        for one in judged()
        if one.row["not_a_fault"] and one.row["got"]["culprits"] and not _names_somebody(one)
    ]
    assert not wrong, table(wrong)


def _names_somebody(one: Judged) -> bool:
    return any(a["culprit_ranks"] or a["culprit_hosts"] for a in alternatives(one.expected))


@pytest.mark.parametrize(
    ("what", "key", "of", "least"),
    [
        ("wholly right", "whole_right", "cases", 0.75),
        ("state", "state_right", "cases", 0.95),
        ("class", "class_right", "class_of", 0.85),
        ("family", "family_right", "class_of", 0.92),
        ("evidence", "evidence_found", "evidence_of", 0.95),
    ],
)
def test_floor_over_the_certain_and_likely_cases(
    what: str, key: str, of: str, least: float
) -> None:
    sums = total(sure_rows())
    share = sums[key] / sums[of]
    wrong = [row for row in sure_rows() if _is_wrong(row, key)]
    assert share >= least, f"{what}: {sums[key]} of {sums[of]}, wanted {least:.0%}{table(wrong)}"


def _is_wrong(row: Answer, key: str) -> bool:
    if key == "family_right":
        return not row["class_right"] and row["class_info"] != "same family"
    if key == "evidence_found":
        return not row["evidence_found"] and not row["expect_healthy"]
    return not row[key]


def test_a_constant_answer_reaches_no_floor() -> None:
    for name, verdict in CONSTANTS.items():
        sums = figures(verdict)
        assert sums["whole_right"] < 0.75 * sums["cases"], name
        assert sums["class_right"] < 0.85 * sums["class_of"], name
        assert sums["evidence_found"] == 0, name


def test_every_line_that_is_shown_stands_in_its_file_where_it_is_said_to_stand() -> None:
    wrong = []
    for one in judged():
        for shown in (*one.verdict.evidence, *one.verdict.against):
            lines = Path(shown.source).read_bytes().decode("utf-8", "replace").splitlines()
            if shown.line is None or not 1 <= shown.line <= len(lines):
                wrong.append(f"{one.case.name}: {shown.source}:{shown.line} is no line")
                continue
            head = squeeze(shown.text.split("\n")[0])[:40]
            if head not in squeeze(lines[shown.line - 1]):
                wrong.append(f"{one.case.name}: line {shown.line} is not {head!r}")
    assert not wrong, "\n".join(wrong)


def test_the_command_says_the_same_as_the_library() -> None:
    chosen = [one for one in judged() if one.case.name.startswith(COMMAND_CASES)]
    assert len(chosen) >= 3
    for one in chosen:
        done = subprocess.run(
            [sys.executable, "-m", "slurmtop", "triage", "--json", str(one.case / "input")],
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 2), done.stderr
        told = json.loads(done.stdout)
        told["made_at"] = None
        assert told == one.answer
        assert word(told["class"]) == one.row["got"]["class"]
