"""What holds while a shell runs: what each program is started with, and what becomes of the
shell itself. Made from the events of a flow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from slurmtop.jobscript.flow import Event, Flow, What
from slurmtop.jobscript.settings import (
    NOTHING_SET,
    Settings,
    after,
    joined,
    opened,
    setting_of,
    started_with,
)
from slurmtop.jobscript.shell import Effort, Shell
from slurmtop.jobscript.traps import read_trap
from slurmtop.model.script import Course, Does, Setting, Trap

_UNREAD: Final = "not all of it could be read as shell"
_ACTIONS_READ: Final = 5_000
_LASTS: Final = frozenset({Does.HANDLES})


def started(flow: Flow, start: Settings, entry: Settings = NOTHING_SET) -> Mapping[int, Settings]:
    """What each command (by its ``id``) is started with by its shell, which itself started with
    ``start``; a command that is run from several places with what holds of all of them."""
    states: dict[int, Settings] = {0: start}
    found: dict[int, Settings] = {}
    turning = [event for event in flow.events if event.place.loops and _sets(event)]
    place_of = {id(event): at for at, event in enumerate(flow.events)} if turning else {}
    for event in flow.events:
        if event.shell not in states:
            states[event.shell] = started_with(states[_known_above(flow, event.shell, states)])
        if event.what in (What.WORK, What.PLAIN):
            state = states[event.shell]
            if event.place.loops:
                if len(turning) > _TURNS_READ:
                    state = opened(state, "too many traps are set in loops", event.line)
                for other in turning[:_TURNS_READ]:
                    behind = place_of[id(other)] > place_of[id(event)]
                    if behind and other.shell in flow.above(event.shell):
                        state = joined([state, after(state, other, entry)])
            if not flow.complete:
                state = opened(state, _UNREAD, event.line)
            key = id(event.command)
            found[key] = joined([found[key], state]) if key in found else state
        states[event.shell] = after(states[event.shell], event, entry)
    return found


_TURNS_READ: Final = 4


def _known_above(flow: Flow, shell: int, states: Mapping[int, Settings]) -> int:
    while shell in flow.parents:
        shell = flow.parents[shell]
        if shell in states:
            return shell
    return 0


def _sets(event: Event) -> bool:
    return event.trap is not None or event.what is What.OPAQUE


def course_of(
    flow: Flow,
    shell: Shell,
    effort: Effort,
    *,
    start: Settings = NOTHING_SET,
    entry: Settings = NOTHING_SET,
    errexit: int | None = None,
) -> Course:
    """How the shell of ``flow`` runs, which started with ``start`` (and with -e in line
    ``errexit``)."""
    work = [event for event in flow.events if event.what is What.WORK and not event.on]
    launches = [event for event in work if event.starts]
    first = next(iter(launches or work), None)
    last = launches[-1] if launches else None
    settings = _lasting(flow, first, start, entry, list(_at_any_time(flow, shell, effort)))
    if not flow.complete:
        settings = opened(settings, _UNREAD, 1)
    waits = list(_waits(flow, last))
    return Course(
        settings=tuple(settings.values()),
        front=_front(work, launches),
        waits=bool(waits),
        waits_on=_come_back(waits, launches),
        errexit=_errexit(flow, errexit),
        replaced=any(event.replaces for event in flow.events),
        may_exec=_may_exec(flow),
    )


def _lasting(
    flow: Flow,
    first: Event | None,
    start: Settings,
    entry: Settings,
    later: Sequence[tuple[Event, Trap | None]],
) -> Settings:
    """What holds from the first work to the end."""
    state, lasting = start, start
    working = False
    for event in flow.events:
        if event is first:
            working, lasting = True, state
        if event.shell != 0 or not _sets(event):
            continue
        state = after(state, event, entry)
        lasting = _both(lasting, state, event, first) if working else state
    for event, trap in later:
        what = What.TRAP if trap is not None else What.OPAQUE
        somewhen = replace(
            event,
            what=what,
            trap=trap,
            text="has a trap that runs other text",
            place=replace(event.place, maybe=True),
        )
        state = after(lasting, somewhen, entry)
        lasting = joined([lasting, state])
    return lasting


def _both(was: Settings, now: Settings, event: Event, first: Event | None) -> Settings:
    """What holds before and behind ``event``, which comes when work has been started."""
    out = dict(joined([was, now]))
    for signal, one in out.items():
        old, new = setting_of(was.values(), signal), setting_of(now.values(), signal)
        if old.may == new.may == _LASTS:
            out[signal] = replace(one, line=new.line, trap=new.trap)
        elif len(old.may) > 1:
            out[signal] = replace(one, line=old.line, why=old.why)
        elif old.may != new.may and len(new.may) == 1:
            out[signal] = Setting(signal, one.may, event.line, _late(old, new, event, first))
    return out


def _late(old: Setting, new: Setting, event: Event, first: Event | None) -> str:
    name = new.signal or "it"
    since = f"line {first.line}" if first is not None else "the script"
    if Does.DEFAULT in new.may:
        return f"line {event.line} takes the trap for {name} back, after {since} started work"
    if Does.DEFAULT in old.may:
        return (
            f"the trap for {name} is set only in line {event.line}, after {since} started work; "
            "before that the shell dies"
        )
    return f"line {event.line} sets another trap for {name}, after {since} started work"


def _at_any_time(flow: Flow, shell: Shell, effort: Effort) -> Iterator[tuple[Event, Trap | None]]:
    """What the actions of traps set or take back. An action that ends the script sets nothing
    that would hold."""
    read = 0
    for event in flow.events:
        trap = event.trap
        if trap is None or event.shell != 0 or trap.signals == ("EXIT",) or event.handler.surely:
            continue
        for command in event.handler.commands:
            read += 1
            if read > _ACTIONS_READ:
                yield event, None
                return
            if command.place.shell != 0:
                continue
            if command.name == "trap":
                found = read_trap(command.words, command.line, shell, effort)
                if found is not None:
                    yield event, replace(found[0], line=event.line)
            elif command.name in ("eval", "source", "."):
                yield event, None


def _front(work: Sequence[Event], launches: Sequence[Event]) -> int | None:
    """The first command that the shell starts and does nothing else until it has ended: work,
    or behind that what is not known to be short."""
    behind = False
    for event in work:
        behind = behind or event.starts
        if not event.place.background and (behind or not launches):
            return event.line
    return None


def _waits(flow: Flow, last: Event | None) -> Iterator[Event]:
    """Each ``wait`` that the shell surely comes to once all work is started."""
    behind = False
    for event in flow.events:
        behind = behind or event is last
        if behind and event.what is What.WAIT and event.shell == 0 and not event.place.maybe:
            yield event


def _come_back(waits: Sequence[Event], launches: Sequence[Event]) -> bool:
    again = any(event.place.again for event in waits)
    if again:
        return not any(event.place.again for event in launches)
    return sum(not event.place.turns for event in waits) > 1


def _errexit(flow: Flow, line: int | None) -> int | None:
    """The line of the ``set -e`` under which a ``wait`` stands that a trap may end."""
    for event in flow.events:
        if event.what is What.ERREXIT and event.shell == 0:
            if event.on:
                line = event.line
            elif event.certain:
                line = None
        elif event.what is What.WAIT and event.shell == 0 and not event.place.guarded and line:
            return line
    return None


def _may_exec(flow: Flow) -> int | None:
    for event in flow.events:
        if event.what is What.WORK and event.on and event.shell == 0 and not event.certain:
            words = event.command.words
            if len(words) < 2 or words[1].text.rsplit("/", 1)[-1] != "sbatch":
                return event.line
    return None
