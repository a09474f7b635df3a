"""Python stacks of processes of one node: one round trip, nobody is paused, nothing is left there.

``py-spy dump --nonblocking --json`` reads the memory of a process from outside. It neither stops
nor traces it, and never with ``--locals``: values of variables do not leave the node. What may be
read is decided by the kernel; :mod:`slurmtop.parse.dumps.stacks_answer` reads what came back and
says why nothing did.

A reading has its own limit of time, and so has the limit: a reader that the kernel does not let end
is left, its answer given up, and no second one is started at that process while it is there.
"""

from collections.abc import Sequence

from slurmtop.collect.nodes.reading import read_answer
from slurmtop.collect.nodes.stack_tools import CHECK, first_tools
from slurmtop.model.ports import Clock, Command, NodeUnreachable, Runner, RunnerError
from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import ProcessStacks, StackTool
from slurmtop.parse.dumps.stacks_answer import NAME, parse_stacks_answer, without_stacks
from slurmtop.parse.dumps.stacks_words import no_tool, not_asked

#: Readers on one node at a time.
AT_ONCE = 4
#: More are read with the next look; nobody has so many ranks on a node.
MOST_PROCESSES = 64
TIMEOUT_S = 45.0
MAX_BYTES = 32 * 1024 * 1024

#: ``$1`` the tool run as oneself or ``-``, ``$2`` the one for sudo or ``-``, ``$3`` how many
#: readers at once, then PID:START of each process. Lines that come out are told in the parser.
SCRIPT = (
    r"""
LC_ALL=C; export LC_ALL; unset RUST_BACKTRACE RUST_LOG RUST_LIB_BACKTRACE
own=$1 root=$2 at_once=$3; shift 3
say() { printf '%s\n' "$*"; }
say 'slurmtop-stacks 1'
say "I $(id -u) $({ read -r s </proc/sys/kernel/yama/ptrace_scope && echo "$s"; } 2>/dev/null)"
"""
    + CHECK
    + r"""
command -v timeout >/dev/null 2>&1 || { say 'X - timeout'; say end; exit 0; }
if [ "$own" != - ]; then
  if tool_may_run "$own" own; then own=$real; else say "X $own $why"; own=-; fi
fi
if [ "$root" != - ]; then
  if tool_may_run "$root" root; then root=$real; else say "X $root $why"; root=-; fi
fi
[ "$own$root" = -- ] && { say end; exit 0; }
mark=$(od -An -v -N12 -tx1 /dev/urandom | tr -d ' \n')
[ ${#mark} = 24 ] || { say end; exit 0; }
begun=$(date +%s)
limit=5 most=3
# Processes at which an earlier reader still stands.
late=' '
for f in $(grep -lsxF -e "${own##*/}" -e "${root##*/}" /proc/[0-9]*/comm 2>/dev/null); do
  words=$(timeout -k 1 2 head -c 4096 "${f%comm}cmdline" 2>/dev/null | tr '\0' ' ')
  case $words in *' dump '*' -p '*) words=${words##* -p }; late="$late${words%% *} ";; esac
done
# Of the output: no spaces before a line, no member of a frame that is not read; each line behind a
# pid, in parts where it is long, and no more at once than one write takes. It ends with our mark,
# not with the pipe: that may never close. Nobody holds more of it in memory than $room bytes, be it
# one line without an end.
room=4194304
cut='
function flush() { if (held != "") { printf "%s", held; fflush(); held = "" } }
function put(kind, s) {
  s = kind " " p " " s "\n"
  if (length(held) + length(s) > 3500) flush()
  held = held s
}
index($0, mark " ") == 1 { rc = substr($0, length(mark) + 2) + 0; done = 1; exit }
{
  all += length($0) + 1
  sub(/^ +/, "")
  if ($0 ~ /^"(module|short_filename|locals|is_entry|pid|thread_id)": .*,$/) next
  if ($0 ~ /[Pp]ermission [Dd]enied|Operation not permitted|^sudo: /) denied = 1
  if ($0 == "" || size > 1048576) next
  n = length($0); if (n > 1048576) n = 1048576
  size += n + 1
  for (at = 1; n - at >= 2000; at += 2000) put("J", substr($0, at, 2000))
  put("N", substr($0, at, n - at + 1))
}
END {
  flush()
  if (!done) exit all < room ? 99 : 97
  if (rc && denied) exit 13
  exit rc
}'
look() {
  set -- "$(timeout -k 1 2 cat "/proc/$1/stat" 2>/dev/null)"
  [ -n "$1" ] || return 1
  set -- ${1##*) }
  letter=$1 start=${20}
}
dump() {
  if [ "$2" = own ]; then set -- "$1" "$own"; else set -- "$1" sudo -n "$root"; fi
  p=$1; shift
  # In the background: what keeps its pipe open holds up the head, and nobody else.
  { {
      timeout -s KILL $((limit + 3)) timeout -k 1 $limit "$@" dump --nonblocking --json \
        -p "$p" 2>&1 </dev/null
      printf '\n%s %s\n' "$mark" $?
    } | timeout -s KILL $((limit + 4)) head -c $room &
  } | awk -v p="$p" -v mark="$mark" -v room=$room "$cut"
}
one() {
  p=${1%%:*} tries=0
  case $late in *" $p "*) say "B $p"; return;; esac
  [ $(($(date +%s) - begun)) -lt 20 ] || { say "L $p"; return; }
  look "$p" && [ "$start" = "${1#*:}" ] || { say "G $p"; return; }
  say "S $p $letter"
  how=own; [ "$own" = - ] && how=root
  while :; do
    tries=$((tries + 1))
    dump "$p" $how; code=$?
    look "$p" && [ "$start" = "${1#*:}" ] || { say "G $p"; return; }
    say "E $p $code $letter $how"
    case $code in
      0|124|137|99|97) return;;
      13) [ $how = own ] && [ "$root" != - ] || return; how=root tries=0;;
      *) [ $tries -lt $most ] || return;;
    esac
  done
}
worker() {
  turn=$1 n=0; shift
  for pair do
    [ $((n % at_once)) = "$turn" ] && one "$pair"
    n=$((n + 1))
  done
}
{ k=0; while [ $k -lt "$at_once" ]; do worker $k "$@" & k=$((k + 1)); done; wait; } | cat
say end
"""
).strip()


def stacks_command(
    host: str,
    processes: Sequence[NodeProcess],
    tools: Sequence[StackTool],
    *,
    at_once: int = AT_ONCE,
) -> Command:
    """What :func:`read_stacks` runs. Those that wait in the kernel come last."""
    own, root = first_tools(tools)
    turn = sorted(processes, key=lambda process: (process.state == "D", process.pid))
    words = (
        "-" if own is None else own.path,
        "-" if root is None else root.path,
        str(at_once),
        *(f"{process.pid}:{process.start_ticks}" for process in turn),
    )
    argv = ("/bin/sh", "-c", SCRIPT, NAME, *words)
    return Command(argv, host=host, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)


async def read_stacks(
    runner: Runner,
    clock: Clock,
    host: str,
    processes: Sequence[NodeProcess],
    tools: Sequence[StackTool],
    *,
    at_once: int = AT_ONCE,
) -> tuple[ProcessStacks, ...]:
    """Read once the stacks of ``processes`` of ``host``, in their order; ``tools`` as its probe
    told them. Never raises: what could not be read has a ``failure`` that says why, and a command
    in its ``copy`` where there is one that helps. ``at_once``: readers beside each other.
    """
    at = clock.now()
    some = tuple(processes)
    asked = some[:MOST_PROCESSES]
    left = without_stacks(some[len(asked) :], not_asked(len(asked)), at)
    if not asked:
        return left
    failure = no_tool(host)
    if tools:
        try:
            done = await runner.run(stacks_command(host, asked, tools, at_once=at_once))
        except NodeUnreachable as error:
            failure = error.failure
        except RunnerError as error:
            failure = Failure(Trouble.OTHER, f"the stacks of {host} could not be read: {error}")
        else:
            cut = None
            if done.timed_out:
                cut = Failure(Trouble.TIMEOUT, f"{host} told no stacks within {TIMEOUT_S:.0f} s")

            def read(data: bytes) -> tuple[ProcessStacks, ...]:
                return parse_stacks_answer(data, host, asked, at, cut=cut)

            told = await read_answer(read, done.stdout)
            return (*told, *left)
    return (*without_stacks(asked, failure, at), *left)
