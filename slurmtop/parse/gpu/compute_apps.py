"""Processes on GPUs: ``nvidia-smi --query-compute-apps`` and ``nvidia-smi pmon -c 1``.

Names are not quoted and may hold blanks and commas, so fields are counted from both ends::

    GPU-00000000-1111-2222-3333-444455550000, 21181, python train.py --lr 1e-4, warmup, 512
    GPU-00000002-1111-2222-3333-444455550002, 30001, [Not Found], [N/A]

pmon pads a table; ``-`` stands for no value and, in the place of a pid, for no process::

    # gpu         pid   type     sm    mem    command
        1      21198     C     97     31    gpu_burn
"""

from collections.abc import Iterator, Sequence

from slurmtop.model.gpu import GpuProcess
from slurmtop.model.snapshot import BadRecord, Parsed
from slurmtop.parse.gpu.failures import is_failure_line
from slurmtop.parse.gpu.values import number, possible_or_none, whole, words_or_none

APP_FIELDS = ("gpu_uuid", "pid", "process_name", "used_gpu_memory")
_NAME = "process_name"
_EXCERPT = 200


def apps_argv(fields: Sequence[str] = APP_FIELDS) -> tuple[str, ...]:
    """The command that asks for ``fields`` of every process."""
    asked = ",".join(fields)
    return ("nvidia-smi", f"--query-compute-apps={asked}", "--format=csv,noheader,nounits")


def parse_compute_apps(
    data: bytes, fields: Sequence[str] = APP_FIELDS, *, header: bool = False
) -> Parsed[GpuProcess]:
    """One record a process and GPU; none where the GPUs are idle. Never raises."""
    return Parsed.of(_apps(data, fields, header))


def _apps(data: bytes, fields: Sequence[str], header: bool) -> Iterator[GpuProcess | BadRecord]:
    skip = header
    for index, line in enumerate(data.decode("utf-8", "replace").split("\n")):
        if not line.strip() or is_failure_line(line):
            continue
        if skip:
            skip = False
            continue
        yield _app(line, fields, index)


def _app(line: str, fields: Sequence[str], index: int) -> GpuProcess | BadRecord:
    parts = line.split(",")
    spare = len(parts) - len(fields)
    if spare < 0 or (spare and _NAME not in fields):
        why = f"{len(parts)} fields where {len(fields)} were asked for"
        return BadRecord(index, why, line[:_EXCERPT])
    if spare:
        at = list(fields).index(_NAME)
        parts[at : at + spare + 1] = [",".join(parts[at : at + spare + 1])]
    cells = {field: part.strip() for field, part in zip(fields, parts, strict=True)}
    pid = whole(cells.get("pid", ""))
    if pid is None or pid <= 0:
        return BadRecord(index, f"pid is {cells.get('pid', '')[:40]!r}", line[:_EXCERPT])
    memory = cells.get("used_gpu_memory", cells.get("used_memory", ""))
    name = cells.get(_NAME, "")
    got = {"name": words_or_none(name), "mem_mib": possible_or_none("mem_used_mib", number(memory))}
    said = {"name": name, "mem_mib": memory}
    return GpuProcess(
        pid=pid,
        gpu_uuid=words_or_none(cells.get("gpu_uuid", "")),
        name=words_or_none(name),
        mem_mib=got["mem_mib"],
        words=tuple(
            (key, text)
            for key, text in said.items()
            if text and number(text) is None and got[key] is None
        ),
    )


def parse_pmon(data: bytes) -> Parsed[GpuProcess]:
    """The table of ``nvidia-smi pmon``; GPUs are told by index only. Never raises."""
    return Parsed.of(_pmon(data))


def _pmon(data: bytes) -> Iterator[GpuProcess | BadRecord]:
    columns: list[str] = []
    for index, line in enumerate(data.decode("utf-8", "replace").split("\n")):
        words = line.split()
        if words[:2] == ["#", "gpu"]:
            columns = words[1:]
        if not words or words[0].startswith("#") or is_failure_line(line):
            continue
        if len(words) < len(columns) or not columns:
            yield BadRecord(index, f"{len(words)} columns of {len(columns)}", line[:_EXCERPT])
            continue
        cells = dict(zip(columns, line.split(None, len(columns) - 1), strict=True))
        gpu, pid = whole(cells["gpu"]), cells.get("pid", "")
        if gpu is not None and pid == "-":
            continue
        number_of = whole(pid)
        if gpu is None or number_of is None:
            yield BadRecord(index, "no process", line[:_EXCERPT])
            continue
        yield GpuProcess(
            pid=number_of,
            gpu_index=gpu,
            name=words_or_none(cells.get("command", "")),
            sm_percent=possible_or_none("util_percent", number(cells.get("sm", ""))),
        )
