"""What a person may do to other people's jobs, as far as it is known."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rights:
    """``operator`` is true for root, an operator and an administrator, None where nobody said.

    ``coordinates`` are the accounts that the person coordinates, None where nobody said.
    """

    operator: bool | None = None
    coordinates: frozenset[str] | None = None

    def may_change(self, owner: str, account: str | None, me: str) -> bool | None:
        """May ``me`` change a job of ``owner`` in ``account``? None where only Slurm can tell."""
        if owner == me or self.operator:
            return True
        if self.coordinates is not None and account in self.coordinates:
            return True
        if self.operator is None or self.coordinates is None or account is None or not owner:
            return None
        return False


UNKNOWN_RIGHTS = Rights()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountUser:
    """A user as accounting knows it. ``operator`` is true for an administrator, too;
    ``coordinates`` are the accounts whose jobs the user may change."""

    name: str
    operator: bool
    coordinates: frozenset[str] = frozenset()
