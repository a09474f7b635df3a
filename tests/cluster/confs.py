"""Texts of the configuration files."""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import stat
from pathlib import Path

from tests.cluster.layout import (
    CLUSTER_NAME,
    CRED_EXPIRE_S,
    DATABASE_PORT,
    GPUS_PER_NODE,
    LOGIN,
    LOGIN_ADDRESS,
    NODES,
    SLURMCTLD_PORT,
    SLURMD_PORT,
    SLURMDBD_PORT,
    Layout,
    node_address,
)

#: How long the controller remembers an ended job: Slurm's own default.
MIN_JOB_AGE_S = 300
#: How long a node may be silent before it is DOWN. Slurm's default is 300 s.
SLURMD_TIMEOUT_S = 30
NODE_RANGE = f"{NODES[0][:-2]}[{NODES[0][-2:]}-{NODES[-1][-2:]}]"


def slurm_conf(
    layout: Layout,
    *,
    min_job_age_s: int = MIN_JOB_AGE_S,
    slurmd_timeout_s: int = SLURMD_TIMEOUT_S,
) -> str:
    """slurm.conf; the values are those of shared experience with one-machine clusters."""
    return f"""\
# Written by tests/cluster at every `up`.
ClusterName={CLUSTER_NAME}
SlurmctldHost={LOGIN}({LOGIN_ADDRESS})
SlurmUser=slurm
SlurmctldPort={SLURMCTLD_PORT}
SlurmdPort={SLURMD_PORT}
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket},cred_expire={CRED_EXPIRE_S}
CredType=cred/munge
StateSaveLocation={layout.spool}/slurmctld
SlurmdSpoolDir={layout.spool}/%n
SlurmctldPidFile={layout.run}/slurmctld.own
SlurmdPidFile={layout.spool}/%n/slurmd.own
SlurmctldLogFile={layout.log}/slurmctld.log
SlurmdLogFile={layout.log}/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
# Nodes are name spaces of one machine: no cgroup may be made for their jobs.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
MpiDefault=none
# More CPUs and memory than there are.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout={slurmd_timeout_s}
KillWait=5
# A step that ends while a test silences the controller cannot say so; its nodes stay in use.
UnkillableStepTimeout=600
MinJobAge={min_job_age_s}
# A name of a test that reads as the id of another job must be no job.
FirstJobId=1001
MaxJobCount=60000
MaxArraySize=20001
JobRequeue=1
SchedulerType=sched/backfill
# Short cycles, but few jobs tried in each: 20,000 pending jobs must not keep the controller busy.
SchedulerParameters=sched_interval=5,bf_interval=5,bf_max_job_test=300,bf_continue,\\
default_queue_depth=200,batch_sched_delay=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={SLURMDBD_PORT}
# With munge this "password" is the socket; AuthInfo is not asked for this connection.
AccountingStoragePass={layout.munge_socket}
AccountingStorageTRES=gres/gpu,gres/gpu:h100
AccountingStoreFlags=job_script,job_comment,job_env
NodeName={NODE_RANGE} Sockets=2 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=1024000 \\
Gres=gpu:h100:{GPUS_PER_NODE} State=UNKNOWN
PartitionName=gpu Nodes={NODE_RANGE} Default=YES MaxTime=7-00:00:00 DefaultTime=01:00:00 \\
PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=low Nodes={NODE_RANGE} MaxTime=7-00:00:00 DefaultTime=01:00:00 \\
PriorityTier=1 PreemptMode=REQUEUE State=UP
"""


def slurmdbd_conf(layout: Layout, password: str) -> str:
    return f"""\
# Written by tests/cluster at every `up`.
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={SLURMDBD_PORT}
SlurmUser=slurm
LogFile={layout.log}/slurmdbd.log
PidFile={layout.run}/slurmdbd.own
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={DATABASE_PORT}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


def gres_conf(layout: Layout) -> str:
    files = f"{layout.devices}/nvidia[0-{GPUS_PER_NODE - 1}]"
    return f"NodeName={NODE_RANGE} Name=gpu Type=h100 File={files}\n"


def cgroup_conf() -> str:
    # Where no cgroup file system is mounted autodetection fails, so the kind is named.
    return "CgroupPlugin=cgroup/v1\n"


def hosts(_layout: Layout) -> str:
    lines = ["127.0.0.1 localhost", f"{LOGIN_ADDRESS} {LOGIN}"]
    lines += [f"{node_address(node)} {node}" for node in NODES]
    return "\n".join(lines) + "\n"


def sshd_config(
    layout: Layout,
    node: str,
    *,
    other_host_key: bool = False,
    refuse: bool = False,
    root: bool = False,
) -> str:
    """A node's sshd; with another host key than users know, or refusing every user's key, or
    letting root in by key."""
    key = "ssh_{}_other_ed25519_key" if other_host_key else "ssh_{}_ed25519_key"
    refusal = "AuthorizedKeysFile none\n" if refuse else ""
    people = ("root", *layout.users) if root else layout.users
    return f"""\
Port 22
ListenAddress {node_address(node)}
HostKey {layout.etc}/{key.format(node)}
{refusal}\
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin {"prohibit-password" if root else "no"}
AllowUsers {" ".join(people)}
PrintMotd no
MaxStartups 200
MaxSessions 200
# A real node has its configuration in /etc/slurm; here the variable stands for that.
SetEnv SLURM_CONF={layout.slurm_conf}
Subsystem sftp internal-sftp
"""


def put(path: Path, text: str | bytes, mode: int = 0o644, owner: str = "root") -> None:
    """Write a whole file that never is readable by more people than ``mode`` says."""
    entry = pwd.getpwnam(owner)
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(text if isinstance(text, bytes) else text.encode())
        os.fchown(stream.fileno(), entry.pw_uid, entry.pw_gid)
        os.fchmod(stream.fileno(), mode)
    temporary.replace(path)


def folder(path: Path, mode: int = 0o755, owner: str = "root") -> None:
    path.mkdir(exist_ok=True)
    entry = pwd.getpwnam(owner)
    os.chown(path, entry.pw_uid, entry.pw_gid)
    path.chmod(mode)


def secret(path: Path, size: int, owner: str, *, text: bool = False) -> bytes:
    """A key that stays the same from one `up` to the next."""
    if not path.exists():
        put(
            path,
            secrets.token_hex(size).encode() if text else secrets.token_bytes(size),
            0o400,
            owner,
        )
    return path.read_bytes()


def write_all(layout: Layout) -> None:
    """All folders and files that need no running daemon."""
    for path in (layout.etc, layout.run, layout.log, layout.devices, layout.spool, layout.source):
        folder(path)
    folder(layout.shared, 0o1777)
    folder(layout.munge_dir, 0o755, "munge")
    folder(layout.database, 0o755, "mysql")
    folder(layout.spool / "slurmctld", 0o755, "slurm")
    for node in NODES:
        folder(layout.spool / node)
    # slurmctld and slurmdbd open their logs and pid files as user slurm.
    slurm_group = grp.getgrnam("slurm").gr_gid
    for path in (layout.log, layout.run):
        os.chown(path, 0, slurm_group)
        path.chmod(0o775)
    for number in range(GPUS_PER_NODE):
        device = layout.devices / f"nvidia{number}"
        if not device.is_char_device():
            device.unlink(missing_ok=True)
            # slurmd wants a character device; these are the null device by another name.
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    secret(layout.etc / "munge.key", 1024, "munge")
    password = secret(layout.etc / "database.password", 16, "root", text=True).decode()
    put(layout.slurm_conf, slurm_conf(layout))
    put(layout.etc / "gres.conf", gres_conf(layout))
    put(layout.etc / "cgroup.conf", cgroup_conf())
    put(layout.etc / "slurmdbd.conf", slurmdbd_conf(layout, password), 0o600, "slurm")
    put(layout.etc / "hosts", hosts(layout))
    for node in NODES:
        put(layout.etc / f"sshd_{node}.conf", sshd_config(layout, node))
