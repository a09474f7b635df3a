"""The keys of the Job screen: for the tab that is shown, and what the acting ones are for."""

from slurmtop.control.save_first import is_suspect
from slurmtop.model.facts import JobFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.text import visible
from slurmtop.model.verdict import Verdict
from slurmtop.parse.mask import mask_text, mask_told
from slurmtop.triage.words import first_line, four_lines
from slurmtop.ui import why_flow
from slurmtop.ui.actions_flow import Selection
from slurmtop.ui.screens.acting import ActingScreen
from slurmtop.ui.widgets.gpus_tab import GpusTab
from slurmtop.ui.widgets.log_tab import LogTab
from slurmtop.ui.widgets.why_view import WhyView

COPY_WIDTH = 400
#: Actions of one tab only.
TAB_ACTIONS = {
    "Why": frozenset({"open_item", "look_at_nodes"}),
    "Logs": frozenset(
        {"follow", "other_stream", "search", "next_match", "previous_match", "first_error"}
    ),
    "GPUs": frozenset({"next_metric", "next_sort", "chart", "gpu_left", "gpu_right"}),
}


class JobKeys(ActingScreen):
    """What the keys of the Why, the Logs and the GPUs tab do."""

    key: JobKey
    why: WhyView
    logs: LogTab
    gpus: GpusTab

    @property
    def job(self) -> Job | None:
        """The newest record of the job."""
        raise NotImplementedError

    def pick_tab(self, name: str) -> None:
        """Show the tab that is called so."""
        raise NotImplementedError

    def action_look_at_nodes(self) -> None:
        """Look at the processes of the job on its nodes."""
        raise NotImplementedError

    def say(self, sentence: str) -> None:
        """Tell what a key did, where nothing else shows it."""
        self.notify(sentence, markup=False, timeout=5)

    def action_copy(self) -> None:
        verdict = self.why.state.verdict
        if verdict is not None:
            lines = "\n".join(four_lines(mask_told(verdict), COPY_WIDTH))
            self.app.copy_to_clipboard(mask_text(lines))
            self.notify("copied the four lines", markup=False, timeout=3)

    def action_open_item(self) -> None:
        """What is out of sight is shown first: nobody acts on what they do not see."""
        item = self.why.item
        if item is not None:
            why_flow.open_item(self, item)
        elif not self.why.show_cursor() and self.why.has_spots:
            self.say("what the cursor was on is gone: up or down chooses again")

    def action_act_on_verdict(self) -> None:
        verdict = self.why.state.verdict
        if verdict is not None:
            why_flow.choose_step(self, verdict)

    def open_log(self, path: str, *, line: int | None = None, offset: int | None = None) -> None:
        """Show a file on the Logs tab, at a line where that is known, else at its end."""
        self.logs.open_at(path, line=line, offset=offset)
        self.pick_tab("Logs")

    def action_follow(self) -> None:
        self.logs.toggle_follow()

    def action_other_stream(self) -> None:
        self.logs.other_stream()

    def action_search(self) -> None:
        self.logs.open_search()

    def action_next_match(self) -> None:
        self.logs.next_match()

    def action_previous_match(self) -> None:
        self.logs.next_match(backwards=True)

    def action_first_error(self) -> None:
        self.logs.first_error()

    def action_next_metric(self) -> None:
        self.gpus.next_metric()

    def action_next_sort(self) -> None:
        self.gpus.next_sort()

    def action_chart(self) -> None:
        self.gpus.next_chart()

    def action_gpu_left(self) -> None:
        self.gpus.move("left")

    def action_gpu_right(self) -> None:
        self.gpus.move("right")


def selection_of(
    key: JobKey, job: Job | None, facts: JobFacts | None, verdict: Verdict | None, *, left: bool
) -> Selection:
    """What the acting keys are for on the screen of one job. ``left``: the queue no longer has
    it."""
    name = visible(key.id)
    sentence = f"job {name} has left the queue" if left else ""
    if job is None:
        sentence = sentence or f"the queue does not show job {name}"
    known_over = job is not None and job.state.ended
    return Selection(
        jobs=(job,) if job is not None and (known_over or not left) else (),
        left=sentence,
        siblings=facts.siblings if facts is not None else (),
        verdict=first_line(verdict) if verdict is not None else None,
        last_nodes=_last_nodes(job, facts),
        suspects=frozenset({key}) if verdict is not None and is_suspect(verdict) else frozenset(),
    )


def _last_nodes(job: Job | None, facts: JobFacts | None) -> str:
    """Where it runs, or where it ran last."""
    if job is not None and job.nodes:
        return job.nodes
    records = facts.history if facts is not None else ()
    return next((record.nodes for record in records if record.nodes), "")
