"""Command line: ``python3 -m tests.cluster install|up|down|status|exec|shell``."""

from __future__ import annotations

import argparse
import fcntl
import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import cluster, install
from tests.cluster.layout import CANNOT_RUN, CHECKOUT, CannotRun, ClusterError, Layout, load_layout
from tests.cluster.procs import enter
from tests.cluster.spaces import login_record, same_checkout
from tests.cluster.users import user_env


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.cluster",
        description="A private Slurm cluster on this machine, for tests. "
        "Exit status 3: it cannot run here, and the reason is printed.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("install", help="install the Debian packages that lack")
    verbs.add_parser("up", help="start everything that is not running")
    down = verbs.add_parser("down", help="end everything")
    down.add_argument("--purge", action="store_true", help="delete the state directory as well")
    verbs.add_parser("status", help="one line a daemon; exit status 1 unless all answer")
    for verb, text in (("exec", "run a command inside"), ("shell", "an interactive shell inside")):
        sub = verbs.add_parser(verb, help=text)
        sub.add_argument("--user", help="default: the first user")
        sub.add_argument("--cwd", help="default: the user's home; '.' is the checkout")
        sub.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
        if verb == "exec":
            sub.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD...")
    return parser


@contextmanager
def _alone(layout: Layout) -> Iterator[None]:
    """Only one `up` or `down` at a time."""
    path = f"/run/slurmtop-cluster-{str(layout.root).strip('/').replace('/', '-')}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _inside(layout: Layout, options: argparse.Namespace) -> int:
    """Become the user inside the cluster and replace this process by the command."""
    install.require_root_on_debian()
    login = login_record(layout).pid
    if login is None:
        raise CannotRun("the cluster is not up (python3 -m tests.cluster up)")
    if not same_checkout(layout, login):
        raise CannotRun(f"the cluster shows another checkout than {CHECKOUT}; run `down` and `up`")
    name = options.user or layout.users[0]
    if name not in (*layout.users, "root"):
        raise CannotRun(f"{name} is no user of the cluster ({', '.join(layout.users)}, root)")
    entry = pwd.getpwnam(name)
    env = user_env(layout, name)
    for pair in options.env:
        key, separator, value = pair.partition("=")
        if not separator:
            raise ClusterError(f"--env needs NAME=VALUE, not {pair}")
        env[key] = value
    if options.verb == "shell":
        argv = [env["SHELL"], "-i"]
    else:
        argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not argv:
        raise ClusterError("no command given")
    cwd = options.cwd or env["HOME"]
    if not Path(cwd).is_absolute():
        cwd = str(layout.source / cwd)
    enter(login, ("net", "uts", "mnt"))
    os.initgroups(name, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.umask(0o022)
    what = cwd
    try:
        os.chdir(cwd)
        what = argv[0]
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        print(f"tests.cluster: {what}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


def main() -> int:
    """Do what the arguments say; the exit status is the answer."""
    options = _parser().parse_args()
    try:
        layout = load_layout()
        if options.verb == "install":
            install.install()
            return 0
        if options.verb in ("exec", "shell"):
            return _inside(layout, options)
        if options.verb == "status":
            install.require_root_on_debian()
            return 0 if cluster.status(layout) else 1
        install.require_root_on_debian()
        with _alone(layout):
            if options.verb == "up":
                print(cluster.up(layout))
            else:
                print(cluster.down(layout, purge=options.purge))
        return 0
    except CannotRun as error:
        print(f"tests.cluster: cannot run here: {error}", file=sys.stderr)
        return CANNOT_RUN
    except ClusterError as error:
        print(f"tests.cluster: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
