"""The fault helper: a root process that breaks things for tests, and mends them.

It speaks JSON lines on a unix socket, one request and one answer a line, and
knows a fixed set of commands.  Only root and the cluster's users are served;
the kernel says who is at the other end.
"""

from __future__ import annotations

import json
import pwd
import re
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

from tests.cluster.confs import (
    MIN_JOB_AGE_S,
    SLURMD_TIMEOUT_S,
    put,
    slurm_conf,
    sshd_config,
)
from tests.cluster.daemons import (
    NODE_DAEMONS,
    SEALED,
    healthy,
    in_login,
    node_states,
    record,
    start_all,
    start_control,
    start_node_daemon,
)
from tests.cluster.gpus import ENGINE, mend, set_state
from tests.cluster.hanging import answer_again, hang
from tests.cluster.inside import (
    end_sessions,
    job_processes,
    outer_pid,
    processes_of,
    send_all,
)
from tests.cluster.layout import BRIDGE, NODES, CannotRun, ClusterError, Layout, load_layout
from tests.cluster.login_ssh import close_etc_ssh, open_etc_ssh
from tests.cluster.memory import lift_limits, limit_memory, oom_kills
from tests.cluster.procs import wait_until
from tests.cluster.rights import Rights, forget_others, keep_root_out, set_sudo
from tests.cluster.sdiag import parse_sdiag, parse_sdiag_types
from tests.cluster.spaces import cable_name, command
from tests.cluster.users import forget_host, know_hosts, make_host_key

CONTROLLED = ("slurmctld", "slurmdbd", "munged")
SSH_FAULTS = ("open", "closed", "unknown key", "other key", "refuses")
MAX_REQUEST = 65536
#: What tests may change in slurm.conf, as it is by default.
DEFAULTS = {"min_job_age_s": MIN_JOB_AGE_S, "slurmd_timeout_s": SLURMD_TIMEOUT_S}
# Reasons go into a scontrol argument and into other people's screens: no surprises there.
REASON = re.compile(r"[ -~]{1,200}")
NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
Request = dict[str, Any]
Answer = dict[str, Any]


class Helper:
    """Carries out requests."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.settings = dict(DEFAULTS)
        self.verbs: dict[str, Callable[[Request], Answer]] = {
            "ping": lambda _request: {},
            "kill": self.kill,
            "stop": self.stop,
            "cont": self.cont,
            "start": self.start,
            "node_stop": self.node_stop,
            "node_start": self.node_start,
            "node_freeze": self.node_freeze,
            "node_thaw": self.node_thaw,
            "node_state": self.node_state,
            "node_ssh": self.node_ssh,
            "login_ssh": self.login_ssh,
            "node_gpus": self.node_gpus,
            "node_processes": self.node_processes,
            "memory": self.memory,
            "oom_kills": self.oom_kills,
            "link": self.link,
            "sdiag": self.sdiag,
            "reconfigure": self.reconfigure,
            "restore": self.restore,
            "submit_other": self.submit_other,
            "cancel_other": self.cancel_other,
            "forget_ended": self.forget_ended,
            "slurmd_timeout": self.slurmd_timeout,
            "seal": self.seal,
            "hang": lambda request: hang(self.layout, request.get("folder")),
            **Rights(self.layout, self._as_other, self._serve_ssh).verbs(),
        }

    def answer(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError("a request is a JSON object")
            verb = self.verbs.get(str(request.get("cmd")))
            if verb is None:
                raise ValueError(f"cmd must be one of {', '.join(self.verbs)}")
            return {"ok": True, **verb(request)}
        except (ValueError, OSError, ClusterError, CannotRun) as error:
            return {"ok": False, "error": str(error)}

    @staticmethod
    def _choice(request: Request, key: str, choices: tuple[str, ...]) -> str:
        value = request.get(key)
        if value not in choices:
            raise ValueError(f"{key} must be one of {', '.join(choices)}")
        return str(value)

    def kill(self, request: Request) -> Answer:
        """SIGTERM (state is saved) or, with hard, SIGKILL; answers when the process is gone."""
        name = self._choice(request, "what", CONTROLLED)
        entry = record(self.layout, name)
        was = entry.pid
        entry.end(signal.SIGKILL if request.get("hard") else signal.SIGTERM)
        return {"pid": was}

    def stop(self, request: Request) -> Answer:
        """SIGSTOP: the process is there and does not answer."""
        entry = record(self.layout, self._choice(request, "what", CONTROLLED))
        if not entry.send(signal.SIGSTOP):
            raise ClusterError(f"{entry.name} is not running")
        wait_until(f"stop of {entry.name}", lambda: entry.stopped, 5)
        return {"pid": entry.pid}

    def cont(self, request: Request) -> Answer:
        entry = record(self.layout, self._choice(request, "what", CONTROLLED))
        if not entry.send(signal.SIGCONT):
            raise ClusterError(f"{entry.name} is not running")
        wait_until(f"continuation of {entry.name}", lambda: not entry.stopped, 5)
        return {"pid": entry.pid}

    def start(self, request: Request) -> Answer:
        name = self._choice(request, "what", CONTROLLED)
        start_control(self.layout, name)
        return {"pid": record(self.layout, name).pid}

    def node_stop(self, request: Request) -> Answer:
        """End one daemon of a node; jobs' own processes go on, as on a real node."""
        node = self._choice(request, "node", NODES)
        daemon = self._choice(request, "what", NODE_DAEMONS)
        record(self.layout, f"{node}.{daemon}").end()
        return {}

    def node_start(self, request: Request) -> Answer:
        node = self._choice(request, "node", NODES)
        daemon = self._choice(request, "what", NODE_DAEMONS)
        start_node_daemon(self.layout, node, daemon)
        name = f"{node}.{daemon}"
        alive = record(self.layout, name)
        # A drained node stays drained: only the daemon itself is waited for.
        check = (
            (lambda: healthy(self.layout, name))
            if daemon == "sshd"
            else (lambda: alive.pid is not None)
        )
        wait_until(f"start of {name}", check, 20)
        return {"pid": alive.pid}

    def node_freeze(self, request: Request) -> Answer:
        """Stop Slurm's daemon of a node and all that it runs for jobs; ssh still answers."""
        node = self._choice(request, "node", NODES)
        daemon = record(self.layout, f"{node}.slurmd")
        if not daemon.send(signal.SIGSTOP):
            raise ClusterError(f"{daemon.name} is not running")
        wait_until(f"stop of {daemon.name}", lambda: daemon.stopped, 5)
        pids = job_processes(self.layout, node)
        send_all(pids, signal.SIGSTOP)
        return {"count": len(pids)}

    def node_thaw(self, request: Request) -> Answer:
        self._thaw(self._choice(request, "node", NODES))
        return {}

    def _thaw(self, node: str) -> None:
        send_all(job_processes(self.layout, node), signal.SIGCONT)
        record(self.layout, f"{node}.slurmd").send(signal.SIGCONT)

    def node_ssh(self, request: Request) -> Answer:
        """How a node's sshd treats whoever comes from now on; ``cut`` ends those who are there."""
        node = self._choice(request, "node", NODES)
        how = self._choice(request, "how", SSH_FAULTS)
        if request.get("cut"):
            end_sessions(self.layout, node)
        if how == "closed":
            record(self.layout, f"{node}.sshd").end()
            return {}
        if how == "unknown key":
            forget_host(self.layout, node)
        elif how == "open":
            know_hosts(self.layout)
        other = self.layout.etc / f"ssh_{node}_other_ed25519_key"
        if how == "other key":
            make_host_key(other, node)
        text = sshd_config(
            self.layout, node, other_host_key=how == "other key", refuse=how == "refuses"
        )
        self._serve_ssh(node, text)
        return {}

    def login_ssh(self, request: Request) -> Answer:
        """A site's known hosts on the login side, and host-based login from there."""
        lines = request.get("known_hosts")
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise ValueError("known_hosts is a list of lines")
        open_etc_ssh(lines)
        return {}

    def _serve_ssh(self, node: str, text: str) -> None:
        """An sshd with this configuration, anew only where it changes."""
        path = self.layout.etc / f"sshd_{node}.conf"
        if path.read_text() != text:
            put(path, text)
            record(self.layout, f"{node}.sshd").end()
        start_node_daemon(self.layout, node, "sshd")
        name = f"{node}.sshd"
        wait_until(f"start of {name}", lambda: healthy(self.layout, name), 20)

    def node_gpus(self, request: Request) -> Answer:
        """What the stand-ins for GPU tools say on one node."""
        node = self._choice(request, "node", NODES)
        gpu = request.get("gpu")
        if gpu is not None and not isinstance(gpu, int):
            raise ValueError("gpu is a number or null")
        mode = str(request.get("mode"))
        set_state(self.layout, node, mode, gpu)
        if mode == "no-hostengine":
            record(self.layout, f"{node}.{ENGINE}").end()
        else:
            start_node_daemon(self.layout, node, ENGINE)
        return {}

    def node_processes(self, request: Request) -> Answer:
        """All processes of one node, whoever's they are."""
        return {"processes": processes_of(self.layout, self._choice(request, "node", NODES))}

    def memory(self, request: Request) -> Answer:
        """Let one process of a node have no more than so much memory: the kernel kills it then."""
        node = self._choice(request, "node", NODES)
        pid, most = request.get("pid"), request.get("bytes")
        if not isinstance(pid, int) or not isinstance(most, int) or most < 2**20:
            raise ValueError("pid and bytes are whole numbers, bytes a MiB or more")
        return {"limit": limit_memory(outer_pid(self.layout, node, pid), most)}

    def oom_kills(self, request: Request) -> Answer:
        """How often the kernel killed under a limit of ``memory``, and its own lines on it."""
        limit = request.get("limit")
        if not isinstance(limit, str) or not NAME.fullmatch(limit):
            raise ValueError("limit is what memory answered")
        count, lines = oom_kills(limit)
        return {"count": count, "lines": lines}

    def node_state(self, request: Request) -> Answer:
        node = self._choice(request, "node", NODES)
        state = self._choice(request, "state", ("drain", "resume", "down"))
        argv = ["scontrol", "update", f"NodeName={node}", f"State={state.upper()}"]
        if state != "resume":
            reason = request.get("reason")
            if not isinstance(reason, str) or not REASON.fullmatch(reason):
                raise ValueError("reason must be 1 to 200 printable ASCII characters")
            argv.append(f"Reason={reason}")
        in_login(self.layout, *argv)
        return {"state": node_states(self.layout).get(node)}

    def link(self, request: Request) -> Answer:
        """Pull a node's network cable, or plug it in."""
        node = self._choice(request, "node", NODES)
        state = self._choice(request, "state", ("up", "down"))
        command("ip", "link", "set", cable_name(node), "master", BRIDGE, state)
        return {}

    def sdiag(self, request: Request) -> Answer:
        text = in_login(self.layout, "sdiag")
        if request.get("reset"):
            in_login(self.layout, "sdiag", "--reset")
        return {"users": parse_sdiag(text), "types": parse_sdiag_types(text)}

    def reconfigure(self, _request: Request) -> Answer:
        in_login(self.layout, "scontrol", "reconfigure")
        return {}

    def submit_other(self, request: Request) -> Answer:
        """A sleeping job of the second user, whom the tests cannot become."""
        name, seconds, gpus, private = (
            request.get(key) for key in ("name", "seconds", "gpus", "private_log")
        )
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError("name must be 1 to 60 letters, digits, '_' or '-'")
        if not isinstance(seconds, int) or not isinstance(gpus, int):
            raise ValueError("seconds and gpus are whole numbers")
        # Slurm makes the log with the umask of whoever submits.
        output = f"{self.layout.shared}/other-%j.log" if private else "/dev/null"
        options = [f"--job-name={name}", f"--output={output}", "--chdir=/", "--parsable"]
        if gpus:
            options.append(f"--gres=gpu:h100:{gpus}")
        argv = ("sbatch", *options, f"--wrap=echo private; exec sleep {seconds}")
        answer = self._as_other("sh", "-c", 'umask 077; exec "$@"', "sh", *argv)
        return {"job": answer.strip().partition(";")[0]}

    def cancel_other(self, _request: Request) -> Answer:
        self._as_other("scancel", f"--user={self.layout.users[1]}")
        forget_others(self.layout)
        return {}

    def _as_other(self, *argv: str) -> str:
        entry = pwd.getpwnam(self.layout.users[1])
        become = ("setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups")
        env = ("env", f"HOME={entry.pw_dir}", f"USER={entry.pw_name}")
        return in_login(self.layout, *become, *env, *argv)

    def forget_ended(self, _request: Request) -> Answer:
        """Let the controller drop ended jobs at once, as a site does after MinJobAge."""
        self._set_slurm_conf(min_job_age_s=2)
        return {}

    def slurmd_timeout(self, request: Request) -> Answer:
        """How long a node may be silent before the controller calls it DOWN."""
        seconds = request.get("seconds")
        if not isinstance(seconds, int) or not 10 <= seconds <= 3600:
            raise ValueError("seconds is a whole number from 10 to 3600")
        self._set_slurm_conf(slurmd_timeout_s=seconds)
        return {}

    def _set_slurm_conf(self, **changed: int) -> None:
        """Write slurm.conf where it would change, and let the daemons read it."""
        self.settings |= changed
        text = slurm_conf(self.layout, **self.settings)
        if self.layout.slurm_conf.read_text() != text:
            put(self.layout.slurm_conf, text)
            in_login(self.layout, "scontrol", "reconfigure")

    def seal(self, request: Request) -> Answer:
        """Whether people and jobs on nodes may look into processes from now on; see ``sealing``.

        The daemons begin anew, so no job may run: it would be open still.
        """
        wanted = request.get("sealed")
        if not isinstance(wanted, bool):
            raise ValueError("sealed is true or false")
        self._seal(wanted)
        start_all(self.layout)
        return {}

    def _seal(self, wanted: bool) -> None:
        if wanted == self.layout.seal.exists():
            return
        if wanted:
            self.layout.seal.touch()
        else:
            self.layout.seal.unlink()
        for node in NODES:
            end_sessions(self.layout, node)
            for daemon in SEALED:
                record(self.layout, f"{node}.{daemon}").end()

    def restore(self, _request: Request) -> Answer:
        """Mend whatever was broken and wait until all of it answers."""
        close_etc_ssh()
        answer_again()
        keep_root_out(self.layout)
        set_sudo(self.layout, None)
        know_hosts(self.layout)
        lift_limits()
        self._seal(False)
        for node in NODES:
            self._thaw(node)
            command("ip", "link", "set", cable_name(node), "up")
            mend(self.layout, node)
            self._serve_ssh(node, sshd_config(self.layout, node))
        start_all(self.layout)
        self._set_slurm_conf(**DEFAULTS)
        return {}


def serve(layout: Layout) -> None:
    """One connection after the other, one request after the other: faults must not race."""
    allowed = {0, *(pwd.getpwnam(name).pw_uid for name in layout.users)}
    helper = Helper(layout)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        temporary = layout.fault_socket.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        listener.bind(str(temporary))
        temporary.chmod(0o666)
        listener.listen(16)
        # Appears only when it can be used.
        temporary.replace(layout.fault_socket)
        while True:
            connection, _ = listener.accept()
            with connection:
                _serve_one(helper, connection, allowed)


def _serve_one(helper: Helper, connection: socket.socket, allowed: set[int]) -> None:
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _pid, uid, _gid = struct.unpack("3i", credentials)
    connection.settimeout(10)
    try:
        if uid not in allowed:
            connection.sendall(b'{"ok": false, "error": "not a user of this cluster"}\n')
            return
        with connection.makefile("rb") as lines:
            while line := lines.readline(MAX_REQUEST):
                answer = helper.answer(line)
                print(
                    f"uid {uid}: {line.decode(errors='replace').strip()} -> {answer}",
                    file=sys.stderr,
                )
                connection.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        # The test went away; the next one counts.
        return


if __name__ == "__main__":
    serve(load_layout())
