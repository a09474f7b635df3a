"""An action on its way: what was sent, what was said, what is known of each job so far."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from slurmtop.control.action_log import Entry
from slurmtop.control.actions import Action, Kind, Target
from slurmtop.control.commands import Call, calls_for
from slurmtop.control.judge import Look, judge
from slurmtop.control.outcome import JobOutcome, Outcome, Result, Said, result_word
from slurmtop.control.replies import Reply, read_reply, said_parts
from slurmtop.control.rows import matching, name_of
from slurmtop.model.ports import Completed
from slurmtop.model.text import visible
from slurmtop.model.units import plural

StillSame = Callable[[Target], bool]


class Running:
    """The state of one execution. Asks ``still_same`` about every job at once: one for which it
    is false is never named in a command."""

    def __init__(self, action: Action, still_same: StillSame | None) -> None:
        self.action = action
        self.argvs: list[tuple[str, ...]] = []
        self.targets: list[Target] = []
        self._log_id = secrets.token_hex(8)
        self._shown: set[Target] = set()
        self._known: dict[Target, tuple[JobOutcome, ...]] = {}
        self._replies: dict[Target, list[Reply]] = {}
        self._whole = {target.key: target for target in action.targets}
        for target in action.targets:
            if still_same is None or still_same(target):
                self.targets.append(target)
            else:
                self._not_sent(target, "not sent, it is not the job you confirmed")

    def calls(self) -> tuple[Call, ...]:
        """The commands for the jobs that are still those that were confirmed."""
        return calls_for(self.action.kind, self.targets, self.action.cluster, self.action.details)

    def open(self) -> list[Target]:
        """The jobs whose outcome is not final."""
        return [
            target
            for target in self.targets
            if target not in self._known or not all(one.final for one in self._known[target])
        ]

    def could_not_start(self, call: Call, why: str) -> None:
        for target in call.targets:
            # An array may be named in several commands, and another one of them have reached it.
            if target not in self._replies:
                self._not_sent(target, f"not sent: {visible(why)}")

    def heard(self, call: Call, done: Completed) -> None:
        reply = read_reply(call.argv[0], done, alone=len(call.targets) == 1)
        for target in call.targets:
            self._replies.setdefault(target, []).append(reply)
            self._known.pop(target, None)

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
            outcome
            for target in self.action.targets
            for outcome in self._known.get(target) or (_unknown(target),)
        )

    def would(self, when: datetime) -> Outcome:
        """The outcome of a dry run: what would be run for the jobs that are still the same."""
        calls = self.calls() if self.targets else ()
        jobs = tuple(
            self._known[target][0]
            if target in self._known
            else JobOutcome(
                target, Result.NOT_SENT, f"job {name_of(target)}: dry run, nothing was sent"
            )
            for target in self.action.targets
        )
        left_out = plural(len(self._known), "job")
        return Outcome(
            action=replace(self.action, argvs=tuple(call.argv for call in calls)),
            jobs=jobs,
            trouble=f"{left_out} would be left out" if self._known else None,
            dry_run=True,
            started_at=when,
        )

    def asked(self, when: datetime) -> Entry:
        """What is about to be done, to the jobs that are still those that were confirmed."""
        outcomes = {str(target.key): ("asked", "") for target in self.targets}
        argvs = tuple(call.argv for call in self.calls()) if self.targets else ()
        return self._entry("asked", when, argvs, outcomes)

    def ended(self, when: datetime) -> Entry:
        """What was done, and what is known of each job by now."""
        outcomes = {
            _log_name(item.target, self.action): (
                result_word(self.action.kind, item.result),
                item.sentence,
            )
            for item in self.outcomes()
        }
        return self._entry("outcome", when, self.argvs, outcomes)

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
        outcomes: Mapping[str, tuple[str, str]],
    ) -> Entry:
        return Entry(
            id=self._log_id,
            event=event,
            when=when,
            kind=str(self.action.kind),
            cluster=self.action.cluster,
            argvs=tuple(argvs),
            outcomes=outcomes,
            verdict=self.action.verdict,
            details=logged_details(self.action),
        )


def logged_details(action: Action) -> dict[str, object]:
    """What was asked for beside the jobs, as the log keeps it; only what this kind has."""
    details = action.details
    if action.kind is Kind.SIGNAL:
        return {"signal": details.signal, "recipient": str(details.recipient)}
    if action.kind is Kind.LIMIT:
        return {"limit_minutes": details.limit_minutes}
    return {"nodes": list(details.exclude)} if action.kind is Kind.EXCLUDE else {}


def _log_name(target: Target, action: Action) -> str:
    """The job; some tasks of what was one target by the tasks, a step with its number."""
    if target.step is not None or target not in action.targets:
        name = ",".join(target.ids)
        return f"{name}@{action.cluster}" if action.cluster else name
    return str(target.key)


def _unknown(target: Target) -> JobOutcome:
    text = f"job {name_of(target)}: not known: the read-back did not come to an end"
    return JobOutcome(target, Result.NOT_KNOWN, text)
