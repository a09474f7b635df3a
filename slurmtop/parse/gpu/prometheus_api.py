"""Prometheus' own answers: ``/api/v1/query`` for the series of dcgm-exporter.

Source: Prometheus' HTTP API. Sample (a vector; the time is seconds since 1970)::

    {"status": "success", "data": {"resultType": "vector", "result": [
      {"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "Hostname": "gpu01", "gpu": "0"},
       "value": [1767139200.5, "97"]}]}}
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.exporter import Series
from slurmtop.parse.gpu.values import dcgm_number

_EXCERPT = 200
#: The host stands in one of these, by the exporter's age; without either in the target's address.
HOST_LABELS = ("Hostname", "hostname")
_INSTANCE = "instance"
#: Every exporter has one of these; the time of a value is asked of one series a GPU.
_TIMED = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_UTIL_RATIO",
    "DCGM_FI_DEV_BOARD_POWER_WATTS",
)


class PrometheusSaysNo(Exception):
    """The answer is none; ``str()`` is Prometheus' own reason, or that it cannot be read."""


def query_for(hosts: Sequence[str]) -> str:
    """PromQL for every series of DCGM on these hosts, whatever their label is called."""
    return " or ".join(_selectors('__name__=~"DCGM_FI_.*"', hosts))


def times_for(hosts: Sequence[str]) -> str:
    """PromQL for when those values were read: the answer to :func:`query_for` bears the time of
    the question, and a value may be five minutes older than that."""
    asked = [f'__name__="{name}"' for name in _TIMED]
    return " or ".join(f"timestamp({one})" for name in asked for one in _selectors(name, hosts))


def _selectors(series: str, hosts: Sequence[str]) -> list[str]:
    names = "|".join(_quoted(host) for host in hosts)
    found = [f'{{{series},{label}=~"({names})([.].*)?"}}' for label in HOST_LABELS]
    bare = ",".join(f'{label}=""' for label in HOST_LABELS)
    found.append(f'{{{series},{bare},{_INSTANCE}=~"({names})([.][^:]*)?(:[0-9]+)?"}}')
    return found


def _quoted(host: str) -> str:
    """A host name as a pattern inside a PromQL string; odd characters match nothing else."""
    return re.sub(
        r"[^A-Za-z0-9_-]", lambda one: f"[{one.group()}]", re.sub(r'["\\\s\[\]^]', "?", host)
    )


def parse_prometheus_api(data: bytes) -> Parsed[Series]:
    """The series of a vector. :class:`PrometheusSaysNo` for a refusal."""
    try:
        tree = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise PrometheusSaysNo("its answer is no JSON") from None
    if not isinstance(tree, dict) or tree.get("status") != "success":
        why = tree.get("error") if isinstance(tree, dict) else None
        raise PrometheusSaysNo(str(why)[:_EXCERPT] if why else "its answer cannot be read")
    body = tree.get("data")
    result = body.get("result") if isinstance(body, dict) else None
    return Parsed.of(_series(result if isinstance(result, list) else []))


def _series(result: list[Any]) -> Iterator[Series | BadRecord]:
    for index, one in enumerate(result):
        metric = one.get("metric") if isinstance(one, dict) else None
        value = one.get("value") if isinstance(one, dict) else None
        good = isinstance(metric, dict) and isinstance(value, list) and len(value) == 2
        if not good or not isinstance(metric, dict) or not isinstance(value, list):
            yield BadRecord(index, "no sample", str(one)[:_EXCERPT])
            continue
        labels = {str(name): str(text) for name, text in metric.items()}
        if not any(labels.get(label) for label in HOST_LABELS):
            labels["Hostname"] = labels.get(_INSTANCE, "").rpartition(":")[0] or labels.get(
                _INSTANCE, ""
            )
        text = str(value[1])
        yield Series(labels.get("__name__", ""), labels, dcgm_number(text), text)


def time_of(series: Series) -> datetime | None:
    """The time in an answer to :func:`times_for`."""
    seconds = series.value
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
