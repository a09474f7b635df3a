"""Rows of the lab: one run each, one line of JSON each. A file of rows can be gone on with."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO


@dataclass(frozen=True, kw_only=True)
class Look:
    """One ``slurmtop triage JOB``: what it said, how fast, and what it cost.

    ``when`` is ``fault`` (20 s after it), ``mid`` (in the middle of a silence) or ``random``;
    ``after_s`` how long after the fault, the silence or the job's begin it was started. Times count
    from the start of the command. ``own_cpu_s`` is that of slurmtop, ``node_cpu_s`` that of all ssh
    sessions on all nodes together. ``slurm`` is the job's state when the command was started.
    ``saved`` tells whether the bundle was whole when it ended, ``in_time`` whether that was before
    the ranks' own timeout.
    """

    when: str
    after_s: float
    slurm: str
    rc: int
    took_s: float
    first_s: float | None = None
    verdict_s: float | None = None
    own_cpu_s: float = 0.0
    node_cpu_s: float = 0.0
    bundle_bytes: int = 0
    saved: bool = False
    in_time: bool = False
    left: tuple[str, ...] = ()
    """Processes of slurmtop that were still on a node after it had ended."""
    verdict: dict[str, Any] | None = None
    told: tuple[str, ...] = ()
    """Its lines on stderr."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run. ``host`` and ``pid`` are where the rank of the fault was; ``seen`` is what the
    driver itself saw of the fault. ``void``: the fault did not come about, for that reason."""

    case: str
    rank: int
    sync: str = "reduce"
    mode: str = "stacks"
    seed: int = 1
    job: str = ""
    host: str | None = None
    pid: int | None = None
    seen: dict[str, Any] = field(default_factory=dict)
    looks: tuple[Look, ...] = ()
    left: tuple[str, ...] = ()
    """Processes of the job or of slurmtop that were on a node after the end of the run."""
    took_s: float = 0.0
    void: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.case, self.rank, self.sync, self.mode, self.seed)


def key_of(case: str, rank: int, sync: str, mode: str, seed: int) -> str:
    return f"{case} rank={rank} sync={sync} mode={mode} seed={seed}"


def written(row: Row) -> str:
    """The row as a line."""
    return json.dumps(asdict(row), sort_keys=True)


def read_rows(lines: Iterable[str]) -> list[Row]:
    """All rows of a file; a line that was cut off is left out."""
    found = []
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            # Or an empty line: each row begins with a new one.
            continue
        looks = tuple(
            Look(**{**look, "left": tuple(look["left"]), "told": tuple(look["told"])})
            for look in data.pop("looks")
        )
        found.append(Row(**{**data, "looks": looks, "left": tuple(data["left"])}))
    return found


def append(stream: TextIO, row: Row) -> None:
    """Add a row to a file; one before it that was cut off does not tear it."""
    stream.write(f"\n{written(row)}\n")
    stream.flush()


def newest(rows: Iterable[Row]) -> list[Row]:
    """The last row of each run: one that was void may have been made again."""
    return list({row.key: row for row in rows}.values())
