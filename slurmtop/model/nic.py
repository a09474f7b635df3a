"""Network ports of a node, as the kernel counts them."""

from dataclasses import dataclass
from enum import StrEnum


class NicKind(StrEnum):
    IB = "ib"
    """InfiniBand, Omni-Path too."""
    ROCE = "roce"
    EFA = "efa"
    CXI = "cxi"
    """HPE Slingshot."""
    ETH = "eth"


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPort:
    """One port of one network card.

    ``rx_bytes`` and ``tx_bytes`` count since its driver was loaded, ``errors`` the same: symbol
    errors, bad packets and lost links together. Rates are in bytes a second and need two looks;
    None where there was one only, or a counter began anew. Of InfiniBand and RoCE only the traffic
    that passes by the kernel is counted here, which is NCCL's.
    """

    name: str
    """``mlx5_0/1`` (card and port), ``cxi0``, ``eth0``."""
    kind: NicKind
    state: str | None = None
    """As the kernel says it: ``ACTIVE``, ``DOWN``, ``up``."""
    speed: str | None = None
    """As printed: ``400 Gb/sec (4X NDR)``, ``100000 Mb/s``."""
    rx_bytes: int | None = None
    tx_bytes: int | None = None
    errors: int | None = None
    rx_bytes_s: float | None = None
    tx_bytes_s: float | None = None

    @property
    def works(self) -> bool | None:
        """Is the link up? None where the kernel does not say so."""
        if self.state is None or self.state.casefold() == "unknown":
            return None
        return self.state.casefold() in ("active", "up")
