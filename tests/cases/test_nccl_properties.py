"""What has to hold for any log: names say nothing, what is missing makes nobody guilty."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmtop.model.verdict import State, Verdict, verdict_dict
from tests.cases.nccl_product import inputs, newly_blamed, verdict_of
from tests.cases.rank_logs import FAULTS, FAULTY, WORLD, files_of
from tests.cases.renaming import Renaming

CASES = tuple(inputs())
#: Of each case, where it is cut: shares of its bytes.
CUTS = tuple(share / 8 for share in range(1, 8))


def renamed(files: dict[str, bytes]) -> tuple[dict[str, bytes], Renaming]:
    texts = {name: data.decode("utf-8", "surrogateescape") for name, data in files.items()}
    renaming = Renaming(texts.values())
    return (
        {name: renaming(text).encode("utf-8", "surrogateescape") for name, text in texts.items()},
        renaming,
    )


def comparable(verdict: Verdict, renaming: Renaming | None = None) -> dict[str, object]:
    def host(name: str | None) -> str | None:
        return name if renaming is None else renaming.host_back(name)

    operation = verdict.collective
    return {
        "state": verdict.state,
        "class": verdict.cls,
        "ended_by": verdict.ended_by,
        "confidence": verdict.confidence,
        "culprits": {(one.rank, host(one.host)) for one in verdict.culprits},
        "operation": None if operation is None else (operation.op, operation.seq),
        "proof": [(one.source, one.line) for one in verdict.evidence],
    }


@pytest.mark.parametrize("case", CASES)
def test_names_addresses_pids_paths_ids_and_hours_change_nothing(case: str) -> None:
    files = inputs()[case]
    other, renaming = renamed(files)
    assert comparable(verdict_of(other), renaming) == comparable(verdict_of(files))


def test_a_renaming_changes_most_cases() -> None:
    assert sum(renamed(files)[0] != files for files in inputs().values()) > 0.75 * len(CASES)


@pytest.mark.parametrize("case", CASES)
def test_an_end_that_is_cut_off_makes_nobody_guilty(case: str) -> None:
    files = inputs()[case]
    whole = verdict_of(files)
    for name, data in files.items():
        for share in CUTS:
            cut = {**files, name: data[: int(len(data) * share)]}
            extra = newly_blamed(verdict_of(cut), whole)
            assert not extra, f"cut at {share:.3f} of {name}: {extra}, whole: {whole.culprits}"


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rank_logs_blame_the_faulty_rank_or_nobody(fault: str) -> None:
    verdict = verdict_of(files_of(fault))
    ranks = {one.rank for one in verdict.culprits}
    if fault in ("silent", "all_alike", "healthy"):
        assert not verdict.culprits, verdict_dict(verdict)
    else:
        assert ranks <= {FAULTY}, verdict_dict(verdict)
    assert verdict.state is (State.HEALTHY if fault == "healthy" else State.FAILED)


@pytest.mark.parametrize("fault", ["out_of_memory", "exception", "other_size", "other_operation"])
def test_the_rank_logs_with_a_plain_fault_name_it(fault: str) -> None:
    verdict = verdict_of(files_of(fault))
    assert {one.rank for one in verdict.culprits} == {FAULTY}, verdict_dict(verdict)


@pytest.mark.parametrize("gone", range(WORLD))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_log_that_is_not_there_makes_nobody_guilty_and_is_told(fault: str, gone: int) -> None:
    files = files_of(fault)
    whole = verdict_of(files)
    del files[f"rank{gone}.log"]
    verdict = verdict_of(files)
    assert not newly_blamed(verdict, whole)
    assert gone not in {one.rank for one in verdict.culprits}
    if verdict.state is not State.HEALTHY:
        told = " ".join(one.why for one in verdict.missing)
        assert re.search(rf"\branks?\b[^.]*\b{gone}\b", told), verdict.missing


@pytest.mark.parametrize("fault", FAULTS)
def test_a_rank_log_that_is_cut_off_makes_nobody_guilty(fault: str) -> None:
    files = files_of(fault)
    whole = verdict_of(files)
    for name, data in files.items():
        for share in CUTS:
            cut = {**files, name: data[: int(len(data) * share)]}
            extra = newly_blamed(verdict_of(cut), whole)
            assert not extra, f"cut at {share:.3f} of {name}: {extra}"


@given(
    st.sampled_from(sorted(FAULTS)),
    st.tuples(st.integers(0, WORLD - 1), st.integers(0, WORLD - 1)),
    st.lists(st.booleans(), max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_two_logs_written_into_one_in_any_order_never_raise(
    fault: str, ranks: tuple[int, int], picks: list[bool]
) -> None:
    first, second = (list(FAULTS[fault](rank)) for rank in ranks)
    out: list[str] = []
    for pick in picks:
        source = first if pick else second
        if source:
            out.append(source.pop(0))
    mixed = "\n".join([*out, *first, *second]).encode()
    verdict = verdict_of({"job.out": mixed})
    assert {one.rank for one in verdict.culprits} <= {FAULTY}
    verdict_dict(verdict)


@given(st.sampled_from(CASES), st.sampled_from(CASES), st.data())
@settings(max_examples=40, deadline=None)
def test_lines_of_two_cases_in_any_order_never_raise(
    one: str, other: str, data: st.DataObject
) -> None:
    lines = [b"\n".join(inputs()[name].values()).split(b"\n")[:200] for name in (one, other)]
    mixed: list[bytes] = []
    while all(lines):
        mixed.append(lines[data.draw(st.integers(0, 1))].pop(0))
        if len(mixed) > 60:
            break
    mixed += lines[0] + lines[1]
    verdict_dict(verdict_of({"job.out": b"\n".join(mixed)}))
