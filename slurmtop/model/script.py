"""The batch script that a job was submitted with, or why it cannot be shown."""

from dataclasses import dataclass
from enum import StrEnum


class ScriptStatus(StrEnum):
    READ = "read"
    NONE = "none"
    """An interactive job (salloc, srun) has no batch script."""
    DENIED = "denied"
    FORGOTTEN = "forgotten"
    """The controller no longer knows the job."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchScript:
    """``text`` is as it was submitted (raw, hostile); ``why`` is a sentence where there is none.

    ``cut`` means that the script is longer than what was read.
    """

    status: ScriptStatus
    text: str = ""
    why: str = ""
    cut: bool = False
