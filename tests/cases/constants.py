"""What a tool that looks at nothing would score: three constant answers over the known cases.

``python -m tests.cases.constants`` prints their figures. A floor in ``test_nccl_cases`` that a
constant reaches would say nothing.
"""

from pathlib import Path

from tests.cases.score import (
    Answer,
    find_cases,
    judge,
    load_expected,
    read_families,
    start_row,
    summary_of,
    total,
    totals,
)

CASES = Path(__file__).with_name("nccl")
#: Nobody is named and no line is shown by any of them.
CONSTANTS: dict[str, Answer] = {
    "unknown, no class": {"state": "unknown", "class": None},
    "failed, no class": {"state": "failed", "class": None},
    "failed, watchdog-timeout-unattributed": {
        "state": "failed",
        "class": "watchdog-timeout-unattributed",
    },
}


def rows_of(verdict: Answer) -> list[Answer]:
    """Every case judged with this one verdict."""
    families = read_families(CASES)
    rows = []
    for case in find_cases(CASES):
        expected = load_expected(case)
        rows.append({**start_row(case.name, expected), **judge(expected, verdict, families)})
    return rows


def figures(verdict: Answer) -> dict[str, int]:
    return total(rows_of(verdict))


if __name__ == "__main__":
    for name, verdict in CONSTANTS.items():
        print(f"{name}")
        for part, counts in totals(rows_of(verdict)).items():
            print(f" {part}: {summary_of(counts)}")
