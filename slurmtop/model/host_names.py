"""Names of machines: when a longer one is the same machine as a shorter one.

Slurm may call a node ``gpu01``, ``gpu01.rack1`` or ``10.1.0.7``. What stands behind the first dot
may be a domain, which says nothing, or the very part that tells two nodes from each other, so names
are never cut at a dot to be compared.
"""

from collections.abc import Container


def owner_of(name: str, hosts: Container[str]) -> str | None:
    """The one of ``hosts`` (in lower case) that ``name`` is, or is with a domain behind it.

    ``gpu01.rack1.example`` is ``gpu01.rack1`` where there is one, else ``gpu01``, and never
    ``gpu01.rack2``. An address is itself alone. None where it is none of them.
    """
    name = name.lower().rstrip(".")
    if name in hosts:
        return name or None
    if _is_address(name):
        return None
    while "." in name:
        name = name.rpartition(".")[0]
        if name in hosts:
            return name or None
    return None


def _is_address(name: str) -> bool:
    labels = name.split(".")
    return ":" in name or (len(labels) == 4 and all(label.isdigit() for label in labels))
