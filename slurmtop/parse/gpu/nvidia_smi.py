"""``nvidia-smi --query-gpu=… --format=csv,noheader,nounits``: one row a GPU, nothing quoted.

Fields come in the order asked for; a header, where there is one, may spell them differently.
Errors stand on stdout. Sample for ``index,uuid,utilization.gpu,power.draw``::

    0, GPU-00000000-1111-2222-3333-444455550000, 100, 627.40
    1, GPU-00000001-1111-2222-3333-444455550001, [N/A], [Unknown Error]
"""

from collections.abc import Iterator, Sequence

from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.failures import explain_gpu_failure, is_failure_line, lost_bus
from slurmtop.parse.gpu.fields import CORE_FIELDS, read_row

PROGRAM = "nvidia-smi"
_EXCERPT = 200
#: infoROM corrupted: the data is printed all the same.
_GOOD_STATUS = (0, 14)
_ORIGIN = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id")


def query_argv(fields: Sequence[str] = CORE_FIELDS, *, only: str | None = None) -> tuple[str, ...]:
    """The command that asks for ``fields``, of one GPU where ``only`` is its UUID."""
    chosen = () if only is None else ("-i", only)
    asked = ",".join(fields)
    return (PROGRAM, *chosen, f"--query-gpu={asked}", "--format=csv,noheader,nounits")


def parse_query(stdout: bytes, fields: Sequence[str], *, header: bool = False) -> Parsed[GpuSample]:
    """Rows of GPUs; a line with too few or too many fields is bad. Texts in the place of data
    are neither rows nor bad. Never raises."""
    return Parsed.of(_rows(stdout, fields, header))


def _rows(stdout: bytes, fields: Sequence[str], header: bool) -> Iterator[GpuSample | BadRecord]:
    skip = header
    for index, line in enumerate(_lines(stdout)):
        if _is_remark(line) or is_failure_line(line):
            continue
        if skip:
            skip = False
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields):
            why = f"{len(cells)} fields where {len(fields)} were asked for"
            yield BadRecord(index, why, line[:_EXCERPT])
            continue
        row = read_row(fields, cells)
        yield BadRecord(index, row, line[:_EXCERPT]) if isinstance(row, str) else row


def read_query(
    host: str,
    fields: Sequence[str],
    rc: int | None,
    stdout: bytes,
    stderr: bytes = b"",
    *,
    elapsed_s: float | None = None,
    header: bool = False,
) -> NodeGpus:
    """One host's whole answer: rows, cards that are lost, or why there are none.

    ``rc`` None: stopped at the time limit. Good rows beside a failure are kept; GPUs without a
    row are then unknown.
    """
    lines = _lines(stdout)
    lost = tuple(dict.fromkeys(bus for line in lines if (bus := lost_bus(line))))
    named = any(field in _ORIGIN for field in fields)
    parsed: Parsed[GpuSample] = Parsed(())
    if rc in _GOOD_STATUS or named:
        parsed = parse_query(stdout, fields, header=header)
    remarks = tuple(line.strip() for line in lines if _is_remark(line))
    failed = rc not in _GOOD_STATUS or lost or any(is_failure_line(line) for line in lines)
    answer, failure = Answer.OK, None
    if failed:
        answer, failure = explain_gpu_failure(
            PROGRAM, host, rc, stdout, stderr, elapsed_s=elapsed_s
        )
    elif not parsed.rows:
        text = b"No devices were found" if not parsed.bad else stdout
        answer, failure = explain_gpu_failure(PROGRAM, host, rc, text, stderr)
    return NodeGpus(
        host=host,
        answer=answer,
        samples=parsed.rows,
        lost=lost,
        failure=failure,
        took_s=elapsed_s,
        bad=parsed.bad if answer in (Answer.OK, Answer.GPU_LOST) else 0,
        remarks=remarks,
    )


def _lines(stdout: bytes) -> list[str]:
    text = stdout.decode("utf-8", "replace")
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _is_remark(line: str) -> bool:
    return line.lstrip().startswith("WARNING:")
