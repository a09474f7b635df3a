"""The Job page has grown logs judged again only where they say something new that matters."""

from datetime import timedelta

from slurmtop.collect.log_facts import read_log_facts
from slurmtop.model.facts import JobFacts, LogsSay
from tests.triage.logs_told import STALL, say
from tests.ui.golden import screen_text
from tests.ui.job_bench import OUT, JobBench
from tests.ui.test_job_screen import SIZE


class Judge:
    """Says the same of every log, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, facts: JobFacts) -> LogsSay | None:
        self.asked += 1
        return say(STALL)


async def test_only_a_new_error_line_has_a_log_judged_again() -> None:
    judge = Judge()
    bench = JobBench(judge_logs=judge)
    bench.runner.files[OUT] = b"step 1/9\n"
    bench.facts.given["logs"] = (await read_log_facts(bench.runner, "stdout", OUT),)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        bench.runner.files[OUT] = b"step 1/9\nstep 2/9\n"
        bench.runner.mtimes[OUT] = bench.clock.now() + timedelta(seconds=10)
        await bench.advance(pilot, 16)
        await bench.settled(pilot)
        assert "step 2 of 9" in screen_text(app)
        assert judge.asked == 0
        bench.runner.files[OUT] = b"step 1/9\nstep 2/9\nRuntimeError: NCCL error\n"
        bench.runner.mtimes[OUT] = bench.clock.now() + timedelta(seconds=10)
        await bench.advance(pilot, 16)
        await bench.settled(pilot)
        assert judge.asked == 1
        assert "stuck: Horovod waits" in screen_text(app)
        assert len(bench.facts.calls) == 1, "Slurm is not asked for that"
