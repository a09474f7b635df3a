"""What a signal to rank processes came to: a word for each pid, and a look afterwards. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from slurmtop.control.actions import Details, RankPid, Target
from slurmtop.control.after_change import Verdict
from slurmtop.control.fates import spans_text
from slurmtop.control.node_kill import Sent
from slurmtop.control.outcome import JobOutcome, Result, Seen
from slurmtop.control.rows import matching, name_of
from slurmtop.model.job import Job
from slurmtop.model.process import NodeProcesses
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.exit_codes import explain_job_exit
from slurmtop.parse.slurm.hostlist import compress_hosts
from slurmtop.triage.process_tree import DEAD

_WHY = {
    Sent.GONE: "had ended before it was sent",
    Sent.REUSED: "not signalled, the pid belongs to another process now",
    Sent.NOT_YOURS: "not signalled, the process belongs to another user",
    Sent.UNREACHED: "not known whether it got it, the node did not answer",
}
#: Where nobody got it: the worst of these is the outcome.
_RESULTS = {
    Sent.UNREACHED: Result.NOT_KNOWN,
    Sent.NOT_YOURS: Result.DENIED,
    Sent.REUSED: Result.NOT_SENT,
    Sent.GONE: Result.OVER,
}


def judge_ranks(
    details: Details,
    target: Target,
    words: Mapping[RankPid, Sent],
    why: Mapping[str, str],
    seen: Seen,
    looks: Sequence[NodeProcesses] | None,
    since_s: float,
) -> JobOutcome:
    """What is known ``since_s`` seconds after the last command.

    ``words`` are of all ranks of the job; ``why`` says of a host why it was not reached. ``looks``
    are what runs on the nodes now, None while nobody has looked again.
    """
    keys = {target.key, *target.parts}
    mine = {one: word for one, word in words.items() if one.job in keys}
    sent = [one for one, word in mine.items() if word is Sent.SENT]
    rows = matching(target, seen.jobs)
    state = ", ".join(dict.fromkeys(visible(row.state.word) for row in rows)) or None
    parts = [_sent_text(details.signal, sent, len(mine))]
    parts += _unsent(mine, why)
    if looks is not None:
        parts += _since(sent, looks)
    parts.append(_job_text(rows, seen, since_s))
    verdict = Verdict(_result(mine), "; ".join(parts), state)
    text = f"job {name_of(target)}: {verdict.text}"
    return JobOutcome(target, verdict.result, text, verdict.word, final=looks is not None)


def _result(mine: Mapping[RankPid, Sent]) -> Result:
    found = set(mine.values())
    if found == {Sent.SENT}:
        return Result.DONE
    if Sent.SENT in found:
        return Result.PARTLY
    return next((result for word, result in _RESULTS.items() if word in found), Result.NOT_SENT)


def _sent_text(signal: str, sent: Sequence[RankPid], of: int) -> str:
    if not sent:
        return f"{signal} was sent to no rank"
    if len(sent) < of:
        return f"{signal} sent to {len(sent)} of {plural(of, 'rank')}"
    return f"signalled: {signal} sent to {ranks_text(sent)}"


def _unsent(mine: Mapping[RankPid, Sent], why: Mapping[str, str]) -> Iterable[str]:
    for word, words in _WHY.items():
        those = [one for one, found in mine.items() if found is word]
        if not those:
            continue
        text = f"{ranks_text(those)}: {words}"
        reasons = {why[one.host] for one in those if one.host in why}
        if word is Sent.UNREACHED and reasons:
            text = f"{ranks_text(those)}: not sent, {visible('; '.join(sorted(reasons)))}"
        yield text


def _since(sent: Sequence[RankPid], looks: Sequence[NodeProcesses]) -> Iterable[str]:
    """Who is still there: a process that ended may have saved first, or not."""
    if not sent:
        return
    alive = {
        process.key for look in looks for process in look.processes if process.state not in DEAD
    }
    unseen = {look.host for look in looks if look.failure is not None or not look.complete}
    seen_hosts = {look.host for look in looks} - unseen
    gone = [
        one
        for one in sent
        if one.host in seen_hosts and (one.host, one.pid, one.start_ticks) not in alive
    ]
    blind = [one for one in sent if one.host not in seen_hosts]
    if gone:
        yield f"ended since: {ranks_text(gone)}"
    if blind:
        yield f"not known whether still there: {ranks_text(blind)}"
    if not gone and not blind:
        yield "all of them are still there" if len(sent) > 1 else "it is still there"


def _job_text(jobs: Sequence[Job], seen: Seen, since_s: float) -> str:
    if not jobs:
        if seen.failure is not None:
            return f"not known how the job is: {visible(seen.failure.sentence)}"
        return "the queue no longer shows the job"
    if all(row.state.ended for row in jobs):
        row = next((one for one in jobs if one.exit_code is not None), jobs[0])
        short = explain_job_exit(row).short
        word = visible(row.state.word)
        return f"the job has ended since: {word}{', ' + short if short else ''}"
    word = next(row.state.word for row in jobs if not row.state.ended)
    after = "" if since_s < 1 else f" {int(since_s)} s later"
    runs = "still runs" if word == "RUNNING" else f"is {visible(word)}"
    return f"the job {runs}{after}"


def ranks_text(those: Sequence[RankPid]) -> str:
    """``rank 3 on gpu01``; ``8 ranks (0-7) on gpu[01-02]``."""
    if len(those) == 1:
        return visible(those[0].label)
    hosts = visible(compress_hosts(list(dict.fromkeys(one.host for one in those))))
    known = sorted({one.rank for one in those if one.rank is not None})
    numbers = f" ({spans_text(known)})" if len(known) == len(those) else ""
    return f"{len(those)} ranks{numbers} on {hosts}"
