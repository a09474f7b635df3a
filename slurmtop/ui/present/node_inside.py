"""What a look inside a node found: its GPUs, its kernel log, its network ports. Pure."""

import re
from collections.abc import Iterator

from slurmtop.model.gpu import (
    GpuSample,
    KernelEvent,
    KernelLog,
    Level,
    NodeGpus,
    ratio_text,
    util_text,
)
from slurmtop.model.look import HostLook
from slurmtop.model.nic import NicPort
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, bytes_text, plural
from slurmtop.triage.gpu_share import share_of
from slurmtop.triage.gpu_work import Work, work_of
from slurmtop.triage.gpus import judge_gpu, judge_node
from slurmtop.triage.xid import event_meaning, fold_events, xid_meaning
from slurmtop.ui.present.node_card import NodeCard, labelled, told
from slurmtop.ui.present.spans import Line, join

_EVENTS = 3
_LEVEL_ROLES = {
    Level.OK: "dim",
    Level.UNKNOWN: "warn",
    Level.WARNING: "warn",
    Level.CRITICAL: "bad",
}
#: Full use at little power is no work: so looks a collective that waits for a peer.
_WAITS = {
    Work.WAITS: "WAITS, computes nothing: ",
    Work.PERHAPS_WAITS: "perhaps WAITS (full use at little power): ",
}
_OPENS_KERNEL = (
    "An admin opens it with kernel.dmesg_restrict=0 or by the group systemd-journal; "
    "root reads it there with: dmesg -T | grep Xid"
)


def inside_lines(card: NodeCard, width: int) -> list[Line]:
    """What is wrong comes first, then the values of each GPU, then the network ports."""
    if card.why_not:
        return told("inside", card.why_not, width, "dim")
    if card.admission.allowed is None:
        return told("inside", "asking Slurm what you may do …", width, "busy")
    if not card.admission.allowed:
        says = (
            "you have no job running here: only who has one, an operator or root may look at its "
            "GPUs, with slurmtop or: ssh NODE nvidia-smi"
        )
        return told("inside", says, width, "dim")
    look = card.look
    if look is None:
        return told("inside", "looking at the node …", width, "busy")
    out: list[Line] = []
    if look.failure is not None:
        out += told("inside", f"{visible(look.failure.sentence)}{_again(card)}", width, "bad")
    if look.gpus is not None:
        out.append(_source(card, look))
        out += _findings(look.gpus, width)
        out += _unseen(card, look, look.gpus, width)
        out += _events(card, width)
        out += [_gpu_line(gpu, look.gpus, card.mine) for gpu in look.gpus.samples]
    elif look.failure is None:
        out += told("inside", "no answer about GPUs yet", width, "dim")
    out += _nics(look.nics, width)
    out += _no_events(card, width)
    for hint in look.hints:
        out += told("", visible(hint), width, "dim")
    return out


def _again(card: NodeCard) -> str:
    look = card.look
    if look is None or look.next_at is None:
        return ""
    return f" (next try in {ago_text((look.next_at - card.data_now).total_seconds())})"


def _source(card: NodeCard, look: HostLook) -> Line:
    by = "+".join(look.sources)
    way = f" over {look.way}" if look.way is not None else ""
    age = ""
    if look.gpus_at is not None:
        age = f", {ago_text((card.data_now - look.gpus_at).total_seconds())} old"
    old = look.failure is not None
    line: Line = ((f"{visible(by) or 'values'}{way}{age}", "warn" if old else "dim"),)
    return labelled("inside", join([line, (("* of your jobs", "dim"),) if card.mine else ()]))


def _findings(gpus: NodeGpus, width: int) -> list[Line]:
    """What is wrong, worst first: it stands before the values."""
    out: list[Line] = []
    for finding in judge_node(gpus).findings:
        out += told("", visible(finding.says), width, _LEVEL_ROLES[finding.level])
    for gpu in gpus.samples:
        if gpu.xid:
            out += told("", _xid_text(gpu, gpu.xid), width, "warn")
    return out


def _unseen(card: NodeCard, look: HostLook, gpus: NodeGpus, width: int) -> list[Line]:
    """GPUs that Slurm counts and this login does not see are neither idle nor lost for that; but
    a login inside a job sees all that the job holds there."""
    total = card.row.node.gpu_count().total
    seen = sum(1 for gpu in gpus.samples if gpu.slice_id is None) + len(gpus.lost)
    if not gpus.samples:
        return []
    held = None if look.inside is None else _held(card, look.inside)
    if held is not None and seen + gpus.bad < held:
        job = visible(look.inside or "")
        says = f"{seen} of the {held} GPUs of job {job} are seen by a login inside it: "
        return told("", f"{says}{plural(held - seen - gpus.bad, 'GPU')} missing", width, "warn")
    if total is None or seen >= total:
        return []
    if look.inside is not None:
        those = f"those of job {look.inside}"
        if held is None:
            those = f"it is inside job {look.inside}; how many that holds here is not known"
        says = f"{seen} of {total} GPUs are shown to this login: {those}"
        return told("", visible(says), width, "dim")
    says = f"{seen} of {total} GPUs are seen: the others are hidden from this login, or missing"
    return told("", says, width, "warn")


def _held(card: NodeCard, inside: str) -> int | None:
    """How many GPUs the job that we are inside of holds on the node; None where nobody says."""
    for job in card.row.jobs:
        if inside in (job.raw_id, job.id.text):
            return share_of(inside, job.tres, job.node_count).gpus
    return None


def _xid_text(gpu: GpuSample, code: int) -> str:
    """The code that DCGM holds: the last one since its engine was started, whenever that was."""
    meaning = xid_meaning(code)
    name = "GPU ?" if gpu.index is None else f"GPU {gpu.index}"
    return f"{name}: last Xid {code}, time unknown: {meaning.says}; do: {meaning.action}"


def _gpu_line(gpu: GpuSample, gpus: NodeGpus, mine: frozenset[str]) -> Line:
    name = f"GPU {'?' if gpu.index is None else gpu.index}"
    if gpu.slice_id is not None:
        name += f" slice {visible(gpu.slice_id)}"
    own = "*" if gpu.uuid is not None and gpu.uuid in mine else " "
    judged = judge_gpu(gpu, gpus.samples)
    level = "" if judged.level is Level.OK else f"{judged.level.upper()} "
    return labelled(
        name + own,
        (
            (f"{util_text(gpu):>7} ", ""),
            (f"{_power(gpu):>11} ", ""),
            (f"{_memory(gpu):>12} ", ""),
            (f"{_number(gpu.temp_c, 'C'):>5} ", ""),
            (f"{_number(gpu.sm_clock_mhz, 'MHz'):>8} ", "dim"),
            (f"SM {ratio_text(gpu.sm_active)} " if gpu.sm_active is not None else "", "dim"),
            (level, _LEVEL_ROLES[judged.level]),
            (_WAITS.get(work_of(gpu), ""), "warn"),
            (", ".join(_marks(gpu)), "dim"),
        ),
    )


def _power(gpu: GpuSample) -> str:
    limit = f"/{gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else ""
    return "n/a W" if gpu.power_w is None else f"{gpu.power_w:.0f}{limit} W"


def _memory(gpu: GpuSample) -> str:
    if gpu.mem_used_mib is None:
        return "n/a GiB"
    total = f"/{gpu.mem_total_mib / 1_024:.0f}" if gpu.mem_total_mib is not None else ""
    return f"{gpu.mem_used_mib / 1_024:.0f}{total} GiB"


def _number(value: float | None, unit: str) -> str:
    return f"n/a {unit}" if value is None else f"{value:.0f} {unit}"


def _marks(gpu: GpuSample) -> Iterator[str]:
    """Counters that a person looks for, also where they are in order."""
    if gpu.ecc_uncorrected is not None:
        yield f"ECC {gpu.ecc_uncorrected:.0f}"
    if gpu.remapped_uncorrectable is not None:
        yield f"remapped {gpu.remapped_uncorrectable:.0f}"
    notes = [one.says for one in judge_gpu(gpu).findings if one.level is Level.OK]
    yield from (visible(says) for says in notes if says not in ("not known", "no NVSwitch"))


def _events(card: NodeCard, width: int) -> list[Line]:
    """The newest events of the kernel log, the newest first."""
    out: list[Line] = []
    for event in reversed(fold_events(card.kernel.events if card.kernel else ())[-_EVENTS:]):
        out += told("" if out else "Xid", _event_text(event), width, "warn")
    return out


def _no_events(card: NodeCard, width: int) -> list[Line]:
    """Why the kernel log tells nothing."""
    log = card.kernel
    if log is None or log.events:
        return []
    if log.failure is None:
        return told("Xid", f"none in the kernel log{_reach(log)}", width, "dim")
    opens = f" {_OPENS_KERNEL}" if log.failure.trouble is Trouble.DENIED else ""
    return told("Xid", f"{visible(log.failure.sentence)}{opens}", width, "dim")


def _reach(log: KernelLog) -> str:
    """How far it goes back: the log of a busy node is short."""
    if log.since is None:
        return ": how far that goes back is not known"
    if re.fullmatch(r"0\.0{1,9}", log.since):
        return " since the node started"
    return f", which goes back to {visible(log.since)}; older ones are gone"


def _event_text(event: KernelEvent) -> str:
    meaning = event_meaning(event)
    code = "" if event.code is None else f"{event.kind.value.capitalize()} {event.code} "
    who = f" by {visible(event.process)}" if event.process else ""
    at = f"{visible(event.time_text)}: " if event.time_text else ""
    return (
        f"{at}{code}on {visible(event.bus_id)}{who}: {visible(meaning.says)};"
        f" do: {visible(meaning.action)}"
    )


def _nics(ports: tuple[NicPort, ...] | None, width: int) -> list[Line]:
    """A line for each port that has trouble; those that are alike and well in one."""
    out: list[Line] = []
    alike: dict[tuple[str, ...], list[NicPort]] = {}
    for port in ports or ():
        state = "state unknown" if port.state is None else visible(port.state)
        speed = visible(port.speed or "")
        if port.errors or port.works is not True:
            errors = f", {plural(port.errors, 'error')}" if port.errors else ""
            text = f"{visible(port.name)} {port.kind} {state} {speed}".rstrip() + errors
            role = "bad" if port.works is False else "warn" if port.errors else "dim"
            out += told("" if out else "network", text + _rates([port]), width, role)
        else:
            alike.setdefault((port.kind, state, speed), []).append(port)
    for (kind, state, speed), found in alike.items():
        first, last = visible(found[0].name), visible(found[-1].name)
        names = first if len(found) == 1 else f"{first} … {last}"
        count = plural(len(found), f"{kind} port")
        text = f"{count} {state} {speed}".rstrip() + f" ({names}){_rates(found)}"
        out += told("" if out else "network", text, width, "")
    return out


def _rates(ports: list[NicPort]) -> str:
    """What they carry together; "" until that is known of each."""
    into = [port.rx_bytes_s for port in ports if port.rx_bytes_s is not None]
    out = [port.tx_bytes_s for port in ports if port.tx_bytes_s is not None]
    if len(into) < len(ports) or len(out) < len(ports):
        return ""
    return f", in {bytes_text(sum(into))}/s, out {bytes_text(sum(out))}/s"
