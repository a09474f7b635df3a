"""The Logs tab in words: what is shown, where it stands, and why there may be nothing. Pure."""

from dataclasses import dataclass

from slurmtop.model.facts import LogStatus
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import bytes_text
from slurmtop.parse.slurm.log_paths import expand_log_path
from slurmtop.ui.log_window import LogRow, RowKind
from slurmtop.ui.present.spans import Line, Span, cut_line, ends, join, wrap

ROW_ROLES = {RowKind.LINE: "", RowKind.PARTIAL: "dim", RowKind.MARKER: "mark"}
_SINKS = ("/dev/null",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBar:
    """The line above the log. ``at`` is the byte of the first row in sight.

    ``busy`` says what is being read (a search with its progress); ``said`` is the answer to
    the last key, e.g. ``not found``.
    """

    label: str
    path: str | None
    size: int | None = None
    at: int | None = None
    follow: bool = False
    at_end: bool = True
    busy: str = ""
    said: str = ""


def bar_line(bar: LogBar, width: int) -> Line:
    """``stdout /home/al/run.out · 4.2 MiB · following``."""
    right: list[Line] = []
    if bar.busy:
        right.append(((visible(bar.busy), "busy"),))
    elif bar.said:
        right.append(((visible(bar.said), "strong"),))
    if bar.size is not None:
        right.append(((bytes_text(bar.size), ""),))
    if bar.follow:
        right.append((("following", "good"),))
    elif bar.size and bar.at is not None:
        right.append(((_place(bar.at, bar.size, bar.at_end), "dim"),))
    left: Line = ((bar.label, "strong"),)
    if bar.path is not None:
        tail = join(right)
        room = width - sum(len(text) for text, _ in tail) - len(bar.label) - 2
        left = (*left, (" ", ""), (_path_end(visible(bar.path), max(8, room)), ""))
    return ends(left, join(right), width)


def _place(at: int, size: int, at_end: bool) -> str:
    return "end" if at_end else f"at {at * 100 // size} %"


def _path_end(path: str, width: int) -> str:
    """The end of a path says more than its start."""
    return path if len(path) <= width else "…" + path[-(width - 1) :]


def row_line(row: LogRow, words: str, current: bool) -> Line:
    """One row with the search words marked; the current hit is marked whole."""
    role = ROW_ROLES[row.kind]
    if row.kind is RowKind.MARKER:
        return ((f"── {row.text} ──", role),)
    if current:
        return ((row.text or " ", "match"),)
    if not words:
        return ((row.text, role),)
    return tuple(_marked(row.text, words, role))


def _marked(text: str, words: str, role: str) -> list[Span]:
    folded, words = text.lower(), words.lower()
    if len(folded) != len(text):
        return [(text, role)]
    out: list[Span] = []
    at = 0
    while (hit := folded.find(words, at)) >= 0:
        out.append((text[at:hit], role))
        out.append((text[hit : hit + len(words)], "match"))
        at = hit + len(words)
    out.append((text[at:], role))
    return [span for span in out if span[0]]


def marker_text(what: str, when: str) -> str:
    """The line where a log was ``cut short`` or ``replaced``."""
    return f"this log was {what} at {when}; what was above is no longer in the file"


def no_log_lines(
    status: LogStatus | None, path: str | None, why: str, job: Job | None, user: str, width: int
) -> tuple[Line, ...]:
    """Why no log is shown, and what to do. Empty where the log can be read."""
    if status is LogStatus.READ:
        return ()
    head, more = _no_log(status, path, why, job, user)
    waits = status is LogStatus.ABSENT or (
        job is not None and (job.id.tasks is not None or job.state.phase is Phase.PENDING)
    )
    role = "busy" if status is None else "wait" if waits else "bad"
    lines: list[Line] = [((piece, role),) for piece in wrap(head, width)]
    for text in filter(None, more):
        lines.extend(((piece, ""),) for piece in wrap(text, width))
    return tuple(cut_line(line, width) for line in lines)


def _no_log(
    status: LogStatus | None, path: str | None, why: str, job: Job | None, user: str
) -> tuple[str, list[str]]:
    owner = visible(job.user) if job is not None and job.user else "the owner of the job"
    ident = visible(job.key.id if job.id.tasks is None else job.id.base) if job else "JOB"
    name = visible(path or "")
    if path in _SINKS:
        return f"Nothing to read: this output goes to {name}", []
    if status is None:
        return f"reading {name} …" if path else "asking Slurm where the log is …", []
    if path is None and job is not None and job.id.tasks is not None:
        return "No log yet: these tasks of the array wait", [
            "Each task writes its own log once it has started; open the task to see it."
        ]
    if path is None and job is not None and job.state.phase is Phase.PENDING:
        return "The job has not started", [_expected(job)]
    if status is LogStatus.UNKNOWN_PATH or path is None:
        return "Slurm does not say where this log is", [
            visible(why),
            f"A job's log is named by sbatch --output; try: scontrol show job {ident}",
        ]
    if status is LogStatus.ABSENT:
        return _absent(name, job)
    if status is LogStatus.DENIED:
        return f"You may not read {name}", [
            f"{owner} can, and can hand it on: slurmtop triage {ident} --save DIR"
            if owner != visible(user)
            else "It is your job, but the file's mode or a folder above it forbids it",
            f"To see the modes: namei -l {name}",
        ]
    if status is LogStatus.HANGS:
        return f"The file system of {name} does not answer", [
            "Nothing else waits for it; it is tried again by itself.",
            f"To see more, in another shell: ls -l {name}",
        ]
    if status is LogStatus.NOT_A_FILE:
        return f"{name} is not a plain file: {visible(why)}", []
    return f"{name} cannot be read: {visible(why)}", []


def _expected(job: Job) -> str:
    """Where the log will be; the pattern where a part of it is known only after the start."""
    if job.stdout is None:
        return "Its log appears when it does."
    where = expand_log_path(job.stdout, job) or job.stdout
    return f"The log appears at {visible(where)} when it does."


def _absent(name: str, job: Job | None) -> tuple[str, list[str]]:
    phase = job.state.phase if job is not None else Phase.UNKNOWN
    if phase is Phase.PENDING:
        return "Not there yet: it appears when the job starts", [name]
    if phase in (Phase.RUNNING, Phase.ENDING, Phase.SUSPENDED):
        where = f" such as {visible(job.nodes)}" if job is not None and job.nodes else ""
        return "Not there (yet)", [
            name,
            "It appears once Slurm has made it; a path on a node's own disk can be seen on"
            f" that node only{where}.",
        ]
    return "No such file", [
        name,
        "It was moved or removed since, or the job ended before Slurm could make it.",
    ]


def search_progress(done: int, total: int) -> str:
    """``searching 43 %, esc stops``."""
    percent = 100 if not total else done * 100 // total
    return f"searching {percent} %, esc stops"
