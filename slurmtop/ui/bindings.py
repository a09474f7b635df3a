"""Textual bindings made from the table in ``ui/keys.py``."""

import unicodedata
from collections.abc import Mapping
from dataclasses import replace

from textual.binding import Binding, BindingType
from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from slurmtop.config import Config, nearest
from slurmtop.model.text import visible
from slurmtop.ui.keys import KEYS, Key, Level, conflicts, key_sign

_MODIFIERS = ("ctrl+", "alt+", "shift+", "super+", "hyper+", "meta+")
#: Besides names of keys Textual lists things that no person can press.
_NAMED = frozenset(key.value for key in Keys if not key.value.startswith("<"))


def bindings_for(scope: str) -> list[BindingType]:
    """The ``BINDINGS`` of the app (scope ``app``), a screen or a widget."""
    return [_binding(entry) for entry in KEYS if scope in entry.scopes]


def _binding(entry: Key) -> Binding:
    return Binding(",".join(entry.keys), entry.action, entry.label, show=entry.footer, id=entry.id)


def keymap_of(config: Config) -> tuple[dict[str, str], list[str]]:
    """The user's keys for ``App.set_keymap`` (they replace, they do not add), and what of them
    is left out, as sentences.

    An entry is left out where it names no key, or a key that does something else on the same
    screen. Where two entries of the user's clash, what is safe stays before what acts on jobs,
    and the app's before a screen's.
    """
    own: dict[str, tuple[str, ...]] = {}
    said: list[str] = []
    for action_id, names in config.keymap:
        keys = tuple(_normal(name) for name in names)
        wrong = next((name for name in keys if not known_key(name)), None)
        if wrong is None:
            own[action_id] = keys
        else:
            shown = visible(wrong)
            said.append(
                f"keymap: {action_id}: there is no key {shown!r}{nearest(wrong, _NAMED, few=True)};"
                f" {action_id} keeps {_signs(action_id, own)}"
            )
    while clashes := conflicts(tuple(_with(entry, own) for entry in KEYS)):
        key, one, other = clashes[0]
        loser, stays = _loser(one, other, own)
        del own[loser.id]
        said.append(
            f"keymap: {key_sign(key)} stays {stays.id}; {loser.id} does not get it"
            f" and keeps {_signs(loser.id, own)}"
        )
    return {action_id: ",".join(keys) for action_id, keys in own.items()}, said


def _with(entry: Key, own: Mapping[str, tuple[str, ...]]) -> Key:
    return replace(entry, keys=own.get(entry.id, entry.keys))


def _loser(one: Key, other: Key, own: Mapping[str, object]) -> tuple[Key, Key]:
    """(who is left out, who stays); only an entry of the user's can be left out."""
    ranked = sorted((one, other), key=lambda entry: (entry.level is Level.SAFE, _rank(entry)))
    loser = next(entry for entry in ranked if entry.id in own)
    return loser, other if loser is one else one


def _rank(entry: Key) -> bool:
    return entry.scope == "app"


def _signs(action_id: str, own: Mapping[str, tuple[str, ...]]) -> str:
    entry = next(entry for entry in KEYS if entry.id == action_id)
    return " ".join(key_sign(key) for key in own.get(action_id, entry.keys))


def _normal(name: str) -> str:
    """``?`` is ``question_mark`` to Textual; a keymap is taken as it is written."""
    return next(iter(Binding.make_bindings([Binding(name, "", "")]))).key


def known_key(name: str) -> bool:
    """Is ``name`` a key by Textual's names, e.g. ``f5``, ``ctrl+x``, ``X``, ``slash``?"""
    if name in _NAMED or name in KEY_NAME_REPLACEMENTS.values():
        return True
    for modifier in _MODIFIERS:
        if name.startswith(modifier):
            return known_key(name.removeprefix(modifier))
    if len(name) == 1:
        return name.isprintable()
    try:
        return unicodedata.lookup(name.replace("_", " ")).isprintable()
    except KeyError:
        return False


def keys_of(entry: Key, keymap: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of a row as they are now, the user's own ones first in rank."""
    own = keymap.get(entry.id)
    return tuple(own.split(",")) if own else entry.keys


def refused_when_read_only(action: str) -> bool:
    """True for an action that changes something on the cluster."""
    return any(entry.action == action and entry.level is not Level.SAFE for entry in KEYS)
