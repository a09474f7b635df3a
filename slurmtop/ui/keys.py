"""The one table of keys. Bindings, footer, help, palette, README and keymap are made from it.

Standard library only, so that settings can be checked without a terminal library.
"""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    SAFE = "safe"
    ASK = "ask"
    """Opens a dialog that shows the exact command; taken away in read-only mode."""


@dataclass(frozen=True, slots=True)
class Key:
    """``id`` is the name in the keymap file; ``action`` the Textual action it runs.

    ``scope`` is ``app``, ``jobs``, ``job``, ``why``, ``gpus``, ``logs`` or ``nodes``: where the
    key is alive; ``also`` are further ones. ``footer`` says whether the short label stands in the
    footer (at most eight a screen do).
    """

    id: str
    keys: tuple[str, ...]
    action: str
    label: str
    help: str
    scope: str
    level: Level = Level.SAFE
    footer: bool = False
    also: tuple[str, ...] = ()

    @property
    def scopes(self) -> tuple[str, ...]:
        return (self.scope, *self.also)


def _acting(id: str, key: str, action: str, label: str, help: str, *, footer: bool = False) -> Key:
    """A key that asks before it changes something, for the jobs marked or the one open."""
    return Key(id, (key,), action, label, help, "jobs", Level.ASK, footer, also=("job",))


def _nodes(
    id: str, keys: tuple[str, ...], action: str, label: str, help: str, footer: bool = False
) -> Key:
    """A key of the Nodes screen; nothing there changes a node."""
    return Key(f"nodes.{id}", keys, action, label, help, "nodes", footer=footer)


KEYS: tuple[Key, ...] = (
    Key("app.quit", ("q",), "quit", "quit", "Leave slurmtop", "app", footer=True),
    Key("app.help", ("question_mark",), "help", "help", "Show every key", "app", footer=True),
    Key("app.palette", ("colon", "ctrl+p"), "palette", "palette", "Find a command by name", "app"),
    Key("app.back", ("escape",), "back", "back", "Close, or go back one screen", "app"),
    Key("app.jobs", ("1",), "show_jobs", "jobs", "The queue", "app"),
    Key("app.job", ("2",), "show_job", "job", "The job under the cursor, or the last one", "app"),
    Key("app.nodes", ("3",), "show_nodes", "nodes", "The nodes: states, GPUs, what fits", "app"),
    Key(
        "app.refresh", ("r",), "refresh_now", "refresh", "Ask Slurm now (at most every 2 s)", "app"
    ),
    Key("app.theme", ("t",), "next_theme", "theme", "Next colour theme", "app"),
    Key("app.commands", ("c",), "commands", "commands", "What slurmtop ran of late", "app"),
    Key(
        "jobs.open",
        ("enter",),
        "open",
        "open",
        "Open the job, or unfold the group",
        "jobs",
        footer=True,
    ),
    Key("jobs.up", ("k", "up"), "cursor_up", "up", "One row up", "jobs"),
    Key("jobs.down", ("j", "down"), "cursor_down", "down", "One row down", "jobs"),
    Key("jobs.page_up", ("pageup", "ctrl+b"), "page_up", "page up", "One page up", "jobs"),
    Key(
        "jobs.page_down", ("pagedown", "ctrl+f"), "page_down", "page down", "One page down", "jobs"
    ),
    Key("jobs.top", ("g", "home"), "cursor_top", "top", "First row", "jobs"),
    Key("jobs.bottom", ("G", "end"), "cursor_bottom", "bottom", "Last row", "jobs"),
    Key(
        "jobs.fold",
        ("left_square_bracket", "right_square_bracket", "o"),
        "toggle_fold",
        "fold",
        "Fold or unfold an array or het job",
        "jobs",
    ),
    Key(
        "jobs.filter",
        ("slash",),
        "filter",
        "filter",
        "Filter: words and key:value",
        "jobs",
        footer=True,
    ),
    Key("jobs.sort", ("s",), "next_sort", "sort", "Next sort order", "jobs", footer=True),
    Key("jobs.reverse", ("i",), "reverse_sort", "reverse", "Turn the sort order round", "jobs"),
    Key("jobs.mark", ("space",), "mark", "mark", "Mark the job for an action", "jobs"),
    Key(
        "jobs.mark_range",
        ("v",),
        "mark_range",
        "mark range",
        "Mark all from the last mark to the cursor",
        "jobs",
    ),
    Key(
        "jobs.mark_all",
        ("m",),
        "mark_all",
        "mark all",
        "Mark all that the filter leaves; again: none of them",
        "jobs",
    ),
    Key(
        "jobs.all_users",
        ("a",),
        "all_users",
        "all users",
        "Everybody's jobs, or only mine",
        "jobs",
        footer=True,
    ),
    Key(
        "jobs.problems",
        ("exclamation_mark",),
        "problems",
        "problems",
        "Only what needs somebody",
        "jobs",
    ),
    Key("jobs.copy", ("y",), "copy", "copy", "Copy the job id to the clipboard", "jobs"),
    Key("job.next_tab", ("tab",), "next_tab", "tabs", "Next tab", "job", footer=True),
    Key("job.previous_tab", ("shift+tab",), "previous_tab", "tab back", "Previous tab", "job"),
    Key(
        "job.expected_start",
        ("e",),
        "expected_start",
        "when",
        "Ask Slurm when a pending job may start",
        "job",
    ),
    Key("job.copy", ("y",), "copy", "copy", "Copy the why lines to the clipboard", "job"),
    Key("job.up", ("k", "up"), "scroll_tab('up')", "up", "One line, proof or step up", "job"),
    Key(
        "job.down",
        ("j", "down"),
        "scroll_tab('down')",
        "down",
        "One line, proof or step down",
        "job",
    ),
    Key(
        "job.page_up",
        ("pageup", "ctrl+b"),
        "scroll_tab('page_up')",
        "page up",
        "Scroll one page up",
        "job",
    ),
    Key(
        "job.page_down",
        ("pagedown", "ctrl+f", "space"),
        "scroll_tab('page_down')",
        "page down",
        "Scroll one page down",
        "job",
    ),
    Key("job.left", ("left",), "scroll_tab('left')", "left", "Scroll to the left", "job"),
    Key("job.right", ("right",), "scroll_tab('right')", "right", "Scroll to the right", "job"),
    Key("job.top", ("g", "home"), "scroll_tab('home')", "top", "To the first line", "job"),
    Key("job.bottom", ("G", "end"), "scroll_tab('end')", "bottom", "To the last line", "job"),
    Key(
        "why.open",
        ("enter",),
        "open_item",
        "open",
        "Open the proof in its log; or do the step, or copy its command",
        "why",
        footer=True,
    ),
    Key(
        "why.look",
        ("p",),
        "look_at_nodes",
        "processes",
        "Look at its processes on the nodes now: two looks, with stacks",
        "why",
        footer=True,
    ),
    Key(
        "gpus.metric",
        ("m",),
        "next_metric",
        "metric",
        "Show the next metric of the GPUs",
        "gpus",
        footer=True,
    ),
    Key(
        "gpus.sort",
        ("s",),
        "next_sort",
        "worst first",
        "The worst nodes first, or in their order",
        "gpus",
        footer=True,
    ),
    Key(
        "gpus.chart",
        ("p",),
        "chart",
        "chart",
        "The last hour: of this GPU, of the nodes, or no chart",
        "gpus",
        footer=True,
    ),
    Key("gpus.left", ("h",), "gpu_left", "GPU left", "The GPU to the left", "gpus"),
    Key("gpus.right", ("l",), "gpu_right", "GPU right", "The GPU to the right", "gpus"),
    Key(
        "logs.follow", ("f",), "follow", "follow", "Follow the end of the log", "logs", footer=True
    ),
    Key(
        "logs.stream", ("l",), "other_stream", "out/err", "Change between stdout and stderr", "logs"
    ),
    Key("logs.search", ("slash",), "search", "search", "Search in the log", "logs"),
    Key("logs.next_match", ("n",), "next_match", "next", "Next match", "logs"),
    Key("logs.previous_match", ("N",), "previous_match", "previous", "Previous match", "logs"),
    Key(
        "logs.first_error",
        ("E",),
        "first_error",
        "first error",
        "Jump to the first error line",
        "logs",
        footer=True,
    ),
    _nodes("open", ("enter",), "open", "open", "Look at the node; there: open the job", True),
    _nodes("job", ("o",), "open_there", "job", "Open the job on the node"),
    _nodes("up", ("k", "up"), "cursor_up", "up", "One node up; inside, one job up"),
    _nodes("down", ("j", "down"), "cursor_down", "down", "One node down; inside, one job down"),
    _nodes("page_up", ("pageup", "ctrl+b"), "page_up", "page up", "One page up"),
    _nodes("page_down", ("pagedown", "ctrl+f"), "page_down", "page down", "One page down"),
    _nodes("top", ("g", "home"), "cursor_top", "top", "First node"),
    _nodes("bottom", ("G", "end"), "cursor_bottom", "bottom", "Last node"),
    _nodes("filter", ("slash",), "filter", "filter", "Filter: words and key:value", True),
    _nodes("fit", ("f",), "fit", "fits?", "Where would it fit? 4x8, a GPU type, a partition", True),
    _nodes("sort", ("s",), "next_sort", "sort", "Next sort order", True),
    _nodes("reverse", ("i",), "reverse_sort", "reverse", "Turn the sort order round"),
    _nodes("all_users", ("a",), "all_users", "all users", "Everybody's jobs, or only mine", True),
    _nodes("problems", ("exclamation_mark",), "problems", "problems", "Only nodes in trouble"),
    _nodes("copy", ("y",), "copy", "copy", "Copy the node's name to the clipboard"),
    _acting(
        "job.cancel", "K", "cancel", "cancel", "Cancel the job or the marked jobs", footer=True
    ),
    _acting(
        "job.cancel_part",
        "C",
        "cancel_part",
        "cancel part",
        "Cancel some tasks of an array, or one step of a running job",
    ),
    _acting(
        "job.signal",
        "S",
        "signal",
        "signal",
        "Send a signal, after a look at who would save and who would die",
        footer=True,
    ),
    _acting("job.requeue", "R", "requeue", "requeue", "Put it back in the queue, or there on hold"),
    _acting("job.hold", "H", "hold", "hold", "Keep it from starting"),
    _acting("job.release", "U", "release", "release", "Let a held job start again"),
    Key(
        "job.act",
        ("X",),
        "act_on_verdict",
        "act",
        "Choose one of the verdict's next steps",
        "job",
        Level.ASK,
    ),
    _acting("job.limit", "T", "limit", "time limit", "Set the time limit"),
    _acting("job.exclude", "D", "exclude", "exclude", "Keep a waiting job off some nodes"),
)

_SIGNS = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "exclamation_mark": "!",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "esc",
    "comma": ",",
    "full_stop": ".",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


def key_sign(key: str) -> str:
    """How a key is written for people: ``question_mark`` is ``?``, ``ctrl+p`` is ``^p``."""
    if key.startswith("ctrl+"):
        return f"^{key_sign(key[5:])}"
    return _SIGNS.get(key, key)


#: Which scopes hear a key together: those of the app and of one screen.
_TOGETHER = (
    frozenset({"app", "jobs"}),
    frozenset({"app", "job", "why"}),
    frozenset({"app", "job", "gpus"}),
    frozenset({"app", "job", "logs"}),
    frozenset({"app", "nodes"}),
)


def conflicts(keys: tuple[Key, ...] = KEYS) -> list[tuple[str, Key, Key]]:
    """(key, row, row) for every key that would do two things on one screen."""
    seen: dict[tuple[frozenset[str], str], Key] = {}
    out: list[tuple[str, Key, Key]] = []
    for entry in keys:
        for key in entry.keys:
            for scopes in _TOGETHER:
                if scopes.isdisjoint(entry.scopes):
                    continue
                other = seen.setdefault((scopes, key), entry)
                if other.id != entry.id and (key, other, entry) not in out:
                    out.append((key, other, entry))
    return out
