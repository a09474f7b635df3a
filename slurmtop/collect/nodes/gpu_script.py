"""The one script that asks a node about its GPUs, and the commands made of it.

It needs a POSIX shell and grep. Before it starts a tool of the GPU driver it looks whether one that
was started before is still there: a driver that hangs holds every new process as well, and such a
process cannot be ended. ``parse/gpu/node_script.py`` reads what it prints and shows the form.
"""

from collections.abc import Sequence

from slurmtop.model.ports import Command
from slurmtop.parse.gpu.compute_apps import APP_FIELDS
from slurmtop.parse.gpu.node_script import OpenTool

NAME = "slurmtop-gpus"
#: Seconds between two rounds of a stream.
ROUND_S = 2.0
#: Without persistence mode the first answer takes 6 to 30 s where all is well.
FIRST_ANSWER_S = 60.0
_PROBE_S = 30.0
_MAX_BYTES = 4 * 1024 * 1024
#: For the script itself: what it does before it starts a tool.
_SLACK_S = 10.0

#: Pieces of the script. Lines of its own, told from those of the tools.
SAY = r"""
say() { printf '\n#slurmtop %s\n' "$*"; }
""".strip()

#: ``look``: what is in the way (``$stuck``) of ``$known`` and of what waits in the driver.
LOOK = r"""
# The state and the start, in ticks since boot, of one process.
stat_of() {
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  pid=${line%% *}; line=${line##*) }; set -- $line
  state=$1; shift 19; start=$1
}
# What is running here: of ours in the way, and what watches the GPUs.
look() {
  stuck=; engine=; exporter=
  for d in /proc/[0-9]*; do
    { IFS= read -r name <"$d/comm"; } 2>/dev/null || continue
    case $name in
    nvidia-smi | dcgmi | amd-smi | rocm-smi)
      [ -O "$d" ] && stat_of "${d#/proc/}" && [ "$state" = D ] && stuck="$stuck $pid:$start:D" ;;
    nv-hostengine) engine=hostengine ;;
    dcgm-exporter) exporter=exporter ;;
    esac
  done
  for one in $known; do
    stat_of "${one%%:*}" && [ "$start" = "${one#*:}" ] || continue
    case "$state $stuck " in Z* | X* | *" $pid:"*) ;; *) stuck="$stuck $pid:$start:$state" ;; esac
  done
}
""".strip()

#: ``tool PROGRAM WORDS``: it says its pid, and how it ended (``$rc``).
TOOL = r"""
child=
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 143' HUP INT TERM
# A tool in the background, so that a signal is heard while it runs; it says its own pid first.
tool() {
  ( trap - HUP INT TERM; stat_of self && say pid "$pid:$start"; exec "$@" </dev/null 2>&1 ) &
  child=$!; wait "$child"; rc=$?; child=; say end "$rc"
}
""".strip()

#: ``nics``: state and counters of the network ports, within ``$lim``.
NICS = r"""
files() { $lim grep -asH . "$@" /dev/null; }
nics() {
  files /proc/uptime
  i=/sys/class/infiniband/*/ports/*
  files $i/state $i/rate $i/link_layer $i/counters/port_rcv_data $i/counters/port_xmit_data \
    $i/counters/symbol_error $i/counters/port_rcv_errors $i/counters/link_downed \
    $i/counters/link_error_recovery $i/counters/local_link_integrity_errors \
    $i/hw_counters/rx_bytes $i/hw_counters/tx_bytes
  i=/sys/class/cxi/*/device
  files $i/port/0/link/state $i/port/0/link/speed $i/telemetry/hni_sts_[rt]x_ok_octets
  for i in /sys/class/net/*; do
    [ -e "$i/device" ] && [ ! -e "$i/device/infiniband" ] || continue
    files $i/operstate $i/speed $i/statistics/[rt]x_bytes $i/statistics/[rt]x_errors
  done
}
""".strip()

_SETUP = r"""
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/rocm/bin
LC_ALL=C; export LC_ALL PATH; lim=; want=$1; known=$2; shift 2
""".strip()

_CLEAR = r"""
# What is ending now is given its time; a wait in the kernel may be a short one.
clear() {
  look
  for again in 1 2 3; do
    [ -n "$stuck" ] || return 0
    sleep 1; look
  done
  [ -z "$stuck" ]
}
""".strip()

_ABOUT = r"""
about() {
  say part cgroup; cat /proc/self/cgroup 2>/dev/null
  say part nics; nics
}
""".strip()

_FLOW = r"""
free=yes; clear || free=
{ read -r line </proc/1/comm; } 2>/dev/null || engine=hidden
say seen $engine $exporter
case $want in probe | once) about ;; esac
if [ -z "$free" ]; then say open $stuck; say done; exit 0; fi
case $want in
stream)
  say part query
  tool nvidia-smi ${3:+-i "$3"} "--query-gpu=$1" --format=csv,noheader,nounits -lms "$2" ;;
once)
  say part query
  tool nvidia-smi ${3:+-i "$3"} "--query-gpu=$1" --format=csv,noheader,nounits ;;
list) say part list; tool nvidia-smi -L ;;
dcgm)
  say part discovery; tool dcgmi discovery -l
  say part dmon; tool dcgmi dmon -e "$1" -d "$2" ${3:+-c "$3"} ;;
amd)
  say part amd
  if [ ! -e /dev/kfd ]; then say end 127; say done; exit 0; fi
  tool amd-smi metric --json
  case $rc in 126 | 127)
    say part rocm; tool rocm-smi --showuse --showpower --showtemp --json ;; esac ;;
esac
case $want in
probe)
  [ -n "$1" ] && say part apps &&
    tool nvidia-smi ${2:+-i "$2"} "--query-compute-apps=$1" --format=csv,noheader,nounits ;;
once)
  [ "$rc" = 0 ] && [ -n "$2" ] && say part apps &&
    tool nvidia-smi ${3:+-i "$3"} "--query-compute-apps=$2" --format=csv,noheader,nounits ;;
esac
say done
""".strip()

#: ``$1`` what is wanted (stream, once, list, probe, state, dcgm, amd), ``$2`` the tools of ours
#: that may still be there (``pid:start``), then what that wants.
SCRIPT = "\n".join((_SETUP, SAY, LOOK, _CLEAR, TOOL, NICS, _ABOUT, _FLOW))


def _command(
    host: str | None,
    want: str,
    open_tools: Sequence[OpenTool],
    *words: str,
    timeout_s: float,
) -> Command:
    known = " ".join(f"{one.pid}:{one.start_ticks}" for one in open_tools)
    argv = ("/bin/sh", "-c", SCRIPT, NAME, want, known, *words)
    return Command(argv, host=host, timeout_s=timeout_s, max_bytes=_MAX_BYTES)


def _only(uuids: Sequence[str]) -> tuple[str, ...]:
    """The last word, where not all GPUs are asked: those beside a card that is lost."""
    return (",".join(uuids),) if uuids else ()


def stream_command(
    host: str,
    fields: Sequence[str],
    open_tools: Sequence[OpenTool],
    *,
    only: Sequence[str] = (),
    round_s: float = ROUND_S,
) -> Command:
    """``nvidia-smi --query-gpu`` again and again, until nobody reads any more."""
    words = (",".join(fields), str(int(round_s * 1000)), *_only(only))
    return _command(host, "stream", open_tools, *words, timeout_s=FIRST_ANSWER_S + _SLACK_S)


def list_command(host: str, open_tools: Sequence[OpenTool]) -> Command:
    """``nvidia-smi -L``: it tells the GPUs beside a card that is lost."""
    return _command(host, "list", open_tools, timeout_s=_PROBE_S)


def once_command(
    host: str,
    fields: Sequence[str],
    open_tools: Sequence[OpenTool],
    *,
    apps: bool = True,
    only: Sequence[str] = (),
    timeout_s: float = FIRST_ANSWER_S,
) -> Command:
    """One look: what the node is, its ports, its GPUs and with ``apps`` the processes on them."""
    words = (",".join(fields), ",".join(APP_FIELDS) if apps else "", *_only(only))
    return _command(host, "once", open_tools, *words, timeout_s=timeout_s + _SLACK_S)


def probe_command(
    host: str, open_tools: Sequence[OpenTool], *, apps: bool = True, only: Sequence[str] = ()
) -> Command:
    """What is read beside a stream: ports, the cgroup we are in, the processes on the GPUs."""
    asked = ",".join(APP_FIELDS) if apps else ""
    return _command(host, "probe", open_tools, asked, *_only(only), timeout_s=_PROBE_S)


def state_command(host: str, open_tools: Sequence[OpenTool]) -> Command:
    """Only whether a tool of ours is still there; it starts none."""
    return _command(host, "state", open_tools, timeout_s=_SLACK_S + 5.0)


def dcgm_command(
    host: str,
    ids: Sequence[int],
    open_tools: Sequence[OpenTool],
    *,
    count: int | None = None,
    round_s: float = ROUND_S,
) -> Command:
    """``dcgmi dmon`` of these counters: ``count`` rounds, or until nobody reads any more."""
    return _command(
        host,
        "dcgm",
        open_tools,
        ",".join(str(one) for one in ids),
        str(int(round_s * 1000)),
        *(() if count is None else (str(count),)),
        timeout_s=_PROBE_S,
    )


def amd_command(host: str, open_tools: Sequence[OpenTool]) -> Command:
    """``amd-smi``, else ``rocm-smi``, where the node has a GPU of AMD."""
    return _command(host, "amd", open_tools, timeout_s=_PROBE_S)
