"""Plan a signal: who gets it, what it does to them, and who gets nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from slurmtop.control.actions import Action, Asker, Details, Kind, Recipient, Refusal, Target
from slurmtop.control.cancel import het_warning, step_target
from slurmtop.control.commands import SIGNAL_NUMBERS
from slurmtop.control.fates import HARMLESS
from slurmtop.control.plan import (
    DONE,
    ending_confirmation,
    first_refusal,
    ids_text,
    left_out_when_ending,
    loss_warnings,
    make_action,
    make_targets,
    mild_confirmation,
    owner_warnings,
    sort_out,
    typed_confirmation,
    why_nothing,
)
from slurmtop.control.rank_signal import RanksFound, ranks_found
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase, Step
from slurmtop.model.process import NodeProcesses
from slurmtop.model.script import Fate, Reaction
from slurmtop.model.text import visible

#: What can be sent, by name without SIG, those that people send to jobs first.
SIGNALS: dict[str, str] = {
    "USR1": "user signal, often: save a checkpoint; NCCL catches it in places",
    "USR2": "user signal, often: save a checkpoint",
    "TERM": "end in good order; a cancel sends it first",
    "INT": "interrupt, as ctrl+c does",
    "HUP": "hang up, often: read the settings again",
    "CONT": "go on after a stop",
    "STOP": "stop until CONT comes; cannot be caught",
    "KILL": "end at once; cannot be caught",
    "QUIT": "end with a core dump; Python can print its stacks",
    "ABRT": "end with a core dump, as abort() does",
    "ALRM": "a timer ran out",
    "URG": "urgent data on a socket; ignored by default",
    "TSTP": "stop, as ctrl+z does; can be caught",
    "TTIN": "read from a terminal in the background; stops by default",
    "TTOU": "write to a terminal in the background; stops by default",
    "XCPU": "processor time is used up",
    "XFSZ": "a file grew too long",
    "SEGV": "bad memory access",
    "BUS": "bad memory access",
    "FPE": "bad arithmetic",
    "ILL": "bad instruction",
    "TRAP": "a trace trap",
    "SYS": "a bad system call",
    "PIPE": "a pipe without a reader",
    "CHLD": "a child changed; ignored by default",
    "WINCH": "the window changed; ignored by default",
    "VTALRM": "a timer of processor time ran out",
    "PROF": "a profiling timer ran out",
    "IO": "a file is ready",
    "PWR": "power is failing",
    "STKFLT": "unused today",
}
_BY_NUMBER = {number: name for name, number in SIGNAL_NUMBERS.items()}
_OTHER_NAMES = {"CLD": "CHLD", "IOT": "ABRT", "POLL": "IO"}
_SHOWN = 6
Looks = Mapping[JobKey, Sequence[NodeProcesses]]
#: What is to be feared, worst first; the reactions themselves say why.
_FATES = {
    Fate.DIES: "dies of {signal}: {who}",
    Fate.STOPS: "stopped by {signal} until CONT: {who}",
    Fate.UNKNOWN: "not known what {signal} does to: {who}",
}
_NOT_STARTED = "cannot signal a job that has not started"


def parse_signal(text: str) -> str | None:
    """``USR1`` for ``usr1``, ``SIGUSR1`` and ``10`` (Linux numbers); None for no signal. Total."""
    word = text.strip().upper()
    if word.isascii() and word.isdigit():
        return _BY_NUMBER.get(int(word)) if len(word) <= 3 else None
    name = word.removeprefix("SIG")
    name = _OTHER_NAMES.get(name, name)
    return name if name in SIGNALS else None


def plan_signal(
    jobs: Sequence[Job],
    asker: Asker,
    *,
    signal: str,
    recipient: Recipient,
    step: Step | None = None,
    steps: Sequence[Step] | None = None,
    reactions: Sequence[Reaction] = (),
    known: Iterable[Job] = (),
    looks: Looks | None = None,
) -> Action | Refusal:
    """What sending ``signal`` to ``recipient`` of ``jobs`` means.

    Only what runs can get one: to a pending job scancel would try for 95 s. ``step`` narrows it
    to one step of one job. ``steps`` are the running steps, None where they are not known;
    ``reactions`` say who gets it and what it does to them. ``looks`` are fresh looks at the nodes
    of each job: without them nothing is planned for rank processes but whose they are.
    """
    refused = first_refusal(jobs, asker, Kind.SIGNAL)
    if refused is not None:
        return refused
    name = parse_signal(signal)
    if name is None:
        return Refusal(f"not a signal: {visible(signal[:40])}; try USR1, USR2, TERM or HUP")
    known = tuple(known)
    if step is not None:
        recipient = Recipient.STEP
    usable, told, reasons = sort_out(jobs, asker, lambda job: _left_out(job, recipient))
    if not usable:
        return why_nothing(jobs, told, reasons, Kind.SIGNAL)
    targets = _targets(jobs, usable, asker, recipient, step, known)
    if isinstance(targets, Refusal):
        return targets
    found = RanksFound()
    if recipient is Recipient.RANKS:
        theirs = [target for target in targets if target.user != asker.me]
        if theirs and asker.me != "root":
            owner = visible(theirs[0].user) or "its owner"
            return Refusal(
                f"only {owner} can signal the processes of job {visible(theirs[0].label)}:"
                f" {owner} can run slurmtop signal {theirs[0].ids[0]} --signal {name} --to ranks"
            )
        if looks is not None:
            found = _ranks(targets, (*known, *jobs), looks, name)
            if not found.pids:
                return _no_ranks(targets, found)
            hit = {pid.job for pid in found.pids}
            targets = [t for t in targets if hit & {t.key, *t.parts}]
            reactions = found.reactions
            told = [*found.short, *found.notes, *told]
    deaf: list[Job] = []
    if recipient is Recipient.STEPS and steps is not None:
        hearing = {job.key for job in with_step(usable, steps)}
        deaf = [job for job in usable if job.key not in hearing]
    warnings = [*told, *owner_warnings(targets, asker.me)]
    warnings += [het_warning(target, "get it") for target in targets if target.parts]
    notes = _who_gets_it(usable, deaf, name, recipient, steps)
    if name == "KILL":
        warnings += [*_kill_warnings(targets, recipient), *notes]
        confirm = ending_confirmation(targets, asker.me)
    else:
        danger = _dangers(name, reactions, nobody=len(deaf) == len(usable))
        warnings += [*danger, *notes]
        doubt = bool(danger or found.short or found.notes)
        confirm = typed_confirmation(targets) if doubt else mild_confirmation(targets, asker.me)
    details = Details(signal=name, recipient=recipient, ranks=found.pids)
    return make_action(
        Kind.SIGNAL, targets, asker, confirm, warnings, details=details, reactions=reactions
    )


def _ranks(targets: Sequence[Target], jobs: Sequence[Job], looks: Looks, signal: str) -> RanksFound:
    """The ranks of all ``targets``; with several, what is said of one is said with its id."""
    keys = {key for target in targets for key in (target.key, *target.parts)}
    out = RanksFound()
    for job in {job.key: job for job in jobs if job.key in keys & set(looks)}.values():
        one = ranks_found(job, looks[job.key], signal)
        short, notes = one.short, one.notes
        if not one.pids and not short:
            short = ("no rank process is found on its nodes",)
        reactions = one.reactions
        if len(keys) > 1:
            lead = f"job {visible(job.key.id)}: "
            short, notes = tuple(lead + s for s in short), tuple(lead + s for s in notes)
            reactions = tuple(replace(item, who=lead + item.who) for item in reactions)
        out = RanksFound(
            (*out.pids, *one.pids),
            (*out.reactions, *reactions),
            (*out.short, *short),
            (*out.notes, *notes),
        )
    return out


def _no_ranks(targets: Sequence[Target], found: RanksFound) -> Refusal:
    why = "; ".join(found.short) or "its nodes are not known"
    if len(targets) == 1:
        return Refusal(f"no rank process of job {visible(targets[0].label)} is reached: {why}")
    return Refusal(f"no rank process of these {len(targets)} jobs is reached: {why}")


def runs_in(step: Step, job: Job) -> bool:
    """Is ``step`` one of ``job``? squeue spells the job as ``4711_3``; a het part by its raw id."""
    return step.job.stable in _names(job)


def with_step(jobs: Iterable[Job], steps: Iterable[Step]) -> list[Job]:
    """Those of ``jobs`` in which something runs that srun started; a signal to a het job
    reaches the steps of all its parts."""
    running = {step.job.stable for step in steps if step.by_srun and step.state.phase not in DONE}
    return [
        job
        for job in jobs
        if running & _names(job) or (job.id.het_offset is not None and job.id.base in running)
    ]


def _names(job: Job) -> set[str]:
    names = {job.id.stable, job.raw_id or job.id.stable}
    return names | {job.id.base} if job.id.het_offset == 0 else names


def _left_out(job: Job, recipient: Recipient) -> str | None:
    phase, flags = job.state.phase, job.state.flags
    if phase is Phase.PENDING:
        return _NOT_STARTED
    why = left_out_when_ending(job)
    if why is not None:
        return why
    if "CONFIGURING" in flags:
        return "its nodes are still being made ready, so nothing of it runs yet"
    if phase is Phase.SUSPENDED and "STOPPED" not in flags:
        return "suspended: Slurm hands it no signal until it is resumed"
    if recipient is Recipient.BATCH and job.batch is False and not job.id.het_offset:
        return "no batch script in an interactive job"
    return None


def _targets(
    jobs: Sequence[Job],
    usable: Sequence[Job],
    asker: Asker,
    recipient: Recipient,
    step: Step | None,
    known: Iterable[Job],
) -> Sequence[Target] | Refusal:
    if recipient is not Recipient.STEP:
        return make_targets(usable, known, asker, Kind.SIGNAL)
    if step is None or len({job.key for job in jobs}) != 1:
        return Refusal("choose the one step of one job that is to get the signal")
    if not step.by_srun:
        return Refusal(
            f"step {visible(step.id)} was not started by srun: signal the batch shell instead"
        )
    made = step_target(usable[0], step, asker)
    return made if isinstance(made, Refusal) else [made]


def _who_gets_it(
    jobs: Sequence[Job],
    deaf: Sequence[Job],
    name: str,
    recipient: Recipient,
    steps: Sequence[Step] | None,
) -> Iterable[str]:
    if deaf and name != "KILL":
        yield (
            "no srun step runs, so nobody gets it: a program started without srun gets nothing;"
            f" choose everything to reach it: {ids_text(deaf)}"
        )
    if recipient is Recipient.STEPS and steps is None and name != "KILL":
        yield "not known whether an srun step runs: without one nobody gets it"
    stopped = [job for job in jobs if "STOPPED" in job.state.flags]
    if stopped and name not in ("KILL", "CONT"):
        yield f"stopped, so it sees the signal only after CONT: {ids_text(stopped)}"
    if name == "STOP":
        yield "STOP: what waits for others (NCCL, heartbeats) may time out and end the job"
    if name == "USR1" and recipient is not Recipient.BATCH:
        yield "NCCL catches USR1 in places: USR2 or HUP are safer"


def _kill_warnings(targets: Sequence[Target], recipient: Recipient) -> Iterable[str]:
    if recipient is Recipient.STEP:
        yield f"KILL ends step {visible(targets[0].label)} at once, without time to save"
        return
    if recipient is Recipient.RANKS:
        yield "KILL ends the ranks at once, with no time to save; the job most likely ends too"
    elif recipient is Recipient.BATCH:
        yield "KILL ends the batch shell, and Slurm then ends the job: no time to save"
    else:
        yield "KILL is a cancel without TERM before it: the job ends, with no time to save"
    yield from loss_warnings(targets)


def _dangers(name: str, reactions: Sequence[Reaction], *, nobody: bool) -> list[str]:
    """Who would die of it or be stopped, and of whom that is not known."""
    if not reactions:
        if nobody or name in HARMLESS:
            return []
        if name == "STOP":
            return ["whoever gets it is stopped until CONT"]
        return [f"not known what the job does with {name}: a program without a handler dies of it"]
    out = []
    for fate, words in _FATES.items():
        whos = dict.fromkeys(visible(item.who) for item in reactions if item.fate is fate)
        if whos:
            more = f" and {len(whos) - _SHOWN} more" if len(whos) > _SHOWN else ""
            out.append(words.format(who=", ".join(list(whos)[:_SHOWN]) + more, signal=name))
    if any(item.ends_job for item in reactions):
        out.append(f"once {name} is handled the batch script ends, and the job with it")
    return out
