"""The queue, asked once, for the subcommands that print and leave."""

import asyncio
import contextlib
import sys

from slurmtop.cli.errors import CannotWork
from slurmtop.cli.wiring import Wiring
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.job import Job
from slurmtop.model.ports import RunnerError
from slurmtop.model.snapshot import Parsed, Snapshot

#: How long a person looks at an empty line before being told why.
_PATIENCE_S = 3.0


async def fetch_queue(wiring: Wiring, *, all_users: bool) -> Snapshot[Parsed[Job]]:
    """One answer of the queue with its age. :class:`CannotWork` where there is none."""
    began, sampled_at = wiring.clock.monotonic(), wiring.clock.now()
    patience = asyncio.get_running_loop().call_later(_PATIENCE_S, _still_waiting)
    try:
        answer = await wiring.queue_source(all_users=all_users).fetch()
    except SourceFailed as error:
        raise CannotWork(f"the queue cannot be read: {error.failure.sentence}") from error
    except RunnerError as error:
        raise CannotWork(f"the queue cannot be read: {error}") from error
    finally:
        patience.cancel()
    if wiring.recorded_at is not None:
        sampled_at = wiring.recorded_at
    return Snapshot(answer, sampled_at, wiring.clock.monotonic() - began)


def _still_waiting() -> None:
    """Tell a person that it is Slurm that takes so long; a script's log needs no such line."""
    if sys.stderr is not None and sys.stderr.isatty():
        with contextlib.suppress(OSError, ValueError):
            text = "still waiting for squeue; a busy controller may need a minute or two"
            print(f"slurmtop: {text}", file=sys.stderr, flush=True)


def whose_text(wiring: Wiring, *, all_users: bool) -> str:
    """``anna``, ``everybody``; with the cluster where one was named."""
    whose = "everybody" if all_users else wiring.who.name
    return f"{whose} on {wiring.cluster}" if wiring.cluster else whose


def bad_records_text(count: int) -> str | None:
    """A sentence where records could not be read: a queue with holes must say so."""
    if not count:
        return None
    return f"{count} of the queue's records could not be read and are missing here"
