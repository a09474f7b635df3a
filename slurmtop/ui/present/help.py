"""The help page as lines, made from the key table. Pure."""

from collections.abc import Iterable, Mapping

from slurmtop.store.node_query import NODE_KEYS
from slurmtop.store.query_keys import QUERY_KEYS
from slurmtop.ui.keys import KEYS, Key, Level, key_sign
from slurmtop.ui.present.spans import Line, wrap

_CONTROL = "control"
_SCOPES = {
    _CONTROL: "Control: each of these asks before it does anything",
    "jobs": "On the Jobs screen",
    "job": "On the Job screen",
    "why": "On the Why tab of a job",
    "gpus": "Among the GPUs of a job",
    "logs": "In a log",
    "nodes": "On the Nodes screen",
    "app": "Everywhere",
}
_KEY_CELLS = 14

_FILTER = (
    "Words must all be found, in any case, in the id, name, user, account, partition, qos, "
    "state, reason or nodes of a job. A minus or ! in front means not; quotes keep blanks.",
    f"Keys: {', '.join(f'{key}:' for key in QUERY_KEYS)}. A comma is or; numbers take < <= > >=.",
    "Examples: train state:failed,timeout · user:anna gpu:>=8 -node:gpu07 · time:>2h part:gpu",
    "All of it with examples: docs/filter.md",
    f"On the Nodes screen: {', '.join(f'{key}:' for key in NODE_KEYS)}; see docs/nodes.md",
)
_STATES = (
    "A group counts its jobs: R running, S suspended, CG ending, PD pending, F failed, CD done, "
    "CA cancelled, RV started on another cluster, ? unknown; waiting is the rest of an array.",
    "gone: the job left the queue and accounting has not said how it ended. Old rows are grey, "
    "and the second line says how old.",
)


def help_lines(
    scopes: Iterable[str], keymap: Mapping[str, str], width: int, *, read_only: bool = False
) -> tuple[Line, ...]:
    """Every key: those that act on jobs, then the present screen's. ``keymap`` has the
    person's own keys."""
    first = [scope for scope in scopes if scope in _SCOPES]
    if not read_only:
        first = [_CONTROL, *first]
    others = (scope for scope in _SCOPES if scope not in (*first, "app", _CONTROL))
    order = [*first, "app", *others]
    lines: list[Line] = []
    if read_only:
        lines += [(("Read-only: keys that change something are taken away.", "warn"),), ()]
    for scope in order:
        lines.append(((_SCOPES[scope], "strong"),))
        for entry in KEYS:
            if scope in _sections(entry):
                own = keymap.get(entry.id)
                keys = own.split(",") if own else entry.keys
                lines.extend(_key_lines(" ".join(map(key_sign, keys)), entry.help, width))
        lines.append(())
    for title, texts in (("Filter", _FILTER), ("States", _STATES)):
        lines.append(((title, "strong"),))
        lines.extend(
            ((line, ""),)
            for text in texts
            for line in wrap(text, max(20, width), first="  ", rest="  ")
        )
        lines.append(())
    return tuple(lines)


def _sections(entry: Key) -> tuple[str, ...]:
    return entry.scopes if entry.level is Level.SAFE else (_CONTROL,)


def _key_lines(keys: str, text: str, width: int) -> list[Line]:
    room = max(10, width - _KEY_CELLS - 2)
    words = wrap(text, room)
    head = f"  {keys:<{_KEY_CELLS}}"
    first: Line = ((head, "mark"), (words[0], ""))
    if len(head) > _KEY_CELLS + 2:
        first = ((head + " ", "mark"), (words[0], ""))
    return [first, *(((" " * (_KEY_CELLS + 2) + line, ""),) for line in words[1:])]
