"""Textual bindings made from the table in ``ui/keys.py``."""

from collections.abc import Mapping
from dataclasses import replace

from textual.binding import Binding, BindingType

from slurmtop.config import Config
from slurmtop.ui.keys import KEYS, Key, Level, conflicts


def bindings_for(scope: str) -> list[BindingType]:
    """The ``BINDINGS`` of the app (scope ``app``), a screen or a widget."""
    return [_binding(entry) for entry in KEYS if entry.scope == scope]


def bindings_of(*ids: str) -> list[BindingType]:
    """Single rows by their ids, for a screen that shares them with another scope."""
    return [_binding(entry) for entry in KEYS if entry.id in ids]


def _binding(entry: Key) -> Binding:
    return Binding(",".join(entry.keys), entry.action, entry.label, show=entry.footer, id=entry.id)


def keymap_of(config: Config) -> dict[str, str]:
    """The user's keys for ``App.set_keymap``: they replace, they do not add."""
    return {action_id: ",".join(keys) for action_id, keys in config.keymap}


def keys_of(entry: Key, keymap: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of a row as they are now, the user's own ones first in rank."""
    own = keymap.get(entry.id)
    return tuple(own.split(",")) if own else entry.keys


def keymap_troubles(keymap: Mapping[str, str]) -> list[str]:
    """A sentence for each key that the person's own keymap gives two meanings."""
    changed = tuple(replace(entry, keys=keys_of(entry, keymap)) for entry in KEYS)
    return [
        f"keymap: {key} means both {one} and {other}; only the first works"
        for key, one, other in conflicts(changed)
    ]


def refused_when_read_only(action: str) -> bool:
    """True for an action that changes something on the cluster."""
    return any(entry.action == action and entry.level is not Level.SAFE for entry in KEYS)
