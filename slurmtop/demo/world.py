"""The simulated cluster: jobs start, run and end by themselves as simulated time goes on.

Nothing runs in the background: :meth:`World.advance` works off the events up to a time, in
order, so the same times and the same actions always give the same state, however often
somebody looked in between.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from slurmtop.demo.jobs import DemoJob, Run, Spec
from slurmtop.demo.nodes import NODE_NAMES, DemoNode
from slurmtop.demo.scheduler import schedule
from slurmtop.demo.signal_words import death_word
from slurmtop.demo.specs import scatter, strangers_spec

MIN_JOB_AGE_S = 2 * 86_400
"""How long the controller remembers an ended job."""
CLEAR_S = 3
KILL_WAIT_S = 32
KILL_DELAY_S = 2
REQUEUE_DELAY_S = 121
ARRIVE_EVERY_S = 25 * 60
MAX_WAITING_OF_ONE = 3

ENDED_REASON = {
    "FAILED": "NonZeroExitCode",
    "OUT_OF_MEMORY": "OutOfMemory",
    "TIMEOUT": "TimeLimit",
    "NODE_FAIL": "NodeDown",
}
ENDED_EXIT = {"OUT_OF_MEMORY": (0, 125), "TIMEOUT": (0, 15), "CANCELLED": (0, 15)}


class World:
    """Everything the programs answer from. ``t`` is seconds since the demo began."""

    def __init__(self) -> None:
        self.t = 0
        self.nodes: dict[str, DemoNode] = {name: DemoNode(name) for name in NODE_NAMES}
        self.jobs: dict[int, DemoJob] = {}
        self.next_id = 4_700
        self.queue: list[tuple[int, int]] = []
        """(minus priority, id) of every waiting job, most important first."""
        self.busy: dict[int, DemoJob] = {}
        """Jobs that hold nodes."""
        self._arrivals = 0
        self._events: list[tuple[int, int, str, int, int, int]] = []
        self._event_count = 0

    # Looking

    def remembered(self) -> Iterator[DemoJob]:
        """The jobs that the controller still knows."""
        oldest = self.t - MIN_JOB_AGE_S
        return (job for job in self.jobs.values() if job.live or (job.end_t or 0) > oldest)

    def parts_of(self, job: DemoJob) -> list[DemoJob]:
        """All parts of a het job, or just the job."""
        return [self.jobs[part] for part in job.het_ids] if job.het_ids else [job]

    def dependency_word(self, job: DemoJob) -> str | None:
        """``unfulfilled`` or ``failed``; None without a dependency or once it is met."""
        if job.spec.depends_on is None or not job.pending:
            return None
        parent = self.jobs.get(job.spec.depends_on)
        if parent is None or (parent.state == "COMPLETED" and not parent.completing):
            return None
        going = parent.pending or parent.running or parent.state == "COMPLETED"
        return "unfulfilled" if going else "failed"

    # Filling

    def submit(self, spec: Spec, t: int, *, id: int | None = None, priority: int) -> DemoJob:
        """A new waiting job. Nothing is scheduled yet."""
        number = self.next_id if id is None else id
        if number in self.jobs:
            raise ValueError(f"there is a job {number} already")
        self.next_id = max(self.next_id, number + 1)
        job = DemoJob(
            id=number,
            spec=spec,
            submit_t=t,
            priority=0 if spec.held else priority,
            normal_priority=priority,
            limit_s=spec.limit_s,
            held=spec.held,
            begin_t=spec.begin_at,
            reason="Priority",
        )
        job.eligible_t = spec.begin_at if spec.begin_at is not None else t
        if spec.array is not None:
            job.array_id = number
            job.tasks = list(range(spec.array[0], spec.array[0] + spec.array[1]))
        if spec.begin_at is not None:
            self.at(spec.begin_at, "wake", job)
        self.jobs[number] = job
        self.enqueue(job)
        return job

    def join(self, parts: Sequence[DemoJob]) -> None:
        """Make the jobs one het job; the first leads."""
        ids = tuple(part.id for part in parts)
        for offset, part in enumerate(parts):
            part.het_id, part.het_offset, part.het_ids = ids[0], offset, ids

    def place(
        self,
        job: DemoJob,
        start_t: int,
        gpu_ids: dict[str, tuple[int, ...]],
        *,
        end_t: int | None = None,
        state: str | None = None,
    ) -> None:
        """Give a job a past: it started at ``start_t`` on these GPUs, and perhaps ended."""
        self.dequeue(job)
        nodes = tuple(sorted(gpu_ids))
        job.state, job.reason, job.start_t, job.nodes = "RUNNING", "None", start_t, nodes
        job.gpu_ids = gpu_ids
        job.runs.append(Run(job.submit_t, start_t, nodes))
        if end_t is not None:
            self._close(job, end_t, state or str(job.spec.ending), job.spec.uid)
            return
        for name, ids in gpu_ids.items():
            self.nodes[name].take(job, ids)
        self.busy[job.id] = job
        self._plan_end(job)

    def copy(self, job: DemoJob) -> DemoJob:
        """A record of its own for part of a waiting array."""
        twin = replace(job, id=self.next_id, runs=[], gpu_ids={}, moves=0, tasks=None)
        self.next_id += 1
        self.jobs[twin.id] = twin
        return twin

    def forget(self, twin: DemoJob) -> None:
        """Take back a copy that was not needed after all."""
        del self.jobs[twin.id]
        self.next_id = twin.id

    def has_arrivals(self) -> None:
        """Let other people hand in a job now and then."""
        self.at(ARRIVE_EVERY_S, "arrive")

    def enqueue(self, job: DemoJob) -> None:
        insort(self.queue, (-job.priority, job.id))

    def dequeue(self, job: DemoJob) -> None:
        at = bisect_left(self.queue, (-job.priority, job.id))
        if at < len(self.queue) and self.queue[at] == (-job.priority, job.id):
            del self.queue[at]

    # Time

    def at(self, t: int, kind: str, job: DemoJob | None = None, number: int = 0) -> None:
        """Plan an event; it is dropped when the job has changed its state by then.

        ``number`` is who kills it, or the signal that it dies of.
        """
        self._event_count += 1
        ident, moves = (job.id, job.moves) if job is not None else (0, 0)
        heapq.heappush(self._events, (t, self._event_count, kind, ident, moves, number))

    def advance(self, t: int) -> None:
        """Work off everything that happens up to ``t``. Time never goes back."""
        while self._events and self._events[0][0] <= t:
            when, _, kind, ident, moves, number = heapq.heappop(self._events)
            self.t = max(self.t, when)
            job = self.jobs.get(ident)
            if kind == "arrive":
                self._arrive()
            elif job is None or job.moves != moves:
                continue
            elif kind == "end":
                self.finish(job, self._plan(job)[1])
            elif kind == "kill":
                self.finish(job, "CANCELLED", uid=number)
            elif kind == "step dies":
                self.finish(job, "FAILED", code=(128 + number, 0))
            elif kind == "shell dies":
                self.finish(job, "FAILED", code=(0, number))
            elif kind == "clear":
                self._clear(job)
            schedule(self)
        self.t = max(self.t, t)

    def begin(self, job: DemoJob, run: Run) -> None:
        """The job starts now; its nodes are already its own."""
        self.dequeue(job)
        self.give_up_nodes(job)
        job.moves += 1
        job.state, job.reason, job.start_t, job.end_t = "RUNNING", "None", self.t, None
        job.expected_t = job.begin_t = None
        job.runs.append(run)
        self.busy[job.id] = job
        self._plan_end(job)

    def finish(
        self,
        job: DemoJob,
        state: str,
        *,
        uid: int | None = None,
        code: tuple[int, int] | None = None,
    ) -> None:
        """End the present run now; the nodes are free once the cleaning up is over."""
        if not job.running:
            return
        hung = job.spec.hang_s is not None and not job.restarts
        self._close(job, self.t, state, uid, code)
        self._start_clearing(job, KILL_WAIT_S if hung else CLEAR_S)

    def send_back(self, job: DemoJob, *, held: bool = False) -> None:
        """Requeue: the run ends, and the job waits again under its old id."""
        busy = job.running
        run = job.run
        if run is not None:
            if busy:
                run.state, run.by_uid, run.end_t, run.exit = "REQUEUED", None, self.t, (0, 0)
            else:
                run.requeued_t = self.t
        job.moves += 1
        job.state, job.submit_t, job.start_t, job.end_t = "PENDING", self.t, None, None
        job.exit, job.by_uid, job.ends_at = (0, 0), None, None
        job.restarts += 1
        job.begin_t = job.eligible_t = self.t + REQUEUE_DELAY_S
        job.requeue_held = held
        job.held = job.held or held
        job.priority = 0 if job.held else max(1, job.priority)
        job.reason = "BeginTime"
        if busy and not job.held:
            for name in job.nodes:
                self.nodes[name].kept_for = job.id
        if busy or job.completing:
            self._start_clearing(job, CLEAR_S)
        else:
            job.nodes, job.gpu_ids = (), {}
            self.enqueue(job)
        self.at(job.begin_t, "wake", job)

    def drop(self, job: DemoJob, uid: int) -> None:
        """Cancel a job that waits: it is over at once."""
        self.dequeue(job)
        self.give_up_nodes(job)
        job.moves += 1
        job.state, job.by_uid, job.end_t, job.start_t = "CANCELLED", uid, self.t, self.t
        if job.completing:
            self._start_clearing(job, CLEAR_S)

    def drop_tasks(self, job: DemoJob, tasks: Iterable[int], uid: int) -> None:
        """Cancel some of an array's waiting tasks: they become a record of their own."""
        waiting = job.tasks or []
        gone = set(tasks).intersection(waiting)
        kept = [task for task in waiting if task not in gone]
        if not kept:
            self.drop(job, uid)
        elif gone:
            split = self.copy(job)
            split.tasks = sorted(gone)
            if len(split.tasks) == 1:
                split.task, split.tasks = split.tasks[0], None
            job.tasks = kept
            self.drop(split, uid)

    def set_priority(self, job: DemoJob, priority: int) -> None:
        waiting = job.pending and not job.completing
        if waiting:
            self.dequeue(job)
        job.priority = priority
        if waiting:
            self.enqueue(job)

    def set_limit(self, job: DemoJob, limit_s: int) -> None:
        job.limit_s = limit_s
        if job.running:
            job.moves += 1
            self._plan_end(job)

    def give_up_nodes(self, job: DemoJob) -> None:
        """Nothing is kept for the job any longer."""
        for node in self.nodes.values():
            if node.kept_for == job.id:
                node.kept_for = None

    def free_nodes(self, job: DemoJob) -> None:
        for name in job.nodes:
            self.nodes[name].release(job, self.t)

    # Inside

    def _plan(self, job: DemoJob) -> tuple[int, str]:
        """Seconds that the present run will take, and how it will end."""
        spec = job.spec
        run_s = spec.run_s
        if spec.hang_s is not None and job.restarts:
            run_s = job.limit_s // 2
        if run_s is None or run_s > job.limit_s:
            return job.limit_s, "TIMEOUT"
        return run_s, str(spec.ending)

    def _plan_end(self, job: DemoJob) -> None:
        job.ends_at = max(self.t, (job.start_t or 0) + self._plan(job)[0])
        self.at(job.ends_at, "end", job)

    def _close(
        self,
        job: DemoJob,
        t: int,
        state: str,
        uid: int | None,
        code: tuple[int, int] | None = None,
    ) -> None:
        own = (job.spec.exit_code, 0) if state == "FAILED" else ENDED_EXIT.get(state, (0, 0))
        code = own if code is None else code
        job.moves += 1
        job.state, job.end_t, job.exit = state, t, code
        job.by_uid = uid if state == "CANCELLED" else None
        job.reason, job.ends_at = ENDED_REASON.get(state, "None"), None
        if state == "FAILED" and code[1]:
            job.reason = f"RaisedSignal:{code[1]}({death_word(code[1]).replace(' ', '_')})"
        run = job.run
        if run is not None:
            run.end_t, run.state, run.exit, run.by_uid = t, state, code, job.by_uid

    def _start_clearing(self, job: DemoJob, seconds: int) -> None:
        job.completing = True
        self.at(self.t + seconds, "clear", job)

    def _clear(self, job: DemoJob) -> None:
        job.completing = False
        self.busy.pop(job.id, None)
        self.free_nodes(job)
        if job.pending:
            job.nodes, job.gpu_ids = (), {}
            self.enqueue(job)

    def _arrive(self) -> None:
        self.at(self.t + ARRIVE_EVERY_S, "arrive")
        self._arrivals += 1
        spec = strangers_spec(self._arrivals)
        waiting = sum(1 for _, ident in self.queue if self.jobs[ident].spec.user == spec.user)
        if waiting < MAX_WAITING_OF_ONE:
            self.submit(spec, self.t, priority=9_000 + scatter(self._arrivals, 900))
