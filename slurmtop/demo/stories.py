"""What the simulated jobs write into their logs.

Every story is a function of one run: it lists all that the run would ever write if nobody
interfered. How a run ended stands in :mod:`slurmtop.demo.endings`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurmtop.demo.gpus import ASIDE
from slurmtop.demo.jobs import DemoJob, Run
from slurmtop.demo.logs import Lines, Piece, Text
from slurmtop.demo.specs import scatter
from slurmtop.demo.values import tasks_per_node

WATCHDOG_S = 600
"""The time limit of a collective in the training jobs: PyTorch's own."""
STEP_EVERY_S = 15
STEPS_PER_LINE = 10
SAVE_EVERY_LINES = 240
WARM_UP_S = 90
TOTAL_STEPS = 72_000
BATCH_STEPS = 1_250
BAR_STEPS = 2_400
BAR_SAVED = 1_680
_BUS_IDS = ("1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000")


@dataclass(frozen=True, slots=True)
class Teller:
    """One run of one job; ``start`` is the date of second 0 of the demo."""

    start: datetime
    job: DemoJob
    run: Run
    attempt: int

    def when(self, t: int) -> datetime:
        return self.start + timedelta(seconds=t)

    def stamp(self, t: int) -> str:
        return self.when(t).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def t(self) -> int:
        return self.run.start_t

    @property
    def ranks(self) -> int:
        return tasks_per_node(self.job.spec) * len(self.run.nodes)

    @property
    def hangs(self) -> bool:
        return self.job.spec.hang_s is not None and self.attempt == 0

    def host(self, rank: int) -> str:
        return self.run.nodes[rank // tasks_per_node(self.job.spec)]

    @property
    def first_step(self) -> int:
        """Where the newest checkpoint of the earlier runs lets it go on."""
        saved, hang_s = 0, self.job.spec.hang_s
        for at, run in enumerate(self.job.runs[: self.attempt]):
            ran_s = 0 if run.end_t is None else run.end_t - run.start_t
            if at == 0 and hang_s is not None:
                ran_s = min(ran_s, hang_s)
            lines = max(0, ran_s - WARM_UP_S) // STEP_EVERY_S
            saved += lines // SAVE_EVERY_LINES * SAVE_EVERY_LINES * STEPS_PER_LINE
            asked = (step for t, step in run.saved if run.end_t is None or t <= run.end_t)
            saved = max((saved, *asked))
        return saved


Story = Callable[[Teller], Iterator[Piece]]


def _text(t: int, *lines: str) -> Text:
    return Text(t, "".join(f"{line}\n" for line in lines).encode())


def _noise(seed: int) -> float:
    return scatter(seed, 2_001) / 1_000 - 1


def _loss(step: int, seed: int) -> float:
    return 1.85 + 7.6 / math.pow(1 + step / 160, 0.6) + 0.03 * _noise(step * 31 + seed)


def nccl_banner(teller: Teller, t: int) -> Text:
    """What NCCL says at INFO while a communicator of all ranks is made."""
    lines: list[str] = []
    seed = teller.job.id * 7 + teller.attempt
    comm = f"0x{0x9F3C0000 + scatter(seed, 1 << 20):016x}"
    for rank in range(teller.ranks):
        host, device = teller.host(rank), rank % tasks_per_node(teller.job.spec)
        pid = 41_000 + scatter(seed, 9_000) + 11 * rank
        address = f"10.40.1.{int(host[-2:])}"
        prefix = f"{host}:{pid}:{pid} [{device}] NCCL INFO"
        inside = f"{host}:{pid}:{pid + 402} [{device}] NCCL INFO"
        name = f"comm 0x{0x55D0C4A0 + rank * 4_096:x} rank {rank} nranks {teller.ranks}"
        where = f"cudaDev {device} nvmlDev {device} busId {_BUS_IDS[device % 8]} commId {comm}"
        lines += [
            f"{prefix} NCCL version 2.27.5+cuda12.9",
            f"{prefix} cudaDriverVersion 12090",
            f"{prefix} Bootstrap: Using eth0:{address}<0>",
            f"{inside} NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:{address}<0>",
            f"{inside} Using network IB",
            f"{inside} ncclCommInitRankConfig {name} {where} - Init START",
            f"{inside} ncclCommInitRankConfig {name} {where} - Init COMPLETE",
        ]
    return _text(t, *lines)


def _head(teller: Teller) -> Iterator[Piece]:
    spec = teller.job.spec
    resumed = teller.first_step
    yield _text(
        teller.t + 2,
        f"{teller.stamp(teller.t + 2)} | INFO | {spec.name}: world size {teller.ranks}"
        f" on {len(teller.run.nodes)} node(s), total steps {TOTAL_STEPS}",
    )
    if spec.gpus:
        yield nccl_banner(teller, teller.t + 20)
    if resumed:
        yield _text(
            teller.t + 60,
            f"{teller.stamp(teller.t + 60)} | INFO | resumed from checkpoints/step-{resumed:06}",
        )


def pretrain(teller: Teller) -> Iterator[Piece]:
    """A long training: ``step 18240/72000 | loss 2.3147`` every 15 s, a checkpoint an hour."""
    yield from _head(teller)
    step0, seed, begin = teller.first_step, teller.job.id, teller.t + WARM_UP_S
    tokens = 26_000 * max(1, teller.ranks)

    def line(number: int) -> bytes:
        step = step0 + (number + 1) * STEPS_PER_LINE
        place = f"step {step}/{TOTAL_STEPS}"
        rate = 3e-4 * min(1.0, step / 2_000) * (1 - 0.9 * step / (TOTAL_STEPS + 40_000))
        return (
            f"{teller.stamp(begin + number * STEP_EVERY_S)} | INFO | {place:<17}"
            f" | loss {_loss(step, seed):6.4f} | lr {max(rate, 1e-9):.2e}"
            f" | gnorm {0.42 + 0.2 * _noise(step):5.3f}"
            f" | tok/s {tokens + scatter(step, 9_000):>8} | mem 71.3GiB\n"
        ).encode()

    width = len(line(0))
    stop = teller.t + (teller.job.spec.hang_s or 0) if teller.hangs else None
    count = (TOTAL_STEPS - step0) // STEPS_PER_LINE
    for first in range(0, count, SAVE_EVERY_LINES):
        t = begin + first * STEP_EVERY_S
        lines = Lines(t, STEP_EVERY_S, min(SAVE_EVERY_LINES, count - first), width, line, first)
        if stop is not None and lines.last_t >= stop:
            yield lines.until(stop)
            step = step0 + (first + lines.until(stop).count) * STEPS_PER_LINE
            yield from _hang(teller, stop, step)
            return
        yield lines
        saved = step0 + (first + lines.count) * STEPS_PER_LINE
        t = lines.last_t + 4
        yield _text(
            t, f"{teller.stamp(t)} | INFO | saved checkpoint checkpoints/step-{saved:06} in 41.8 s"
        )


def _hang(teller: Teller, t: int, step: int) -> Iterator[Piece]:
    """One rank waits for its data while the others wait for it; then the watchdog speaks."""
    sequence = step * 12 + 5
    lines = []
    for rank in range(teller.ranks):
        what = f"backward done, entering all_reduce {sequence}"
        if rank == ASIDE:
            what = "dataloader worker 2: opening shard-000731.tar"
        lines.append(f"[rank{rank}]: {teller.stamp(t)} step {step + 1} {what}")
    yield _text(t, *lines)
    late = t + WATCHDOG_S
    waiting = [rank for rank in range(teller.ranks) if rank != ASIDE]
    yield _text(
        late,
        *(line for rank in waiting for line in _watchdog(teller, late, rank, sequence)),
        _told_to_dump(teller, late, sequence - 1),
    )


def _error_stamp(teller: Teller, t: int, rank: int) -> str:
    """``[E0505 11:59:00.141309614``: the level, the date without a year and nanoseconds."""
    return f"[E{teller.when(t):%m%d %H:%M:%S}.{100_000_000 + scatter(rank, 800_000_000)}"


def _watchdog(teller: Teller, t: int, rank: int, sequence: int) -> Iterator[str]:
    """What PyTorch 2.6 says on a rank whose collective came to its timeout."""
    head = f"[rank{rank}]:{_error_stamp(teller, t, rank)} ProcessGroupNCCL.cpp"
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    size = "NumelIn=134217728, NumelOut=134217728"
    yield (
        f"{head}:629] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL("
        f"SeqNum={sequence}, OpType=ALLREDUCE, {size}, Timeout(ms)={WATCHDOG_S * 1_000})"
        f" ran for {WATCHDOG_S * 1_000 + scatter(rank, 900)} milliseconds before timing out."
    )
    yield (
        f"{head}:2168] {group}  failure detected by watchdog at work sequence id: {sequence}"
        f" PG status: last enqueued work: {sequence}, last completed work: {sequence - 1}"
    )
    yield (
        f"{head}:667] Stack trace of the failed collective not found, potentially because"
        " FlightRecorder is disabled. You can enable it by setting"
        " TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value."
    )


def _told_to_dump(teller: Teller, t: int, done: int) -> str:
    """What the rank that never came says when another one's watchdog has spoken."""
    return (
        f"[rank{ASIDE}]:{_error_stamp(teller, t, ASIDE)} ProcessGroupNCCL.cpp:1743]"
        f" [PG ID 0 PG GUID 0(default_pg) Rank {ASIDE}] Received a dump signal due to a collective"
        " timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL"
        f" work: {done}, last completed NCCL work: {done}.This is most likely caused by incorrect"
        " usages of collectives, e.g., wrong sizes used across ranks, the order of collectives is"
        " not same for all ranks or the scheduled collective, for some reason, didn't run."
        " Additionally, this can be caused by GIL deadlock or other reasons such as network errors"
        " or bugs in the communications library (e.g. NCCL), etc. "
    )


def traceback(teller: Teller) -> Iterator[Piece]:
    """A short training that dies of an error in the data: the error stands in the log."""
    yield from epochs(teller)


def epochs(teller: Teller) -> Iterator[Piece]:
    """``epoch 3/40 step 120/1250 loss 1.2345`` every 20 s."""
    seed, begin = teller.job.id, teller.t + 30
    if teller.job.spec.gpus > 1:
        yield nccl_banner(teller, teller.t + 15)

    def line(number: int) -> bytes:
        epoch, step = divmod((number + 1) * 50, BATCH_STEPS)
        place = f"epoch {epoch + 1}/40 step {step}/{BATCH_STEPS}"
        return (
            f"{teller.stamp(begin + number * 20)} {place:<27}"
            f" loss {_loss(number * 40, seed):6.4f} acc {min(0.97, 0.2 + number / 400):5.3f}\n"
        ).encode()

    yield Lines(begin, 20, 40 * BATCH_STEPS // 50 - 1, len(line(0)), line)


def bar(teller: Teller) -> Iterator[Piece]:
    """A progress bar that rewrites its line with carriage returns."""
    done = BAR_SAVED * teller.attempt
    yield _text(
        teller.t + 3,
        f"{teller.stamp(teller.t + 3)} INFO loading meta-llama-8b, resume step {done}",
    )
    if teller.job.spec.gpus > 1:
        yield nccl_banner(teller, teller.t + 25)
    begin = teller.t + 60

    def line(number: int) -> bytes:
        step = min(BAR_STEPS, done + number * 5)
        share = step / BAR_STEPS
        left = (BAR_STEPS - step) * 4
        return (
            f"\r{share:4.0%}|{'#' * int(20 * share):<20}| {step:>4}/{BAR_STEPS}"
            f" [{_clock(number * 20)}<{_clock(left)},  4.00s/it,"
            f" loss={_loss(step * 4, teller.job.id):5.3f}]"
        ).encode()

    yield Lines(begin, 20, (BAR_STEPS - done) // 5 + 1, len(line(0)), line)


def _clock(seconds: int) -> str:
    return f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def shards(teller: Teller) -> Iterator[Piece]:
    """``shard 00012/04096`` every 5 s."""
    begin = teller.t + 6

    def line(number: int) -> bytes:
        held = 3.1 + number * 0.47
        return (
            f"{teller.stamp(begin + number * 5)} shard {number + 1:05}/04096 kept"
            f" {8_000 + scatter(number, 2_000)} of 10000, {held:6.1f} GiB in memory\n"
        ).encode()

    yield Lines(begin, 5, 4_096, len(line(0)), line)


def tokens(teller: Teller) -> Iterator[Piece]:
    """``file 001/380`` every 15 s."""

    def line(number: int) -> bytes:
        return f"file {number + 1:03}/380 {2_000_000 + scatter(number, 999_999)} tokens\n".encode()

    yield Lines(teller.t + 4, 15, 380, len(line(0)), line)


def quiet(teller: Teller) -> Iterator[Piece]:
    """A service that says where it listens and no more."""
    yield _text(teller.t + 8, f"listening on {teller.run.nodes[0]}:8888")


def step_at(teller: Teller, t: int) -> int | None:
    """The step that the run has counted by ``t``; None for what counts none, or not yet."""
    spec, ran_s = teller.job.spec, t - teller.t
    if spec.story == "pretrain":
        if spec.hang_s is not None and teller.hangs:
            ran_s = min(ran_s, spec.hang_s)
        lines = (ran_s - WARM_UP_S) // STEP_EVERY_S + 1
        return teller.first_step + lines * STEPS_PER_LINE if lines > 0 else None
    if spec.story == "bar":
        done = BAR_SAVED * teller.attempt
        return min(BAR_STEPS, done + (ran_s - 60) // 20 * 5) if ran_s >= 60 else None
    return None


STORIES: dict[str, Story] = {
    "bar": bar,
    "epochs": epochs,
    "pretrain": pretrain,
    "quiet": quiet,
    "shards": shards,
    "tokens": tokens,
    "traceback": traceback,
}
