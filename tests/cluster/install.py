"""What must be on the machine, and whether the cluster can be made here at all."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

from tests.cluster.layout import SBIN_PATH, CannotRun, ClusterError, Layout
from tests.cluster.procs import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    namespace_of,
    read_stat,
    unshare,
)

PACKAGES = (
    "slurm-wlm",
    "slurmdbd",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
    "openssh-server",
    "openssh-client",
    "iproute2",
    "sudo",
    "tmux",
    "python3-venv",
    "ca-certificates",
    # Login shells and a small userland, as nodes may have them.
    "busybox",
    "fish",
    "ksh",
    "tcsh",
    "zsh",
)
PROGRAMS = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "sbatch",
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "sshd",
    "ssh-keygen",
    "ip",
    "nsenter",
    "sudo",
    "useradd",
    "busybox",
    "fish",
    "ksh",
    "tcsh",
    "zsh",
)
POLICY = Path("/usr/sbin/policy-rc.d")


def require_root_on_debian() -> None:
    """Namespaces and daemons need root; the package names are Debian's."""
    if os.geteuid() != 0:
        raise CannotRun("only root can make the cluster")
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    family = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    if "debian" not in family:
        raise CannotRun("this is not Debian, whose packages and paths the cluster is made of")


def missing_programs() -> list[str]:
    """Programs the cluster needs and this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=SBIN_PATH) is None]


def _has_venv() -> bool:
    """Whether the system's interpreter can make environments with pip in them."""
    argv = ["/usr/bin/python3", "-c", "import ensurepip"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def install() -> None:
    """Install the packages that lack, without letting any daemon start."""
    require_root_on_debian()
    if not missing_programs() and _has_venv():
        return
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": SBIN_PATH}
    saved = POLICY.read_bytes() if POLICY.exists() else None
    mode = stat.S_IMODE(POLICY.stat().st_mode) if saved is not None else 0
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    lock = "DPkg::Lock::Timeout=300"
    try:
        for command in (
            ["apt-get", "-o", lock, "-q", "update"],
            ["apt-get", "-o", lock, "-qy", "--no-install-recommends", "install", *PACKAGES],
        ):
            if subprocess.run(command, env=env, check=False).returncode != 0:
                raise CannotRun(f"{' '.join(command[:1] + command[3:5])} failed, see above")
    finally:
        if saved is None:
            POLICY.unlink(missing_ok=True)
        else:
            POLICY.write_bytes(saved)
            POLICY.chmod(mode)


def require_programs() -> None:
    missing = missing_programs()
    if missing:
        raise CannotRun(
            f"not installed: {', '.join(missing)} (python3 -m tests.cluster install adds them)"
        )


def require_namespaces() -> None:
    """Try what the cluster does, in a child that then goes away."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET)
            # Inside a chroot "/" is no mount point and this fails.
            done = subprocess.run(
                ["mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise OSError(done.stderr.strip() or "mount --make-rprivate / failed")
            done = subprocess.run(
                ["ip", "link", "add", "try0", "type", "bridge"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise OSError(done.stderr.strip() or "no bridge can be made")
            # Last, for after the first child of a pid namespace has ended no other can be made.
            unshare(CLONE_NEWPID)
        except OSError as error:
            os.write(write_end, str(error).replace("\n", " ").encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    if problem:
        raise CannotRun(f"namespaces cannot be made here ({problem})")


def require_no_other_slurm(own_pids: set[int], own_pid_namespaces: set[str]) -> None:
    """Never run beside a Slurm that somebody uses."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own_pids:
            continue
        try:
            name = (entry / "comm").read_text().strip()
            if name not in ("slurmctld", "slurmd", "slurmdbd") or not read_stat(int(entry.name)):
                continue
            namespace = namespace_of(entry.name, "pid")
        except OSError:
            continue
        if namespace not in own_pid_namespaces:
            raise CannotRun(
                f"{name} (pid {entry.name}) is running here and is not this cluster's own"
            )
    if Path("/etc/slurm/slurm.conf").exists() and _answers():
        raise CannotRun("/etc/slurm/slurm.conf belongs to a Slurm that is in use")


def _answers() -> bool:
    """Whether the machine's own Slurm answers; when in doubt, yes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    try:
        done = subprocess.run(
            ["scontrol", "ping"], env=env, capture_output=True, text=True, timeout=15, check=False
        )
    except FileNotFoundError:
        return False
    except subprocess.TimeoutExpired:
        return True
    return "UP" in done.stdout


def claim(layout: Layout) -> None:
    """Make the state directory, or refuse one that holds somebody else's files."""
    root = layout.root
    if root.is_symlink():
        raise CannotRun(f"{root} is a symbolic link")
    if root.exists() and not layout.marker.exists() and any(root.iterdir()):
        raise CannotRun(f"{root} exists and is not this cluster's directory")
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    layout.marker.write_text(
        "Made by python3 -m tests.cluster; `down --purge` deletes this folder.\n"
    )
    for parent in root.parents:
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(
                f"{parent} cannot be entered by normal users; choose another directory"
            )
