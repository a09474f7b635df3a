"""The queue, asked once, for the subcommands that print and leave."""

from slurmtop.cli.errors import CannotWork
from slurmtop.cli.wiring import Wiring
from slurmtop.collect.poller import SourceFailed
from slurmtop.model.job import Job
from slurmtop.model.ports import RunnerError
from slurmtop.model.snapshot import Parsed, Snapshot


async def fetch_queue(wiring: Wiring, *, all_users: bool) -> Snapshot[Parsed[Job]]:
    """One answer of the queue with its age. :class:`CannotWork` where there is none."""
    began, sampled_at = wiring.clock.monotonic(), wiring.clock.now()
    try:
        answer = await wiring.queue_source(all_users=all_users).fetch()
    except SourceFailed as error:
        raise CannotWork(f"the queue cannot be read: {error.failure.sentence}") from error
    except RunnerError as error:
        raise CannotWork(f"the queue cannot be read: {error}") from error
    if wiring.recorded_at is not None:
        sampled_at = wiring.recorded_at
    return Snapshot(answer, sampled_at, wiring.clock.monotonic() - began)


def whose_text(wiring: Wiring, *, all_users: bool) -> str:
    """``anna``, ``everybody``; with the cluster where one was named."""
    whose = "everybody" if all_users else wiring.who.name
    return f"{whose} on {wiring.cluster}" if wiring.cluster else whose


def bad_records_text(count: int) -> str | None:
    """A sentence where records could not be read: a queue with holes must say so."""
    if not count:
        return None
    return f"{count} of the queue's records could not be read and are missing here"
