"""Prometheus' own answers, and the question for some hosts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.prometheus_api import (
    PrometheusSaysNo,
    parse_prometheus_api,
    query_for,
    time_of,
    times_for,
)

ONE = (
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":'
    b'"DCGM_FI_DEV_GPU_UTIL","Hostname":"gpu01"},"value":[1767139200.5,"97"]}]}}'
)


def test_a_vector_is_series() -> None:
    (series,) = parse_prometheus_api(ONE).rows
    assert (series.name, series.value, series.labels["Hostname"]) == (
        "DCGM_FI_DEV_GPU_UTIL",
        97.0,
        "gpu01",
    )


def test_a_time_is_a_value() -> None:
    (series,) = parse_prometheus_api(ONE.replace(b'"97"', b'"1767139200.5"')).rows
    at = time_of(series)
    assert at is not None
    assert at.timestamp() == 1767139200.5
    for nonsense in (b'"NaN"', b'"1e17"', b'"-1e15"', b'"x"'):
        assert time_of(parse_prometheus_api(ONE.replace(b'"97"', nonsense)).rows[0]) is None
    assert times_for(["gpu01"]).count("timestamp(") == 12


def test_a_sample_that_is_none_costs_only_itself() -> None:
    broken = ONE.replace(b"[{", b'[{"metric":{},"value":[1]},null,3,{')
    parsed = parse_prometheus_api(broken)
    assert (len(parsed.rows), parsed.bad) == (1, 3)
    assert parse_prometheus_api(ONE.replace(b'"97"', b'"NaN"')).rows[0].value is None


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"status":"error"}', b"[" * 100_000])
def test_a_refusal_and_nonsense_are_said(body: bytes) -> None:
    with pytest.raises(PrometheusSaysNo):
        parse_prometheus_api(body)


@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_none(data: bytes) -> None:
    for body in (data, ONE[:-3] + data, ONE.replace(b"gpu01", data)):
        try:
            parse_prometheus_api(body)
        except PrometheusSaysNo:
            continue


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_no_host_name_gets_out_of_its_string_or_matches_others(hosts: list[str]) -> None:
    query = query_for(hosts)
    assert "\\" not in query
    for pattern in re.findall(r'Hostname=~"([^"]*)"', query):
        found = re.compile(pattern)
        assert not found.fullmatch("another-node-altogether")
    assert query.count('"') % 2 == 0


def test_a_host_is_found_by_its_short_and_its_long_name() -> None:
    (pattern,) = re.findall(r'Hostname=~"([^"]*)"', query_for(["gpu01", "gpu-2.b"]))
    for name in ("gpu01", "gpu01.cluster.example", "gpu-2.b"):
        assert re.fullmatch(pattern, name)
    for name in ("gpu011", "gpu-2xb", "xgpu01"):
        assert not re.fullmatch(pattern, name)
