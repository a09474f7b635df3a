"""Who runs slurmtop. ``$USER`` is never asked: it may be unset, or somebody else's."""

import os
import pwd
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Who:
    """``name`` is the number as text where the directory service does not know the uid."""

    uid: int
    name: str


def current_user() -> Who:
    """The real user id of this process and its name from the password database."""
    uid = os.getuid()
    try:
        return Who(uid, pwd.getpwuid(uid).pw_name)
    except KeyError:
        return Who(uid, str(uid))
