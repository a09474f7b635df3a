"""What a job was said to fail of when it was requeued before: read from the log of actions."""

import json

from slurmtop.model.ports import Runner, RunnerError

#: From the end of the log: thousands of actions.
_TAIL_BYTES = 1024 * 1024
_REQUEUED = ("requeued", "requeued and held")


async def read_told(runner: Runner, path: str, job: str) -> tuple[str, ...]:
    """The verdicts of the earlier requeues of ``job`` (as the log names it), oldest first.

    Never raises: without a log nothing was told.
    """
    try:
        size = (await runner.stat(path)).size
        start = max(0, size - _TAIL_BYTES)
        data = await runner.read(path, start, _TAIL_BYTES)
    except (OSError, RunnerError):
        return ()
    lines = data.split(b"\n")
    # What starts in the middle of a line is none.
    return told_in(lines[1:] if start else lines, job)


def told_in(lines: list[bytes], job: str) -> tuple[str, ...]:
    """The same from lines of the log; a line that cannot be read tells nothing."""
    found = (_verdict(line, job) for line in lines if b'"outcome"' in line)
    return tuple(text for text in found if text)


def _verdict(line: bytes, job: str) -> str | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("event") != "outcome":
        return None
    jobs = value.get("jobs")
    for one in jobs if isinstance(jobs, list) else ():
        if isinstance(one, dict) and one.get("job") == job and one.get("outcome") in _REQUEUED:
            verdict = value.get("verdict")
            return verdict if isinstance(verdict, str) else None
    return None
