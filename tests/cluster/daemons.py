"""Each daemon: how it is started, and how one sees that it answers."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import sys

from tests.cluster import gpus
from tests.cluster.confs import put
from tests.cluster.layout import (
    ACCOUNT,
    CLUSTER_NAME,
    DATABASE_PORT,
    NODES,
    SBIN_PATH,
    SLURMDBD_PORT,
    ClusterError,
    Layout,
    node_address,
)
from tests.cluster.procs import Record, spawn, wait_until
from tests.cluster.sealing import seal
from tests.cluster.spaces import ROOT_ENV, all_namespace_pids, command, login_record
from tests.cluster.standins.exporter import PORT as EXPORTER_PORT

CONTROL = ("mariadbd", "munged", "slurmdbd", "slurmctld")
HELPER = "faults"
#: Those whose children are all that people and jobs run on a node.
SEALED = ("slurmd", "sshd")
NODE_DAEMONS = ("slurmd", "sshd", gpus.ENGINE, "dcgm-exporter")


def record(layout: Layout, name: str) -> Record:
    """Pid file of a daemon; a node's are called NODE.DAEMON."""
    return Record(layout.run, name)


def slurm_env(layout: Layout) -> dict[str, str]:
    return {**ROOT_ENV, "SLURM_CONF": str(layout.slurm_conf)}


def _program(name: str) -> str:
    path = shutil.which(name, path=SBIN_PATH)
    if path is None:
        raise ClusterError(f"{name} is not installed")
    return path


def _login_pid(layout: Layout) -> int:
    pid = login_record(layout).pid
    if pid is None:
        raise ClusterError("the cluster is not up")
    return pid


def in_login(layout: Layout, *argv: str, deadline_s: float = 60) -> str:
    """Run a root command with the cluster's configuration on its login side."""
    pairs = ("env", f"SLURM_CONF={layout.slurm_conf}")
    return command(*pairs, *argv, inside=_login_pid(layout), deadline_s=deadline_s)


def answers(layout: Layout, *argv: str, want: str = "", deadline_s: float = 15) -> bool:
    """Whether a command on the login side ends well and prints ``want``."""
    try:
        return want in in_login(layout, *argv, deadline_s=deadline_s)
    except ClusterError:
        return False


def port_open(layout: Layout, host: str, port: int) -> bool:
    # bash alone opens a connection without any further package.
    return answers(layout, "timeout", "2", "bash", "-c", f": </dev/tcp/{host}/{port}")


def start_control(layout: Layout, name: str) -> None:
    """Start one daemon of the login side and wait until it answers."""
    entry = record(layout, name)
    if entry.pid is not None:
        return
    {
        "mariadbd": _start_database,
        "munged": _start_munged,
        "slurmdbd": _start_slurmdbd,
        "slurmctld": _start_slurmctld,
    }[name](layout, entry)
    wait_until(f"an answer of {name} (log: {layout.log})", lambda: healthy(layout, name), 60, 0.1)


def healthy(layout: Layout, name: str) -> bool:
    """Whether a daemon (``NAME`` or ``NODE.NAME``) lives and answers."""
    entry = record(layout, name)
    if entry.pid is None or entry.stopped:
        return False
    node, _, daemon = name.rpartition(".")
    if daemon == "sshd":
        return port_open(layout, node_address(node), 22)
    if daemon == "slurmd":
        return node_ready(layout, node)
    if daemon == "dcgm-exporter":
        return port_open(layout, node_address(node), EXPORTER_PORT)
    if daemon == gpus.ENGINE:
        return True
    if name == "munged":
        return answers(
            layout, "munge", f"--socket={layout.munge_socket}", "--no-input", "-o", "/dev/null"
        )
    if name == "mariadbd":
        return port_open(layout, "127.0.0.1", DATABASE_PORT)
    if name == "slurmdbd":
        return port_open(layout, "127.0.0.1", SLURMDBD_PORT)
    if name == "slurmctld":
        return answers(layout, "scontrol", "ping", want="is UP")
    return layout.fault_socket.exists()


def node_states(layout: Layout) -> dict[str, str]:
    """State of each node as sinfo's compact form, with its flag characters."""
    text = in_login(layout, "sinfo", "-h", "-N", "-o", "%N %t")
    return dict(line.split()[:2] for line in text.splitlines())


def node_ready(layout: Layout, node: str) -> bool:
    try:
        state = node_states(layout).get(node, "down")
    except ClusterError:
        return False
    return "*" not in state and not state.startswith(("down", "unk", "fail", "drain", "drng"))


def _start_database(layout: Layout, entry: Record) -> None:
    data = layout.database / "data"
    common = ["--no-defaults", f"--datadir={data}", "--user=mysql"]
    if not (data / "mysql").exists():
        in_login(
            layout,
            "mariadb-install-db",
            *common,
            "--auth-root-authentication-method=socket",
            "--skip-test-db",
            deadline_s=120,
        )
    spawn(
        entry,
        [
            _program("mariadbd"),
            *common,
            f"--socket={layout.database_socket}",
            f"--pid-file={layout.database}/mariadbd.own",
            "--bind-address=127.0.0.1",
            f"--port={DATABASE_PORT}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=256M",
            "--innodb-lock-wait-timeout=900",
            # Nothing here must survive a power cut: no disk flush for each job record.
            "--innodb-flush-log-at-trx-commit=0",
        ],
        layout.log / "mariadbd.log",
        ROOT_ENV,
        inside=_login_pid(layout),
    )
    wait_until("MariaDB's port", lambda: port_open(layout, "127.0.0.1", DATABASE_PORT), 60, 0.1)
    password = (layout.etc / "database.password").read_text()
    user = "'slurm'@'127.0.0.1'"
    statements = (
        f"CREATE USER IF NOT EXISTS {user}; ALTER USER {user} IDENTIFIED BY '{password}';"
        f"CREATE DATABASE IF NOT EXISTS slurm_acct_db; GRANT ALL ON slurm_acct_db.* TO {user};"
    )
    script = layout.etc / "database.sql"
    put(script, statements, 0o600)
    client = f"mariadb --no-defaults --user=root --socket={layout.database_socket} <{script}"
    in_login(layout, "sh", "-c", client)
    script.unlink()


def _start_munged(layout: Layout, entry: Record) -> None:
    user = pwd.getpwnam("munge")
    layout.munge_socket.unlink(missing_ok=True)

    def drop() -> None:
        os.initgroups("munge", user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)

    spawn(
        entry,
        [
            _program("munged"),
            "--foreground",
            f"--key-file={layout.etc}/munge.key",
            f"--socket={layout.munge_socket}",
            f"--pid-file={layout.munge_dir}/munged.own",
            f"--seed-file={layout.munge_dir}/munged.seed",
            "--num-threads=4",
            "--force",
        ],
        layout.log / "munged.log",
        ROOT_ENV,
        inside=_login_pid(layout),
        prepare=drop,
    )


def _start_slurmdbd(layout: Layout, entry: Record) -> None:
    argv = [_program("slurmdbd"), "-D"]
    spawn(entry, argv, layout.log / "slurmdbd.out", slurm_env(layout), inside=_login_pid(layout))


def _start_slurmctld(layout: Layout, entry: Record) -> None:
    argv = [_program("slurmctld"), "-D", "-f", str(layout.slurm_conf)]
    spawn(entry, argv, layout.log / "slurmctld.out", slurm_env(layout), inside=_login_pid(layout))


def add_accounts(layout: Layout) -> None:
    """Cluster, account and users of the accounting data base; repeating it changes nothing."""
    listed = in_login(layout, "sacctmgr", "-nP", "show", "assoc", "format=cluster,account,user")
    lines = set(listed.splitlines())
    if (
        CLUSTER_NAME
        not in in_login(layout, "sacctmgr", "-nP", "show", "cluster", "format=cluster").split()
    ):
        in_login(layout, "sacctmgr", "-i", "add", "cluster", CLUSTER_NAME)
    if f"{CLUSTER_NAME}|{ACCOUNT}|" not in lines:
        fields = ("Description=training", "Organization=tests")
        in_login(layout, "sacctmgr", "-i", "add", "account", ACCOUNT, *fields)
    for user in layout.users:
        if f"{CLUSTER_NAME}|{ACCOUNT}|{user}" not in lines:
            fields = (f"Account={ACCOUNT}", f"DefaultAccount={ACCOUNT}")
            in_login(layout, "sacctmgr", "-i", "add", "user", user, *fields)


def start_node_daemon(layout: Layout, node: str, daemon: str) -> None:
    """Start one daemon of a node without waiting for it."""
    entry = record(layout, f"{node}.{daemon}")
    if entry.pid is not None:
        return
    pid = all_namespace_pids(layout).get(node)
    if pid is None:
        raise ClusterError(f"{node} is not up")
    if daemon == "slurmd":
        argv = [_program("slurmd"), "-D", "-N", node, "-f", str(layout.slurm_conf)]
    elif daemon == gpus.ENGINE:
        argv = [str(layout.standins / daemon), "infinity"]
    elif daemon == "dcgm-exporter":
        argv = [str(layout.standins / daemon)]
    else:
        argv = [_program("sshd"), "-D", "-e", "-f", str(layout.etc / f"sshd_{node}.conf")]
    spawn(
        entry,
        argv,
        layout.log / f"{node}.{daemon}.out",
        slurm_env(layout),
        inside=pid,
        kinds=("pid", "net", "uts", "mnt"),
        prepare=seal if daemon in SEALED and layout.seal.exists() else None,
    )


def start_helper(layout: Layout) -> None:
    """The process that breaks things for tests that run as a normal user."""
    entry = record(layout, HELPER)
    if entry.pid is not None:
        return
    layout.fault_socket.unlink(missing_ok=True)
    env = {
        **slurm_env(layout),
        "PYTHONPATH": str(layout.source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SLURMTOP_CLUSTER_DIR": str(layout.root),
        "SLURMTOP_CLUSTER_USERS": ",".join(layout.users),
    }
    argv = [sys.executable, "-m", "tests.cluster.helper"]
    spawn(entry, argv, layout.log / "faults.log", env, inside=_login_pid(layout))
    wait_until("the fault helper's socket", layout.fault_socket.exists, 20)


def daemon_names() -> list[str]:
    """All daemons in the order in which they are started."""
    nodes = [f"{node}.{daemon}" for node in NODES for daemon in NODE_DAEMONS]
    return [*CONTROL, *nodes, HELPER]


def start_all(layout: Layout) -> None:
    """Start what is missing and continue what is stopped; wait until everything answers."""
    for name in daemon_names():
        entry = record(layout, name)
        if entry.stopped:
            entry.send(signal.SIGCONT)
    for name in CONTROL:
        start_control(layout, name)
        if name == "slurmdbd":
            add_accounts(layout)
    gpus.write_programs(layout)
    for node in NODES:
        pid = all_namespace_pids(layout).get(node)
        if pid is not None:
            gpus.show(layout, pid)
        for daemon in NODE_DAEMONS:
            start_node_daemon(layout, node, daemon)
    start_helper(layout)
    for node in NODES:
        resume_when_down(layout, node)
        wait_until(f"{node} to be ready", lambda node=node: node_ready(layout, node), 90, 0.2)  # type: ignore[misc]
        wait_until(f"sshd of {node}", lambda node=node: healthy(layout, f"{node}.sshd"), 20, 0.1)  # type: ignore[misc]


def resume_when_down(layout: Layout, node: str) -> None:
    """Take back a drain or a down that a test (or an earlier end) left behind."""
    state = node_states(layout).get(node, "")
    if state.startswith(("down", "drain", "drng", "fail")):
        with contextlib.suppress(ClusterError):
            in_login(layout, "scontrol", "update", f"NodeName={node}", "State=RESUME")
