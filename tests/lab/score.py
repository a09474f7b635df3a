"""How good the verdicts of a lab's rows are: counts, with what they are counted of. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slurmtop.triage.catalogue import family_of
from tests.lab.rows import Look, Row
from tests.lab.truth import TRUTH, Blame, Truth

#: The promises on times, in seconds from the start of the command.
FIRST_S, VERDICT_S = 5.0, 10.0
#: What all figures of the lab are of.
LABEL = "CPU, gloo, process level"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One look, judged. None: not counted."""

    row: Row
    look: Look
    state: bool
    state_accepted: bool
    family: bool
    cls: bool
    cls_accepted: bool
    culprit: bool | None
    process_level: bool | None
    wrong_blame: bool
    false_alarm: bool | None
    first: bool
    verdict: bool
    bundle: bool | None

    @property
    def wrong(self) -> tuple[str, ...]:
        """What is not as it should be, in words."""
        said = {
            "state": self.state_accepted,
            "class": self.cls_accepted,
            "culprit": self.culprit is not False,
            "blames an innocent": not self.wrong_blame,
            "healthy called hung": not self.false_alarm,
            "first answer late": self.first,
            "verdict late": self.verdict,
            "bundle late": self.bundle is not False,
        }
        return tuple(name for name, good in said.items() if not good)


def score(row: Row, look: Look) -> Score:
    """Judge one look of a run that is not void. A look without a verdict is wrong in everything
    but blame."""
    truth, said = TRUTH[row.case], look.verdict or {}
    state, cls = said.get("state"), said.get("class")
    right: tuple[str, ...] = (truth.state,)
    if look.when == "random" and truth.healthy:
        # At that second it may not have come to what it is named after.
        right = (truth.state, "healthy")
    classes = (*truth.classes, *(truth.unsure if said.get("confidence") != "high" else ()))
    named = said.get("culprits", [])
    hit = _hit(row, truth, named)
    return Score(
        row=row,
        look=look,
        state=state in right,
        state_accepted=state in (*right, *truth.states),
        family=bool(said) and said.get("family") in {family_of(slug) for slug in classes},
        cls=bool(said) and cls == truth.cls,
        cls_accepted=bool(said) and cls in classes,
        culprit=hit if truth.names_somebody else None,
        process_level=hit if truth.process_level else None,
        wrong_blame=any(not _may_be_named(row, truth, one) for one in named),
        false_alarm=state == "hung" if truth.healthy else None,
        first=look.first_s is not None and look.first_s <= FIRST_S,
        verdict=look.verdict_s is not None and look.verdict_s <= VERDICT_S,
        bundle=look.saved and look.in_time if truth.state == "hung" else None,
    )


def _may_be_named(row: Row, truth: Truth, named: dict[str, Any]) -> bool:
    """Is it no wrong to name this one? A mount or a link alone is nobody."""
    rank, host, pid = named.get("rank"), named.get("host"), named.get("pid")
    if rank is None and host is None and pid is None:
        return True
    if truth.culprit is Blame.NOBODY:
        return False
    return rank in (None, row.rank) and host in (None, row.host)


def _hit(row: Row, truth: Truth, named: Sequence[dict[str, Any]]) -> bool:
    """Is the right one named, and nobody else?"""
    if not named or any(not _may_be_named(row, truth, one) for one in named):
        return False
    if truth.culprit in (Blame.HOST, Blame.MAYBE_HOST):
        return any(one.get("host") == row.host and row.host is not None for one in named)
    return any(
        one.get("rank") == row.rank
        or (row.pid is not None and (one.get("host"), one.get("pid")) == (row.host, row.pid))
        for one in named
    )


def scores(rows: Iterable[Row]) -> list[Score]:
    """All looks of all runs whose fault came about."""
    return [score(row, look) for row in rows if row.void is None for look in row.looks]


@dataclass(frozen=True, slots=True)
class Count:
    """So many of so many."""

    name: str
    good: int
    of: int

    def __str__(self) -> str:
        share = f"{100 * self.good / self.of:5.1f} %" if self.of else "      -"
        return f"{self.name:36} {self.good:4d} of {self.of:4d}  {share}"


def counts(found: Sequence[Score]) -> list[Count]:
    """The table's rows, in its order."""

    def of(name: str, values: Iterable[bool | None]) -> Count:
        told = [value for value in values if value is not None]
        return Count(name, sum(told), len(told))

    return [
        of("state right", (one.state for one in found)),
        of("state right or accepted", (one.state_accepted for one in found)),
        of("family right or accepted", (one.family for one in found)),
        of("class right", (one.cls for one in found)),
        of("class right or accepted", (one.cls_accepted for one in found)),
        of("culprit right, where truth names one", (one.culprit for one in found)),
        of("right rank on process-level hangs", (one.process_level for one in found)),
        of("wrong blame", (one.wrong_blame for one in found)),
        of("healthy called hung", (one.false_alarm for one in found)),
        of(f"first answer within {FIRST_S:g} s", (one.first for one in found)),
        of(f"verdict within {VERDICT_S:g} s", (one.verdict for one in found)),
        of("bundle in time, where truth is hung", (one.bundle for one in found)),
        of("nothing of slurmtop left on a node", (not one.look.left for one in found)),
    ]


def table(rows: Sequence[Row]) -> str:
    """Everything there is to say of a file of rows, mode by mode."""
    parts = []
    for mode in dict.fromkeys(row.mode for row in rows):
        part = [row for row in rows if row.mode == mode]
        parts.append(_of_mode(mode, part))
    return "\n\n".join(parts)


def _of_mode(mode: str, rows: Sequence[Row]) -> str:
    found = scores(rows)
    lines = [f"{mode} ({LABEL}): {len(rows)} runs, {len(found)} looks", ""]
    lines += [str(count) for count in counts(found)]
    lines += ["", *_times(found), ""]
    lines += [_line(one) for one in found]
    lines += [f"void: {row.key}: {_short(row.void)}" for row in rows if row.void is not None]
    lines += [f"left on a node: {row.key}: {', '.join(row.left)}" for row in rows if row.left]
    return "\n".join(lines)


def _short(why: str) -> str:
    """Without the end of the log that stands behind it in the row."""
    return why.splitlines()[0][:160]


def _times(found: Sequence[Score]) -> list[str]:
    """Median and most of what was measured."""
    kinds: tuple[tuple[str, list[float | None]], ...] = (
        ("first answer, s", [one.look.first_s for one in found]),
        ("verdict, s", [one.look.verdict_s for one in found]),
        ("CPU of slurmtop, s", [one.look.own_cpu_s for one in found]),
        ("CPU on all nodes together, s", [one.look.node_cpu_s for one in found]),
        ("bundle, kB", [one.look.bundle_bytes / 1000 for one in found]),
    )
    lines = []
    for name, told in kinds:
        values = sorted(value for value in told if value is not None)
        if values:
            middle = values[len(values) // 2]
            lines.append(f"{name:36} median {middle:7.2f}  most {values[-1]:7.2f}")
    return lines


def _line(one: Score) -> str:
    said = one.look.verdict or {}
    who = [
        "/".join(str(named[key]) for key in ("rank", "host") if named.get(key) is not None)
        for named in said.get("culprits", [])
    ]
    verdict = f"{said.get('state')}/{said.get('class')}/{','.join(who) or 'nobody'}"
    case = f"{one.row.case} r{one.row.rank} {one.row.sync} {one.look.when}"
    wrong = f"  <- {', '.join(one.wrong)}" if one.wrong else ""
    return f"{case:36} {verdict:52} {one.look.verdict_s or 0:5.1f} s{wrong}"
