"""Prometheus' text format, written. Pure.

Source: Prometheus' exposition formats, text format 0.0.4. Sample::

    # HELP slurmtop_gpu_power_watts Power that the GPU draws.
    # TYPE slurmtop_gpu_power_watts gauge
    slurmtop_gpu_power_watts{host="gpu01",job="4711"} 412.5

Names are this program's own; values of labels are foreign text and may be anything.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

#: Bytes of one label: names of jobs may be 1024 long and more.
LONGEST_LABEL = 256
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})


@dataclass(slots=True)
class Family:
    """One metric: its name with its unit, its words, and a value for each set of labels.

    A value that is not known is no sample: there is no NaN. Of two samples with the same labels
    the first one stands, for a text with both would be refused as a whole.
    """

    name: str
    help: str
    kind: str = "gauge"
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)

    def add(self, value: float | None, labels: Mapping[str, str | None]) -> None:
        """One sample; nothing where ``value`` is None. A label that is None is left out."""
        if value is None or not math.isfinite(value):
            return
        shown = tuple((name, _label(text)) for name, text in labels.items() if text is not None)
        self.samples.setdefault(shown, float(value))


def render(families: Iterable[Family]) -> str:
    """The text of all families that have a sample, each with its HELP and TYPE."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {family.help.translate(_HELP_ESCAPES)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value in family.samples.items():
            inner = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels)
            braces = f"{{{inner}}}" if inner else ""
            lines.append(f"{family.name}{braces} {_number(value)}")
    return "".join(f"{line}\n" for line in lines)


def _label(text: str) -> str:
    """UTF-8 is all that the format takes: other bytes become a mark; at most
    :data:`LONGEST_LABEL` bytes are kept. A carriage return ends a line for some readers."""
    clean = text.encode("utf-8", "replace")[:LONGEST_LABEL].decode("utf-8", "ignore")
    return "".join("\ufffd" if _breaks(char) else char for char in clean)


def _breaks(char: str) -> bool:
    """Characters at which some reader or other ends a line, and what no text may hold."""
    return char in "\0\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
