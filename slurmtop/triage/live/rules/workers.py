"""Workers of data loaders that wait in the kernel for a file system, of most ranks at once."""

from collections.abc import Iterable

from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.model.verdict import Confidence, State
from slurmtop.triage.live.finding import LiveFinding, Weight, proofs, waiting_proof
from slurmtop.triage.live.frames import Act
from slurmtop.triage.live.patience import late, loading, on_files
from slurmtop.triage.live.roles import Role, role_of
from slurmtop.triage.live.view import ProcessView, RankView, World


def find(world: World) -> Iterable[LiveFinding]:
    """Only after a long silence: a slow server answers once. Nobody is named: what the ranks share
    keeps them."""
    if not world.two or not late(world):
        return
    stuck = [(one, kept[0]) for one in world.ranks if (kept := _kept(one))]
    hosts = {one.host for one, _ in stuck}
    if 2 * len(stuck) <= world.count or len(stuck) < 2:
        return
    if any(role_of(world, one) is Role.WORKS for one in world.ranks):
        return
    first, worker = stuck[0]
    activity = worker.looks[-1].activity
    wchan = f" ({visible(activity.wchan)})" if activity is not None and activity.wchan else ""
    yield LiveFinding(
        cls="io-stuck",
        state=State.HUNG,
        weight=Weight.AWAY,
        summary=f"workers of the data loaders of {plural(len(stuck), 'rank')} on"
        f" {plural(len(hosts), 'node')} wait in the kernel, state D{wchan}: what they share"
        " keeps them, and nobody is named",
        shown=(
            *proofs(worker, f"a worker of {first.name} does not come back"),
            *waiting_proof([first]),
        ),
        confidence=Confidence.MEDIUM,
    )


def _kept(one: RankView) -> list[ProcessView]:
    """Its workers that wait for files, where it waits for its loader and stands still."""
    if not one.view.always(Act.POLL, Act.LOCK):
        return []
    return [child for child in loading(one) if on_files(child)]
