"""Other forms of ``squeue`` text: several clusters in one answer, and the default columns."""

from collections.abc import Iterator, Sequence

from slurmtop.model.job import Job
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.squeue import (
    QUEUE_NAMES,
    RECORD_MARK,
    SEPARATOR,
    collect_rows,
    parse_record,
)

_HEADER = b"CLUSTER: "
#: Default format ``%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R``: first byte and end of each.
_COLUMNS = (
    ("id", 0, 18),
    ("partition", 19, 28),
    ("name", 29, 37),
    ("user", 38, 46),
    ("state_compact", 47, 49),
    ("used", 50, 60),
    ("node_count", 61, 67),
    ("reason_or_nodes", 68, None),
)
_GAPS = (18, 28, 37, 46, 49, 60, 67)
_DEFAULT_FIELDS = tuple(name for name, _, _ in _COLUMNS)


def parse_squeue_clusters(
    data: bytes,
    *,
    fields: Sequence[str] = QUEUE_NAMES,
    separator: bytes = SEPARATOR,
    record_mark: bytes = RECORD_MARK,
) -> tuple[dict[str, Parsed[Job]], tuple[str, ...]]:
    """An answer of ``squeue -M alpha,beta`` without ``-h``: (jobs by cluster, silent clusters).

    A line ``CLUSTER: alpha`` stands before each cluster's column titles and records. A
    cluster with titles and no record has an empty queue; one with a header and nothing
    else did not answer, is named as silent and is not among the first. The mark must stand
    behind the records; records before any header are filed under ``""``. Sample::

        CLUSTER: alpha
        JOBID|STATE
        100|RUNNING
    """
    records: dict[str, list[bytes]] = {}
    seen: list[str] = []
    current, title_next = "", False
    for part in data.split(record_mark):
        part = part.lstrip(b"\n")
        while part.startswith(_HEADER):
            line, _, part = part.partition(b"\n")
            current = line[len(_HEADER) :].strip().decode("utf-8", "replace")
            title_next = True
            seen.append(current)
            part = part.lstrip(b"\n")
        if not part:
            continue
        rows = records.setdefault(current, [])
        if title_next:
            title_next = False
            first = part.split(separator, 1)[0].decode("utf-8", "replace")
            if not parse_job_id(first).base:
                continue
        rows.append(part)
    names = tuple(fields)
    answers = {
        cluster: collect_rows(
            parse_record(raw, fields=names, separator=separator, cluster=cluster, index=index)
            for index, raw in enumerate(rows)
        )
        for cluster, rows in records.items()
    }
    silent = dict.fromkeys(name for name in seen if name not in answers)
    return answers, tuple(silent)


def parse_squeue_default(data: bytes, *, cluster: str = "") -> Parsed[Job]:
    """The default columns of ``squeue``, as well as they can be read.

    Slurm cuts the id to 18 bytes and partition, user and name to 9 and 8, so those are not
    to be relied on; a cut id has its throttle unknown. Sample::

                 JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                     2 gpu-large llm-pret    alice  R       0:13      2 gpu[01-02]
    """
    return collect_rows(_default_rows(data, cluster))


def _default_rows(data: bytes, cluster: str) -> Iterator[Job | BadRecord]:
    for index, line in enumerate(data.split(b"\n")):
        if not line.strip() or line.startswith(_HEADER) or line.split()[:1] == [b"JOBID"]:
            continue
        if len(line) <= _GAPS[-1] or any(line[gap : gap + 1] != b" " for gap in _GAPS):
            why = "not in the columns of the default format"
            yield BadRecord(index, why, line.decode("utf-8", "replace")[:200])
            continue
        values = [line[start:end].strip() for _, start, end in _COLUMNS]
        yield parse_record(
            b"\x1f".join(value.replace(b"\x1f", b"?") for value in values),
            fields=_DEFAULT_FIELDS,
            cluster=cluster,
            index=index,
        )
