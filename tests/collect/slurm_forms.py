"""Answers of Slurm as slurmtop asks for them, made in tests."""

from pathlib import Path

from slurmtop.parse.slurm.squeue import QUEUE_FIELDS

MARK = b"\x1eAbCdEf"
#: Between the fields of accounting, where the mark is this one.
SACCT_SEPARATOR = "\x1fAbCdEf\x1f"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "slurm"
_PLAIN = {
    "id": "4711",
    "raw_id": "4711",
    "state": "RUNNING",
    "reason": "None",
    "exit_status": "0",
    "derived_status": "0",
    "partition": "gpu",
    "user": "anna",
    "account": "ml",
    "qos": "normal",
    "submit": "2031-05-05T10:00:00",
    "eligible": "2031-05-05T10:00:00",
    "start": "2031-05-05T11:00:00",
    "end": "2031-05-06T11:00:00",
    "limit": "1-00:00:00",
    "node_count": "2",
    "nodes": "gpu[01-02]",
    "tres": "cpu=16,mem=64G,node=2,billing=16,gres/gpu=8",
    "priority": "4294901741",
    "restarts": "0",
    "het_leader": "N/A",
    "array_id": "4711",
    "dependency": "(null)",
    "name": "train",
    "comment": "(null)",
    "workdir": "/w",
    "command": "/w/run.sh",
    "stdout": "/w/slurm-4711.out",
    "stderr": "/w/slurm-4711.out",
}


def queue_record(
    id: str = "4711", *, drop: tuple[str, ...] = (), mark: bytes = MARK, **fields: str
) -> bytes:
    """One record of the queue. The output path follows the id unless it is given."""
    out = f"/w/slurm-{id}.out"
    values = _PLAIN | {"id": id, "raw_id": id.split("_")[0], "stdout": out, "stderr": out} | fields
    texts = [values[name] for _, name in QUEUE_FIELDS if name not in drop]
    return "\x1f".join(texts).encode() + mark + b"\n"


def fixture(version: str, name: str) -> bytes:
    return (FIXTURES / version / name).read_bytes()
