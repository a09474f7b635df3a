"""Why there are no stacks of a process, in words: each refusal tells another way on."""

import re

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.dumps.stack_tools import GET

#: What root does on a node where the kernel closes stacks (Yama), and its own manual says so.
OPEN = "sysctl kernel.yama.ptrace_scope=0"

_DENIED = re.compile(r"[Pp]ermission [Dd]enied|Operation not permitted")
_SUDO = re.compile(r"^sudo: ", re.M)
_NO_PYTHON = re.compile(
    r"Failed to find python version|Failed to find a python interpreter"
    r"|Failed to get python version|failed to find version string"
)
_VERSION = re.compile(r"Unsupported version of Python: ([0-9A-Za-z.+]{1,20})")
_GONE = re.compile(r"No such file or directory|No such process")


def no_tool(host: str) -> Failure:
    """Nobody found a program that reads stacks there; the probe's own words are better."""
    words = f"no py-spy was found on {host}; it can lie beside slurmtop: {GET}"
    return Failure(Trouble.LOCAL, words, copy=GET)


def not_asked(most: int) -> Failure:
    words = f"stacks of {most} processes of a node are read at once, not of this one"
    return Failure(Trouble.OTHER, words)


def not_told(host: str) -> Failure:
    return Failure(Trouble.OTHER, f"{host} did not tell the stacks of this process")


def gone(pid: int) -> Failure:
    return Failure(Trouble.OTHER, f"process {pid} has ended meanwhile")


def late(pid: int) -> Failure:
    words = f"an earlier py-spy has not come back from process {pid}; a second one is not started"
    return Failure(Trouble.TIMEOUT, words)


def no_time(pid: int) -> Failure:
    return Failure(Trouble.TIMEOUT, f"there was no time left for the stacks of process {pid}")


def out_of_time(pid: int, limit_s: int) -> Failure:
    return Failure(Trouble.TIMEOUT, f"the stacks of process {pid} did not come within {limit_s} s")


def too_long(pid: int) -> Failure:
    return Failure(Trouble.OTHER, f"py-spy printed more of process {pid} than a stack can hold")


def closed(
    host: str, said: str, *, scope: int | None, me: int | None, owner: int | None, user: str | None
) -> Failure:
    """The kernel does not let us read there. ``scope`` is Yama's, None where it has none; ``me``
    and ``owner`` are the ids of who asked and whose process it is."""
    if owner is not None and me not in (None, 0, owner):
        whose = user or f"user {owner}"
        words = f"stacks on {host} are closed to you: the process is {whose}'s"
        return Failure(Trouble.DENIED, f"{words}; {whose} or root can read them", raw=said[:2_000])
    if scope == 3:
        words = f"stacks on {host} are closed until its next boot (kernel.yama.ptrace_scope is 3)"
        return Failure(Trouble.DENIED, words, raw=said[:2_000])
    if scope is not None and scope > 0:
        words = (
            f"stacks on {host} are closed (kernel.yama.ptrace_scope is {scope});"
            f" root opens them there: {OPEN}"
        )
        return Failure(Trouble.DENIED, words, raw=said[:2_000], copy=OPEN)
    words = (
        f"stacks on {host} are closed by a filter around our login there (a container, seccomp);"
        " root can read them, or a py-spy with CAP_SYS_PTRACE"
    )
    return Failure(Trouble.DENIED, words, raw=said[:2_000])


def by_sudo(host: str, path: str, said: str) -> Failure:
    check = f"sudo -n -l {path}"
    words = f"sudo on {host} did not run py-spy without a password; what it lets you run: {check}"
    return Failure(Trouble.DENIED, words, raw=said[:2_000], copy=check)


def refused(host: str, pid: int, said: str, *, python: bool = False) -> Failure:
    """By the words of py-spy: no Python, one that is too new, gone; else its first line. It also
    finds no interpreter where a filter closes memory to it: ``python`` tells that there is one."""
    version = _VERSION.search(said)
    if version is not None:
        words = f"process {pid} is Python {version[1]}, which the py-spy on {host} does not know"
        return Failure(Trouble.TOO_OLD, words, raw=said[:2_000])
    if _NO_PYTHON.search(said) and python:
        words = (
            f"stacks on {host} are closed by a filter, or its py-spy is too old: it found no"
            f" interpreter in process {pid}, which is a Python"
        )
        return Failure(Trouble.DENIED, words, raw=said[:2_000])
    if _NO_PYTHON.search(said):
        return Failure(Trouble.OTHER, f"process {pid} is no Python", raw=said[:2_000])
    if _GONE.search(said):
        return gone(pid)
    first = next((line for line in said.split("\n") if line.strip()), "nothing")[:200]
    return Failure(Trouble.OTHER, f"py-spy could not read process {pid}: {first}", raw=said[:2_000])


def is_denied(said: str) -> bool:
    return _DENIED.search(said) is not None


def is_sudo(said: str) -> bool:
    return _SUDO.search(said) is not None
