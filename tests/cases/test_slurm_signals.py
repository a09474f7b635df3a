"""Signals: who gets one, and why a waiting job gets none: cases 048 and 066."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from slurmtop.control.actions import Action, ConfirmLevel, Recipient
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.execute import CALL_TIMEOUT_S
from slurmtop.control.outcome import Outcome, Result, StepsSeen
from slurmtop.control.prepare import ScriptSeen
from slurmtop.control.signals import SIGNALS, plan_signal
from slurmtop.jobscript.reactions import reactions
from slurmtop.jobscript.reading import read_script
from slurmtop.model.job import Job, Step
from slurmtop.model.script import Fate, Reaction
from slurmtop.ui.actions_flow import confirm_and_do
from slurmtop.ui.present.signal import SignalFacts, receivers_of
from tests.build import make_id, make_job
from tests.cases.acting import ASKER, Acting, Rows, dialog, planned, refusal, row
from tests.cases.support import Case, found, load, product, prose, sentence, values
from tests.fakes import settle
from tests.ui.golden import screen_text
from tests.ui.harness import Bench
from tests.ui.job_bench import part_text

#: What the notes of case 048 say of its two jobs.
SCRIPTS = {
    "8605": "#!/bin/bash\ntrap 'save' USR1\npython train.py\n",
    "8606": "#!/bin/bash\nsrun python train.py\n",
}


def step_of(job: str, id: str = "0") -> Step:
    return Step(job=make_id(job), id=id, name="python", node_count=1, nodes="gpu01")


STEPS = {
    "8605": (step_of("8605", "batch"), step_of("8605", "extern")),
    "8606": (step_of("8606", "batch"), step_of("8606", "extern"), step_of("8606")),
}


def recipient_of(argv: Sequence[str]) -> Recipient:
    if "--full" in argv:
        return Recipient.EVERYTHING
    if "--batch" in argv:
        return Recipient.BATCH
    return Recipient.STEP if "." in argv[-1] else Recipient.STEPS


def reached(job: str, recipient: Recipient, signal: str = "USR1") -> tuple[Reaction, ...]:
    return reactions(read_script(SCRIPTS[job]), signal, recipient)


def signalled(
    job: str, recipient: Recipient, *, signal: str = "USR1", step: Step | None = None
) -> Action:
    """The action as the dialog shows it, with the script read and the steps known."""
    action = planned(
        plan_signal,
        [make_job(job)],
        signal=signal,
        recipient=recipient,
        step=step,
        steps=STEPS[job],
        reactions=reached(job, recipient, signal),
    )
    assert isinstance(action, Action), action
    return action


# 066: a signal to a job that waits


async def _sent(n: int, job: Job, recipient: Recipient, rows: Rows) -> tuple[Acting, Outcome]:
    """The job ran when it was planned, and no longer does when scancel comes to it."""
    acting = Acting(load("066")[n], [rows])
    how: dict[str, Any] = {"signal": "USR1", "recipient": recipient}
    outcome = await acting.outcome(planned(plan_signal, [job], **how))
    return acting, outcome


@prose("066/results/1", "066/results/3")
@pytest.mark.parametrize(("n", "recipient"), [(1, Recipient.STEPS), (3, Recipient.EVERYTHING)])
async def test_case_066_a_waiting_job_gets_no_signal(n: int, recipient: Recipient) -> None:
    waits = make_job("9801", "PENDING")
    sentence = refusal(planned(plan_signal, [waits], signal="USR1", recipient=recipient))
    assert "has not started" in sentence or "waits" in sentence
    assert "signal" in sentence
    rows = [row("9801", "PENDING", reason="Priority")]
    _, outcome = await _sent(n, make_job("9801"), recipient, rows)
    (job,) = outcome.jobs
    assert job.result in (Result.REFUSED, Result.NOT_SENT)
    assert "signal" in job.sentence
    assert "waits" in job.sentence or "not started" in job.sentence
    assert not outcome.ok


@prose("066/results/2")
async def test_case_066_no_batch_script_in_an_interactive_job() -> None:
    known = make_job("9802", batch=False)
    how: dict[str, Any] = {"signal": "USR1", "recipient": Recipient.BATCH}
    assert "batch script" in refusal(planned(plan_signal, [known], **how))
    _, outcome = await _sent(2, make_job("9802"), Recipient.BATCH, [row("9802", "RUNNING")])
    (job,) = outcome.jobs
    assert job.result is Result.REFUSED
    assert "interactive" in job.sentence
    assert "batch script" in job.sentence


@sentence("066", "do not offer signals for pending jobs")
@pytest.mark.parametrize("signal", list(SIGNALS))
@pytest.mark.parametrize("id", ["9801", "9801_3", "9801_[0-4%2]"])
def test_case_066_no_signal_is_offered_to_what_waits(signal: str, id: str) -> None:
    waits, runs = make_job(id, "PENDING"), make_job("9803")
    for recipient in (Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING):
        how: dict[str, Any] = {"signal": signal, "recipient": recipient}
        if signal != "KILL":
            assert "signal" in refusal(planned(plan_signal, [waits], **how))
        action = planned(plan_signal, [waits, runs], **how)
        assert isinstance(action, Action)
        for argv in action.argvs:
            assert not any(word.startswith("9801") for word in argv) or signal == "KILL"


async def test_case_066_the_key_offers_no_signal_for_a_waiting_job() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job("9801", "PENDING")])
        await pilot.press("S")
        await settle()
        await pilot.pause()
        assert "cannot signal a job that has not started" in part_text(app, "#outcome")
        assert bench.world.asked == []


class _Screen:
    """The Jobs screen with a confirmed signal under way that scancel retries for 95 s."""

    def __init__(self) -> None:
        self.bench = Bench()
        waits = [row("9801", "PENDING", reason="Priority")]
        self.acting = Acting(load("066")[1], [waits], self.bench.clock)
        self.runner = self.acting.runner
        self.bench.services = replace(self.bench.services, executor=self.acting.executor)

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Pilot[None]]:
        app = self.bench.app()
        async with app.run_test(size=(100, 24)) as pilot:
            await self.bench.answer(pilot, [make_job("9801"), make_job("9802")])
            how: dict[str, Any] = {"signal": "USR1", "recipient": Recipient.STEPS}
            action = planned(plan_signal, [make_job("9801")], **how)
            assert isinstance(action, Action)
            self.acting.expects(action)
            confirm_and_do(app, action, None)
            await pilot.pause()
            if action.confirm is ConfirmLevel.YES:
                await pilot.press("y")
            else:
                await pilot.press(*action.expected_text, "enter")
            await self.bench.advance(pilot, 1.0)
            assert self.runner.in_flight == 1
            yield pilot


@sentence("066", "action runs in the background with its own time limit; UI stays usable")
async def test_case_066_the_queue_is_usable_while_scancel_waits() -> None:
    under_way = _Screen()
    takes_s = load("066")[1].elapsed_s
    assert takes_s is not None
    async with under_way.sending() as pilot:
        (asked,) = [call for call in under_way.runner.calls if call.argv[0] == "scancel"]
        assert takes_s < asked.timeout_s <= CALL_TIMEOUT_S
        await pilot.press("escape")
        for _ in range(8):
            await under_way.bench.advance(pilot, 10.0)
            assert under_way.runner.in_flight == 1
            await pilot.press("question_mark")
            assert len(pilot.app.screen_stack) == 2
            await pilot.press("escape")
            assert len(pilot.app.screen_stack) == 1
        await under_way.bench.advance(pilot, 300.0)
        assert under_way.runner.in_flight == 0
        assert "signal" in part_text(pilot.app, "#outcome")


@sentence("066", "freeze for 95 s")
async def test_case_066_must_not_freeze_for_95_s() -> None:
    under_way = _Screen()
    async with under_way.sending() as pilot:
        await pilot.press("escape")
        for _ in range(9):
            await under_way.bench.advance(pilot, 10.0)
            assert under_way.runner.in_flight == 1
            assert " 9801 " in screen_text(pilot.app)
            await pilot.press("slash", *"9802", "enter")
            assert " 9801 " not in screen_text(pilot.app)
            await pilot.press("escape")
            await pilot.pause()


# 048: who gets it


@values("048")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


def facts_of(job: str) -> SignalFacts:
    """What the chooser knows of a job of the case, by its script and its steps."""
    return SignalFacts(
        jobs=(make_job(job),),
        asker=ASKER,
        known=(),
        steps=StepsSeen(STEPS[job]),
        script=ScriptSeen(read_script(SCRIPTS[job])),
        react=reactions,
    )


def offered(job: str) -> dict[Recipient, str]:
    """The words of the chooser for each receiver, the first one of a kind."""
    words: dict[Recipient, str] = {}
    for receiver in receivers_of(facts_of(job)):
        option = receiver.option
        words.setdefault(receiver.recipient, f"{option.label}: {option.why_not or option.note}")
    return words


@product("048")
def answer_048(case: Case) -> Any:
    """Whom the chooser names for the first four commands."""
    out = {}
    for n in range(1, 5):
        argv = case[n].argv
        text = offered(argv[-1])[recipient_of(argv)]
        nobody = "nobody" in text
        out[str(n)] = {
            "n": n,
            "bash": "shell" in text and not nobody,
            "children": "children" in text and not nobody,
            "steps": ("steps" in text or "step " in text) and not nobody,
        }
    return {"reached": out}


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_case_048_the_script_tells_the_same(n: int) -> None:
    argv = load("048")[n].argv
    both = SCRIPTS["8605"] + "srun python other.py\n"
    reading = read_script(both if n == 3 else SCRIPTS[argv[-1]])
    names = [one.who for one in reactions(reading, "USR1", recipient_of(argv))]
    assert {
        "n": n,
        "bash": any("shell" in name for name in names),
        "children": any("shell" not in name and "step" not in name for name in names),
        "steps": any("step" in name for name in names),
    } == load("048").expected["reached"][n - 1]


@sentence("048", "the confirm dialog says who will get the signal")
@pytest.mark.parametrize("n", range(1, 6))
def test_case_048_the_dialog_says_who_gets_it(n: int) -> None:
    argv = load("048")[n].argv
    job, _, step = argv[-1].partition(".")
    recipient = recipient_of(argv)
    action = signalled(job, recipient, step=step_of(job, step) if step else None)
    assert action.argvs == (("scancel", "--ctld", *argv[1:]),)
    lines = dialog(action).splitlines()
    assert "USR1" in lines[0]
    words = {
        Recipient.STEPS: "the steps",
        Recipient.STEP: f"step {step}",
        Recipient.BATCH: "the batch shell",
        Recipient.EVERYTHING: "everything",
    }
    assert words[recipient] in lines[0]
    told_of = [line for line in lines if not line.startswith("!")]
    for reaction in reached(job, recipient):
        assert any(reaction.who in line and str(reaction.fate) in line for line in told_of)


@sentence("048", "offer step / batch shell / everything explicitly")
async def test_case_048_each_receiver_is_offered() -> None:
    words = offered("8606")
    assert set(words) == set(Recipient)
    assert "after a look there" in words[Recipient.RANKS]
    bench = Bench()
    bench.world.seen_steps = StepsSeen(STEPS["8606"])
    bench.world.seen_script = ScriptSeen(read_script(SCRIPTS["8606"]))
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job("8606")])
        await pilot.press("S")
        await settle()
        await pilot.pause()
        text = part_text(app, "#signal")
        for label in ("steps", "step 0", "batch shell", "everything", "rank processes"):
            assert label in text
        assert "scancel --ctld --signal=USR1 8606" in text
        await pilot.press("tab", "down")
        assert "scancel --ctld --signal=USR1 8606.0" in part_text(app, "#signal")
        await pilot.press("down")
        assert "scancel --ctld --signal=USR1 --batch 8606" in part_text(app, "#signal")
        await pilot.press("down")
        assert "scancel --ctld --signal=USR1 --full 8606" in part_text(app, "#signal")


@sentence("048", "--signal=KILL needs the same confirmation as a cancel")
@pytest.mark.parametrize(
    "jobs",
    [
        [make_job("8606")],
        [make_job("8606", node_count=4)],
        [make_job("8606", user="bob")],
        [make_job("8605"), make_job("8606")],
        [make_job("9300+0"), make_job("9300+1")],
        [make_job("4711_1"), make_job("4711_2")],
    ],
)
def test_case_048_kill_is_confirmed_like_a_cancel(jobs: list[Job]) -> None:
    cancel = planned(plan_cancel, jobs)
    assert isinstance(cancel, Action)
    for recipient in (Recipient.STEPS, Recipient.EVERYTHING):
        kill = planned(plan_signal, jobs, signal="KILL", recipient=recipient)
        assert isinstance(kill, Action)
        assert (kill.confirm, kill.expected_text) == (cancel.confirm, cancel.expected_text)
        # Of a het job all parts "end" in the one and "get it" in the other.
        heads = {text.partition(":")[0] for text in cancel.warnings}
        assert heads <= {text.partition(":")[0] for text in kill.warnings}


@sentence("048", "warn on the first form if sacct/squeue -s shows no srun step")
def test_case_048_no_step_is_warned_of() -> None:
    bare = signalled("8605", Recipient.STEPS)
    assert any("srun" in warning for warning in bare.warnings)
    with_step = signalled("8606", Recipient.STEPS)
    assert not any("no step" in warning or "nobody" in warning for warning in with_step.warnings)
    assert set(bare.warnings) - set(with_step.warnings)


# Who gets it, and when


@pytest.mark.parametrize("recipient", [Recipient.BATCH, Recipient.EVERYTHING])
def test_S048_a_trap_waits_for_the_foreground_child(recipient: Recipient) -> None:
    late = read_script("#!/bin/bash\ntrap save USR1\nsrun python train.py\n")
    (shell,) = [r for r in reactions(late, "USR1", recipient) if "shell" in r.who]
    assert "foreground" in shell.why or "ends" in shell.why or "wait" in shell.why
    soon = read_script("#!/bin/bash\ntrap save USR1\nsrun python train.py &\nwait\n")
    (other,) = [r for r in reactions(soon, "USR1", recipient) if "shell" in r.who]
    assert other.fate is Fate.HANDLES
    assert other.why != shell.why


def test_S048_the_agent_that_has_no_handler_dies() -> None:
    text = "#!/bin/bash\nsrun torchrun --nproc-per-node 8 train.py &\nwait\n"
    fates = {r.who: r.fate for r in reactions(read_script(text), "USR1", Recipient.STEPS)}
    assert Fate.DIES in fates.values()
    ignoring = text.replace("torchrun", 'bash -c \'trap "" USR1; exec torchrun').replace(
        "train.py &", "train.py' &"
    )
    spared = reactions(read_script(ignoring), "USR1", Recipient.STEPS)
    agents = [r for r in spared if "agent" in r.who]
    assert [r.fate for r in agents] == [Fate.IGNORES]


def test_S048_a_script_without_srun_reaches_nobody_through_the_steps() -> None:
    script = read_script("#!/bin/bash\npython train.py\n")
    assert not [r for r in reactions(script, "USR1", Recipient.STEPS) if r.fate is Fate.HANDLES]


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("USR1", ("USR1", 60, False)),
        ("USR1@120", ("USR1", 120, False)),
        ("B:USR1@300", ("USR1", 300, True)),
        ("B:TERM", ("TERM", 60, True)),
        ("R:USR2@90", ("USR2", 90, False)),
        ("SIGINT@30", ("INT", 30, False)),
    ],
)
def test_S048_what_slurm_itself_sends_before_the_end(
    option: str, wanted: tuple[str, int, bool]
) -> None:
    asked = read_script(f"#!/bin/bash\n#SBATCH --signal={option}\nsrun x\n").signal
    assert asked is not None
    assert (asked.signal, asked.before_s, asked.to_batch) == wanted


def test_case_048_of_an_array_the_running_tasks_get_it() -> None:
    jobs = [make_job("4711_0"), make_job("4711_1"), make_job("4711_[2-9%2]", "PENDING")]
    action = planned(plan_signal, jobs, signal="USR1", recipient=Recipient.STEPS)
    assert isinstance(action, Action)
    assert action.argvs == (("scancel", "--ctld", "--signal=USR1", "4711_[0-1]"),)
    assert "left out, cannot signal a job that has not started" in dialog(action)
