"""Looking at the nodes of a running job: once, and again some seconds later where that is wanted.

What is asked of a node is decided by ``triage.live.enough``. All nodes are asked at once; one that
does not answer costs its own cell and holds up the others for some seconds at the most.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from slurmtop.collect.clock import cancel_and_wait, pause, spawn, within
from slurmtop.collect.live_fates import fates_of
from slurmtop.collect.log_facts import newer_log_facts
from slurmtop.collect.log_motion import motion
from slurmtop.collect.node_states import read_node_states
from slurmtop.collect.nodes.probe import read_probe
from slurmtop.collect.nodes.stacks import AT_ONCE, read_stacks
from slurmtop.collect.one_look import OneLook, all_within, happens, rank_like
from slurmtop.collect.poller import fault_of_ours
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job, Phase
from slurmtop.model.live import SAMPLES_APART_S, LiveFacts
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.reach import Reach
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks
from slurmtop.parse.dumps.stacks_answer import without_stacks
from slurmtop.parse.slurm.hostlist import hosts_in
from slurmtop.triage.live.enough import Wanted, wanted
from slurmtop.triage.subject import Subject

#: Tells which job (its raw number) is about to be looked at on which nodes.
Expect = Callable[[str, Iterable[str]], None]
#: What came of the last tries to get onto a node.
Reached = Callable[[str], Reach | None]

#: Nodes asked at the same time, and how many at all in one look.
_AT_ONCE = 64
MOST_HOSTS = 1_024
#: No look waits longer for a node. Once half of them answered, the rest gets so many times as
#: long as those needed, and so many seconds at the least.
_LOOK_S = 12.0
_TIMES_AS_LONG = 3.0
_PATIENCE_S = 3.0
_STACKS_S = 5.0
_LOG_S = 3.0
_STATES_S = 4.0
#: Clocks are set while we wait: a second look that begins a moment too early would say nothing.
_SPARE_S = 0.05
#: A second look that would begin later than this before the end of the budget is not begun.
_SECOND_NEEDS_S = 2.0
#: News of many nodes are told at most so often, and cost at most this part of the time.
_NEWS_S = 0.25
_NEWS_TIMES = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LookSettings:
    """What may be asked of the nodes of a job.

    ``nodes`` false: nothing, and ``why_not`` says why. ``stacks`` false: no stacks. ``always``: two
    whole looks, also where nobody suspects anything; ``once``: one look at the least. ``sudo``: by
    ``sudo -n`` on the nodes. ``tools``: where what reads stacks is looked for
    (:func:`.nodes.stack_tools.tool_words`; None: where it usually lies). ``budget_s`` bounds all
    looks together.
    """

    nodes: bool = True
    why_not: str = ""
    stacks: bool = True
    always: bool = False
    once: bool = False
    sudo: bool = False
    tools: tuple[str, ...] | None = None
    budget_s: float = 20.0


def raw_number(job: Job) -> str:
    """The plain number by which the nodes know the job: of an array task its own."""
    return job.raw_id or job.id.base


def nodes_to_look_at(facts: JobFacts) -> tuple[str, ...]:
    """The nodes of a job that runs, at most :data:`MOST_HOSTS`; none of any other."""
    job = facts.job
    if job is None or job.state.phase is not Phase.RUNNING or "CONFIGURING" in job.state.flags:
        return ()
    if not (facts.controller_answered and raw_number(job).isdigit()):
        return ()
    return hosts_in(job.nodes)[:MOST_HOSTS]


async def look_live(
    runner: Runner,
    clock: Clock,
    facts: JobFacts,
    *,
    settings: LookSettings,
    expect: Expect = lambda job, hosts: None,
    reached: Reached = lambda host: None,
    mark: bytes | None = None,
) -> AsyncGenerator[LiveFacts, None]:
    """What the nodes of the job of ``facts`` tell, again and again as they answer; the last one is
    the whole. Never raises for a node that is silent; whoever stops listening ends the look."""
    news: asyncio.Queue[LiveFacts | None] = asyncio.Queue()

    def tell(known: JobFacts) -> None:
        if known.live is not None:
            news.put_nowait(known.live)

    look = LiveLook(
        runner, clock, facts, settings=settings, expect=expect, reached=reached, mark=mark
    )
    look.judged(facts)
    task = spawn(look.run(tell), name="look at the nodes")
    task.add_done_callback(lambda _: news.put_nowait(None))
    try:
        while (live := await news.get()) is not None:
            yield live
        whole = task.result().live
        if whole is not None:
            yield whole
    finally:
        await cancel_and_wait(task)


class LiveLook:
    """One look, or two, at all nodes of one job. ``facts`` is the newest that is known.

    It may begin before the logs were judged: what they say comes with :meth:`judged`, and is
    waited for before it is decided whether more has to be asked.
    """

    def __init__(
        self,
        runner: Runner,
        clock: Clock,
        facts: JobFacts,
        *,
        settings: LookSettings,
        expect: Expect = lambda job, hosts: None,
        reached: Reached = lambda host: None,
        mark: bytes | None = None,
    ) -> None:
        self.facts = facts
        self._first_logs = facts.logs
        self._runner = runner
        self._clock = clock
        self._settings = settings
        self._expect = expect
        self._reached = reached
        self._mark = mark
        self._hosts = nodes_to_look_at(facts)
        self._job = raw_number(facts.job) if facts.job is not None else ""
        self._looks: list[OneLook] = []
        self._judged = asyncio.Event()
        self._tell: Callable[[JobFacts], None] = lambda _: None
        self._next_news = float("-inf")
        self._states: tuple[tuple[str, str], ...] = ()

    def judged(self, facts: JobFacts) -> None:
        """All that Slurm and the logs tell is known now."""
        self._first_logs = facts.logs
        self.facts = replace(facts, live=self.facts.live)
        self._judged.set()

    async def run(self, tell: Callable[[JobFacts], None]) -> JobFacts:
        """Look; ``tell`` hears of news. What is returned is the whole."""
        self._tell = tell
        began = self._clock.monotonic()
        if not self._hosts:
            return self.facts
        if Subject(self.facts).may_write:
            # A step can be opened in a job of one's own alone.
            self._expect(self._job, self._hosts)
        states = spawn(self._node_states(), name="states of the nodes")
        try:
            await self._look(began)
            await self._judged.wait()
            await self._log_again()
            if self._worth_a_second():
                await pause(self._clock, self._apart(began))
                if self._left(began) > _SECOND_NEEDS_S:
                    await self._look(began, last=True)
                    await self._log_again(last=True)
            await states
        finally:
            await cancel_and_wait(states)
        self._know(tell=False)
        return self.facts

    def _apart(self, began: float) -> float:
        """How long the second look has to wait: by the wall, which the looks are told by and which
        stands still in a replay, and by the seconds that never jump."""
        wall = (self._clock.now() - self._looks[0].began_at).total_seconds()
        used = min(max(0.0, wall), self._clock.monotonic() - began)
        return SAMPLES_APART_S + _SPARE_S - used

    def _left(self, began: float) -> float:
        return self._settings.budget_s - (self._clock.monotonic() - began)

    def _worth_a_second(self) -> bool:
        """Is a second look wanted, and of any use? None is where no node answered the first."""
        answered = any(probe.failure is None for probe in self._looks[-1].probes.values())
        return answered and (self._enough().second or self._settings.always)

    def _enough(self) -> Wanted:
        return wanted(self.facts)

    def _wants_stacks(self) -> bool:
        if not self._settings.stacks:
            return False
        asked = any(look.stacks_asked for look in self._looks)
        return asked or self._settings.always or self._enough().stacks

    # One look

    async def _look(self, began: float, *, last: bool = False) -> None:
        look = OneLook(self._clock.now(), len(self._looks) + 1, self._hosts)
        self._looks.append(look)
        self._know()
        doors = asyncio.Semaphore(_AT_ONCE)
        for host in self._hosts:
            name = f"look {look.number} at {host}"
            look.probing[host] = spawn(self._probe(look, host, doors), name=name)
        try:
            await self._all_or_patience(look, min(_LOOK_S, self._left(began)))
            if self._wants_stacks() or (look.number == 1 and await self._asked_late()):
                for host in self._hosts:
                    self._ask_stacks(look, host)
            if look.reading:
                limit = max(0.5, min(_STACKS_S, self._left(began)))
                await all_within(self._clock, look.reading, limit)
        finally:
            await cancel_and_wait(*look.probing.values(), *look.reading)
        look.whole = True
        self._know(tell=not last)

    async def _asked_late(self) -> bool:
        """Whether stacks are wanted, once the logs are judged."""
        await self._judged.wait()
        self._know()
        return self._wants_stacks()

    async def _probe(self, look: OneLook, host: str, doors: asyncio.Semaphore) -> None:
        async with doors:
            sudo, words = self._settings.sudo, self._settings.tools
            try:
                probe = await read_probe(
                    self._runner, self._clock, host, job=self._job, sudo=sudo, words=words
                )
            except TimeoutError:
                # A replay knows at once what was waited for in vain.
                look.lost(host)
                return
            except Exception as error:  # A fault of ours must show, and cost this node alone.
                failure = fault_of_ours(f"the answer of {host}", error)
                probe = NodeProbe(host=host, at=self._clock.now(), failure=failure)
        look.add(probe)
        # Where this news is not even put together, the whole of them decides.
        news = self._know(often=True)
        asked = any(one.stacks_asked for one in self._looks)
        if probe.failure is None and (asked or (news and self._wants_stacks())):
            self._ask_stacks(look, host)

    async def _all_or_patience(self, look: OneLook, limit_s: float) -> None:
        """Wait for the nodes, but not for ever; who did not answer by then is told so."""
        began = self._clock.monotonic()
        if await happens(self._clock, look.half, limit_s):
            used = self._clock.monotonic() - began
            limit_s = min(limit_s, max(_PATIENCE_S, _TIMES_AS_LONG * used))
            await happens(self._clock, look.all, limit_s - used)
        await cancel_and_wait(*look.probing.values())
        waited = self._clock.monotonic() - began
        for host in self._hosts:
            if host not in look.probes:
                look.add(self._silent(host, waited))

    def _silent(self, host: str, waited_s: float) -> NodeProbe:
        # Not how long: a bundle must say the same, and does not wait.
        words = f"{host} did not answer in time."
        failure = Failure(Trouble.TIMEOUT, words)
        return NodeProbe(host=host, at=self._clock.now(), took_s=waited_s, failure=failure)

    # Stacks

    def _ask_stacks(self, look: OneLook, host: str) -> None:
        """Have the stacks of the ranks of ``host`` read, once."""
        look.stacks_asked = True
        probe = look.probes.get(host)
        if host in look.asked or probe is None or probe.failure is not None:
            return
        look.asked.add(host)
        all_of_them, refused = rank_like(probe, self._job), self._refused(host)
        processes = tuple(one for one in all_of_them if one.key not in refused)
        known = [refused[one.key] for one in all_of_them if one.key in refused]
        look.stacks.setdefault(host, []).extend(known)
        # One that waits in the kernel may cost its answer, and only its own; and that once.
        waiting = tuple(
            one for one in processes if one.state == "D" and self._not_in_vain(look, one)
        )
        others = tuple(one for one in processes if one.state != "D")
        both = ((others, "stacks"), (waiting, "stacks of what waits"))
        at_once = AT_ONCE // sum(1 for these, _ in both if these) if processes else 0
        for these, what in both:
            if these:
                name = f"{what} {look.number} of {host}"
                reading = self._stacks(look, probe, these, at_once)
                look.reading.append(spawn(reading, name=name))

    def _refused(self, host: str) -> dict[tuple[str, int, int], ProcessStacks]:
        """What was refused in the look before is not asked for again."""
        before = [one for look in self._looks[:-1] for one in look.stacks.get(host, ())]
        return {one.key: one for one in before if _is_refused(one)}

    def _not_in_vain(self, look: OneLook, process: NodeProcess) -> bool:
        """Was its stack read before, or was that not tried yet?"""
        before = [one for one in self._looks if one is not look and process.host in one.asked]
        read = (one for look in before for one in look.stacks.get(process.host, ()))
        return not before or any(one.key == process.key and one.failure is None for one in read)

    async def _stacks(
        self, look: OneLook, probe: NodeProbe, processes: Sequence[NodeProcess], at_once: int
    ) -> None:
        at, tools = self._clock.now(), probe.stack_tools
        try:
            found = await read_stacks(
                self._runner, self._clock, probe.host, processes, tools, at_once=at_once
            )
        except Exception as error:  # As above: else it would look as if there were no stacks.
            failure = fault_of_ours(f"the stacks of {probe.host}", error)
            found = without_stacks(processes, failure, at)
        look.stacks.setdefault(probe.host, []).extend(found)
        self._know(often=True)

    # Beside the nodes

    async def _log_again(self, *, last: bool = False) -> None:
        """What the logs say now, and whether they grew since the first look at them."""
        try:
            reading = newer_log_facts(self._runner, self.facts.logs)
            newer = await within(self._clock, reading, _LOG_S, name="the logs again")
        except TimeoutError:
            return
        logs = newer if newer is not None else self.facts.logs
        self.facts = replace(self.facts, logs=logs, now=self._clock.now())
        self._know(tell=not last)

    async def _node_states(self) -> None:
        job = self.facts.job
        nodes = job.nodes if job is not None and job.nodes is not None else ""
        cluster = self.facts.cluster
        reading = read_node_states(self._runner, nodes, cluster=cluster, mark=self._mark)
        try:
            self._states = await within(self._clock, reading, _STATES_S, name="states of the nodes")
        except TimeoutError:
            return
        self._know()

    def _know(self, *, often: bool = False, tell: bool = True) -> bool:
        """Put together what is known, and tell it: of many nodes not every answer (False), and not
        what is returned in the next moment."""
        began = self._clock.monotonic()
        if often and began < self._next_news:
            return False
        samples = tuple(look.sample() for look in self._looks[-2:])
        live = LiveFacts(
            job=self._job,
            hosts=self._hosts,
            samples=samples,
            log=motion(self._first_logs, self.facts.logs, self.facts.now),
            node_states=self._states,
            fates=fates_of(samples, self._reached, stacks=self._settings.stacks),
        )
        self.facts = replace(self.facts, live=live)
        if tell and samples and samples[-1].probes:
            self._tell(self.facts)
        # To judge thousands of ranks takes a second, in which no answer is heard.
        now = self._clock.monotonic()
        self._next_news = now + max(_NEWS_S, _NEWS_TIMES * (now - began))
        return True


def _is_refused(one: ProcessStacks) -> bool:
    return one.failure is not None and one.failure.trouble is Trouble.DENIED
