"""The rules, one file a family: each ``find`` is a pure function from the picture to findings.

``ALL`` is what the judge asks. The order says nothing: weight and time decide.
"""

from collections.abc import Callable, Iterable

from slurmtop.triage.finding import Finding
from slurmtop.triage.picture import Picture

Rule = Callable[[Picture], Iterable[Finding]]

ALL: tuple[Rule, ...] = ()
