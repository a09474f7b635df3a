"""Settings: typed, frozen, read from YAML files whose errors name the line.

``~/.config/slurmtop/config.yaml`` (or below ``$XDG_CONFIG_HOME``) is the person's own;
``/etc/slurmtop/config.yaml`` is the site's: it gives defaults, and its ``queue_interval_s``
is the shortest interval that anybody here may ask for.
"""

import difflib
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DEFAULT_THEME = "slurmtop-dark"
#: One ``squeue`` is two calls to the controller; three a minute is what a site expects.
DEFAULT_QUEUE_INTERVAL_S = 20.0
#: Not even a site may go below this.
SHORTEST_INTERVAL_S = 2.0
LONGEST_INTERVAL_S = 3_600.0

#: Nobody writes settings of this size; what is larger is something else.
LARGEST_FILE = 1 << 20

SITE_PATH = Path("/etc/slurmtop/config.yaml")


class ConfigError(Exception):
    """One sentence: which file, which line, what is wrong, what was perhaps meant."""


class NodeAccess(StrEnum):
    """How nodes may be looked into; the value is the word in the settings."""

    AUTO = "auto"
    """Whichever way answers: ssh, else the ``ssh`` command, else a step of the job."""
    SSH = "ssh"
    OPENSSH = "openssh"
    SRUN = "srun"
    OFF = "off"
    """Not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a person or a site may set. ``keymap`` maps the id of a key row to its keys."""

    theme: str = DEFAULT_THEME
    queue_interval_s: float = DEFAULT_QUEUE_INTERVAL_S
    read_only: bool = False
    all_users: bool = False
    syslog: bool = False
    node_access: NodeAccess = NodeAccess.AUTO
    exporter_url: str = ""
    """Where each node's GPU exporter is, with ``{host}`` in it; "" for none."""
    prometheus_url: str = ""
    """The address of a Prometheus that collects them; "" for none."""
    dcgm: str = "auto"
    """``auto``, ``on`` or ``off``: may DCGM's counters be asked for on nodes?"""
    stacks: tuple[tuple[str, str], ...] = ()
    """Where py-spy lies on the nodes: pairs of a machine as ``uname -m`` prints it, or ``any``,
    and an absolute path."""
    node_sudo: bool = False
    """May ``sudo -n`` be used on nodes to read what is closed to oneself?"""
    keymap: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for the person, e.g. that the site's floor was applied. Not a setting."""
    read_only_from: str = ""
    """What made it read-only: the path of the file that says so. Not a setting."""
    node_access_from: str = ""
    """The path of the file that says how nodes may be looked into. Not a setting."""


def config_path(environ: Mapping[str, str], home: Path) -> Path:
    """Where a person's own settings are looked for."""
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else home / ".config"
    return folder / "slurmtop" / "config.yaml"


def load_config(
    path: Path | None,
    *,
    site_path: Path | None = SITE_PATH,
    action_ids: Collection[str],
    must_exist: bool = False,
) -> Config:
    """Read the site's and the person's settings. :class:`ConfigError` says what is wrong.

    A file that is not there counts as empty, unless the person named it (``must_exist``).
    ``action_ids`` are the ids that ``keymap`` may name.
    """
    if must_exist and path is not None and not path.exists():
        raise ConfigError(f"{path}: there is no such file")
    site = _read(site_path, action_ids) if site_path is not None else {}
    own = _read(path, action_ids) if path is not None else {}
    floor: float = site.get("queue_interval_s", DEFAULT_QUEUE_INTERVAL_S)
    notes: list[str] = []
    wanted: float = own.get("queue_interval_s", max(floor, DEFAULT_QUEUE_INTERVAL_S))
    if wanted < floor:
        who = "this site's floor" if "queue_interval_s" in site else "the floor"
        notes.append(f"queue_interval_s {wanted:g} is below {who}: {floor:g} is used")
    keymap = {**dict(site.get("keymap", ())), **dict(own.get("keymap", ()))}
    settings = {**site, **own}
    settings["queue_interval_s"] = max(wanted, floor)
    settings["keymap"] = tuple(keymap.items())
    if settings.get("read_only"):
        # A person's own word stands above the site's, in both directions.
        settings["read_only_from"] = str(path if "read_only" in own else site_path)
    if site.get("node_access") is NodeAccess.OFF:
        # A site that closes its nodes means everybody.
        settings["node_access"] = NodeAccess.OFF
    if "node_access" in settings:
        own_word = settings["node_access"] is own.get("node_access")
        settings["node_access_from"] = str(path if own_word else site_path)
    return replace(Config(notes=tuple(notes)), **settings)


def parse_yaml(text: str, name: str) -> tuple[Any, dict[str, int]]:
    """The value of a YAML text, and the line (from 1) of each key of its top mapping.

    :class:`ConfigError` names the line of what is not YAML.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, loader)
        value = yaml.load(text, loader)  # noqa: S506 - a safe loader either way
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise ConfigError(f"{name}{line}: this is not YAML: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: this is not usable YAML: {error}") from error
    _no_key_twice(node, name)
    lines: dict[str, int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            lines[str(key.value)] = key.start_mark.line + 1
            if isinstance(inner, yaml.MappingNode):
                for sub, _ in inner.value:
                    lines[f"{key.value}/{sub.value}"] = sub.start_mark.line + 1
    return value, lines


def _no_key_twice(root: Any, name: str) -> None:
    """YAML lets the last of two equal keys win in silence; a person did not mean that."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen or not isinstance(getattr(node, "value", None), list):
            continue
        seen.add(id(node))
        first: dict[object, int] = {}
        for item in node.value:
            todo.extend(item if isinstance(item, tuple) else (item,))
            key = item[0].value if isinstance(item, tuple) else None
            if not isinstance(key, str):
                continue
            line = item[0].start_mark.line + 1
            if key in first:
                raise ConfigError(
                    f"{name} line {line}: {_shown(key)} stands here again;"
                    f" it was set in line {first[key]}"
                )
            first[key] = line


def read_text(path: Path) -> str | None:
    """The text of a settings file; None where there is none. Odd bytes are replaced.

    Only a plain file of at most :data:`LARGEST_FILE` bytes is read: a pipe would hang, and a
    device may never end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            kind = _KINDS.get(stat.S_IFMT(os.fstat(handle).st_mode))
            data = b"" if kind is not None else file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise ConfigError(f"{path}: cannot be read: it is a folder, not a file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if kind is not None:
        raise ConfigError(f"{path}: cannot be read: it is {kind}, not a file")
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{path}: cannot be read: it is larger than {LARGEST_FILE:,} bytes")
    return data.decode("utf-8", errors="replace")


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def nearest(word: str, known: Collection[str], *, few: bool = False) -> str:
    """``; did you mean 'theme'?``, or the whole list where nothing is near; not with ``few``."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if found:
        return f"; did you mean {found[0]!r}?"
    return "" if few else f"; known are {', '.join(sorted(known))}"


def _read(path: Path, action_ids: Collection[str]) -> dict[str, Any]:
    text = read_text(path)
    if text is None:
        return {}
    value, lines = parse_yaml(text, str(path))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{path} line 1: settings are lines like 'theme: {DEFAULT_THEME}'")
    out: dict[str, Any] = {}
    for key, raw in value.items():
        name = str(key)
        where = f"{path} line {lines.get(name, 1)}"
        if name not in _CHECKS:
            raise ConfigError(f"{where}: no setting {name!r}{nearest(name, _CHECKS)}")
        if name == "keymap":
            out[name] = _keymap(raw, path, lines, action_ids)
        else:
            try:
                out[name] = _CHECKS[name](raw)
            except ValueError as error:
                raise ConfigError(f"{where}: {name}: {error}") from error
    return out


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(f"a name is wanted, not {_shown(raw)}")
    return raw.strip()


def _yes_no(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ValueError(f"true or false is wanted, not {_shown(raw)}")
    return raw


def _node_access(raw: object) -> NodeAccess:
    # YAML reads a plain off as false.
    word = "off" if raw is False else raw
    try:
        return NodeAccess(str(word))
    except ValueError:
        known = ", ".join(NodeAccess)
        raise ValueError(f"one of {known} is wanted, not {_shown(raw)}") from None


def _interval(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ValueError(f"a number of seconds is wanted, not {_shown(raw)}")
    if not SHORTEST_INTERVAL_S <= raw <= LONGEST_INTERVAL_S:
        raise ValueError(
            f"between {SHORTEST_INTERVAL_S:g} and {LONGEST_INTERVAL_S:g} seconds, not {raw:g}"
        )
    return float(raw)


def _url(raw: object) -> str:
    if not isinstance(raw, str) or not raw.startswith(("http://", "https://")) or " " in raw:
        raise ValueError(f"an address with http:// or https:// is wanted, not {_shown(raw)}")
    try:
        if not urlsplit(raw.replace("{host}", "host")).hostname:
            raise ValueError
    except ValueError:
        raise ValueError(f"this is no address: {_shown(raw)}") from None
    return raw


def _url_of_host(raw: object) -> str:
    url = _url(raw)
    if "{host}" not in url:
        raise ValueError("the name of the node is wanted in it: http://{host}:9400/metrics")
    return url


def _auto_on_off(raw: object) -> str:
    # YAML reads a bare on and off as true and false.
    word = {True: "on", False: "off"}.get(raw, raw) if isinstance(raw, bool) else raw
    if word not in ("auto", "on", "off"):
        raise ValueError(f"auto, on or off is wanted, not {_shown(raw)}")
    return str(word)


def _stacks(raw: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, dict) or set(raw) != {"tool"}:
        raise ValueError(f"a line like 'tool: /path/to/py-spy' is wanted, not {_shown(raw)}")
    tool = raw["tool"]
    of_machine = tool if isinstance(tool, dict) else {"any": tool}
    return tuple((_machine(name), _tool_path(path)) for name, path in of_machine.items())


def _machine(raw: object) -> str:
    if not isinstance(raw, str) or not re.fullmatch(r"[a-z0-9_]{1,20}", raw):
        raise ValueError(f"a machine as uname -m prints it is wanted, not {_shown(raw)}")
    return raw


def _tool_path(raw: object) -> str:
    """A path that no shell could read in another way."""
    if not isinstance(raw, str) or not re.fullmatch(r"/[A-Za-z0-9/._+@~,=%-]{1,500}", raw):
        raise ValueError(
            f"an absolute path of plain letters (no blank) is wanted, not {_shown(raw)}"
        )
    return raw


def _keymap(
    raw: object, path: Path, lines: Mapping[str, int], action_ids: Collection[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    where = f"{path} line {lines.get('keymap', 1)}"
    if raw is None:
        return ()
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: keymap: lines like 'jobs.sort: f5' are wanted")
    out: list[tuple[str, tuple[str, ...]]] = []
    for key, value in raw.items():
        name = str(key)
        where = f"{path} line {lines.get(f'keymap/{name}', 1)}"
        if name not in action_ids:
            raise ConfigError(f"{where}: keymap: no key {name!r}{nearest(name, action_ids)}")
        keys = value if isinstance(value, list) else [value]
        if not keys or any(isinstance(one, bool) or not _is_key(one) for one in keys):
            raise ConfigError(
                f"{where}: keymap: {name}: a key or a list of keys is wanted, "
                f"not {_shown(value)} (put signs in quotes)"
            )
        out.append((name, tuple(str(one).strip() for one in keys)))
    return tuple(out)


def _is_key(raw: object) -> bool:
    """A name such as ``f5``, ``ctrl+x``, ``X``; a comma or a blank would be two keys."""
    text = str(raw).strip() if isinstance(raw, str | int) else ""
    return bool(text) and "," not in text and " " not in text and text.isprintable()


def _shown(raw: object) -> str:
    text = repr(raw)
    return text if len(text) <= 40 else text[:37] + "..."


_CHECKS: dict[str, Callable[[object], Any]] = {
    "theme": _text,
    "queue_interval_s": _interval,
    "read_only": _yes_no,
    "all_users": _yes_no,
    "syslog": _yes_no,
    "node_access": _node_access,
    "exporter_url": _url_of_host,
    "prometheus_url": _url,
    "dcgm": _auto_on_off,
    "stacks": _stacks,
    "node_sudo": _yes_no,
    "keymap": _text,
}

#: The settings there are, for help and for documents.
SETTINGS: tuple[str, ...] = tuple(field.name for field in fields(Config) if field.name in _CHECKS)
