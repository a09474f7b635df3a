"""What a node told of the programs that may read stacks there (``collect/nodes/stack_tools.py``).

Lines of words, a path holds no blank. Sample::

    stack-arch x86_64
    stack-left /shared/py-spy writable
    stack-tool own /home/alice/venv/bin/py-spy 0.4.3 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b…
    stack-end

``stack-tool own`` is run as oneself, ``stack-tool root`` through ``sudo -n``; its last word is the
sha256 of the file, or ``-``. ``stack-left`` is what was there and may not be run, and why.
"""

import re
from collections.abc import Iterable

from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import StackTool

GET = "pip install 'slurmtop-tui[stacks]'"
_PATH = re.compile(r"/[A-Za-z0-9/._+@~,=%-]{1,1000}")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+-]{0,40}")
_SUM = re.compile(r"[0-9a-f]{64}")
_ARCH = re.compile(r"[a-z0-9_]{1,20}")
_MOST_LINES = 500

#: Why a program that is there is not run, and what changes that.
_LEFT: dict[str, tuple[str, str]] = {
    "owner": ("belongs neither to root nor to you", ""),
    "writable": ("may be written to by others", "chmod go-w {path}"),
    "folder": ("lies below a folder where others may replace it", ""),
    "kind": ("is no regular file", ""),
    "mode": ("may not be executed", "chmod u+x {path}"),
    "machine": ("is not made for this machine ({arch})", ""),
    "run": ("does not run there", "{path} --version"),
    "sudo": ("may not be run by sudo without a password", "sudo -n -l {path}"),
}


def parse_stack_tools(
    lines: Iterable[str | bytes], host: str
) -> tuple[tuple[StackTool, ...], Failure | None]:
    """The programs that may be used on ``host``, best first; or why there is none. Total.

    Lines of other things between them are passed over. Without the last line the answer was cut:
    what was told counts, and no tool among it is a failure of its own.
    """
    tools: list[StackTool] = []
    left: list[tuple[str, str]] = []
    arch, whole = "", False
    for number, raw in enumerate(lines):
        if number >= _MOST_LINES:
            break
        line = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        kind, *words = line.split(" ")
        if kind == "stack-tool":
            tools += _tool(words)
        elif kind == "stack-left" and len(words) == 2:
            left.append((words[0], words[1]))
        elif kind == "stack-arch" and words and _ARCH.fullmatch(words[0]):
            arch = words[0]
        elif kind == "stack-end":
            whole = True
    if tools:
        # As oneself first: more rights than needed are used where nothing else helps.
        return tuple(sorted(dict.fromkeys(tools), key=lambda tool: tool.sudo)), None
    return (), _none(host, arch, left, whole)


def _tool(words: list[str]) -> list[StackTool]:
    how, path, version, digest = (*words, "", "", "", "")[:4]
    if how not in ("own", "root") or not _PATH.fullmatch(path) or not _VERSION.fullmatch(version):
        return []
    return [
        StackTool(
            path=path,
            version=version,
            sha256=digest if _SUM.fullmatch(digest) else None,
            sudo=how == "root",
        )
    ]


def _none(host: str, arch: str, left: list[tuple[str, str]], whole: bool) -> Failure:
    if ("-", "timeout") in left:
        words = f"{host} has no timeout command: nothing that could hang is run there"
        return Failure(Trouble.OTHER, words)
    for path, why in left:
        if why in _LEFT and _PATH.fullmatch(path):
            says, command = _LEFT[why]
            words = f"{path} is not used on {host}: it {says.format(arch=arch or 'its kind')}"
            copy = command.format(path=path)
            return Failure(Trouble.LOCAL, f"{words}: {copy}" if copy else words, copy=copy)
    if not whole:
        return Failure(Trouble.OTHER, f"{host} did not tell whether it has a py-spy")
    on = f"{host} ({arch})" if arch else host
    words = f"No py-spy was found on {on}; it can lie beside slurmtop, for all nodes: {GET}"
    return Failure(Trouble.LOCAL, words, copy=GET)
