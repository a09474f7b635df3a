"""What one look at a node says of stacks, kernel log, GPU tools and own processes, as rows."""

from collections.abc import Iterator
from dataclasses import replace

from slurmtop.model.access import Access, AccessStatus, Group, NodeAccess
from slurmtop.model.look import HostLook
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.model.units import plural

_SCOPE = "kernel.yama.ptrace_scope"
_ADMIN_OPENS = f"the site: sysctl {_SCOPE}=0, or sudo rights for py-spy"
_SCOPES = {
    1: "only a parent may trace its children",
    2: "only root may trace",
    3: "nobody may trace until the next boot",
}
_DEBUG_OPENS = (
    "NCCL_DEBUG=WARN and TORCH_NCCL_TRACE_BUFFER_SIZE=2000 in the batch script, from the next"
    " start on"
)


def node_rows(
    access: NodeAccess, job: str | None = None, look: HostLook | None = None
) -> tuple[Access, ...]:
    """``job`` is the raw number of the own job that runs there, None without one; ``look`` is one
    at its GPUs, None where there was none."""
    rows = (
        *_gpus(access, job, look),
        _py_spy(access),
        _stacks(access),
        _kernel_log(access),
        _processes(access),
        _environment(access),
        _settings(access, job),
    )
    return tuple(replace(row, host=access.host) for row in rows)


def _row(source: str, status: AccessStatus, why: str, opens: str = "", command: str = "") -> Access:
    return Access(
        group=Group.ON_NODE, source=source, status=status, why=why, opens=opens, command=command
    )


def _gpus(access: NodeAccess, job: str | None, look: HostLook | None) -> Iterator[Access]:
    amd = next((name for name in ("amd-smi", "rocm-smi") if access.tool(name)), None)
    nvidia = access.tool("nvidia-smi")
    path = nvidia or (access.tool(amd) if amd is not None else None)
    if path:
        yield _values(visible(path), look, "nvidia-smi -L" if nvidia else "")
    else:
        driver = "the driver is loaded" if access.driver else "no NVIDIA driver is loaded"
        why = f"no nvidia-smi, amd-smi or rocm-smi in PATH there; {driver}"
        yield _row("GPU values", AccessStatus.ABSENT, why, "the vendor's tools on the node")
    if job is not None and access.inside_job not in (None, job):
        yield _row(
            "GPUs of this job",
            AccessStatus.REFUSED,
            f"this login is put into job {access.inside_job}, which hides the GPUs of {job}",
            "srun into the job (node_access: srun), or wait for the other job's end",
        )
    if amd is not None and not nvidia:
        return
    if dcgmi := access.tool("dcgmi"):
        yield _activity(visible(dcgmi), look)
    else:
        yield _row(
            "GPU activity (DCGM)",
            AccessStatus.ABSENT,
            "no dcgmi in PATH there: SM and tensor activity stay unknown",
            "DCGM on the node with nv-hostengine running, or exporter_url in the settings",
        )


def _values(path: str, look: HostLook | None, command: str) -> Access:
    """A tool that is there may still give nothing: only what it said counts."""
    source = "GPU values"
    if look is None:
        return _row(source, AccessStatus.NOT_ASKED, f"{path} is there and was not run", "", command)
    failure = look.failure or (look.gpus.failure if look.gpus is not None else None)
    says = "" if failure is None else visible(failure.sentence)
    if look.gpus is None or not look.gpus.samples:
        why = f"{path} gives none: {says or 'no reason was told'}"
        return _row(source, AccessStatus.REFUSED, why, "", command)
    count = plural(sum(gpu.slice_id is None for gpu in look.gpus.samples), "GPU")
    why = f"{path}: {count}" + (f"; {says}" if says else "")
    return _row(source, AccessStatus.REACHABLE, why, "", command)


def _activity(path: str, look: HostLook | None) -> Access:
    source = "GPU activity (DCGM)"
    if look is None:
        return _row(source, AccessStatus.NOT_ASKED, f"{path} is there and was not run")
    if "dcgmi" in look.sources:
        return _row(source, AccessStatus.REACHABLE, path)
    if look.gpus is None or not look.gpus.samples:
        why = f"{path} is there and was not run: its values belong to those of nvidia-smi"
        return _row(source, AccessStatus.NOT_ASKED, why)
    said = next((visible(hint) for hint in look.hints if "dcgm" in hint.casefold()), "")
    why = said or "no nv-hostengine there, dcgm: off in the settings, or it said nothing"
    opens = "nv-hostengine running on the node, or exporter_url in the settings"
    return _row(source, AccessStatus.REFUSED, f"{path} gave no value: {why}", opens)


def _py_spy(access: NodeAccess) -> Access:
    if access.stack_tools:
        tool = access.stack_tools[0]
        version = f" ({visible(tool.version)})" if tool.version else ""
        return _row("py-spy", AccessStatus.REACHABLE, f"{visible(tool.path)}{version}")
    failure = access.no_stack_tool
    if failure is None:
        return _row("py-spy", AccessStatus.ABSENT, "nobody looked for it there")
    # What is there and may not be run is refused; what opens it stands at the end of the sentence.
    there = failure.trouble is Trouble.LOCAL and not failure.sentence.startswith("No py-spy")
    status = AccessStatus.REFUSED if there else AccessStatus.ABSENT
    why = visible(failure.sentence).removesuffix(failure.copy).rstrip(" :")
    return _row("py-spy", status, why, failure.copy)


def _stacks(access: NodeAccess) -> Access:
    scope = access.ptrace_scope
    if not access.ptrace_known:
        return _row("stacks (ptrace)", AccessStatus.REFUSED, f"{_SCOPE} cannot be read there")
    if scope is None:
        why = f"this kernel has no {_SCOPE}: not restricted"
        return _row("stacks (ptrace)", AccessStatus.REACHABLE, why)
    if scope == 0 or (access.uid == 0 and scope < 3):
        return _row("stacks (ptrace)", AccessStatus.REACHABLE, f"{_SCOPE}={scope}")
    says = f"{_SCOPE}={scope}: {_SCOPES.get(scope, 'a value that is not known here')}"
    return _row("stacks (ptrace)", AccessStatus.REFUSED, says, _ADMIN_OPENS)


def _kernel_log(access: NodeAccess) -> Access:
    source = "kernel log (Xid)"
    if access.dmesg_rc == 0:
        return _row(source, AccessStatus.REACHABLE, "dmesg", command="dmesg")
    if access.journal == "readable":
        return _row(source, AccessStatus.REACHABLE, "the journal", command="journalctl -k")
    restricted = access.dmesg_restrict not in (None, 0)
    why = "kernel.dmesg_restrict=1" if restricted else "dmesg is refused or not there"
    if access.journal == "refused":
        groups = ", ".join(map(visible, access.groups[:6])) or "no group"
        why = f"{why}, and the journal is not for the groups of this user ({groups})"
    return _row(
        source,
        AccessStatus.REFUSED,
        why,
        "the site: group systemd-journal or adm, or sysctl kernel.dmesg_restrict=0",
    )


def _processes(access: NodeAccess) -> Access:
    hidden = next(
        (word for word in access.proc_options.split(",") if word.startswith("hidepid=")), ""
    )
    told = f"/proc is mounted with {visible(hidden)}: " if hidden else ""
    if access.sees_others:
        return _row("processes of the node", AccessStatus.REACHABLE, "all of them are seen")
    if access.sees_others is None:
        return _row("processes of the node", AccessStatus.REFUSED, "the node did not say")
    return _row(
        "processes of the node",
        AccessStatus.REFUSED,
        f"{told}only own processes are seen; own ranks are among them",
    )


def _environment(access: NodeAccess) -> Access:
    source = "environment of processes"
    own, closed = access.own_processes, access.closed_processes or 0
    if own is None:
        return _row(source, AccessStatus.REFUSED, "/proc could not be read there")
    if not closed or access.uid == 0:
        return _row(source, AccessStatus.REACHABLE, plural(own, "own process", "own processes"))
    why = f"{closed} of {plural(own, 'own process', 'own processes')} do not let it be read"
    if closed < own:
        return _row(source, AccessStatus.REACHABLE, why)
    return _row(source, AccessStatus.REFUSED, why, "root; ranks are told by their arguments then")


def _settings(access: NodeAccess, job: str | None) -> Access:
    source = "debug settings of ranks"
    if job is None:
        return _row(source, AccessStatus.NOT_ASKED, "no own job runs there")
    if not access.job_processes:
        why = f"no process of job {visible(job)} could be read on this node"
        return _row(source, AccessStatus.ABSENT, why)
    if access.settings:
        said = ", ".join(f"{name}={visible(value)}" for name, value in access.settings)
        return _row(source, AccessStatus.REACHABLE, said)
    why = "neither NCCL_DEBUG nor a flight recorder is set: a hang will be hard to explain"
    return _row(source, AccessStatus.ABSENT, why, _DEBUG_OPENS)
