"""The ``trap`` of a shell: ``trap [--] ACTION SIGNAL…``, ``trap - SIGNAL…``, ``trap SIGNAL``."""

import re
from collections.abc import Sequence

from slurmtop.jobscript.handler import NO_HANDLER, Handler, read_handler
from slurmtop.jobscript.shell import Effort, Shell, Word
from slurmtop.jobscript.signals import SHELL_EVENTS, signal_word
from slurmtop.model.script import Trap

_ACTION_SHOWN = 200
_ACTION_READ = 400
#: What stands for a value: what is left of an action without it is certain.
_VALUE = re.compile(r"\$(?:\{[^}]*\}|\w+|[@*#?$!-]|\(.*\))|`.*`", re.DOTALL)


def read_trap(
    words: Sequence[Word], line: int, shell: Shell, effort: Effort, language: str = "bash"
) -> tuple[Trap, Handler] | None:
    """The trap that ``words`` (the first one is ``trap``) set, and what its action does; None
    for one that only lists."""
    rest = list(words[1:])
    if rest and rest[0].text == "--":
        rest = rest[1:]
    elif rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        return None
    if not rest:
        return None
    first = rest[0]
    bare = not first.literal and (
        len(first.text) > _ACTION_READ or not _VALUE.sub("", first.text).strip()
    )
    if bare and len(rest) == 1:
        doubt = f"what the trap in line {line} is for is in a variable"
        return Trap((), "", line, resets=True, doubt=doubt, indirect=True), NO_HANDLER
    resets = (first.literal and first.text == "-") or len(rest) == 1 or first.text.isdigit()
    named = rest if resets and first.text != "-" else rest[1:]
    signals = tuple(dict.fromkeys(_named(word.text) for word in named))
    indirect = any(not word.literal for word in named)
    doubt = _doubt(first, named, line, language, bare=bare)
    if resets:
        return Trap(signals, "", line, resets=True, doubt=doubt, indirect=indirect), NO_HANDLER
    handler = read_handler(first.text, shell, effort)
    trap = Trap(
        signals,
        first.text[:_ACTION_SHOWN],
        line,
        runs=handler.runs,
        ends=handler.ends,
        waits=handler.waits,
        doubt=doubt,
        indirect=indirect,
    )
    return trap, handler


def _doubt(first: Word, named: Sequence[Word], line: int, language: str, *, bare: bool) -> str:
    if any(not word.literal for word in named):
        return f"the trap in line {line} names its signals by a variable"
    if bare:
        return f"what the trap in line {line} does is in a variable"
    prefixed = next((word.text for word in named if word.text.upper().startswith("SIG")), None)
    if prefixed is not None and language in ("sh", "dash"):
        short = prefixed[3:].upper()[:12]
        return f"{language} may not know {prefixed[:12]} in line {line}: write {short}"
    return ""


def _named(word: str) -> str:
    bare = word.upper().removeprefix("SIG")
    if bare == "0":
        return "EXIT"
    return bare if bare in SHELL_EVENTS else signal_word(word) or word[:40]
