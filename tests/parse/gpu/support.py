"""The raw answers of the GPU cases, for the tests of this folder."""

from pathlib import Path

CASES = Path(__file__).parents[2] / "cases" / "gpu"


def case(number: str, command: int = 1) -> bytes:
    """What command ``command`` of a case printed on stdout."""
    (folder,) = CASES.glob(f"{number}-*")
    return (folder / f"{command}.stdout").read_bytes()


def mutated(data: bytes, place: int, piece: bytes, cut: int) -> bytes:
    """``data`` with ``cut`` bytes at ``place`` exchanged for ``piece``."""
    at = place % (len(data) + 1)
    return data[:at] + piece + data[at + cut :]
