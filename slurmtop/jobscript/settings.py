"""What is set for each signal while a script runs, as a set of what it may be: certain where
that holds one. Made from the events of a flow; model.script.Setting says how it is told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from slurmtop.jobscript.flow import Event, What
from slurmtop.jobscript.signals import signal_word
from slurmtop.model.script import Does, Setting, Trap

Settings = Mapping[str, Setting]
NOTHING_SET: Final[Settings] = {}

_DEFAULT: Final = frozenset({Does.DEFAULT})
_HANDLES: Final = frozenset({Does.HANDLES})
_IGNORES: Final = frozenset({Does.IGNORES})
ANYTHING: Final = frozenset(Does)


_MAX_SIGNALS: Final = 40


def setting_of(settings: Iterable[Setting], signal: str) -> Setting:
    """What ``settings`` say of ``signal``; certainly nothing where none is for it."""
    every: Setting | None = None
    for one in settings:
        if one.signal == signal:
            return one
        if not one.signal:
            every = one
    return every or Setting(signal, _DEFAULT)


def _get(settings: Settings, signal: str) -> Setting:
    return setting_of(settings.values(), signal) if settings else Setting(signal, _DEFAULT)


def opened(settings: Settings, why: str, line: int) -> Settings:
    """Anything may have been set."""
    every = {signal: Setting(signal, ANYTHING, line, why) for signal in settings}
    return {**every, "": Setting("", ANYTHING, line, why)}


def after(settings: Settings, event: Event, entry: Settings) -> Settings:
    """``settings`` once ``event`` was run by the same shell, which was started with ``entry``:
    what was ignored then, bash and dash neither trap nor reset."""
    if event.what is What.OPAQUE:
        why = f"line {event.line} {event.text}, which may set or take back a trap"
        return opened(settings, why, event.line)
    trap = event.trap
    if trap is None:
        return settings
    if trap.indirect:
        return opened(settings, trap.doubt, trap.line)
    out = dict(settings)
    for signal in trap.signals:
        if signal_word(signal) is None:
            continue
        old = _get(settings, signal)
        if Does.IGNORES in _get(entry, signal).may and not trap.ignores:
            why = f"{signal} was ignored when the shell began, and it may stay so"
            out[signal] = Setting(signal, ANYTHING, trap.line, why)
        else:
            out[signal] = _set(old, trap, signal, certain=event.certain)
    if len(out) > _MAX_SIGNALS:
        return opened({}, "traps are set for more signals than are read", event.line)
    return out


def _set(old: Setting, trap: Trap, signal: str, *, certain: bool) -> Setting:
    does = _DEFAULT if trap.resets else _IGNORES if trap.ignores else _HANDLES
    if trap.doubt:
        may = ANYTHING if "variable" in trap.doubt else old.may | does
        return Setting(signal, may, trap.line, trap.doubt)
    if certain:
        return Setting(signal, does, trap.line, trap=trap)
    if old.may == does and does != _HANDLES:
        return old
    return Setting(
        signal, old.may | does | _lost(old), trap.line, _only_sometimes(old, trap, signal)
    )


def _lost(old: Setting) -> frozenset[Does]:
    """A second handler in only some cases: which one stands is open, and so it may be none."""
    return _DEFAULT if old.may == _HANDLES else frozenset()


def _only_sometimes(old: Setting, trap: Trap, signal: str) -> str:
    if trap.resets:
        return f"line {trap.line} may take the trap for {signal} back"
    if old.may == _DEFAULT:
        return f"the trap for {signal} in line {trap.line} is set only in some cases"
    return f"line {trap.line} sets another trap for {signal} in some cases"


def started_with(settings: Settings, *, fresh: bool = False) -> Settings:
    """What a program starts with that a shell with ``settings`` starts: what is ignored stays
    so, a handler does not. ``fresh`` is for what slurmd starts: nothing at all."""
    if fresh:
        return {}
    out: dict[str, Setting] = {}
    for signal, one in settings.items():
        may = frozenset(Does.DEFAULT if does is Does.HANDLES else does for does in one.may)
        trap = one.trap if may == _IGNORES else None
        out[signal] = Setting(signal, may, one.line, one.why, trap)
    return out


def doubted(settings: Settings, why: str) -> Settings:
    """What is ignored may not stay so on the way to the program."""
    return {
        signal: replace(one, may=ANYTHING, why=why) if Does.IGNORES in one.may else one
        for signal, one in settings.items()
    }


def joined(both: Sequence[Settings]) -> Settings:
    """What holds of all of ``both``: what differs is open."""
    signals = dict.fromkeys(signal for settings in both for signal in settings)
    out: dict[str, Setting] = {}
    for signal in signals:
        each = [_get(settings, signal) for settings in both]
        may = frozenset[Does]().union(*(one.may for one in each))
        told = next((one for one in each if one.why), each[-1])
        why = told.why or (f"what is set for {signal} differs" if len(may) > 1 else "")
        out[signal] = Setting(signal, may, told.line, why, told.trap)
    return out
