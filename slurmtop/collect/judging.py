"""From the logs of one job to what they say: read once, both for the rows and for the judge."""

from datetime import datetime

from slurmtop.collect.clock import within
from slurmtop.collect.log_facts import Span, read_log, read_log_facts, same_run
from slurmtop.collect.log_pool import ReaderLost
from slurmtop.collect.log_verdict import JudgeLogs, LogBytes, Runs
from slurmtop.model.facts import JobFacts, LogFacts, LogsSay, LogStatus
from slurmtop.model.job import AccountingRecord, Job, Phase, job_row
from slurmtop.model.ports import Clock, Runner

BUDGET_S = 8.0


class Judging:
    """Keeps the bytes of the logs that were read until they are judged.

    ``judge`` None: the logs are looked at, but nobody judges them.
    """

    def __init__(self, runner: Runner, judge: JudgeLogs | None) -> None:
        self._runner = runner
        self._judge = judge
        self._read: dict[str, tuple[LogBytes, datetime | None]] = {}

    async def read(self, label: str, path: str, why: str, written: Span | None) -> LogFacts:
        """The facts of one log. Never raises for what is wrong with the file."""
        if self._judge is None:
            return await read_log_facts(self._runner, label, path, why=why, written=written)
        log, read = await read_log(self._runner, label, path, why=why, written=written)
        if read is not None and read.size:
            self._read[read.path] = (read, log.mtime)
        return log

    def of_run(self, source: Job | AccountingRecord | None) -> tuple[LogBytes, ...]:
        """The logs in which the newest run of a job may stand."""
        if source is None or source.state.phase is Phase.PENDING:
            return ()
        return tuple(log for log, written in self._read.values() if same_run(source, written))

    async def say(self, source: Job | AccountingRecord | None) -> LogsSay | None:
        """What those logs tell; None where there are none. Raises ReaderLost."""
        logs = self.of_run(source)
        if self._judge is None or source is None or not logs:
            return None
        return await self._judge(logs, _runs(source))


def _runs(source: Job | AccountingRecord) -> Runs:
    """How the newest run is told from earlier ones, where there were any."""
    if not source.restarts:
        return Runs()
    ids = {one for one in (source.raw_id, source.id.stable) if one}
    return Runs(ids=frozenset(ids), end=source.end if source.state.ended else None)


async def judge_again(
    runner: Runner, clock: Clock, facts: JobFacts, judge: JudgeLogs
) -> LogsSay | None:
    """What the logs of ``facts`` tell now; None where that cannot be told in time."""
    judging = Judging(runner, judge)
    source = facts.job or job_row(facts.history)

    async def work() -> LogsSay | None:
        for log in facts.logs:
            if log.status is LogStatus.READ and log.path is not None:
                await judging.read(log.label, log.path, log.why, None)
        return await judging.say(source)

    try:
        return await within(clock, work(), BUDGET_S, name="judging the logs again")
    except (TimeoutError, ReaderLost):
        return None
