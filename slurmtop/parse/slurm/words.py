"""The many words that Slurm prints for "nothing"."""

#: As printed by squeue, sacct, scontrol and sinfo. ``0`` is a value and not among them.
NONE_WORDS = frozenset(
    {
        "",
        "(null)",
        "N/A",
        "n/a",
        "none",
        "None",
        "NONE",
        "None assigned",
        "Unknown",
        "unknown",
        "null",
    }
)


def value_or_none(text: str) -> str | None:
    """``text``, or None where Slurm says that there is nothing.

    For plain values only. In text that a person wrote, ``None`` or ``Unknown`` may be meant;
    :func:`user_text_or_none` takes those.
    """
    return None if text in NONE_WORDS else text


def user_text_or_none(text: str) -> str | None:
    """A comment, command or path; only Slurm's own ``(null)`` and the empty text are None."""
    return None if text in ("", "(null)") else text
