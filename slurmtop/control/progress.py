"""An action on its way: what was sent, what was said, what is known of each job so far."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Kind, RankPid, Recipient, Target
from slurmtop.control.after_ranks import judge_ranks
from slurmtop.control.before import still_confirmed
from slurmtop.control.commands import Call, calls_for
from slurmtop.control.judge import Look, judge
from slurmtop.control.node_kill import Sent, read_kill
from slurmtop.control.outcome import JobOutcome, Outcome, Result, Said, Seen, result_word
from slurmtop.control.replies import Reply, read_reply, said_parts
from slurmtop.control.rows import matching, name_of
from slurmtop.model.ids import JobKey
from slurmtop.model.ports import Completed
from slurmtop.model.process import NodeProcesses
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible
from slurmtop.model.units import plural

StillSame = Callable[[Target], bool]
#: What a dry run goes by: nothing was asked, and nothing speaks against any job.
NOT_ASKED = Seen((), Failure(Trouble.DOWN, "nobody was asked"))


class Running:
    """The state of one execution.

    ``before`` is the look right before it. A job that is no longer the one that was confirmed,
    by that look or by ``still_same``, is never named in a command, nor is such a task of an
    array: ``targets`` are what is left. ``saved`` is where what was known was saved before.
    """

    def __init__(
        self,
        action: Action,
        before: Seen,
        still_same: StillSame | None,
        saved: Sequence[str] = (),
    ) -> None:
        self.action = action
        self._saved = tuple(saved)
        self.argvs: list[tuple[str, ...]] = []
        self.hosts: list[str | None] = []
        self._ranks: dict[RankPid, Sent] = {}
        self._unreached: dict[str, str] = {}
        self.targets: list[Target] = []
        self._log_id = secrets.token_hex(8)
        self._shown: set[Target] = set()
        self._known: dict[Target, tuple[JobOutcome, ...]] = {}
        self._replies: dict[Target, list[Reply]] = {}
        self._named: set[Target] = set()
        self._whole: dict[JobKey, Target] = {}
        self._left_out: dict[JobKey, tuple[JobOutcome, ...]] = {}
        for target in action.targets:
            same = still_same is None or still_same(target)
            kept, left_out = still_confirmed(action, target, before, same)
            if left_out:
                self._left_out[target.key] = left_out
            if kept is not None:
                self.targets.append(kept)
                self._whole[target.key] = kept

    def calls(self) -> tuple[Call, ...]:
        """The commands for the jobs that are still those that were confirmed."""
        return calls_for(self.action.kind, self.targets, self.action.cluster, self.action.details)

    @property
    def by_pid(self) -> bool:
        """Does it go to processes on their nodes, and not through Slurm?"""
        action = self.action
        return action.kind is Kind.SIGNAL and action.details.recipient is Recipient.RANKS

    def open(self) -> list[Target]:
        """The jobs whose outcome is not final."""
        return [
            target
            for target in self.targets
            if target not in self._known or not all(one.final for one in self._known[target])
        ]

    def begins(self, call: Call) -> None:
        """From now on Slurm may have heard of it, whatever happens to slurmtop."""
        self.argvs.append(call.argv)
        self.hosts.append(call.host)
        # Until the node has said what became of it.
        self._ranks.update(dict.fromkeys(call.ranks, Sent.UNREACHED))
        self._named.update(call.targets)

    def could_not_start(self, call: Call, why: str) -> None:
        if call.host is not None:
            self._unreached[call.host] = why
            return
        for target in call.targets:
            # An array may be named in several commands, and another one of them have reached it.
            if target not in self._replies:
                self._not_sent(target, f"not sent: {visible(why)}")

    def heard(self, call: Call, done: Completed) -> None:
        if call.host is not None:
            self._ranks.update(read_kill(done, call.ranks))
            return
        reply = read_reply(call.argv[0], done, alone=len(call.targets) == 1)
        for target in call.targets:
            self._replies.setdefault(target, []).append(reply)
            self._known.pop(target, None)

    def hosts_of(self, target: Target) -> dict[str, tuple[str, ...]]:
        """By the plain number of a job: the hosts on which ranks of it got the signal."""
        keys = {target.key, *target.parts}
        out: dict[str, list[str]] = {}
        for one, word in self._ranks.items():
            if one.job in keys and word is Sent.SENT and one.host not in out.get(one.raw_id, ()):
                out.setdefault(one.raw_id, []).append(one.host)
        return {number: tuple(hosts) for number, hosts in out.items()}

    def looked_at_nodes(self, look: Look, nodes: Sequence[NodeProcesses] | None) -> None:
        """Judge a signal to ranks by the queue, and by a look at their nodes where there is one."""
        for target in self.open():
            known = judge_ranks(
                self.action.details,
                target,
                self._ranks,
                self._unreached,
                look.seen,
                nodes,
                look.since_s,
            )
            self._known[target] = (known,)

    def looked(self, look: Look) -> None:
        """Judge every job that is open by one look at the queue."""
        for target in self.open():
            own = replace(look, shown_before=target in self._shown)
            self._known[target] = judge(self.action, target, self._said, own)
            if matching(target, look.seen.jobs):
                self._shown.add(target)

    def outcomes(self) -> tuple[JobOutcome, ...]:
        """Of every job that was confirmed, in that order."""
        return tuple(
            outcome for target in self.action.targets for outcome in self._outcomes_of(target)
        )

    def _outcomes_of(self, target: Target) -> tuple[JobOutcome, ...]:
        sent, left_out = self._whole.get(target.key), self._left_out.get(target.key, ())
        if sent is None:
            return left_out
        known = self._known.get(sent)
        if known is None:
            known = (_unknown(sent) if sent in self._named else _before_its_turn(sent),)
        return (*known, *left_out)

    def would(self, when: datetime) -> Outcome:
        """The outcome of a dry run: what would be run for the jobs that are still the same."""
        calls = self.calls() if self.targets else ()
        for target in self.targets:
            self._not_sent(target, "dry run, nothing was sent")
        left_out = plural(len(self._left_out), "job")
        return Outcome(
            action=replace(
                self.action,
                argvs=tuple(call.argv for call in calls),
                hosts=tuple(call.host for call in calls) if self.by_pid else (),
            ),
            jobs=self.outcomes(),
            trouble=f"{left_out} would be left out" if self._left_out else None,
            dry_run=True,
            started_at=when,
        )

    def asked(self, when: datetime) -> Entry:
        """What is about to be done, to the jobs that are still those that were confirmed."""
        outcomes = {_log_name(target, self.action): ("asked", "") for target in self.targets}
        calls = self.calls() if self.targets else ()
        argvs, hosts = [call.argv for call in calls], [call.host for call in calls]
        return self._entry("asked", when, argvs, hosts, outcomes)

    def ended(self, when: datetime) -> Entry:
        """What was done, and what is known of each job by now."""
        outcomes = {
            _log_name(item.target, self.action): (
                result_word(self.action.kind, item.result),
                item.sentence,
            )
            for item in self.outcomes()
        }
        return self._entry("outcome", when, self.argvs, self.hosts, outcomes)

    def _said(self, target: Target) -> list[tuple[Target, Said]]:
        """A part of a target has heard what the whole of it was told."""
        replies = self._replies.get(self._whole[target.key], ())
        return said_parts(self.action.kind, self.action.details, target, replies)

    def _not_sent(self, target: Target, why: str) -> None:
        text = f"job {name_of(target)}: {why}"
        self._known[target] = (JobOutcome(target, Result.NOT_SENT, text),)

    def _entry(
        self,
        event: str,
        when: datetime,
        argvs: Sequence[Sequence[str]],
        hosts: Sequence[str | None],
        outcomes: Mapping[str, tuple[str, str]],
    ) -> Entry:
        return Entry(
            id=self._log_id,
            event=event,
            when=when,
            kind=str(self.action.kind),
            cluster=self.action.cluster,
            argvs=tuple(argvs),
            hosts=tuple(hosts),
            outcomes=outcomes,
            verdict=self.action.verdict,
            details=logged_details(self.action) | _saved_form(self._saved),
        )


def logged_details(action: Action) -> dict[str, object]:
    """What was asked for beside the jobs, as the log keeps it; only what this kind has."""
    details = action.details
    if action.kind is Kind.SIGNAL:
        told: dict[str, object] = {
            "signal": details.signal,
            "recipient": str(details.recipient),
        }
        if details.ranks:
            told["processes"] = [f"{one.host}:{one.pid}" for one in details.ranks]
        return told
    if action.kind is Kind.LIMIT:
        return {"limit_minutes": details.limit_minutes}
    return {"nodes": list(details.exclude)} if action.kind is Kind.EXCLUDE else {}


def _saved_form(saved: Sequence[str]) -> dict[str, object]:
    return {"saved": list(saved)} if saved else {}


def _log_name(target: Target, action: Action) -> str:
    """The job; some tasks of what was one target by the tasks, a step with its number."""
    if target.step is not None or target not in action.targets:
        name = ",".join(target.ids)
        return f"{name}@{action.cluster}" if action.cluster else name
    return str(target.key)


def _before_its_turn(target: Target) -> JobOutcome:
    text = f"job {name_of(target)}: not sent: slurmtop was ended before its turn"
    return JobOutcome(target, Result.NOT_SENT, text)


def _unknown(target: Target) -> JobOutcome:
    text = f"job {name_of(target)}: not known: the read-back did not come to an end"
    return JobOutcome(target, Result.NOT_KNOWN, text)
