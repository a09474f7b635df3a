"""What people wrote about jobs and nodes, as it is printed for programs."""

from functools import lru_cache

from slurmtop.parse.mask import mask_text


@lru_cache(maxsize=4_096)
def masked(text: str) -> str:
    """``text`` without secrets: the output of a program is kept, sent and logged by others. Of
    thousands of jobs many have the same name."""
    return mask_text(text)


def masked_or_none(text: str | None) -> str | None:
    return None if text is None else masked(text)
