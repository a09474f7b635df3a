"""Another /etc/ssh on the cluster's login side: a site's known hosts, and host-based login.

A tmpfs over /etc/ssh in the login's own mount namespace; the machine's own folder stays as it is.
Run by the fault helper, as root.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster.confs import put
from tests.cluster.layout import LOGIN
from tests.cluster.spaces import command

ETC_SSH = Path("/etc/ssh")
_MARK = ETC_SSH / ".slurmtop-cluster"
#: Names, a kind and a key; nothing that another file could take for its own.
LINE = re.compile(r"(?:@[a-z-]+ )?[A-Za-z0-9.,:\[\]*|+/=_-]{1,300} [a-z0-9-]{1,40} [A-Za-z0-9+/=]+")
_NAMES = f"{LOGIN},localhost,127.0.0.1"


def open_etc_ssh(known_hosts: list[str]) -> None:
    """The site knows these host keys and its own, and trusts itself with host-based login."""
    for line in known_hosts:
        if not LINE.fullmatch(line):
            raise ValueError("known_hosts holds lines of a known-hosts file")
    settings = (ETC_SSH / "ssh_config").read_text()
    close_etc_ssh()
    command("mount", "-t", "tmpfs", "-o", "mode=755,size=1m", "tmpfs", str(ETC_SSH))
    put(_MARK, "")
    put(ETC_SSH / "ssh_config", settings + "\nHost *\n    EnableSSHKeysign yes\n")
    key = ETC_SSH / "ssh_host_ed25519_key"
    command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", LOGIN, "-f", str(key))
    public = key.with_suffix(".pub").read_text().split()[:2]
    lines = [*known_hosts, f"{_NAMES} {' '.join(public)}"]
    put(ETC_SSH / "ssh_known_hosts", "".join(f"{line}\n" for line in lines))
    put(ETC_SSH / "shosts.equiv", _NAMES.replace(",", "\n") + "\n")


def close_etc_ssh() -> None:
    """The machine's own /etc/ssh again."""
    if _MARK.exists():
        command("umount", "--lazy", str(ETC_SSH))
