"""All about the node under the cursor, and the look inside it where this person may look."""

from typing import TYPE_CHECKING, cast

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.node import Node
from slurmtop.store.nodes import NodeRow
from slurmtop.ui.present.node_card import NodeCard
from slurmtop.ui.present.node_detail import detail_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from slurmtop.ui.app import SlurmtopApp

#: The word for this view's watch of GPUs.
VIEW = "nodes"
#: A node is looked at once the cursor has been on it for so long: who runs through the table
#: opens no connection to each.
REST_S = 1.0
#: Its titles, and the row of the node that the pane is about.
_TABLE_KEEPS = 3


class NodePane(LinesView):
    """``inside`` is true while keys act here and not on the table; ``chosen`` is then the job.

    While it is ``shown`` the node that it is about is watched, that one only.
    """

    DEFAULT_CSS = "NodePane { height: 9; border-top: solid $primary; }"

    def __init__(self) -> None:
        super().__init__(self._make_lines, id="node-detail")
        self.can_focus = False
        self.inside = False
        self.chosen = 0
        self.shown = False
        self.row: NodeRow | None = None
        self._since_s = 0.0
        self._asking_rights = False
        self._reading: set[str] = set()

    @property
    def _tool(self) -> "SlurmtopApp":
        return cast("SlurmtopApp", self.app)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs that are known on the node."""
        return () if self.row is None else self.row.jobs

    @property
    def current_job(self) -> JobKey | None:
        jobs = self.jobs
        return jobs[min(self.chosen, len(jobs) - 1)].key if jobs else None

    def aim(self, row: NodeRow | None) -> None:
        """Be about this node; another one is looked at after a moment's rest."""
        before = self.row
        self.row = row
        if (before and before.name) != (row and row.name):
            self.chosen = 0
            self._since_s = self._tool.nodes.seconds()
            self.scroll_to(y=0, animate=False, immediate=True)
        self.display = row is not None
        self.rebuild()

    def fit_height(self, height: int, taken: int) -> None:
        """Take a part of a screen of ``height`` lines, more of it while keys act here.

        ``taken`` are the lines of everything else but the table, which keeps some.
        """
        part = height * 3 // 4 if self.inside else height * 2 // 5
        self.styles.height = max(3, min(part, height - taken - _TABLE_KEEPS))

    def second_passed(self) -> None:
        self.rebuild()
        if self._tool.nodes.seconds() - self._since_s >= REST_S:
            self.look()

    def leave(self) -> None:
        """The screen is out of sight."""
        self.shown = False
        self._tool.gpus.leave(VIEW)

    def look(self) -> None:
        """Look at the node, where this person may."""
        row, gpus, nodes = self.row, self._tool.gpus, self._tool.nodes
        if row is None or not self.shown or self._why_not(row):
            gpus.leave(VIEW)
            return
        admission = nodes.admission(row)
        if admission.allowed is None and not self._asking_rights:
            self._asking_rights = True
            self.run_worker(nodes.learn_rights(), group="rights", exit_on_error=False)
        if not admission.allowed:
            gpus.leave(VIEW)
            return
        gpus.show(VIEW, (row.name,), job=admission.job)
        self.read_kernel()

    def read_kernel(self) -> None:
        """Read its kernel log once the node has let us in, and at most once a minute."""
        gpus, nodes = self._tool.gpus, self._tool.nodes
        host = None if self.row is None else self.row.name
        look = None if host is None else gpus.book.look(host)
        if host is None or look is None or look.failure is not None or host in self._reading:
            return
        if self.shown and gpus.watched(VIEW) and not gpus.paused and nodes.kernel_due(host):
            self._reading.add(host)
            self.run_worker(self._kernel(host), group="kernel", exit_on_error=False)

    async def _kernel(self, host: str) -> None:
        try:
            await self._tool.nodes.read_kernel(host)
        finally:
            self._reading.discard(host)

    def step(self, by: int) -> None:
        """To the next job; past the last one the lines scroll."""
        chosen = self.chosen + by
        if 0 <= chosen < len(self.jobs):
            self.chosen = chosen
            self.rebuild()
        else:
            self.scroll_by("up" if by < 0 else "down")

    def _why_not(self, row: NodeRow) -> str:
        """A sentence where nobody can look inside, whoever they are."""
        if not self._tool.gpus.possible:
            return "slurmtop cannot look into nodes here (a recording, or node_access: off)"
        if "POWERED_DOWN" in row.node.state.flags:
            return "it is powered down: there is nothing to look at"
        return ""

    def _make_lines(self, width: int) -> tuple[Line, ...]:
        row, tool = self.row, self._tool
        if row is None:
            return ()
        kernel, gpus, services = tool.nodes.kernel.get(row.name), tool.gpus, tool.services
        own = [job for job in row.jobs if job.user == services.user]
        mine: frozenset[str] = frozenset()
        if gpus.watched(VIEW):
            cards = _cards(row.node)
            mine = gpus.gpus_of_jobs(row.name, own, row.jobs, node_gpus=cards)
        card = NodeCard(
            row=row,
            now=services.clock.now(),
            data_now=services.data_now(),
            zone=services.zone,
            me=services.user,
            all_users=tool.feed.shows_all_users,
            admission=tool.nodes.admission(row),
            why_not=self._why_not(row),
            chosen=self.chosen if self.inside else None,
            look=gpus.book.look(row.name),
            kernel=None if kernel is None else kernel.log,
            mine=mine,
        )
        return detail_lines(card, width)


def _cards(node: Node) -> int | None:
    """How many cards it has; of those that are cut into slices Slurm counts the slices alone."""
    cut = any(pool.kind == "slice" for pool in node.gres or ())
    return None if cut else node.gpu_count().total
