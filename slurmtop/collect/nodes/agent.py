"""What runs on each node of a held-open step: a small ``sh`` that serves requests.

Requests come on its stdin, one a line, and go to all nodes; a node serves those for itself::

    RUN 7 gpu01 ZWNobyBoYWxsbwo=
    KILL 7 gpu01 -

It answers in lines that begin with the words which its starter chose; srun puts the task before
them (``--label``)::

    0: 5f0c2a9e HELLO gpu01
    0: 5f0c2a9e O 7 aGFsbG8K
    0: 5f0c2a9e E 7

Lines stay far below the 1,024 bytes at which Slurm breaks them (measured on 22.05.8), each is
written at once, so requests may answer side by side. A request has a session of its own: its end
reaches whatever it started, also what ``timeout`` put into another group. The agent ends with its
stdin, which srun closes when whoever started it is gone, or after a silence, and always with
status 0: a step that fails would show in the exit code of the whole job.
"""

import base64
import re
import secrets
from dataclasses import dataclass

#: ``argv[3]`` of every process of the step that is ours, so that others can leave them out.
AGENT_NAME = "slurmtop-agent"
REQUEST_NAME = "slurmtop-request"
SCRIPT_NAME = "slurmtop-script"
_FILTER_NAME = "slurmtop-filter"
#: An agent that hears nothing for so long ends: an srun that is killed, or a login node that
#: falls over, does not close the stdin of its tasks (seen on 22.05.8).
SILENCE_S = 150.0
_TICKS = 5
PING_S = 30.0
PING = b"PING 0 * -\n"
#: The kernel takes no word longer than 128 KiB, and a script arrives as one, in base64.
MOST_SCRIPT_BYTES = 90 * 1024

_WORKER = r"""
script=$(printf %s "$3" | base64 -d)
/bin/sh -c "$script" @SCRIPT@ </dev/null | while :; do
  part=$(dd bs=32768 count=1 2>/dev/null | base64 -w 720)
  [ -n "$part" ] || break
  for line in $part; do printf "%s O %s %s\n" "$1" "$2" "$line"; done
done
printf "%s E %s\n" "$1" "$2"
"""

# grep reads blocks where the shell reads bytes: requests for other nodes cost this one nothing.
# Signals that are meant for the job do not reach what runs here.
_AGENT = r"""
t=$1
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
trap '' HUP INT QUIT USR1 USR2 ALRM
trap : TERM
me=${SLURMD_NODENAME:-$(uname -n)}
for tool in setsid base64 dd grep; do
  command -v "$tool" >/dev/null 2>&1 || { printf '%s LACKS %s %s\n' "$t" "$me" "$tool"; exit 0; }
done
filter='exec grep -a --line-buffered -F -e " $1 " -e " * "'
echo x | grep -qa --line-buffered x 2>/dev/null || filter='exec cat'
worker='@WORKER@'
members() {
  for dir in /proc/[0-9]*; do
    stat=
    read -r stat <"$dir/stat" || continue
    set -- ${stat##*) }
    [ "$1" != Z ] || continue
    case " $sids " in *" $4 "*) echo "${dir#/proc/}" ;; esac
  done 2>/dev/null
}
end() {
  sids=
  for sid in "$@"; do
    # It may not have begun yet; what never gets our name is another's by now.
    for _ in 1 2 3 4 5; do
      if [ ! -d "/proc/$sid" ] || grep -qa @REQUEST@ "/proc/$sid/cmdline" 2>/dev/null; then
        sids="$sids $sid"
        break
      fi
      sleep 0.1
    done
  done
  pids=$(members)
  [ -n "$pids" ] || return 0
  kill -TERM $pids 2>/dev/null
  kill -CONT $pids 2>/dev/null
  for _ in 1 2 3 4 5; do
    pids=$(members)
    [ -n "$pids" ] || return 0
    sleep 0.1
  done
  kill -KILL $pids 2>/dev/null
}
{
  (
    # Its sleep dies with it and holds no pipe open.
    trap 'kill "$!" 2>/dev/null; exit 0' TERM
    while :; do
      sleep @TICK@ >/dev/null &
      wait "$!"
      echo 'TICK 0 * -'
    done
  ) &
  ticker=$!
  /bin/sh -c "echo \$\$; $filter" @FILTER@ "$me"
  kill -TERM "$ticker" 2>/dev/null
} | {
  trap : TERM
  running=
  quiet=0
  read -r filter
  printf '%s HELLO %s\n' "$t" "$me"
  while read -r verb id host body; do
    if [ "$verb" = TICK ]; then
      quiet=$((quiet + 1))
      [ "$quiet" -le @TICKS@ ] || kill -TERM "$filter" 2>/dev/null
      continue
    fi
    quiet=0
    [ "$host" = "$me" ] || continue
    case $id in '' | *[!0-9]*) continue ;; esac
    case $verb in
    RUN)
      left=
      for one in $running; do kill -0 "${one#*:}" 2>/dev/null && left="$left $one"; done
      setsid /bin/sh -c "$worker" @REQUEST@ "$t" "$id" "$body" </dev/null &
      running="$left $id:$!"
      ;;
    KILL)
      for one in $running; do
        [ "${one%%:*}" = "$id" ] || continue
        { end "${one#*:}"; printf '%s E %s\n' "$t" "$id"; } &
      done
      ;;
    esac
  done
  all=
  for one in $running; do all="$all ${one#*:}"; done
  [ -z "$all" ] || end $all
}
exit 0
"""

_LINE = re.compile(rb"(?:\s*[0-9]+: )?(?P<mark>[0-9a-f]{8}) (?P<rest>[ -~]+)\Z")
_LONGEST_LINE = 1 << 16


def agent_script() -> str:
    """The agent's text for ``/bin/sh -c TEXT slurmtop-agent MARK``."""
    text = _AGENT.replace("@WORKER@", _WORKER)
    for place, word in (
        ("@REQUEST@", REQUEST_NAME),
        ("@SCRIPT@", SCRIPT_NAME),
        ("@FILTER@", _FILTER_NAME),
        ("@TICK@", f"{SILENCE_S / _TICKS:g}"),
        ("@TICKS@", str(_TICKS)),
    ):
        text = text.replace(place, word)
    return text


def new_agent_mark() -> str:
    return secrets.token_hex(4)


def run_line(number: int, host: str, script: bytes) -> bytes:
    """The request that runs ``script`` on ``host``."""
    return b"RUN %d %s %s\n" % (number, host.encode(), base64.b64encode(script))


def kill_line(number: int, host: str) -> bytes:
    """The request that ends request ``number`` and what it started."""
    return b"KILL %d %s -\n" % (number, host.encode())


@dataclass(frozen=True, slots=True)
class Hello:
    """The agent of ``host`` serves requests."""

    host: str


@dataclass(frozen=True, slots=True)
class Lacks:
    """The agent of ``host`` cannot work: there is no ``tool``."""

    host: str
    tool: str


@dataclass(frozen=True, slots=True)
class Output:
    """A part of what request ``number`` printed."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    number: int


Said = Hello | Lacks | Output | Ended


@dataclass(slots=True)
class AgentReader:
    """Reads what agents say from chunks cut anywhere; what is no line of theirs is left out."""

    mark: str
    _buffer: bytes = b""

    def feed(self, chunk: bytes) -> list[Said]:
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        # A line without an end is none of ours.
        self._buffer = self._buffer[:_LONGEST_LINE]
        return [said for line in lines if (said := self._read(line)) is not None]

    def _read(self, line: bytes) -> Said | None:
        match = _LINE.match(line)
        if match is None or match["mark"] != self.mark.encode():
            return None
        words = match["rest"].decode("ascii").split(" ")
        try:
            match words:
                case ["HELLO", host]:
                    return Hello(host)
                case ["LACKS", host, tool]:
                    return Lacks(host, tool)
                case ["O", number, data]:
                    return Output(int(number), base64.b64decode(data, validate=True))
                case ["E", number]:
                    return Ended(int(number))
        except ValueError:
            return None
        return None
