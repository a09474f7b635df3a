"""What an action is called in dialogs: title, question, button. Pure."""

from collections.abc import Sequence

from slurmtop.control.actions import Action, ConfirmLevel, Details, Kind, Recipient, Target
from slurmtop.model.text import fit, visible
from slurmtop.model.units import clock_text, plural

#: A title is one line: longer lists of nodes are cut.
_HOST_CELLS = 30
_ID_CELLS = 24

_YES = {
    Kind.CANCEL: "cancel",
    Kind.REQUEUE: "requeue",
    Kind.REQUEUE_HOLD: "requeue",
    Kind.HOLD: "hold",
    Kind.RELEASE: "release",
    Kind.LIMIT: "set limit",
    Kind.EXCLUDE: "exclude",
    Kind.SIGNAL: "send",
}


def title_text(action: Action, *, dry_run: bool = False) -> str:
    """``Cancel job 4711``, ``Send USR1 to the steps of job 4711``, ``Hold 200 jobs``."""
    whom = whom_text(action)
    if action.kind is Kind.LIMIT:
        whom += f" to {minutes_text(action.details.limit_minutes or 0)}"
    text = f"{doing_text(action.kind, action.details, action.targets)} {whom}"
    return f"Dry run: {text}" if dry_run else text


def doing_text(kind: Kind, details: Details, targets: Sequence[Target] = ()) -> str:
    """The title without its jobs: ``Exclude gpu03 from``."""
    if kind is Kind.SIGNAL:
        if any(target.step is not None for target in targets):
            return f"Send {visible(details.signal)} to"
        return f"Send {visible(details.signal)} to {_RECIPIENTS[details.recipient]} of"
    if kind is Kind.EXCLUDE:
        return f"Exclude {hosts_text(details.exclude)} from"
    return str(kind).capitalize()


_RECIPIENTS = {
    Recipient.STEPS: "the steps",
    Recipient.STEP: "one step",
    Recipient.BATCH: "the batch shell",
    Recipient.EVERYTHING: "everything",
    Recipient.RANKS: "the rank processes",
}


def hosts_text(hosts: Sequence[str]) -> str:
    """The hosts, cut where there are many."""
    return fit(visible(",".join(hosts)), _HOST_CELLS).rstrip()


def whom_text(action: Action) -> str:
    """What the commands reach: ``job 4711``, ``het job 4815, all parts``, ``12 jobs``."""
    targets, count = action.targets, action.job_count
    if count != 1 or len(targets) != 1:
        return plural(count, "job")
    only = targets[0]
    if only.step is not None:
        return f"step {visible(only.step)} of job {visible(only.key.id)}"
    if only.parts:
        return f"het job {visible(only.base)}, all parts"
    return f"job {target_name(only)}"


def target_name(target: Target) -> str:
    """``4711``; of an array's waiting rest the tasks that are meant: ``4711_[3,7-9]``."""
    first = target.ids[0]
    named = target.tasks and len(target.ids) == 1 and len(first) <= _ID_CELLS
    return visible(first if named else target.label)


def minutes_text(minutes: int) -> str:
    """``1:30:00``: a limit in Slurm's own shape."""
    text = clock_text(minutes * 60)
    return text if minutes >= 60 else f"0:{text:0>5}"


def yes_label(action: Action, *, dry_run: bool = False) -> str:
    return "Yes, dry run" if dry_run else f"Yes, {_YES[action.kind]}"


def ask_text(action: Action) -> str:
    """What the person is asked to do."""
    if action.confirm is ConfirmLevel.YES:
        return "y = yes, n or esc = no"
    what = "the count" if action.confirm is ConfirmLevel.TYPE_COUNT else "the id"
    return f"Type {what}, {visible(action.expected_text)}, and press enter. esc = no"


def running_text(action: Action) -> str:
    """What happens between the yes and the outcome."""
    if action.kind is Kind.SIGNAL:
        return f"asking Slurm to send {visible(action.details.signal)}, then reading back"
    return f"asking Slurm to {_YES_LONG.get(action.kind, action.kind)}, then reading back"


_YES_LONG = {Kind.LIMIT: "set the time limit", Kind.EXCLUDE: "exclude nodes"}
