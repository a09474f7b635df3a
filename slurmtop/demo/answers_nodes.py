"""The simulated nodes: who may log in, and what the scripts of slurmtop find there."""

from collections.abc import Callable, Sequence

from slurmtop.demo import answers_gpus
from slurmtop.demo.answers_probe import probe_lines, stack_lines
from slurmtop.demo.answers_processes import access_lines, process_lines
from slurmtop.demo.nodes import DemoNode
from slurmtop.demo.options import Answer, said
from slurmtop.demo.values import View
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble

_SCRIPTS: dict[str, Callable[[View, DemoNode, Sequence[str]], str]] = {
    "slurmtop-processes": process_lines,
    "slurmtop-access": access_lines,
    "slurmtop-gpus": answers_gpus.first_words,
    "slurmtop-stacks": stack_lines,
}
_PROBE = "slurmtop-probe"
_READS_KERNEL = "slurmtop-kernel"
_KERNEL = "dmesg: read kernel buffer failed: Operation not permitted\n"


def node_of(view: View, host: str) -> DemoNode:
    """The node, where one may log in; ``NodeUnreachable`` as real ones refuse."""
    node = view.world.nodes.get(host)
    if node is None:
        words = f"{host} is not known here: no address goes with that name."
        raise NodeUnreachable(host, Failure(Trouble.OTHER, words))
    if node.trouble == "down":
        words = f"{host} does not answer (connection timed out)."
        raise NodeUnreachable(host, Failure(Trouble.DOWN, words, retry_after_s=60.0))
    if not any(job.running and view.mine(job) for job in view.world.busy.values()
               if host in job.nodes):  # fmt: skip
        words = f"{host} lets nobody in who has no job there (pam_slurm_adopt)."
        raise NodeUnreachable(host, Failure(Trouble.DENIED, words, retry_after_s=300.0))
    return node


def script_of(argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Name and words of a script of slurmtop's; None for another command."""
    is_script = len(argv) > 3 and argv[:2] == ("/bin/sh", "-c")
    return (argv[3], argv[4:]) if is_script else None


def answer(view: View, host: str, argv: tuple[str, ...]) -> Answer:
    """What a command on a node prints. A stream's first words are its whole answer here."""
    node = node_of(view, host)
    script = script_of(argv)
    if script is not None and script[0] == _PROBE:
        return said(probe_lines(view, node, argv[2], script[1]))
    if script is not None and script[0] in _SCRIPTS:
        name, words = script
        return said(_SCRIPTS[name](view, node, words))
    if argv[0] in ("dmesg", "journalctl") or (script is not None and script[0] == _READS_KERNEL):
        return said(err=_KERNEL, rc=1)
    return said(err=f"{argv[0]}: command not found\n", rc=127)
