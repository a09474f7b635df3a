"""Which program may read Python stacks on a node: ``py-spy``, found and checked there.

:data:`FRAGMENT` is part of a script of plain ``sh``; it defines ``stack_tools SUDO PIDS WORD…``,
which prints what ``parse/dumps/stack_tools.py`` reads. Looked at in this order: what the settings
name, what lies beside slurmtop's own Python (nodes mostly see the same file system), the system's
folders, and the folders that processes of the job have in their own ``PATH``.

What is run is the file behind all links, and only where it is a regular file for this machine, and
it and every folder down to it belong to root or to us and may be written to by nobody else. So
nobody else can put another file in its place, neither before nor after it was looked at. By root,
and through ``sudo``, only root's own files in root's own folders are run: a job's environment is
its user's.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from slurmtop.model.stacks import StackTool

TOOL = "py-spy"
_SYSTEM = (f"/usr/local/bin/{TOOL}", f"/usr/bin/{TOOL}")
#: The word of a setting that is for every machine.
ANY = "any"

#: ``tool_may_run PATH root|own|UID``: exit status 0, the file behind all links in ``$real``; else a
#: word in ``$why``. The second word is who will run it: root, who runs this, or the user UID.
#: Letters of a path that need quotes anywhere are not worth their risk.
CHECK = r"""
# Owner and mode; what the user's own group may do counts as what the user may do.
tool_rights() {
  set -- $(stat -c '%u %a %g' "$1" 2>/dev/null)
  [ $# = 3 ] || return
  case $3:$2 in "$tool_group":*[2367]?) echo "$1 ${2%??}5${2#"${2%?}"}";; *) echo "$1 $2";; esac
}
tool_may_run() {
  why=absent real=
  case $1 in *[!A-Za-z0-9/._+@~,=%-]*) why=name; return 1;; /*) ;; *) why=name; return 1;; esac
  # The first touch of a mount that may hang.
  real=$(timeout -k 1 2 readlink -f "$1" 2>/dev/null)
  [ -n "$real" ] && [ -e "$real" ] || return 1
  case $real in *[!A-Za-z0-9/._+@~,=%-]*) why=name; return 1;; esac
  [ -f "$real" ] || { why=kind; return 1; }
  [ -x "$real" ] || { why=mode; return 1; }
  tool_as=$2 tool_me=$2 tool_at=$real tool_group=-
  if [ "$2" = own ]; then
    tool_me=$(id -u); [ "$tool_me" = 0 ] && tool_as=root
    # A group of the user's own name is that of the user alone: its files are mostly open to it.
    [ "$(id -gn 2>/dev/null)" = "$(id -un 2>/dev/null)" ] && tool_group=$(id -g)
  fi
  set -- $(tool_rights "$real")
  [ $# = 2 ] || return 1
  why=owner
  [ "$1" = 0 ] || { [ "$tool_as" != root ] && [ "$1" = "$tool_me" ]; } || return 1
  why=writable
  case $2 in *[2367]?|*[2367]) return 1;; esac
  # Of what lies in a sticky folder (/tmp) nobody but its owner may put another in its place.
  why=folder
  while [ -n "$tool_at" ]; do
    tool_at=${tool_at%/*}
    set -- $(tool_rights "${tool_at:-/}")
    [ $# = 2 ] || return 1
    [ "$1" = 0 ] || { [ "$tool_as" != root ] && [ "$1" = "$tool_me" ]; } || return 1
    case $2 in [1357]???) ;; *[2367]?|*[2367]) return 1;; esac
  done
  why=machine
  set -- "$(uname -m):$(head -c 20 "$real" 2>/dev/null | od -An -v -tx1 | tr -d ' \n')"
  case $1 in
    x86_64:7f454c460201????????????????????????3e00) ;;
    aarch64:7f454c460201????????????????????????b700) ;;
    ppc64le:7f454c460201????????????????????????1500) ;;
    riscv64:7f454c460201????????????????????????f300) ;;
    s390x:7f454c460202????????????????????????0016) ;;
    i[3-6]86:7f454c460101????????????????????????0300) ;;
    arm*:7f454c460101????????????????????????2800) ;;
    *) return 1;;
  esac
  why=
}
""".strip()

#: SUDO: 1 where ``sudo -n`` may be tried. PIDS: processes of the job that do not wait in the
#: kernel, blanks between them; the first three count. Each WORD is ``any:/path`` or
#: ``aarch64:/path``. No tool and no ``timeout`` are both told.
FRAGMENT = (
    CHECK
    + r"""
stack_tools() {
  st_sudo=$1 st_pids=$2 st_own= st_root= st_arch=$(uname -m); shift 2
  # Where sudo runs this, the tool is still run by the one who asked: so it may be theirs.
  st_who=own st_as=
  case ${SUDO_UID:-0} in 0|*[!0-9]*) ;; *)
    if [ "$st_sudo" = 1 ] && [ "$(id -u)" = 0 ]; then
      st_who=$SUDO_UID; st_as="sudo -n -u #$SUDO_UID"
    fi;; esac
  command -v timeout >/dev/null 2>&1 || { echo 'stack-left - timeout'; return; }
  echo "stack-arch $st_arch"
  st_n=0
  for st_p in $st_pids; do
    st_n=$((st_n + 1)); [ $st_n -le 3 ] || break
    st_exe=$(timeout -k 1 2 readlink "/proc/$st_p/exe" 2>/dev/null)
    st_arg=$(timeout -k 1 2 head -c 4096 "/proc/$st_p/cmdline" 2>/dev/null | tr '\0' '\n' |
      head -n 1)
    st_path=$(timeout -k 1 2 head -c 131072 "/proc/$st_p/environ" 2>/dev/null | tr '\0' '\n' |
      grep -a '^PATH=/' | head -n 1)
    st_ifs=$IFS; IFS=:; set -f
    for st_d in ${st_arg%/*} ${st_exe%/*} ${st_path#PATH=}; do
      case $st_d in /*) [ $# -lt 64 ] && set -- "$@" "perhaps:$st_d/@TOOL@";; esac
    done
    IFS=$st_ifs; set +f
  done
  for st_c do
    case ${st_c%%:*} in any|perhaps|"$st_arch") ;; *) continue;; esac
    for st_how in own root; do
      if [ $st_how = own ]; then [ -z "$st_own" ] || continue
      else [ "$st_sudo" = 1 ] && [ -z "$st_root" ] || continue; fi
      if [ $st_how = own ]; then st_by=$st_who st_run=$st_as; else st_by=root st_run=; fi
      if ! tool_may_run "${st_c#*:}" $st_by; then
        # What was only guessed is not worth a word where it is not there.
        case $st_c$why in perhaps:*absent|perhaps:*name) ;;
          *name) echo "stack-left - name";;
          *) echo "stack-left ${st_c#*:} $why";; esac
        continue
      fi
      if [ $st_how = root ] && ! timeout -k 1 3 sudo -n -l "$real" >/dev/null 2>&1 </dev/null; then
        echo "stack-left $real sudo"; continue
      fi
      st_says=$(timeout -k 1 3 $st_run "$real" --version 2>/dev/null </dev/null |
        head -n 1 | head -c 60)
      case $st_says in
        *[!A-Za-z0-9.\ +-]*) st_says=;;
        '@TOOL@ '[0-9]*) ;;
        *) st_says=;;
      esac
      if [ -z "$st_says" ]; then echo "stack-left $real run"; continue; fi
      st_sum=$(timeout -k 1 5 sha256sum "$real" 2>/dev/null | cut -c1-64)
      echo "stack-tool $st_how $real ${st_says#* } ${st_sum:--}"
      if [ $st_how = own ]; then st_own=1; else st_root=1; fi
    done
  done
  echo stack-end
}
""".replace("@TOOL@", TOOL).rstrip()
)


def tool_words(configured: Sequence[tuple[str, str]] = ()) -> tuple[str, ...]:
    """The WORDs for :data:`FRAGMENT`, best first: what the settings name (pairs of a machine, or
    ``any``, and a path), what lies beside slurmtop's own Python, and the system's folders.
    """
    words = [f"{machine}:{path}" for machine, path in configured]
    beside = Path(sys.executable).parent / TOOL if sys.executable else None
    if beside is not None and beside.is_absolute():
        words.append(f"{ANY}:{beside}")
    words += [f"{ANY}:{path}" for path in _SYSTEM]
    return tuple(dict.fromkeys(words))


def first_tools(tools: Sequence[StackTool]) -> tuple[StackTool | None, StackTool | None]:
    """The best tool that is run as oneself, and the best that is run through ``sudo``."""
    own = next((tool for tool in tools if not tool.sudo), None)
    return own, next((tool for tool in tools if tool.sudo), None)
