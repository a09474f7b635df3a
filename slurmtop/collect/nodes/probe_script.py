"""The script that looks at one node for one job: ``slurmtop-probe``, one round trip of ``sh``.

It is made of the pieces of the scripts that read processes, GPUs and the kernel log, and of awk
programs of its own. ``parse/dumps/node_probe.py`` reads what it prints and shows the form.

What may never come back does not hold up the rest. It runs in the background, at the head of a
pipe, and who stands at the end of the pipe waits for a while and no longer::

    ( slow & ) | { the rest; timeout 3 cat; }

So the tools of the GPUs, the kernel log and the ports cost nothing but their own answer, and so
does the memory (environment, command line, maps) of processes that wait in the kernel. What is
left behind then ends by its own limit; where an earlier look still waits in the kernel, no other
one is sent after it. On a node without a ``timeout`` command the GPUs are not asked.
"""

from slurmtop.collect.nodes import gpu_script, kernel, process_script
from slurmtop.collect.nodes.stack_tools import FRAGMENT as STACK_TOOLS
from slurmtop.parse.gpu.compute_apps import APP_FIELDS
from slurmtop.parse.gpu.fields import CORE_FIELDS

#: Words of the kernel that may have to do with a job that stands still or died: memory, crashes,
#: GPUs, links, tasks that hang, file systems, broken machines.
KERNEL_WORDS = "|".join(
    (
        "Out of memory|oom-kill|oom_reaper|Killed process|out of memory",
        "segfault at|general protection|traps: |trap invalid opcode|BUG: |kernel BUG",
        "NVRM|nvidia-nvswitch|SXid",
        "mlx[45]|hfi1|bnxt_|irdma|cxi[_0-9]|[Ll]ink is |[Ll]ink (up|down)|NIC Link",
        "blocked for more than|hung_task|soft lockup|hard LOCKUP|rcu.*stall|I/O error",
        "nfs: |NFS: |nfs4|[Ll]ustre|LNet|ceph|mmfs|GPFS|[Bb]ee[Gg][Ff][Ss]",
        "Hardware Error|[Mm]achine [Cc]heck|mce: |EDAC|AER: |Remounting filesystem read-only",
    )
)

_VALUES = {
    "@WORDS@": KERNEL_WORDS,
    "@LINES@": "60",
    "@CHARS@": "400",
    "@FIELDS@": ",".join(CORE_FIELDS),
    "@APPS@": ",".join(APP_FIELDS),
    # Hundredths of a second: between the two readings of all counters, and from the start of the
    # script until it waits no longer for what runs in the background.
    "@APART@": "40",
    "@PATIENCE@": "250",
    # Threads told of one process, and of all of them.
    "@THREADS@": "48",
    "@ALL_THREADS@": "3072",
    # Processes whose maps are searched for libraries, and copies of one that are looked at.
    "@MAPPED@": "128",
    "@COPIES@": "4",
}

_BEGIN = r"""
now() { read -r up idle </proc/uptime; up=${up%.*}${up#*.}; up=${up#0}; }
now; begun=$up
echo 'slurmtop-probe 1'
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin; TZ=UTC; export PATH TZ
# Are the pids here those that the kernel log names?
echo "M pids $(readlink /proc/self/ns/pid 2>/dev/null)"
job=$1 sudo=$2; shift; [ $# = 0 ] || shift; words="$*"; set -- "$job"
""".strip()

#: Which file of which process a record is of: ``p``, ``file`` and, of a thread, ``tid``; and what a
#: process does: counters, where it waits, its threads.
_AWKS = r"""
which='
NR % 2 {
  n = split($0, at, "/"); p = at[1]; file = at[n]; tid = n > 2 ? at[3] : ""; kind = ""
  if (phase == 1) kind = file == "stat" ? "S" : file == "status" ? "U" : file == "cgroup" ? "C" : ""
}'
does='
function parts(s,   n) {
  n = match(s, /\)[^)]*$/); head = substr(s, 1, n - 1); split(substr(s, n + 2), g, " ")
  head = substr(head, index(head, "(") + 1)
}
NR % 2 { next }
tid != "" {
  if (file == "wchan") { print "h", p, tid, substr($0, 1, 80); next }
  parts($0); printf "H %s %s %s %.0f %s\n", p, tid, g[1], g[12] + g[13], substr(head, 1, 15); next
}
file == "stat" { parts($0); printf "B %s %s %s %s %.0f\n", p, phase, g[20], g[1], g[12] + g[13] }
file == "wchan" { print "W", p, substr($0, 1, 80) }
file == "io" {
  split("", v); n = split($0, l, "\001")
  for (i = 1; i <= n; i++) { split(l[i], g, ": "); v[g[1]] = g[2] }
  print "J", p, phase, v["rchar"], v["wchar"], v["read_bytes"], v["write_bytes"]
}
file == "status" {
  switches = 0; told = ""; tracer = "-"; n = split($0, l, "\001")
  for (i = 1; i <= n; i++) {
    split(l[i], g)
    if (g[1] ~ /^(non)?voluntary_ctxt_switches:$/) { switches += g[2]; told = 1 }
    if (g[1] == "TracerPid:") tracer = g[2]
  }
  printf "V %s %s %s %s\n", p, phase, told ? sprintf("%.0f", switches) : "-", tracer
}'
# A call and its first argument, where that may be the number of an open file.
calls='NR % 2 { p = $0; sub(/\/.*/, "", p); next }
  { sub(/\001$/, ""); fd = $2 ~ /^0x[0-9a-f]+$/ && length($2) < 7 ? $2 : "-"
    print "Y", p, $1, fd }'
links='{ n = index($0, " -> "); if (!n) next
  k = split(substr($0, 1, n - 1), w, " "); p = w[k]; sub(/\/.*/, "", p)
  print "L", p, hide(substr($0, n + 4, 400)) }'
# Where the memory of each is counted, and once each folder that is worth a look.
groups='NR % 2 { p = $0; sub(/\/.*/, "", p); next }
  { base = path = ""; n = split($0, l, "\001")
    for (i = 1; i <= n; i++) {
      if (!match(l[i], /^[0-9]+:[^:]*:/)) continue
      kinds = substr(l[i], 1, RLENGTH); at = substr(l[i], RLENGTH + 1)
      if (kinds ~ /[:,]memory[:,]/) { base = "/sys/fs/cgroup/memory"; path = at; break }
      if (kinds ~ /^0::/) { base = "/sys/fs/cgroup"; path = at }
    }
    if (path == "/" || path !~ /^\/[A-Za-z0-9\/._:@,=+-]+$/ || path ~ /\.\./) next
    if (match(path, /\/job_[0-9]+(\/|$)/)) {
      top = substr(path, 1, RSTART + RLENGTH - 1); sub(/\/$/, "", top)
      if (job != "" && top !~ ("/job_" job "$")) next
    } else top = path
    print "o", p, base, path
    if (!((base top) in seen) && ++dirs <= 64) { seen[base top] = 1; print "d", p, base top, "-" }
  }'
libs='{ p = $0; sub(/\/.*/, "", p); path = substr($0, index($0, ": ") + 2)
  if (path in seen || path ~ /[^ -~]/) next
  seen[path] = 1; lib = path ~ /libtorch/ ? "torch" : path ~ /rccl/ ? "rccl" : "nccl"
  if (copies[lib]++ < @COPIES@) print p, lib, path }'
# $1 a process, $2 a folder in which it has such a library (its own path, behind all links), then
# what the names of folders there begin with: the last one that fits. No file is opened: what lies
# there is the owner's, and we may be root. Nor is a link followed: the folder that we are in then
# must be called as it was. Run with a limit of time, and one of memory for a folder of millions.
beside='ulimit -v 262144 2>/dev/null
  cd "$1/root$2" 2>/dev/null && [ "$(readlink /proc/self/cwd)" = "$2" ] || exit 0
  shift; shift; found=
  for begin do for at in "$begin"*.dist-info "$begin"*.egg-info; do
    case $at in *[!A-Za-z0-9._+-]*) ;; *) found=$at ;; esac
  done; done
  printf %.100s "$found"'
""".strip()

#: The parts that run in the background.
_SLOW = (
    r"""
# The files $1 of the processes $2, one kind of file after the other.
files_of() {
  [ -n "${2# }" ] || return 0
  records $(for want in $1; do printf "%s/$want " $2; done)
}
slow() {
"""
    + kernel.READ
    + r"""
  if [ "$rc" = 0 ]; then
    printf '%s\n' "$text" | grep -aE '@WORDS@' | tail -n @LINES@ | cut -c1-@CHARS@ | sed 's/^/K /'
  else printf '%s\n' "$text" | head -n 1 | cut -c1-200 | sed 's/^/k /'; fi
  echo "F kernel $rc"
  nics 2>/dev/null | sed 's/^/I /'; echo 'F ports 0'
  python= n=0
  for p in $early; do
    { read -r name <"$p/comm"; } 2>/dev/null || continue
    case $name in python* | pt_* | torchrun*) python="$python $p"; n=$((n + 1)) ;; esac
    [ $n -lt 3 ] || break
  done
  set -f; set -- $words; set +f
  stack_tools "$sudo" "$python" "$@" | sed 's/^/X /'
}
gpus() {
  [ -n "$lim" ] || return 0
"""
    + "\n".join((gpu_script.SAY, gpu_script.LOOK, gpu_script.TOOL))
    + r"""
  known=; look
  if [ -n "$stuck" ]; then say open $stuck; say done; return 0; fi
  say part query
  tool timeout -k 1 3 nvidia-smi --query-gpu=@FIELDS@ --format=csv,noheader,nounits
  if [ "$rc" = 0 ]; then
    say part apps
    tool timeout -k 1 3 nvidia-smi --query-compute-apps=@APPS@ --format=csv,noheader,nounits
  fi
  say done
}
# Line by line: what was said before it hung is told.
gpu_lines() { gpus | while IFS= read -r row; do printf 'G %s\n' "$row"; done; }
# What needs the memory of a process: of one that waits in the kernel last, and one by one.
memory() {
  for kind in E A; do take $kind $([ $kind = E ] && echo environ || echo cmdline) "$early"; done
"""
    + process_script.USERS
    + r"""
  # The files of libraries lie where such a process may be waiting.
  [ -n "$late" ] || libraries
  held=
  for p in $late; do
    { read -r name <"$p/comm"; } 2>/dev/null || continue
    # Nobody else is likely to: what reads it is one of these.
    case $name in grep | tr) held=1 ;; esac
  done
  if [ -n "$held" ]; then echo 'F memory held'; return 0; fi
  for p in $late; do take E environ "$p"; take A cmdline "$p"; done
  echo 'F memory 0'
}
libraries() {
  set -- $early; while [ $# -gt @MAPPED@ ]; do shift; done
  [ $# -gt 0 ] || return 0
  $lim grep -asHoE ' /.*/lib(nccl|rccl|torch_cpu)[.-][^/]*$' $(printf '%s/maps ' "$@") |
    head -c 4194304 | awk "$libs" | while read -r p lib path; do
    case $path in
    /*/torch/lib/*) set -- "${path%/torch/lib/*}" torch- ;;
    /*/nvidia/nccl/*) set -- "${path%/nvidia/nccl/*}" nvidia_nccl ;;
    *) set -- ;;
    esac
    text=
    [ $# = 0 ] || text=$($lim sh -c "$beside" sh "$p" "$@" </dev/null)
    printf 'Q %s %s %s\001%s\n' "$p" "$lib" "$path" "$text"
  done
}
"""
)

# Counters first. What asks the kernel for more (io, syscall) may wait for a process that waits
# itself: it comes last, and a second time only where the first one was quick.
_MAIN = r"""
if [ -z "$lim" ]; then say limits none; else lim='timeout -k 1 2'; fi
pids="$*"; early=${pids%"$late"}
wait_for() {
  if [ -z "$lim" ]; then cat; else
    now; left=$(((begun + @PATIENCE@ - up + 99) / 100)); [ "$left" -ge 1 ] || left=1
    timeout -k 1 "$left" cat
  fi
  # Its last line may have been cut.
  echo
}
# Reads the files $2 of all, then $3 with care.
phase() {
  now; say "cs$1" "$up"; asked=$up
  { files_of "$2" "$pids"; files_of "$3" "$early"; } | awk -v phase="$1" "$4$does"
  [ -n "$quick" ] && [ -n "$late" ] || return 0
  now; since=$up
  files_of "$3" "$late" | awk -v phase="$1" "$4$does"
  now; [ $((up - since)) -lt 90 ] || quick=
}
threads() {
  all=0
  for p in $late $early; do
    set -- "$p/task/$p"
    for t in "$p"/task/[0-9]*; do
      # The main one need not come first: the shell sorts by letters.
      [ $# -lt @THREADS@ ] || break
      [ "$t" = "$p/task/$p" ] || set -- "$@" "$t"
    done
    all=$((all + $#)); [ $all -le @ALL_THREADS@ ] || return 0
    printf '%s ' "$@"
  done
}
open_files() {
  told=$(files_of syscall "$early" | awk "$calls")
  [ -n "$quick" ] && told="$told
$(files_of syscall "$late" | awk "$calls")"
  printf '%s\n' "$told"
  machine=$(uname -m); say arch "$machine"; found=
  set -- $told
  while [ $# -ge 4 ]; do
    if [ "$4" != - ]; then case $machine:$3 in
    x86_64:[018] | x86_64:1[6-9] | x86_64:20 | x86_64:4[02-7] | x86_64:7[2-8] | x86_64:217 | \
      x86_64:277 | x86_64:28[58] | x86_64:29[56] | x86_64:306 | x86_64:326 | \
      aarch64:25 | aarch64:29 | aarch64:32 | aarch64:4[67] | aarch64:6[1-9] | aarch64:7[01] | \
      aarch64:8[234] | aarch64:20[2367] | aarch64:21[12] | aarch64:242 | aarch64:267 | \
      aarch64:285) found="$found $2/fd/$(($4))" ;;
    esac; fi
    shift 4
  done
  [ -n "$found" ] || return 0
  # Only the link is read, and a line break in a name is none in what is told.
  if ls -lnq /proc/self >/dev/null 2>&1; then $lim ls -lnq $found 2>/dev/null
  else n=0; for f in $found; do
      n=$((n + 1)); [ $n -le 64 ] || break
      name=$(readlink "$f" 2>/dev/null) &&
        printf '%s -> %s\n' "$f" "$(printf '%s' "$name" | tr '\n' '?')"
    done
  fi | head -c 1048576 | awk "$hides$links"
}
memory_groups() {
  told=$(files_of cgroup "$pids" | awk -v job="$job" "$groups")
  printf '%s\n' "$told"
  set -- $told; found=
  while [ $# -ge 4 ]; do
    if [ "$1" = d ]; then
      for f in events current max oom_control usage_in_bytes limit_in_bytes; do
        found="$found $3/memory.$f"
        case $3 in */job_*)
          found="$found $3/*/memory.$f $3/*/*/memory.$f $3/*/*/*/memory.$f" ;;
        esac
      done
    fi
    shift 4
  done
  [ -z "$found" ] || $lim grep -asHE '^(oom_kill |[0-9]+$|max$)' $found | head -n 600 |
    sed 's/^/O /'
  echo 'F groups 0'
}
quick=1
first /sys/devices/system/cpu/online cpus
( slow & ) 2>/dev/null | {
  ( gpu_lines & ) 2>/dev/null | {
    phase 1 'stat status cgroup' io "$which$pick"
    ( memory & ) 2>/dev/null | {
      memory_groups
      now; rest=$((asked + @APART@ - up))
      if [ $rest -gt 9 ]; then sleep "0.$rest" 2>/dev/null || sleep 1
      elif [ $rest -gt 0 ]; then sleep "0.0$rest" 2>/dev/null || sleep 1; fi
      phase 2 'stat status wchan' io "$which"
      tasks=$(threads)
      [ -z "$tasks" ] || records $(printf '%s/stat ' $tasks; printf '%s/wchan ' $tasks) |
        awk -v phase=2 "$which$does"
      open_files
      wait_for
    }
    take T stat "$pids"
    wait_for
  }
  wait_for
}
now; say cs3 "$up"
echo end
""".strip()


def _made() -> str:
    parts = (
        _BEGIN,
        process_script.HEAD,
        process_script.PICK,
        process_script.TAKE,
        gpu_script.NICS,
        STACK_TOOLS,
        _AWKS,
        _SLOW.strip(),
        _MAIN,
    )
    script = "\n".join(parts)
    for mark, value in _VALUES.items():
        script = script.replace(mark, value)
    return script


#: ``$1``: the raw number of the job; ``$2``: 1 where tools may be run through ``sudo``; then the
#: words for the stack tools.
SCRIPT = _made()
