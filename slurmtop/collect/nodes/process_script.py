"""The script that reads the processes of a node, in pieces that other scripts are made of as well.

Plain ``sh`` for dash, bash and busybox. :data:`HEAD` finds the pids: in ``"$@"``, of them in
``$late`` those that wait in the kernel; it defines ``say``, ``first`` and ``scan``, ``$lim`` is the
limit of time (empty where the node has no ``timeout``). :data:`PICK` is the awk program ``$pick``,
which alone decides what of a process leaves the node, over ``$hides``, which masks secrets;
:data:`TAKE` runs it over one file of each.
"""

from slurmtop.parse.mask import MARK

#: ``$1``: the raw number of a job, or empty.
HEAD = r"""
LC_ALL=C; export LC_ALL; job=$1
cd /proc || exit 3
say() { printf 'M %s %s\n' "$1" "$2"; }
first() { { IFS= read -r line <"$1"; } 2>/dev/null && printf 'M %s %s\n' "$2" "$line"; }
echo 'slurmtop-processes 1'
say self $$; say time "$(date +%s)"; first uptime uptime; say hz "$(getconf CLK_TCK 2>/dev/null)"
first sys/kernel/random/boot_id boot; first sys/kernel/yama/ptrace_scope ptrace
{ read -r line <1/stat; } 2>/dev/null || say hidden 1
me=$(id -u)
lim='timeout -k 1 4'; command -v timeout >/dev/null 2>&1 || lim=
one=$(printf 'a\0b\0' | grep -azsZH --line-buffered '^b' 2>/dev/null | tr '\0' '!')
# Each file of each process as two lines: its path, and what it holds with newlines as \001. A NUL
# is the one byte that no name, word or variable can hold, so none of them can forge a record.
# What a process shows there it may have made as long as it likes: nobody holds all of it in memory.
records() {
  [ $# -gt 0 ] || return 0
  if [ "$one" = '(standard input)!b!' ]; then
    ( ulimit -v 262144 2>/dev/null; $lim grep -azsZH --line-buffered '' "$@" ) |
      tr '\0\n' '\n\001' | head -c 33554432
  else
    # Before each file a line that nobody can know who was there before it.
    mark=; read -r mark </proc/sys/kernel/random/uuid; [ -n "$mark" ] || return 0
    for f do {
      printf '\0%s %s\0' "$mark" "$f"; $lim head -c 1048576 <"$f"
    } 2>/dev/null; done | tr '\0\n' '\n\001' | awk -v mark="$mark" '
      function out() { if (f != "" && held) { print f; print line } held = 0 }
      index($0, mark " ") == 1 {
        if (line != "") out()
        held = 0; f = substr($0, length(mark) + 2); next
      }
      { out(); line = $0; held = 1 }
      END { out() }'
  fi
}
scan() { want=$1; shift; [ $# = 0 ] || records $(printf "%s/$want " "$@"); }
own= n=0
for p in [0-9]*; do
  if [ "$me" != 0 ] && [ -O "$p" ]; then own="$own $p"; fi
  n=$((n + 1)); [ $n -lt 30000 ] || { say cut all; break; }
done
theirs=
if [ "$me" = 0 ] || [ -n "$job" ]; then
  theirs=$(grep -lsE "/job_${job:-[0-9]+}(/|\$)" [0-9]*/cgroup 2>/dev/null)
  theirs=$(printf '%s' "$theirs" | tr -s '/a-z\n' ' ')
fi
if [ "$me" = 0 ] && [ -z "$theirs" ] && ! grep -qsE '/job_[0-9]+(/|$)' [0-9]*/cgroup 2>/dev/null
then theirs=$(echo [0-9]*); fi
# Where Slurm keeps no cgroups, a job is what its slurmstepd has started, whoever it belongs to.
below='NR % 2 { next } { n = match($0, /\)[^)]*$/); split(substr($0, n + 2), f, " ")
  up[$1] = f[2] } END { n = split(roots, r, "[ \n]+")
  for (i = 1; i <= n; i++) { sub(/\/.*/, "", r[i]); if (r[i] != "") in_[r[i]] = 1 }
  do { more = 0; for (p in up) if (!(p in in_) && up[p] in in_) { in_[p] = 1; more = 1 }
  } while (more)
  for (p in in_) printf "%s ", p }'
if [ "$me" != 0 ] && [ -n "$job" ] && [ -z "$theirs" ]; then
  steps=
  for p in [0-9]*; do
    { read -r name <"$p/comm"; } 2>/dev/null || continue
    [ "$name" != slurmstepd ] || steps="$steps $p/cmdline"
  done
  [ -z "$steps" ] || steps=$(grep -lsa "^slurmstepd: \[$job\." $steps)
  [ -z "$steps" ] || theirs=$(scan stat [0-9]* | awk -v roots="$(echo $steps)" "$below")
fi
# Those that wait in the kernel come last: to read the memory of one may never return.
order='NR % 2 { next } { n = match($0, /\)[^)]*$/); split(substr($0, n + 2), f, " ")
  if (f[2] == 2 || $1 in seen) next
  seen[$1] = 1; if (f[1] == "D") late = late " " $1; else print $1 }
  END { print "late" late }'
all=$(scan stat $own $theirs $$ | awk "$order"); late=${all##*late}
set -- ${all%late*} $late
if [ $# -gt 4000 ]; then say cut some; while [ $# -gt 4000 ]; do shift; done; fi
""".strip()

PICK = r"""
hides='
function hide(s,   out) {
  if (s ~ SHAPES || s ~ /^[0-9a-f]+$/ && length(s) > 31) return MASK
  out = ""
  while (match(tolower(s), HEAD)) {
    out = out substr(s, 1, RSTART + RLENGTH - 1); s = substr(s, RSTART + RLENGTH)
    if (match(s, /^("[^"]*"?|[^ ;&"\001]+)/)) { out = out MASK; s = substr(s, RLENGTH + 1) }
  }
  return out s
}
function code(s,   i) {
  for (i = 1; i in SERVES; i++) if (index(s, SERVES[i])) return SERVES[i]
  return MASK
}
function module(s) { if (s ~ /^[A-Za-z0-9_.]+$/) return substr(s, 1, 240); return MASK }
BEGIN {
  MASK = "@MASK@"; c = "[A-Za-z0-9_.-]"; c = c c c c c c c c c c c c
  SHAPES = "(^|[^A-Za-z0-9])(hf_|gh[pousr]_|github_pat_|gl[a-z]+-|xox[a-z]-|xapp-|AKIA|ASIA|eyJ"
  SHAPES = SHAPES "|[srp]k[_-]|npm_|nvapi-|dapi|pypi-|wandb_v|AIza|ya29[.]|api_org_|SG[.])" c
  SHAPES = SHAPES "|://[^/@ ]*:[^/@ ]*@|[Bb]earer |[Bb]asic |[Aa]uthorization"
  BAD = "(key|key_id|token|secret|passw[a-z]*|passphrase|jwt|cookie|credentials?|[_-]pat|[_-]auth"
  BAD = BAD "|[_-]pass)"
  HEAD = "[a-z0-9_.-]*" BAD "\"? *[=:] *|-[a-z0-9_.-]*" BAD " +"
  n = "multiprocessing.spawn multiprocessing.forkserver multiprocessing.resource_tracker"
  n = n " multiprocessing.semaphore_tracker torch._inductor.compile_worker"
  split(n " torch/_inductor/compile_worker torch_shm_manager wandb-core wandb-service", SERVES, " ")
  RANK = "^--?(rank|(local|node)[_-]rank|nproc[_-]per[_-]node|nnodes|world[_-]size)(=|$)"
  KEEP = "^(((LOCAL_|GROUP_|ROLE_|NODE_)?(RANK|WORLD_SIZE))|ROLE_NAME|NNODES|NODE_RANK|MASTER_(ADDR"
  KEEP = KEEP "|PORT)|[A-Z]+_VISIBLE_DEVICES|(NCCL|RCCL|TORCH|TORCHELASTIC|GLOO|PALS|MV2_COMM_WORLD"
  KEEP = KEEP "|OMPI_COMM_WORLD|OMPI_UNIVERSE)_[A-Z0-9_]+|PMI_[A-Z]*(RANK|SIZE|ID)|PMIX_(RANK"
  KEEP = KEEP "|NAMESPACE)|SLURM_(JOB_ID|JOBID|STEP_ID|STEPID|PROCID|LOCALID|NODEID|NTASKS|NPROCS"
  KEEP = KEEP "|NNODES|STEP_NUM_TASKS|STEP_NUM_NODES|JOB_NUM_NODES|RESTART_COUNT|ARRAY_JOB_ID"
  KEEP = KEEP "|ARRAY_TASK_ID|HET_JOB_ID|HET_SIZE|HET_GROUP|JOB_NAME|STEP_GPUS|JOB_GPUS"
  KEEP = KEEP "|GPUS_ON_NODE|STEP_NODELIST|JOB_NODELIST|TASK_PID|CLUSTER_NAME))$"
}'
pick="$hides"'
function word(s) { print "A", p, s }
# What a Python runs: a module, a script, or a text of which only what is known is told.
function runs(s,   end) {
  if (due == "c") { word(code(s)); due = "" }
  else if (due == "m") { word(module(s)); due = "" }
  else if (due == "skip") due = "script"
  else if (s !~ /^-/) { word(hide(substr(s, 1, 240))); due = "" }
  else if (s ~ /^-[bBdEhiIOPqsSuvVx]+$/ || s == "--") return
  else if (s == "--check-hash-based-pycs") due = "skip"
  else if (match(s, /^-[bBdEhiIOPqsSuvVx]*[cmWX]/)) {
    end = substr(s, RLENGTH, 1); s = substr(s, RLENGTH + 1)
    if (end ~ /[WX]/) { if (s == "") due = "skip"; return }
    word("-" end); due = end; if (s != "") runs(s)
  } else due = ""
}
NR % 2 { p = $0; sub(/\/.*/, "", p); if (p != was) { was = p; words = 0
  if (kind == "E") print "R", p }; next }
kind == "S" || kind == "T" {
  n = match($0, /\)[^)]*$/); split(substr($0, n + 2), f, " ")
  if (kind == "T") { print "T", p, f[20]; next }
  head = substr($0, 1, n - 1); print "S", p, f[20], f[2], f[1], substr(head, index(head, "(") + 1)
}
kind == "U" {
  uid = caught = ignored = threads = inner = "-"
  n = split($0, l, "\001")
  for (i = 1; i <= n; i++) {
    m = split(l[i], f)
    if (f[1] == "Uid:") uid = f[2]
    else if (f[1] == "SigCgt:") caught = f[2]
    else if (f[1] == "SigIgn:") ignored = f[2]
    else if (f[1] == "Threads:") threads = f[2]
    else if (f[1] == "NSpid:") { inner = f[2]; for (j = 3; j <= m; j++) inner = inner "," f[j] }
  }
  print "U", p, uid, caught, ignored, threads, inner
}
kind == "C" {
  n = split($0, l, "\001")
  for (i = 1; i <= n; i++) if (l[i] ~ /\/job_[0-9]+/) { print "C", p, substr(l[i], 1, 400); break }
}
kind == "A" {
  words++; text = $0
  if (words == 1) {
    due = asked = last = before = ""
    # A program may have written any title over its own name.
    if (text ~ /^(Apptainer|Singularity) runtime parent/) sub(/ parent.*/, " parent", text)
    else if (text ~ /^slurmstepd: \[[0-9]+\.[a-z0-9+]+\]/) sub(/\].*/, "]", text)
    else { sub(/[ \001=?&;{"].*/, "", text); text = hide(substr(text, 1, 240)) }
    word(text); sub(/.*\//, "", text); sub(/^-/, "", text)
    python = text ~ /^(python|pypy)[0-9.]*[td]?$/; if (python) due = "script"
    next
  }
  if (words > 400) next
  if (due != "") { runs(text); next }
  if (asked != "" && text ~ /^[0-9]+$/ && length(text) < 8) word(asked "=" text)
  asked = ""
  if (text ~ RANK) {
    n = index(text, "="); value = substr(text, n + 1)
    if (!n) asked = text; else if (value ~ /^[0-9]+$/ && length(value) < 8) word(text)
  }
  # By these two slurmtop knows itself and a batch script.
  if (!python && words < 9 && before == "-c" && text ~ /^slurmtop-[a-z]+$/) {
    word("-c"); word(MASK); word(text)
  }
  if (!python && words < 4 && text ~ /\/slurm_script$/) word("slurm_script")
  before = last; last = text
}
kind == "E" {
  n = index($0, "="); name = substr($0, 1, n - 1)
  if (name !~ KEEP || words++ > 60) next
  text = hide(substr($0, n + 1))
  if (tolower(name) ~ BAD && name != "NCCL_IB_PKEY") text = MASK
  print "E", p, name "=" substr(text, 1, 300)
}'
""".strip().replace("@MASK@", MARK.decode())

#: ``take KIND FILE PIDS``
TAKE = r"""
take() { scan "$2" $3 | awk -v kind="$1" "$pick"; }
""".strip()

#: The names of the users that the processes in ``$pids`` belong to.
USERS = r"""
uids=$(scan status $pids | tr '\001' '\n' | grep -a '^Uid:' | cut -f2 | sort -u | head -n 50)
$lim getent passwd $uids 2>/dev/null | cut -d: -f1,3 | tr ':' ' ' | while read -r name uid; do
  echo "N $uid $name"; done
""".strip()

_PASSES = r"""
pids="$*"
take S stat "$pids"; take U status "$pids"; take C cgroup "$pids"
take E environ "$pids"; take A cmdline "$pids"; take T stat "$pids"
""".strip()

#: All of it, as ``slurmtop-processes``.
SCRIPT = "\n".join((HEAD, PICK, TAKE, _PASSES, USERS, "echo end"))
