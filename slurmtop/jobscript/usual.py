"""What scripts run on the side, and that is over at once: a trap need not wait long for it."""

import re
from collections.abc import Sequence

from slurmtop.jobscript.options import words_of
from slurmtop.jobscript.shell import Word

_BUILTINS = words_of(
    """
    : . alias bg break builtin caller cd command compgen complete continue declare dirs disown
    echo enable eval exec exit export false getopts hash help history jobs kill let local logout
    mapfile popd printf pushd pwd readarray readonly return set shift shopt source suspend test [
    times trap true type typeset ulimit umask unalias unset wait
    """
)
_SHORT = words_of(
    """
    awk basename cat chgrp chmod chown column conda cp cut date df dirname du envsubst expr
    find free gawk git grep egrep fgrep head hostname hostnamectl id install ln logger ls lscpu
    mamba md5sum micromamba mkdir mkfifo mktemp ml module mv nproc nvidia-smi pgrep pkill printenv
    ps readlink realpath rm rmdir sacct sacctmgr sbatch scancel scontrol sdiag sed seq
    sha256sum sinfo sort spack sprio squeue sshare sstat stat sync tail tee touch tr truncate
    uname uniq uptime wc whereis which whoami
    """
)
_FOLLOWS = re.compile(r"-[a-zA-Z0-9]*[fF]|--follow|--pid|--retry")
_FILES = re.compile(
    r"(?:^|/)(?:activate|deactivate|conda\.sh|mamba\.sh|micromamba\.sh|modules\.sh|lmod\.sh)$"
    r"|^/etc/profile(?:$|\.d/)|/init/(?:bash|sh|profile)$"
)
_HOOK = re.compile(
    r"""^["']?\$\(\s*(?:[\w./${}~-]*/)?(?:conda|mamba|micromamba|pyenv|ssh-agent|modulecmd)\b"""
    r"[^;|&()`]*\)$"
)


def is_usual(words: Sequence[Word]) -> bool:
    """Is it a command that no script runs for its own sake, and that does not wait?"""
    first = words[0]
    if not first.literal:
        return False
    name = first.text.rsplit("/", 1)[-1]
    if name == "tail" and any(_FOLLOWS.match(word.text) for word in words[1:]):
        return False
    if name == "sbatch" and any(word.text in ("-W", "--wait") for word in words[1:]):
        return False
    if name == "env":
        return len(words) == 1
    return name in _SHORT or first.text in _BUILTINS


def reads_known_file(path: str) -> bool:
    """``source …/bin/activate``, ``. /etc/profile.d/modules.sh``: files that set no trap."""
    return bool(_FILES.search(path))


def sets_up_known_program(text: str) -> bool:
    """``eval "$(conda shell.bash hook)"``: text that sets no trap."""
    return bool(_HOOK.search(text.strip().strip('"')))
