"""The way through a step, with a stand-in srun: one step a job, and what is said of refusals."""

import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from slurmtop.collect.nodes.expected import Expected, ExpectedJob
from slurmtop.collect.nodes.remote import RemoteProcess
from slurmtop.collect.nodes.srun import IDLE_S, LIFETIME_S, SrunWay, srun_argv
from slurmtop.collect.nodes.step_failures import explain_step
from slurmtop.model.ports import NodeUnreachable, RunnerError
from slurmtop.model.snapshot import Trouble
from tests.fakes import FakeClock, FakeRunner, settle

#: Writes down how it was called, then refuses as told, or runs the agent as its one task.
SRUN = r"""#!/bin/sh
here=${0%/*}
for word; do
  case $word in
  --jobid=* | --het-group=* | --gres=* | --nodelist=* | -M) line="$line $word" ;;
  esac
done
line=${line# }
echo "$line" >>"$here/calls"
while [ "$1" != /bin/sh ]; do shift; done
for refusal in "$here"/refuse-*; do
  case $line in "${refusal#*refuse-}"*) cat "$refusal" >&2; exit 1 ;; esac
done
env | grep -c '^SLURM_' >"$here/inherited"
export SLURMD_NODENAME=gpu01
"$@" | sed -u 's/^/0: /'
"""


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / "srun"
        path.write_text(SRUN)
        path.chmod(0o755)
        self.clock = FakeClock()
        self.local = FakeRunner(self.clock)
        self.expected = Expected()
        environ = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "9",
            "SLURM_NNODES": "4",
            "PMI_RANK": "0",
        }
        self.way = SrunWay(self.local, self.clock, environ, self.expected)
        self.noted: list[tuple[str, ...]] = []
        self.ended: list[tuple[int | None, str]] = []

        def note(argv: tuple[str, ...]) -> Callable[[int | None, str], None]:
            self.noted.append(argv)
            return lambda rc, trouble: self.ended.append((rc, trouble))

        self.way.note = note
        self.expected.expect("7", ["gpu01"])

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return [line.strip() for line in path.read_text().splitlines()] if path.exists() else []

    def refuse(self, calls: str, words: str) -> None:
        (self.folder / f"refuse-{calls}").write_text(f"srun: error: {words}\n")

    async def ask(self, script: bytes = b"echo hallo", host: str = "gpu01") -> bytes:
        process = await self.way.start(host, script)
        return await output(process)


async def output(process: RemoteProcess) -> bytes:
    return b"".join([chunk async for chunk in process.chunks()])


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.way.aclose()


async def test_one_step_serves_all_polls_and_is_closed_when_idle(bench: Bench) -> None:
    for _ in range(10):
        assert await bench.ask() == b"hallo\n"
    assert bench.calls == ["--jobid=7 --nodelist=gpu01"]
    assert bench.way.steps == 1
    # Nothing of an allocation that slurmtop itself runs in.
    assert (bench.folder / "inherited").read_text() == "0\n"
    busy = await bench.way.start("gpu01", b"sleep 60")
    await bench.clock.advance(IDLE_S + 1)
    await bench.way.close_idle()
    assert bench.way.steps == 1
    await busy.close()
    assert await output(busy) == b""
    await bench.clock.advance(IDLE_S + 1)
    await bench.way.close_idle()
    assert bench.way.steps == 0
    await bench.way.aclose()
    assert bench.ended == [(0, "")]
    (argv,) = bench.noted
    # What is kept for whoever looks at the commands is no screenful of shell.
    assert argv[0] == "srun"
    assert max(map(len, argv)) < 100


async def test_a_worn_step_is_replaced_before_slurm_ends_it(bench: Bench) -> None:
    held = await bench.way.start("gpu01", b"sleep 60")
    await bench.clock.advance(LIFETIME_S)
    assert await bench.ask() == b"hallo\n"
    assert len(bench.calls) == 2
    with pytest.raises(NodeUnreachable, match="closed here"):
        await output(held)


async def test_hosts_without_a_job_and_odd_names_never_reach_srun(bench: Bench) -> None:
    bench.expected.expect("7; id", ["gpu02"])
    bench.expected.expect("8", ["gpu 03"])
    for host in ("gpu02", "gpu 03", "gpu09"):
        with pytest.raises(NodeUnreachable, match="only through a running job"):
            await bench.ask(host=host)
    with pytest.raises(RunnerError, match="too long"):
        await bench.ask(b"x" * 100_000)
    assert bench.calls == []


async def test_a_refusal_is_told_and_not_asked_for_again_at_once(bench: Bench) -> None:
    bench.refuse("", "Unable to create step for job 7: Job/step already completing or completed")
    for _ in range(3):
        with pytest.raises(NodeUnreachable, match="job 7 only, and that is ending or over"):
            await bench.ask()
    assert len(bench.calls) == 1
    bench.way.forget("gpu01")
    (bench.folder / "refuse-").unlink()
    assert await bench.ask() == b"hallo\n"


async def test_where_gpus_are_given_to_one_step_only_none_are_asked_for(bench: Bench) -> None:
    bench.refuse("--jobid=7", "Unable to create step: Invalid generic resource (gres) spec")
    assert await bench.ask() == b"hallo\n"
    assert bench.calls == ["--jobid=7 --nodelist=gpu01", "--gres=none --jobid=7 --nodelist=gpu01"]


@pytest.mark.parametrize(
    "words",
    [
        "Unable to confirm allocation for job 8: Job not heterogeneous job leader",
        "No directives to start application on any available hetjob components",
    ],
)
async def test_a_part_of_a_het_job_goes_by_its_leader(bench: Bench, words: str) -> None:
    bench.expected.expect("8", ["gpu01"])
    bench.refuse("--jobid=8 --nodelist", words)
    bench.local.on(
        "scontrol --local -o show job 8",
        "JobId=7 HetJobId=7 HetJobOffset=0 JobName=x JobId=8 HetJobId=1 HetJobOffset=5\n"
        "JobId=8 HetJobId=7 HetJobOffset=1 JobName=x\n",
    )
    assert await bench.ask() == b"hallo\n"
    assert bench.calls == [
        "--jobid=8 --nodelist=gpu01",
        "--jobid=7 --het-group=1 --nodelist=gpu01",
    ]


async def test_a_look_at_one_node_of_a_job_makes_no_second_step(bench: Bench) -> None:
    bench.expected.expect("7", ["gpu01", "gpu02"])
    assert await bench.ask() == b"hallo\n"
    bench.expected.expect("7", ["gpu01"])
    assert await bench.ask() == b"hallo\n"
    assert bench.calls == ["--jobid=7 --nodelist=gpu[01-02]"]


async def test_a_job_that_lost_a_node_is_reached_on_the_others(bench: Bench) -> None:
    bench.expected.expect("7", ["gpu01", "gpu02"])
    bench.expected.expect("7", ["gpu01"])
    bench.refuse(
        "--jobid=7 --nodelist=gpu[",
        "Unable to create step for job 7: Requested node configuration is not available",
    )
    assert await bench.ask() == b"hallo\n"
    assert bench.calls == ["--jobid=7 --nodelist=gpu[01-02]", "--jobid=7 --nodelist=gpu01"]


async def test_a_step_that_ends_by_itself_is_told_and_becomes_no_step_a_poll(bench: Bench) -> None:
    held = await bench.way.start("gpu01", b"echo $PPID; sleep 60")
    chunks = held.chunks()
    await anext(chunks)
    step = bench.way._steps["7"]
    assert step._child is not None
    step._child.kill()
    step._signal(15)
    with pytest.raises(NodeUnreachable, match="has ended: the job is ending"):
        await anext(chunks)
    for _ in range(3):
        with pytest.raises(NodeUnreachable):
            await bench.ask()
    assert len(bench.calls) == 1
    await bench.clock.advance(IDLE_S + 1)
    assert await bench.ask() == b"hallo\n"
    assert len(bench.calls) == 2


async def test_without_srun_that_is_said(tmp_path: Path) -> None:
    expected = Expected()
    expected.expect("7", ["gpu01"])
    clock = FakeClock()
    way = SrunWay(FakeRunner(clock), clock, {"PATH": str(tmp_path)}, expected)
    with pytest.raises(NodeUnreachable, match="not installed, or not in PATH") as error:
        await way.start("gpu01", b"true")
    assert error.value.failure.trouble is Trouble.NO_SLURM
    await way.aclose()


async def test_agents_are_told_that_we_live(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.ask()
    step = bench.way._steps["7"]
    sent: list[bytes] = []
    monkeypatch.setattr(step, "_send", sent.append)
    await settle()
    await bench.clock.advance(65.0)
    assert sent == [b"PING 0 * -\n"] * 2


def test_the_command_takes_nothing_from_the_job() -> None:
    argv = srun_argv(ExpectedJob("7", ("gpu01", "gpu02", "gpu04")), "5f0c2a9e", cluster="beta")
    for word in ("--overlap", "--mem=0", "--mpi=none", "--job-name=slurmtop", "--time=120"):
        assert word in argv
    assert argv[:3] == ("srun", "-M", "beta")
    assert not any(word.startswith("--gres") for word in argv)
    tail = argv[argv.index("--jobid=7") :]
    assert tail[1:4] == ("--nodelist=gpu[01-02,04]", "--nodes=3", "--ntasks=3")
    assert tail[-2:] == ("slurmtop-agent", "5f0c2a9e")


@pytest.mark.parametrize(
    ("stderr", "trouble", "says"),
    [
        (b"srun: unrecognized option '--overlap'\n", Trouble.TOO_OLD, "does not know --overlap"),
        (b"srun: error: Unable to confirm allocation for job 7: Job is pending execution",
         Trouble.UNKNOWN_JOB, "waiting in the queue"),
        (b"srun: error: Slurm job 7 has expired\n", Trouble.UNKNOWN_JOB, "ending or over"),
        (b"srun: error: Unable to create step for job 7: Requested node configuration is not"
         b" available\n", Trouble.DOWN, "down or no longer its"),
        (b"srun: error: Unable to create step for job 7: Requested nodes are busy\n",
         Trouble.BUSY, "no room"),
        (b"srun: error: Unable to create step for job 7: Step limit reached for this job\n",
         Trouble.DENIED, "MaxStepCount"),
        (b"srun: error: Unable to confirm allocation for job 7: Access/permission denied\n",
         Trouble.DENIED, "only the owner"),
        (b"srun: error: Unable to contact slurm controller (connect failure)\n",
         Trouble.DOWN, "does not reach the Slurm controller"),
        (b"", Trouble.OTHER, "said nothing"),
    ],
)  # fmt: skip
def test_refusals_are_told_in_words(stderr: bytes, trouble: Trouble, says: str) -> None:
    failure = explain_step("7", 1, stderr)
    assert failure.trouble is trouble
    assert re.search(says, failure.sentence)
    assert failure.retry_after_s is not None
