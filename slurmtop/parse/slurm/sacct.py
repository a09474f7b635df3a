"""Accounting records, from ``sacct``.

It is asked with ``sacct -n -P --delimiter=SEP -o …``. sacct escapes nothing, so SEP is 0x1f, a
few random letters and 0x1f, which no name can know; text that people write stands behind all
plain values, and ``JobIDRaw`` ends the row, so a newline cuts none. Sample (``|`` for SEP)::

    7402|COMPLETED|0:0|…|two
    lines|/home/al|…|7402
    7402.batch|COMPLETED|0:0|…|batch||…|7402.batch
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from slurmtop.model.job import AccountingRecord
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.sacct_values import build_record

#: What accounting is asked for: (name for ``sacct -o``, field), plain values first.
SACCT_FIELDS: tuple[tuple[str, str], ...] = (
    ("JobID", "id"),
    ("State", "state"),
    ("ExitCode", "exit_code"),
    ("DerivedExitCode", "derived_exit_code"),
    ("Cluster", "cluster"),
    ("User", "user"),
    ("Account", "account"),
    ("Partition", "partition"),
    ("Submit", "submit"),
    ("Eligible", "eligible"),
    ("Start", "start"),
    ("End", "end"),
    ("ElapsedRaw", "elapsed_s"),
    ("Timelimit", "limit"),
    ("NNodes", "node_count"),
    ("NodeList", "nodes"),
    ("AllocTRES", "allocated"),
    ("ReqTRES", "requested"),
    ("ReqMem", "req_mem"),
    ("TotalCPU", "total_cpu_s"),
    ("UserCPU", "user_cpu_s"),
    ("CPUTimeRAW", "cpu_time_s"),
    ("AveCPU", "ave_cpu_s"),
    ("MaxRSS", "max_rss_bytes"),
    ("AveDiskRead", "disk_read_mib"),
    ("ConsumedEnergyRaw", "energy_j"),
    ("Reason", "reason"),
    ("Restarts", "restarts"),
    ("JobName", "name"),
    ("WorkDir", "workdir"),
    ("Comment", "comment"),
    ("SubmitLine", "submit_line"),
    ("StdOut", "stdout"),
    ("StdErr", "stderr"),
    ("JobIDRaw", "raw_id"),
)
#: Not known to every release from 20.11 on: SubmitLine came with 21.08, StdOut and StdErr with
#: 24.05, Restarts with 24.11. sacct names the field (``Invalid field requested: "StdOut"``);
#: ask again without it.
SACCT_OPTIONAL: tuple[tuple[str, str], ...] = tuple(
    pair
    for pair in SACCT_FIELDS
    if pair[0] in ("Reason", "Restarts", "SubmitLine", "StdOut", "StdErr")
)
SACCT_NAMES: tuple[str, ...] = tuple(field for _, field in SACCT_FIELDS)

#: Other names that sacct has for the same, what only helps to read ReqMem, and what is large.
_MORE_NAMES = (
    *(("TRESUsageInTot", "usage_total"), ("TRESUsageInAve", "usage_average")),
    *(("TRESUsageInMax", "usage_max"), ("AdminComment", "admin_comment")),
    *(("Elapsed", "elapsed_s"), ("CPUTime", "cpu_time_s"), ("ConsumedEnergy", "energy_j")),
    *(("AllocNodes", "node_count"), ("AllocCPUS", "alloc_cpus"), ("NCPUS", "alloc_cpus")),
    *(("ReqCPUS", "req_cpus"), ("ReqNodes", "req_nodes")),
)
_FIELD_OF = {name.lower(): field for name, field in (*SACCT_FIELDS, *_MORE_NAMES)}
_TEXT_FIELDS = frozenset(
    {"name", "workdir", "comment", "admin_comment", "submit_line", "stdout", "stderr"}
)

_ID = r"\d{1,10}(?:_(?:\d{1,10}|\*|\[[^\]\n]{0,4000}\]?))?(?:\+\d{1,10})?(?:\.[\w+]{1,40})?"
_ROW_ID = re.compile(_ID + r"\Z", re.ASCII)
_RAW_ID = re.compile(r"(\d{1,10})(?:\.[\w+]{1,40})?\Z", re.ASCII)
_STATE_WORD = re.compile(r"[A-Z][A-Z_]{1,30}\+?(?: by \d{1,10})?\Z|\?\Z")
_EXCERPT = 200
#: Separators inside one row's text that are still put together again.
_SURPLUS = 512


def _field_names(fields: Iterable[str | tuple[str, str]]) -> tuple[str, ...]:
    """Fields may be named as sacct does, as the model does, or by pairs of both."""
    names = [field if isinstance(field, str) else field[1] for field in fields]
    return tuple(_FIELD_OF.get(name.lower(), name) for name in names)


def _assigned(
    parts: Sequence[str], fields: tuple[str, ...], separator: str
) -> tuple[dict[str, str], bool] | None:
    """Values by field, and whether the text among them is unsure; None for too few.

    Surplus separators can only come from text: what stands before and behind it is certain.
    """
    if len(parts) == len(fields):
        return dict(zip(fields, parts, strict=True)), False
    if len(parts) == len(fields) + 1 and not parts[-1] and fields[-1] not in _TEXT_FIELDS:
        # "-p" instead of "-P" ends each row with a separator.
        return dict(zip(fields, parts, strict=False)), False
    texts = [place for place, field in enumerate(fields) if field in _TEXT_FIELDS]
    if len(parts) < len(fields) or not texts:
        return None
    first, behind = texts[0], len(fields) - 1 - texts[-1]
    end = len(parts) - behind
    found = dict(zip(fields[:first], parts[:first], strict=True))
    found.update(zip(fields[len(fields) - behind :], parts[end:], strict=True))
    middle = separator.join(parts[first:end])
    if texts == [first]:
        found[fields[first]] = middle
        return found, False
    found["name"] = middle
    return found, True


def _ended_rows(
    text: str, fields: tuple[str, ...], separator: str
) -> Iterator[list[str] | BadRecord]:
    """Rows that end with JobIDRaw. What ends a row is that id, a newline, and the next JobID."""
    pieces = text.split(separator)
    size = len(fields)
    first = pieces[0]
    at = 0
    index = 0
    while at < len(pieces) and (first.strip() or at + 1 < len(pieces)):
        end, raw, following = _row_end(pieces, at + size - 1, first, fields)
        if end >= 0:
            yield [first, *pieces[at + 1 : end], raw]
            at, first = end, following
            if not first:
                return
        else:
            # Go on at the next piece in which a row seems to begin.
            begun = next(
                (
                    place
                    for place in range(at + 1, len(pieces))
                    if _ROW_ID.match(pieces[place].rpartition("\n")[2]) and "\n" in pieces[place]
                ),
                len(pieces),
            )
            excerpt = separator.join([first, *pieces[at + 1 : at + size]])
            yield BadRecord(index, "no JobIDRaw ends the row", excerpt[:_EXCERPT])
            if begun == len(pieces):
                return
            at, first = begun, pieces[begun].rpartition("\n")[2]
        index += 1


def _row_end(
    pieces: list[str], at: int, first: str, fields: tuple[str, ...]
) -> tuple[int, str, str]:
    """(piece in which the row ends, its JobIDRaw, the next row's JobID); -1 where there is none."""
    id = parse_job_id(first)
    plain = id.task is None and id.tasks is None and id.het_offset is None
    for place in range(at, min(len(pieces), at + _SURPLUS)):
        raw, newline, following = pieces[place].partition("\n")
        match = _RAW_ID.match(raw)
        if match is None or (plain and id.base and match[1] != id.base):
            continue
        following = following.strip("\n")
        if place == len(pieces) - 1:
            if not following:
                return place, raw, following
        elif newline and _ROW_ID.match(following):
            second = pieces[place + 1].partition("\n")[0]
            if fields[1] != "state" or _STATE_WORD.match(second):
                return place, raw, following
    return -1, "", ""


def _lines(text: str, fields: tuple[str, ...], separator: str, mark: str) -> Iterator[str]:
    """Rows of a format without an end mark: a line that begins no row continues the last."""
    row: str | None = None
    for line in text.split(mark):
        parts = line.split(separator, 2)
        begins = _ROW_ID.match(parts[0]) is not None and (
            len(fields) == 1
            or (
                len(parts) > 1 and (fields[1] != "state" or _STATE_WORD.match(parts[1]) is not None)
            )
        )
        if begins:
            if row is not None:
                yield row
            row = line
        elif row is not None:
            row = f"{row}{mark}{line}"
        elif line.strip() and _FIELD_OF.get(parts[0].lower()) != fields[0]:
            yield line
    if row is not None:
        yield row.rstrip("\n") if mark == "\n" else row


def parse_sacct(
    data: bytes,
    *,
    fields: Sequence[str | tuple[str, str]] = SACCT_NAMES,
    separator: bytes = b"\x1f",
    record_mark: bytes = b"\n",
) -> Parsed[AccountingRecord]:
    """An answer of ``sacct -P``, with or without ``-n``. Never raises, never loses a job.

    ``fields`` names what was asked for, in order: as in :data:`SACCT_FIELDS`, by either name.
    Where JobID comes first and JobIDRaw last, a newline in a name cannot split a row, nor can
    a separator; only a name that holds both, made to look like the end of a row, needs a
    separator that no name can know (it may be several bytes). In other forms a line that
    begins no row goes on with the last. Where a separator in text leaves the split open,
    ``name_unsure`` is set and ``name`` holds all of the text.
    """
    names = _field_names(fields)
    text = data.decode("utf-8", "replace")
    between, mark = separator.decode("utf-8", "replace"), record_mark.decode("utf-8", "replace")
    ended = names[:1] == ("id",) and names[-1:] == ("raw_id",) and len(names) > 2 and mark == "\n"
    if ended:
        if text.lower().startswith(f"jobid{between}"):
            text = text.partition("\n")[2]
        rows: Iterator[list[str] | BadRecord] = _ended_rows(text, names, between)
    else:
        rows = (line.split(between) for line in _lines(text, names, between, mark))
    return Parsed.of(_records(rows, names, between))


def _records(
    rows: Iterable[list[str] | BadRecord], names: tuple[str, ...], separator: str
) -> Iterator[AccountingRecord | BadRecord]:
    for index, parts in enumerate(rows):
        if isinstance(parts, BadRecord):
            yield parts
            continue
        assigned = _assigned(parts, names, separator)
        if assigned is None:
            found: AccountingRecord | str = f"{len(parts)} fields, {len(names)} were asked for"
        else:
            found = build_record(*assigned)
        if isinstance(found, str):
            yield BadRecord(index, found, separator.join(parts)[:_EXCERPT])
        else:
            yield found


_DEFAULT_COLUMNS = (
    *(("JobID", 12), ("JobName", 10), ("Partition", 10), ("Account", 10), ("AllocCPUS", 10)),
    *(("State", 10), ("ExitCode", 8)),
)


def parse_sacct_padded(data: bytes) -> Parsed[AccountingRecord]:
    """sacct's own columns, as well as they can be read; ask with ``-P`` instead.

    A value longer than its column ends with ``+``: an id cut so is marked as cut and no key,
    a state is completed where only one fits, a name is unsure. Sample::

        JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
        ------------ ---------- ---------- ---------- ---------- ---------- --------
        7301         train-lla+   gpu-long    proj-ab         64 CANCELLED+      0:0
    """
    lines = data.split(b"\n")
    columns: list[tuple[str, int]] = list(_DEFAULT_COLUMNS)
    body = lines
    for place, line in enumerate(lines[:2]):
        if line.strip() and not line.strip(b"- "):
            widths = [len(dashes) for dashes in line.split()]
            titles = _cells(lines[place - 1], widths) if place else []
            if len(titles) == len(widths):
                columns = list(zip(titles, widths, strict=True))
            body = lines[place + 1 :]
            break
    return Parsed.of(_padded_rows(body, columns))


def _cells(line: bytes, widths: Sequence[int]) -> list[str]:
    cells: list[str] = []
    at = 0
    for width in widths:
        cells.append(line[at : at + width].decode("utf-8", "replace").strip())
        at += width + 1
    return cells


def _padded_rows(
    lines: Iterable[bytes], columns: Sequence[tuple[str, int]]
) -> Iterator[AccountingRecord | BadRecord]:
    widths = [width for _, width in columns]
    names = _field_names([title for title, _ in columns])
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        found = dict(zip(names, _cells(line, widths), strict=True))
        record = build_record(found, found.get("name", "").endswith("+"))
        if isinstance(record, str) or len(line) < sum(widths[:-1]):
            why = record if isinstance(record, str) else "shorter than its columns"
            yield BadRecord(index, why, line.decode("utf-8", "replace")[:_EXCERPT])
        else:
            yield record


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FAR = datetime.max.replace(tzinfo=UTC)


def newest_run(records: Sequence[AccountingRecord]) -> tuple[AccountingRecord, ...]:
    """Of every job the rows of its newest run, in their order: the job row, then its steps.

    ``sacct -D`` shows earlier runs of a requeued job, and earlier jobs whose id was used
    again. A row without a step begins a run; submit time, then start, tell which is newest.
    Equal ids of different clusters are different jobs.
    """
    runs: list[list[AccountingRecord]] = []
    for record in records:
        begins = record.id.step is None or not runs or _job_of(runs[-1][0]) != _job_of(record)
        if begins:
            runs.append([])
        runs[-1].append(record)
    newest: dict[tuple[str, str], int] = {}
    for place, run in enumerate(runs):
        best = newest.get(_job_of(run[0]))
        if best is None or _age(run[0]) >= _age(runs[best][0]):
            newest[_job_of(run[0])] = place
    chosen = set(newest.values())
    return tuple(record for place, run in enumerate(runs) if place in chosen for record in run)


def _job_of(record: AccountingRecord) -> tuple[str, str]:
    return record.cluster or "", record.id.stable


def _age(record: AccountingRecord) -> tuple[bool, datetime, datetime]:
    """Steps without their job row count as older than any job row, one that waits as the newest."""
    begun = record.start or record.end or _FAR
    return record.id.step is None, record.submit or _EPOCH, begun
