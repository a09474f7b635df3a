"""One look at what may be read on a node, by one way: tools, limits of the kernel, own processes.

It reads files of ``/proc``, asks ``dmesg`` for nothing but its exit status and py-spy for its
version; no process is touched, traced or signalled. Environment variables leave the node by an
allow-list only.
"""

from collections.abc import Sequence

from slurmtop.collect.clock import within
from slurmtop.collect.nodes.stack_tools import FRAGMENT, tool_words
from slurmtop.model.access import NodeAccess, WayTried
from slurmtop.model.ports import Clock, Command, NodeUnreachable, Runner, RunnerError
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.dumps.access import parse_access

NAME = "slurmtop-access"
#: What a login may take, with a jump host between.
TIMEOUT_S = 12.0
_MOST_BYTES = 256 * 1024
#: Of a rank's environment these alone leave the node: they say what a hang can be told from.
_SETTINGS = (
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_DEBUG_FILE",
    "NCCL_RAS_ENABLE",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
)

#: Its arguments are the raw number of the job, or nothing, and where a tool for stacks may lie.
#: ``[ -r ]`` would only look at modes: an environment is closed to us where it cannot be opened.
_SCRIPT = r"""
say() { printf '%s\t%s\n' "$1" "$2"; }
lim() { if command -v timeout >/dev/null 2>&1; then timeout -k 1 "$@"; else shift; "$@"; fi; }
number() { if [ -e "$2" ]; then v=; read -r v <"$2"; say "$1" "${v:-?}"; else say "$1" none; fi; }
PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin:/opt/rocm/bin"
job=$1; shift
uid=$(id -u)
say user "$uid $(id -un 2>/dev/null)"
say groups "$(id -Gn 2>/dev/null)"
say system "$(uname -sr) $(uname -m)"
number ptrace /proc/sys/kernel/yama/ptrace_scope 2>/dev/null
number dmesg_restrict /proc/sys/kernel/dmesg_restrict 2>/dev/null
lim 3 dmesg >/dev/null 2>&1
say dmesg $?
found=absent
for f in /var/log/journal/*/system.journal /run/log/journal/*/system.journal; do
  [ -e "$f" ] || continue
  found=refused
  [ -r "$f" ] && { found=readable; break; }
done
say journal $found
while read -r _ place _ options _; do
  [ "$place" = /proc ] && say proc "$options"
done </proc/self/mounts
if [ -r /proc/1/stat ]; then say sees_others yes; else say sees_others no; fi
[ -e /proc/driver/nvidia/version ] && say driver yes
head -n 20 /proc/self/cgroup 2>/dev/null | while IFS= read -r line; do say cgroup "$line"; done
own=0; closed=0; list=
for s in $(grep -lE "^Uid:[[:space:]]+$uid[[:space:]]" /proc/[0-9]*/status 2>/dev/null); do
  own=$((own + 1))
  e=${s%status}environ
  if { true <"$e"; } 2>/dev/null; then list="$list $e"
  elif [ -e "$e" ]; then closed=$((closed + 1)); fi
done
inside=0; first=; rank=
if [ -n "$job" ] && [ -n "$list" ]; then
  for e in $(grep -lz "^SLURM_JOB_ID=$job\$" $list 2>/dev/null); do
    if [ -n "$SLURM_STEP_ID" ] && grep -qz "^SLURM_STEP_ID=$SLURM_STEP_ID\$" "$e" 2>/dev/null; then
      continue
    fi
    inside=$((inside + 1))
    first=${first:-$e}
    [ -z "$rank" ] && grep -qzE '^(RANK|OMPI_COMM_WORLD_RANK)=' "$e" 2>/dev/null && rank=$e
  done
fi
say processes "$own $closed $inside"
first=${rank:-$first}
pid=
if [ -n "$first" ]; then
  tr '\000' '\n' <"$first" 2>/dev/null | grep -E '^(@SETTINGS@)=' |
    cut -c1-300 | while IFS= read -r line; do say set "$line"; done
  pid=${first%/environ}; pid=${pid##*/}
fi
for tool in nvidia-smi dcgmi amd-smi rocm-smi; do
  say tool "$tool $(command -v "$tool" 2>/dev/null)"
done
stack_tools 0 "$pid" "$@"
say end 1
"""
SCRIPT = FRAGMENT + _SCRIPT.replace("@SETTINGS@", "|".join(_SETTINGS))


async def try_way(
    runner: Runner,
    clock: Clock,
    host: str,
    way: Way,
    *,
    job: str | None = None,
    timeout_s: float = TIMEOUT_S,
    tools: Sequence[str] | None = None,
) -> WayTried:
    """Run the look on ``host`` through ``runner``, which knows ``way`` alone; login and look
    together get ``timeout_s``. ``tools``: where a tool for stacks may lie (``tool_words``; None:
    where it usually does). Never raises for what is wrong with the node."""
    begun = clock.monotonic()
    words = tool_words() if tools is None else tools
    argv = ("/bin/sh", "-c", SCRIPT, NAME, job or "", *words)
    command = Command(argv, host=host, timeout_s=timeout_s, max_bytes=_MOST_BYTES)
    access: NodeAccess | None = None
    failure: Failure | None = None
    try:
        done = await within(clock, runner.run(command), timeout_s, name=f"{way} to {host}")
    except NodeUnreachable as error:
        failure = error.failure
    except TimeoutError:
        failure = Failure(
            Trouble.TIMEOUT, f"{host} did not let us in and answer within {timeout_s:.0f} s."
        )
    except RunnerError as error:
        failure = Failure(Trouble.LOCAL, str(error))
    else:
        access = parse_access(done.stdout, host)
        if done.timed_out and not access.complete:
            says = f"The login on {host} works, but a look around did not end in {timeout_s:.0f} s."
            failure = Failure(Trouble.TIMEOUT, says)
        elif not access.complete:
            words = (done.stderr or done.stdout).decode("utf-8", "replace")[-2000:]
            says = f"The login on {host} works, but it runs no plain commands (exit {done.rc})."
            failure = Failure(Trouble.OTHER, says, raw=words)
    if failure is not None:
        access = None
    took_s = clock.monotonic() - begun
    return WayTried(host=host, way=way, access=access, failure=failure, took_s=took_s)
