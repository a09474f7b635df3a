"""Is a GPU in order? Judged from one sample and from its neighbours on the same node.

Hardware and driver only; whether it does useful work is :mod:`slurmtop.triage.gpu_work`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.gpu import Answer, Finding, GpuSample, Level, NodeGpus
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural

_RANK = {Level.OK: 0, Level.UNKNOWN: 1, Level.WARNING: 2, Level.CRITICAL: 3}
_WORD_CHARS = 80
_NONE = "None"

#: Words in the place of a value that mean "not there" and no more (NVML's error strings).
_NOT_THERE = frozenset(
    {
        "",
        "-",
        "n/a",
        "not supported",
        "not found",
        "function not found",
        "not ready",
        "requested functionality has been deprecated",
        "in use by another client",
        "error - failed to convert to string",
    }
)
_DENIED = frozenset({"insufficient permissions", "no permission"})
_FATAL = {"gpu is lost": "GPU lost", "gpu requires reset": "GPU needs a reset"}

#: Values of the moment; every GPU has one of them, a slice its shares.
_MEASURED = (
    "util_percent",
    "mem_util_percent",
    "mem_used_mib",
    "temp_c",
    "mem_temp_c",
    "power_w",
    "sm_clock_mhz",
    "sm_active",
    "sm_occupancy",
    "graphics_active",
    "tensor_active",
    "dram_active",
    "pcie_tx_bytes_s",
    "pcie_rx_bytes_s",
    "nvlink_tx_bytes_s",
    "nvlink_rx_bytes_s",
)
_HW_THERMAL = 0x40
#: Why the clocks are held down (nvml.h), by the bit of the mask.
_EVENTS = (
    (0x01, Level.OK, "idle"),
    (0x02, Level.OK, "clocks are set by hand"),
    (0x04, Level.OK, "at the power limit (normal under full load)"),
    (0x10, Level.OK, "clocks follow another GPU (sync boost)"),
    (0x20, Level.WARNING, "thermal capping"),
    (_HW_THERMAL, Level.CRITICAL, "hardware thermal slowdown"),
    (0x80, Level.CRITICAL, "power brake: power supply or cable"),
    (0x100, Level.OK, "clocks are held by a display"),
)
_HW_SLOWDOWN = 0x08
_HW_REASONS = _HW_THERMAL | 0x80
_KNOWN_BITS = sum(bit for bit, _, _ in _EVENTS) | _HW_SLOWDOWN

_ACTIONS = {
    "reset": "GPU needs a reset",
    "reboot": "node needs a reboot",
    "drain p2p": "drain: no traffic between GPUs any more",
    "drain and reset": "drain, then reset the GPU",
    "recover imex domain": "the IMEX domain must be recovered",
}
#: Persistence mode matters where a look takes this long.
_SLOW_S = 2.0
_REST = 10.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The worst level, and everything found, worst first; notes are at level OK."""

    level: Level
    findings: tuple[Finding, ...] = ()

    @property
    def says(self) -> str | None:
        """The sentence of the worst finding; None where there is nothing to say."""
        return self.findings[0].says if self.findings else None


def judged(findings: Sequence[Finding]) -> Judgement:
    """Findings put in order; without any, all is well."""
    ordered = sorted(findings, key=lambda one: -_RANK[one.level])
    return Judgement(ordered[0].level if ordered else Level.OK, tuple(ordered))


def measured(gpu: GpuSample) -> bool:
    """Did it give any value of this moment? Its limits and names are none, and may be kept by the
    driver of a card that is dead."""
    return any(getattr(gpu, name) is not None for name in _MEASURED)


def judge_gpu(gpu: GpuSample, neighbours: Sequence[GpuSample] = ()) -> Judgement:
    """The state of one GPU. ``neighbours``: the GPUs of its node, itself among them or not."""
    found: list[Finding] = []
    for source in (_silent(gpu), _words(gpu), _memory(gpu), _events(gpu), _fabric(gpu, neighbours)):
        found.extend(one for one in source if one not in found)
    return judged(found)


def _silent(gpu: GpuSample) -> Iterator[Finding]:
    """A card of which nothing can be read is broken where errors stand in the place of values."""
    if measured(gpu):
        return
    texts = [bare for name, text in gpu.words if name in _MEASURED and (bare := _error(text))]
    # One alone may be that of a sensor; a lost card says so itself.
    if len(texts) > 1 and not any(text.casefold() in _FATAL for text in texts):
        shown = visible(texts[0])[:_WORD_CHARS]
        yield Finding(Level.CRITICAL, f"no value of it can be read ({shown})")


def _error(text: str) -> str:
    """The words in the place of a value, "" where they mean no more than "not there"."""
    bare = text.strip().removeprefix("[").removesuffix("]").strip()
    word = bare.casefold()
    plain = word in _NOT_THERE or word in _DENIED or word.startswith("<<<")
    return "" if plain else bare


def _words(gpu: GpuSample) -> Iterator[Finding]:
    for attribute, text in gpu.words:
        bare = text.strip().removeprefix("[").removesuffix("]").strip()
        word = bare.casefold()
        if word in _FATAL:
            yield Finding(Level.CRITICAL, _FATAL[word])
        elif word in _DENIED:
            yield Finding(Level.OK, "no permission")
        elif word not in _NOT_THERE and not word.startswith("<<<"):
            shown = visible(bare)[:_WORD_CHARS]
            yield Finding(Level.WARNING, f"{attribute.rsplit('_', 1)[0]} reads {shown}")


def _memory(gpu: GpuSample) -> Iterator[Finding]:
    if gpu.remapped_failure:
        yield Finding(Level.CRITICAL, "memory row remapping failed: the GPU likely needs replacing")
    if gpu.remapped_pending:
        yield Finding(Level.WARNING, "memory rows wait for remapping: reset when the job is over")
    if gpu.ecc_uncorrected:
        says = plural(int(gpu.ecc_uncorrected), "uncorrected memory error") + " since driver load"
        yield Finding(Level.WARNING, says)
    action = gpu.recovery_action
    if action is not None and action != _NONE:
        known = _ACTIONS.get(action.casefold())
        level = Level.WARNING if known is None else Level.CRITICAL
        yield Finding(level, known or visible(action)[:_WORD_CHARS])


def _events(gpu: GpuSample) -> Iterator[Finding]:
    if gpu.hw_thermal and not (gpu.events or 0) & _HW_THERMAL:
        yield Finding(Level.CRITICAL, "hardware thermal slowdown")
    if gpu.events is None:
        if gpu.word("events") is not None:
            yield Finding(Level.OK, "not known")
        return
    for bit, level, says in _EVENTS:
        if gpu.events & bit:
            yield Finding(level, says)
    if gpu.events & _HW_SLOWDOWN and not gpu.events & _HW_REASONS:
        yield Finding(Level.CRITICAL, "hardware slowdown: heat or power")
    if unknown := gpu.events & ~_KNOWN_BITS:
        yield Finding(Level.OK, f"unknown throttle reason {unknown:#x}")


def _fabric(gpu: GpuSample, neighbours: Sequence[GpuSample]) -> Iterator[Finding]:
    state, status = gpu.fabric_state, gpu.fabric_status
    if state is None:
        if gpu.word("fabric_state") is not None:
            yield Finding(Level.OK, "no NVSwitch")
        return
    if state != "Completed":
        how = "not started" if state == "Not Started" else "not finished"
        yield Finding(Level.WARNING, f"fabric registration {how}: CUDA will fail (error 802)")
    elif status is not None and status != "Success":
        yield Finding(Level.CRITICAL, f"fabric: {visible(status)[:_WORD_CHARS]}: drain the node")
    elif gpu.fabric_clique is not None and _other_clique(gpu, neighbours):
        yield Finding(Level.WARNING, "other NVLink clique than its neighbours")


def _other_clique(gpu: GpuSample, neighbours: Sequence[GpuSample]) -> bool:
    cliques = Counter(
        (one.fabric_cluster, one.fabric_clique)
        for one in neighbours
        if one.fabric_clique is not None and one.name == gpu.name
    )
    usual = cliques.most_common(1)
    return bool(
        usual
        and usual[0][1] * 2 > cliques.total()
        and usual[0][0] != (gpu.fabric_cluster, gpu.fabric_clique)
    )


def judge_node(node: NodeGpus) -> Judgement:
    """All that is wrong with a node's GPUs and with the way they answer."""
    found = [Finding(Level.CRITICAL, says) for says in map(_lost, node.lost)]
    if node.failure is not None:
        grave = node.answer in (Answer.GPU_LOST, Answer.NOT_LOADED)
        found.append(Finding(Level.CRITICAL if grave else Level.UNKNOWN, node.failure.sentence))
    found.extend(Finding(Level.WARNING, visible(line)) for line in node.remarks)
    for gpu in node.samples:
        verdict = judge_gpu(gpu, node.samples)
        name = "GPU ?" if gpu.index is None else f"GPU {gpu.index}"
        found.extend(
            Finding(one.level, f"{name}: {one.says}")
            for one in verdict.findings
            if one.level is not Level.OK
        )
    if (hint := persistence_hint(node)) is not None:
        found.append(Finding(Level.OK, hint))
    return judged(found)


def _lost(bus: str) -> str:
    return f"a GPU fell off the bus ({visible(bus)}): drain the node, then reset or reboot it"


def persistence_hint(node: NodeGpus) -> str | None:
    """A sentence where asking is slow because the driver starts the GPUs each time."""
    off = any(gpu.persistence is False for gpu in node.samples)
    if not off or node.took_s is None or node.took_s < _SLOW_S:
        return None
    return (
        f"persistence mode is off on {visible(node.host)}: nvidia-smi needs {node.took_s:.0f} s "
        "each time; an admin can switch it on"
    )


def next_look_s(took_s: float, usual_s: float) -> float:
    """Seconds until a node may be asked again: ten times what the answer cost, at least."""
    return max(usual_s, _REST * took_s)


def stuck_text(node: NodeGpus, last_good: datetime | None, now: datetime) -> str:
    """``GPU driver on gpu05 does not answer; values are 4 min old``."""
    says = f"GPU driver on {visible(node.host)} does not answer"
    if last_good is None:
        return f"{says}; nothing was read yet"
    return f"{says}; values are {ago_text((now - last_good).total_seconds())} old"
