"""What is written is what Prometheus' own client reads."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from slurmtop.cli.prometheus_text import LONGEST_LABEL, Family, render
from slurmtop.parse.gpu.exporter import parse_prometheus


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


numbers = st.one_of(st.integers(-(10**18), 10**18), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(st.tuples(st.text(max_size=300), numbers), max_size=6))
def test_any_text_in_a_label_comes_back_as_it_was(rows: list[tuple[str, float]]) -> None:
    family = Family("slurmtop_test_ratio", "Any\\thing,\n and more.")
    for name, value in rows:
        family.add(value, {"name": name, "host": "gpu01", "rank": None})
    text = render([family, Family("slurmtop_empty_bytes", "No sample: not written.")])
    assert "slurmtop_empty_bytes" not in text
    wanted = {
        ("slurmtop_test_ratio", tuple(sorted(labels))): value
        for labels, value in family.samples.items()
    }
    assert read(text) == wanted
    # And slurmtop's own reader agrees with the official one.
    own = parse_prometheus(text.encode())
    assert own.bad == 0
    assert [dict(row.labels) for row in own.rows] == [dict(one) for one in family.samples]


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=60))
def test_printable_text_is_not_changed(name: str) -> None:
    family = Family("slurmtop_test_ratio", "A name.")
    family.add(1.5, {"name": name})
    assert read(render([family])) == {("slurmtop_test_ratio", (("name", name),)): 1.5}


def test_signs_of_the_format_are_escaped() -> None:
    family = Family("slurmtop_job_info", "A job.")
    family.add(1, {"name": 'a"b\\c\nd{e="f"} 7', "host": ""})
    assert render([family]) == (
        "# HELP slurmtop_job_info A job.\n"
        "# TYPE slurmtop_job_info gauge\n"
        'slurmtop_job_info{name="a\\"b\\\\c\\nd{e=\\"f\\"} 7",host=""} 1\n'
    )


def test_what_is_not_known_is_no_series() -> None:
    family = Family("slurmtop_gpu_power_watts", "Power.")
    family.add(None, {"gpu": "0"})
    family.add(float("nan"), {"gpu": "1"})
    family.add(float("inf"), {"gpu": "2"})
    assert render([family]) == ""


def test_no_series_stands_twice() -> None:
    family = Family("slurmtop_job_gpus", "GPUs.")
    family.add(8, {"job": "1"})
    family.add(9, {"job": "1"})
    assert render([family]).count("\n") == 3


def test_a_long_name_is_cut_and_no_letter_halved() -> None:
    family = Family("slurmtop_job_info", "A job.")
    family.add(1, {"name": "é" * 1000})
    ((_, labels),) = read(render([family]))
    assert labels == (("name", "é" * (LONGEST_LABEL // 2)),)
