"""What the pane says of GPUs that a login on the node does not see, and of an empty kernel log."""

from slurmtop.model.gpu import GpuSample, KernelLog, NodeGpus
from slurmtop.model.job import Job, Tres
from slurmtop.model.look import HostLook
from slurmtop.model.node import Node
from slurmtop.parse.slurm.tres import parse_gres
from slurmtop.store.nodes import NodeRow
from slurmtop.ui.present.node_card import Admission, NodeCard
from slurmtop.ui.present.node_inside import inside_lines
from slurmtop.ui.present.spans import Line, plain
from tests.build import make_job
from tests.fakes import START


def lines(
    seen: int,
    *jobs: Job,
    inside: str | None = "4711",
    lost: int = 0,
    kernel: KernelLog | None = None,
) -> list[Line]:
    node = Node(name="gpu05", gres=parse_gres("gpu:h100:8", "gpu:h100:8(IDX:0-7)"))
    samples = tuple(GpuSample(index=n, uuid=f"GPU-{n}", util_percent=97.0) for n in range(seen))
    names = tuple(f"0000:{n:02x}:00.0" for n in range(lost))
    gpus = NodeGpus(host="gpu05", samples=samples, lost=names)
    look = HostLook(host="gpu05", gpus=gpus, gpus_at=START, inside=inside, sources=("nvidia-smi",))
    card = NodeCard(
        row=NodeRow(node, jobs),
        now=START,
        data_now=START,
        zone=None,
        me="anna",
        all_users=False,
        admission=Admission(True, jobs[0] if jobs else None),
        look=look,
        kernel=kernel,
    )
    return inside_lines(card, 200)


def told_of(found: list[Line], word: str) -> list[tuple[str, str]]:
    """The lines with ``word``, and the role of their text."""
    return [(plain(line), line[-1][1]) for line in found if word in plain(line)]


def on_node(gpus: int, nodes: int = 1) -> Job:
    names = "gpu05" if nodes == 1 else f"gpu[05-{4 + nodes:02d}]"
    return make_job("4711", nodes=names, node_count=nodes, tres=Tres(gpus=gpus))


def test_a_gpu_that_a_job_holds_and_its_own_login_does_not_see_is_missing() -> None:
    ((text, role),) = told_of(lines(7, on_node(8)), "of job 4711")
    assert "7 of the 8 GPUs of job 4711 are seen by a login inside it: 1 GPU missing" in text
    assert role == "warn"


def test_what_the_job_does_not_hold_is_not_missed() -> None:
    ((text, role),) = told_of(lines(4, on_node(4)), "of job 4711")
    assert "4 of 8 GPUs are shown to this login: those of job 4711" in text
    assert role == "dim"


def test_a_lost_card_is_told_as_lost_and_not_once_more() -> None:
    assert told_of(lines(7, on_node(8), lost=1), "missing") == []


def test_where_nobody_says_how_many_the_job_holds_there_that_is_said() -> None:
    for found in (lines(4), lines(4, on_node(9, nodes=2))):
        ((text, _),) = told_of(found, "job 4711")
        assert "inside job 4711; how many that holds here is not known" in text


def test_an_empty_answer_of_the_kernel_log_says_how_far_back_it_holds() -> None:
    def says(log: KernelLog) -> str:
        ((text, _),) = told_of(lines(8, kernel=log), "none in the kernel log")
        return text

    assert "which goes back to Mon May  5 09:00:00 2031" in says(
        KernelLog(since="Mon May  5 09:00:00 2031")
    )
    assert "since the node started" in says(KernelLog(since="0.000000"))
    assert "how far that goes back is not known" in says(KernelLog())
