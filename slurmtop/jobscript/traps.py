"""The ``trap`` of a shell: ``trap [--] ACTION SIGNAL…``, ``trap - SIGNAL…``, ``trap SIGNAL``."""

from collections.abc import Sequence

from slurmtop.jobscript.shell import Effort, Shell, ShellCommand, Word, parse_shell
from slurmtop.jobscript.signals import SHELL_EVENTS, signal_word
from slurmtop.model.script import Trap

_ACTION_SHOWN = 200
_RUNS_KEPT = 12
_MAX_DEPTH = 3


def read_trap(words: Sequence[Word], line: int, shell: Shell, effort: Effort) -> Trap | None:
    """The trap that ``words`` (the first one is ``trap``) set; None for one that only lists."""
    rest = list(words[1:])
    if rest and rest[0].text == "--":
        rest = rest[1:]
    elif rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        return None
    if not rest:
        return None
    first = rest[0]
    resets = (first.literal and first.text == "-") or len(rest) == 1 or first.text.isdigit()
    named = rest if resets and first.text != "-" else rest[1:]
    signals = tuple(dict.fromkeys(_named(word.text) for word in named))
    if resets:
        return Trap(signals, "", line, resets=True)
    return Trap(signals, first.text[:_ACTION_SHOWN], line, runs=_runs(first.text, shell, effort))


def _named(word: str) -> str:
    bare = word.upper().removeprefix("SIG")
    if bare == "0":
        return "EXIT"
    return bare if bare in SHELL_EVENTS else signal_word(word) or word[:40]


def _runs(action: str, shell: Shell, effort: Effort) -> tuple[str, ...]:
    """The commands of an action. Of a function of the script those inside it, too."""
    queue: list[ShellCommand] = list(parse_shell(action, effort).commands) if action.strip() else []
    names: list[str] = []
    opened: set[str] = set()
    while queue and len(names) < _RUNS_KEPT:
        command = queue.pop(0)
        name = command.name
        if name in shell.functions and name not in opened and len(opened) < _MAX_DEPTH:
            opened.add(name)
            queue = shell.group(name)[:_RUNS_KEPT] + queue
            continue
        if name.rsplit("/", 1)[-1] == "scontrol" and len(command.words) > 1:
            name = f"scontrol {command.words[1].text}"
        names.append(name[:40])
    return tuple(names)
