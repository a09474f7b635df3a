"""A signal to rank processes: whom it reaches, what it would do, what was sent, what came of it."""

import asyncio
from dataclasses import replace

import pytest

from slurmtop.control.actions import Action, ConfirmLevel, Details, Kind, RankPid, Refusal
from slurmtop.control.commands import calls_for, check_argv
from slurmtop.control.fates import fate_of, process_reactions, with_processes
from slurmtop.control.node_kill import SCRIPT, kill_argv
from slurmtop.control.outcome import Outcome, Result, Seen, StepsSeen
from slurmtop.control.prepare import Request, prepare
from slurmtop.control.signals import plan_signal
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.ports import Command, Completed, NodeUnreachable
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.script import Fate, Reaction, Recipient
from slurmtop.model.snapshot import Failure, Trouble
from tests.control.bench import Bench
from tests.control.builders import FakeWorld, a_step, action, asker, job, sentence
from tests.fakes import START

USR1 = 1 << 9
TRAIN = ("/opt/torch/bin/python", "-u", "train.py")
AGENT = ("/opt/torch/bin/python", "/opt/torch/bin/torchrun", "train.py")
CLOSED = Failure(Trouble.DENIED, "gpu02 refuses the key: load it into the agent.")
RANKS = Details(signal="USR1", recipient=Recipient.RANKS)


def process(pid: int, ppid: int, argv: tuple[str, ...], **more: object) -> NodeProcess:
    made = NodeProcess(
        host="gpu01",
        pid=pid,
        start_ticks=pid * 10,
        ppid=ppid,
        name=argv[0].rsplit("/", 1)[-1],
        argv=argv,
        job="4711",
        step="0",
        state="S",
        env=(),
        caught=0,
        ignored=0,
        threads=20,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def rank(pid: int, number: int, host: str = "gpu01", **more: object) -> NodeProcess:
    env = (("LOCAL_RANK", str(number % 2)), ("RANK", str(number)),
           ("TORCHELASTIC_RUN_ID", "4711"), ("WORLD_SIZE", "4"))  # fmt: skip
    return process(pid, 20, TRAIN, env=env, host=host, caught=USR1, **more)


def node(host: str = "gpu01", *ranks: NodeProcess, agent_ignores: int = 0) -> NodeProcesses:
    first = 0 if host == "gpu01" else 2
    own = ranks or (rank(30, first, host), rank(31, first + 1, host))
    stepd = process(10, 1, ("slurmstepd: [4711.0]",), name="slurmstepd", host=host)
    agent = process(20, 10, AGENT, host=host, ignored=agent_ignores)
    return NodeProcesses(host=host, at=START, processes=(stepd, agent, *own))


def shut(host: str = "gpu02") -> NodeProcesses:
    failure = replace(CLOSED, sentence=CLOSED.sentence.replace("gpu02", host))
    return NodeProcesses(host=host, at=START, failure=failure)


JOB = job("4711", nodes="gpu[01-02]", node_count=2)


def plan(
    *looks: NodeProcesses, signal: str = "USR1", one: Job = JOB, me: str = "anna"
) -> Action | Refusal:
    return plan_signal(
        [one], asker(me), signal=signal, recipient=Recipient.RANKS, looks={one.key: looks}
    )


def test_one_command_a_node_with_each_pid_and_its_start() -> None:
    made = action(plan(node(), node("gpu02")))
    assert made.argvs == (
        ("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30:300", "31:310"),
        ("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30:300", "31:310"),
    )
    assert made.hosts == ("gpu01", "gpu02")
    assert made.reactions == (
        Reaction("4 ranks (0-3) on gpu[01-02]", Fate.HANDLES, "it has a handler for USR1", count=4),
    )
    assert made.confirm is ConfirmLevel.YES
    *lines, script = made.command_lines
    assert script.startswith("where slurmtop-kill() { one() {")
    assert lines == [
        "on gpu01: slurmtop-kill USR1 30:300 31:310",
        "on gpu02: slurmtop-kill USR1 30:300 31:310",
    ]


def test_who_has_no_handler_is_told_by_its_rank() -> None:
    ranks = (rank(30, 0), replace(rank(31, 1), caught=0), rank(32, 2), rank(33, 3))
    made = action(plan(node("gpu01", *ranks)))
    assert {(one.who, one.fate) for one in made.reactions} == {
        ("3 ranks (0,2-3) on gpu01", Fate.HANDLES),
        ("rank 1 on gpu01 (pid 31)", Fate.DIES),
    }
    assert made.confirm is ConfirmLevel.TYPE_ID
    assert "dies of USR1: rank 1 on gpu01 (pid 31)" in made.warnings


def test_ranks_that_are_not_reached_are_told_and_a_yes_is_not_enough() -> None:
    made = action(plan(node(), shut()))
    assert made.hosts == ("gpu01",)
    assert made.warnings[:2] == (
        "ranks on gpu02 not reached: the node refuses the key: load it into the agent",
        "only 2 of 4 ranks are reached",
    )
    assert made.confirm is ConfirmLevel.TYPE_ID
    cut = replace(node("gpu02"), complete=False)
    assert "was cut on gpu02" in " ".join(action(plan(node(), cut)).warnings)


def test_nobody_reached_is_a_refusal() -> None:
    says = sentence(plan(shut("gpu01"), shut()))
    assert "no rank process of job 4711 is reached: ranks on gpu[01-02] not reached" in says
    empty = NodeProcesses(host="gpu01", at=START)
    assert "no rank process is found on its nodes" in sentence(plan(empty))


def test_processes_that_may_be_ranks_are_told_as_such() -> None:
    plain = [process(pid, 20, ("/opt/x", "a"), step="batch") for pid in (30, 31)]
    shell = process(20, 1, ("bash", "slurm_script"), step="batch")
    look = NodeProcesses(host="gpu01", at=START, processes=(shell, *plain))
    made = action(plan(look))
    assert "each that may be one gets it" in " ".join(made.warnings)
    assert made.confirm is ConfirmLevel.TYPE_ID
    assert [one.who for one in made.reactions] == ["2 rank processes (x) on gpu01"]


def test_where_a_task_has_started_the_ranks_itself_the_doubt_is_said() -> None:
    """mp.spawn below one task of srun: it alone has a number, and its workers do the work."""
    task = (("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"))
    spawn = ("/opt/torch/bin/python", "-c", "from multiprocessing.spawn import spawn_main")
    parent = process(30, 10, TRAIN, env=task, caught=USR1, threads=4)
    below = [process(40 + n, 30, spawn, env=task) for n in range(8)]
    stepd = process(10, 1, ("slurmstepd: [4711.0]",), name="slurmstepd")
    look = NodeProcesses(host="gpu01", at=START, processes=(stepd, parent, *below))
    made = action(plan(look))
    assert [one.pid for one in made.details.ranks] == [30]
    assert [one.rank for one in made.details.ranks] == [None]
    assert made.warnings[0] == (
        "8 processes that train.py started on gpu01 may be the ranks:"
        " train.py alone gets it, and must pass it on"
    )
    assert [one.who for one in made.reactions] == ["1 rank process (train.py) on gpu01"]
    assert made.confirm is ConfirmLevel.TYPE_ID
    told = {one.who for one in process_reactions([look], "4711", "USR1", Recipient.STEPS)}
    assert told == {
        "1 rank process (train.py) on gpu01",
        "perhaps a rank: python (8) on gpu01",
    }


def test_processes_of_others_are_not_signalled() -> None:
    other = replace(JOB, user="bob")
    says = sentence(plan(node(), one=other))
    assert "only bob can signal the processes" in says
    assert "slurmtop signal 4711 --signal USR1 --to ranks" in says
    assert isinstance(plan(node(), one=other, me="root"), Action)


@pytest.mark.parametrize(
    ("changes", "signal", "fate"),
    [
        ({"caught": USR1}, "USR1", Fate.HANDLES),
        ({"ignored": USR1}, "USR1", Fate.IGNORES),
        ({}, "USR1", Fate.DIES),
        ({}, "CONT", Fate.CONTINUES),
        ({}, "TSTP", Fate.STOPS),
        ({"caught": (1 << 8) | (1 << 18)}, "KILL", Fate.DIES),
        ({"caught": 1 << 18}, "STOP", Fate.STOPS),
        ({"caught": None}, "USR1", Fate.UNKNOWN),
        ({"inner_pids": (1,)}, "USR1", Fate.IGNORES),
        ({"inner_pids": (1,), "caught": USR1}, "USR1", Fate.HANDLES),
        ({"caught": 1 << 1}, "INT", Fate.UNKNOWN),
        ({"argv": AGENT, "caught": 1 << 14}, "TERM", Fate.DIES),
        ({"name": "srun", "argv": ("srun", "x")}, "USR1", Fate.CONTINUES),
        ({"name": "srun", "argv": ("srun", "x")}, "TERM", Fate.DIES),
        ({"name": "bash", "argv": ("bash", "-c", "x"), "caught": USR1}, "USR1", Fate.UNKNOWN),
    ],
)
def test_what_a_signal_does(changes: dict[str, object], signal: str, fate: Fate) -> None:
    made = replace(process(30, 20, TRAIN), **changes)  # type: ignore[arg-type]
    assert fate_of(made, signal)[0] is fate


def test_each_recipient_reaches_its_own() -> None:
    shell = process(5, 1, ("/bin/bash", "/x/slurm_script"), step="batch")
    client = process(6, 5, ("srun", "torchrun"), step="batch")
    worker = replace(rank(40, 0), ppid=30, threads=1)
    look = node("gpu01", rank(30, 0), rank(31, 1), worker, agent_ignores=USR1)
    look = replace(look, processes=(shell, client, *look.processes))

    def who(recipient: Recipient, step: str | None = None) -> dict[str, Fate]:
        one = None if step is None else a_step(f"4711.{step}")
        found = process_reactions([look], "4711", "USR1", recipient, one)
        return {item.who: item.fate for item in found}

    steps = {
        "torchrun agent on gpu01": Fate.IGNORES,
        "2 ranks (0-1) on gpu01": Fate.HANDLES,
        "helper train.py on gpu01": Fate.HANDLES,
    }
    batch = {"batch shell on gpu01": Fate.DIES}
    assert who(Recipient.STEPS) == who(Recipient.STEP, "0") == steps
    assert who(Recipient.STEP, "1") == {}
    assert who(Recipient.BATCH) == batch
    assert who(Recipient.EVERYTHING) == {
        **batch,
        "srun itself on gpu01": Fate.CONTINUES,
        **steps,
    }
    assert who(Recipient.RANKS) == {"2 ranks (0-1) on gpu01": Fate.HANDLES}


def test_the_script_keeps_the_word_on_a_shell_with_a_trap() -> None:
    told = Reaction("batch shell", Fate.HANDLES, "its trap saves", 3, ends_job=True)
    by_script = [told, Reaction("ranks (train.py)", Fate.UNKNOWN, "the script cannot tell")]
    shell = process(5, 1, ("/bin/bash", "/x/slurm_script"), step="batch", caught=USR1)
    look = replace(node(), processes=(shell, *node().processes))

    def exact(*looks: NodeProcesses) -> list[Reaction]:
        everything = Recipient.EVERYTHING
        return list(with_processes(by_script, looks, "4711", "USR1", everything))

    found = exact(look)
    assert told in found
    assert by_script[1] not in found
    assert by_script[1] in exact(look, shut()), "of the other node only the script tells"
    assert exact(shut("gpu01"), shut()) == exact() == by_script
    without = replace(shell, caught=0)
    dies = exact(replace(node(), processes=(without, *node().processes)))
    assert told not in dies
    assert ("batch shell on gpu01", Fate.DIES) in {(one.who, one.fate) for one in dies}


@pytest.mark.parametrize(
    ("argv", "host"),
    [
        (("/bin/sh", "-c", "reboot", "slurmtop-kill", "USR1", "30:300"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "BOOM", "30:300"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "1:300"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "-1:300"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30:300;reboot"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30"), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", *["30:1"] * 501), "gpu01"),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30:300"), None),
        (("/bin/sh", "-c", SCRIPT, "slurmtop-kill", "USR1", "30:300"), "-oProxyCommand=x"),
        (("scancel", "4711"), "gpu01"),
    ],
)
def test_what_no_action_may_run(argv: tuple[str, ...], host: str | None) -> None:
    with pytest.raises(ValueError):
        check_argv(argv, host)


def test_a_hostile_host_or_signal_makes_no_command() -> None:
    target = action(plan(node())).targets[0]
    pid = RankPid(host="gpu01 x", pid=30, start_ticks=1, job=target.key, raw_id="4711")
    for details in (replace(RANKS, ranks=(pid,)), replace(RANKS, signal="A;B", ranks=(pid,))):
        with pytest.raises(ValueError, match="not a host"):
            calls_for(Kind.SIGNAL, [target], "", details)
    other = replace(pid, host="gpu01", job=JobKey("", "4712"))
    assert calls_for(Kind.SIGNAL, [target], "", replace(RANKS, ranks=(other,))) == ()
    many = [replace(pid, host="gpu01", pid=2 + n) for n in range(501)]
    assert len(calls_for(Kind.SIGNAL, [target], "", replace(RANKS, ranks=tuple(many)))) == 2


def test_the_plan_looks_at_the_nodes_first() -> None:
    world = FakeWorld(Seen((JOB,)), StepsSeen())
    world.looks = (node(), shut())
    request = Request(kind=Kind.SIGNAL, jobs=(JOB,), details=RANKS)
    made = action(asyncio.run(prepare(request, world, asker())))
    assert world.asked == ["jobs 4711", "processes 4711 on gpu01,gpu02"]
    assert made.hosts == ("gpu01",)
    unknown = replace(JOB, nodes=None)
    world = FakeWorld(Seen((unknown,)), StepsSeen())
    request = Request(kind=Kind.SIGNAL, jobs=(unknown,), details=RANKS)
    assert "its nodes are not known" in sentence(asyncio.run(prepare(request, world, asker())))


def test_the_parts_of_a_het_job_are_looked_at_each_by_its_own_number() -> None:
    first = job("9300+0", raw_id="9300", nodes="gpu01")
    rows = (first, job("9300+1", raw_id="9301", nodes="gpu02"))
    world = FakeWorld(Seen(rows), StepsSeen())
    request = Request(kind=Kind.SIGNAL, jobs=(rows[1],), known=rows, details=RANKS)
    asyncio.run(prepare(request, world, asker()))
    assert world.asked[1:] == ["processes 9300 on gpu01", "processes 9301 on gpu02"]


class Nodes:
    """What the nodes say to a kill, and what runs there afterwards."""

    def __init__(self, bench: Bench) -> None:
        self.said: dict[str, str | Exception] = {}
        self.after: list[NodeProcesses] = []
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        bench.runner.on_call("*slurmtop-kill*", self._kill)
        bench.executor._look_at_nodes = self._look

    def _kill(self, command: Command) -> Completed:
        answer = self.said[command.host or ""]
        if isinstance(answer, Exception):
            raise answer
        return Completed(0, answer.encode(), b"", START, 0.1)

    async def _look(self, number: str, hosts: object) -> list[NodeProcesses]:
        self.asked.append((number, tuple(hosts)))  # type: ignore[arg-type]
        return self.after


async def outcome(bench: Bench, made: Action) -> Outcome:
    bench.queue = [{"4711": "RUNNING"}]
    return await bench.run(made)


async def test_all_that_got_it_and_are_still_there() -> None:
    bench = Bench()
    nodes = Nodes(bench)
    nodes.said = {"gpu01": "30 sent\n31 sent\n", "gpu02": "30 sent\n31 sent\n"}
    nodes.after = [node(), node("gpu02")]
    done = await outcome(bench, action(plan(node(), node("gpu02"))))
    (one,) = done.jobs
    assert one.result is Result.DONE
    assert one.sentence == (
        "job 4711: signalled: USR1 sent to 4 ranks (0-3) on gpu[01-02];"
        " all of them are still there; the job still runs 3 s later"
    )
    assert nodes.asked == [("4711", ("gpu01", "gpu02"))]
    assert done.action.hosts == ("gpu01", "gpu02")
    asked, told = bench.logged
    assert asked["hosts"] == told["hosts"] == ["gpu01", "gpu02"]
    assert asked["commands"] == [list(argv) for argv in done.action.argvs]
    assert asked["details"] == {
        "signal": "USR1",
        "recipient": "rank processes",
        "processes": ["gpu01:30", "gpu01:31", "gpu02:30", "gpu02:31"],
    }


async def test_a_reused_pid_and_a_silent_node_are_told() -> None:
    bench = Bench()
    nodes = Nodes(bench)
    nodes.said = {"gpu01": "30 reused\n31 sent\n", "gpu02": NodeUnreachable("gpu02", CLOSED)}
    nodes.after = [node("gpu01", rank(30, 0))]
    done = await outcome(bench, action(plan(node(), node("gpu02"))))
    (one,) = done.jobs
    assert one.result is Result.PARTLY
    assert not done.ok
    for words in (
        "USR1 sent to 1 of 4 ranks",
        "rank 0 on gpu01: not signalled, the pid belongs to another process now",
        "2 ranks (2-3) on gpu02: not sent, gpu02 refuses the key",
        "ended since: rank 1 on gpu01",
    ):
        assert words in one.sentence, one.sentence


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("30 gone\n31 gone\n", Result.OVER),
        ("30 reused\n31 gone\n", Result.NOT_SENT),
        ("30 not-yours\n31 gone\n", Result.DENIED),
        ("nothing of use", Result.NOT_KNOWN),
    ],
)
async def test_where_nobody_got_it(said: str, result: Result) -> None:
    bench = Bench()
    nodes = Nodes(bench)
    nodes.said = {"gpu01": said}
    done = await outcome(bench, action(plan(node())))
    assert done.jobs[0].result is result
    assert "USR1 was sent to no rank" in done.jobs[0].sentence
    assert nodes.asked == []


async def test_a_look_afterwards_that_fails_is_no_death() -> None:
    bench = Bench()
    nodes = Nodes(bench)
    nodes.said = {"gpu01": "30 sent\n31 sent\n"}
    nodes.after = [shut("gpu01")]
    done = await outcome(bench, action(plan(node())))
    assert "not known whether still there: 2 ranks (0-1) on gpu01" in done.jobs[0].sentence


async def test_read_only_and_dry_run_send_nothing() -> None:
    made = action(plan(node()))
    for bench in (Bench(read_only=True), Bench(dry_run=True)):
        done = await bench.run(made)
        assert bench.sent == []
        assert done.refused is not None or done.action.hosts == ("gpu01",)


async def test_a_command_that_was_tampered_with_is_not_run() -> None:
    made = action(plan(node()))
    pid = RankPid(host="gpu01", pid=99, start_ticks=1, job=JOB.key, raw_id="4711")
    for forged in (
        replace(made, argvs=(kill_argv("USR1", [pid]),)),
        replace(made, hosts=("gpu02",)),
        replace(made, hosts=()),
    ):
        bench = Bench()
        done = await bench.run(forged)
        assert done.refused is not None
        assert bench.sent == []
