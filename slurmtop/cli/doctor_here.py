"""What this machine and this terminal give: rows of ``slurmtop doctor`` that ask no cluster."""

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slurmtop.cli.errors import CannotWork
from slurmtop.cli.options import Options
from slurmtop.cli.terminal import can_paint
from slurmtop.cli.wiring import BUNDLES, LOG_NAME, load_settings, state_folder
from slurmtop.config import SITE_PATH, Config, config_path
from slurmtop.model.access import Access, AccessStatus, Group
from slurmtop.model.text import visible
from slurmtop.model.units import plural

_WIDTH, _HEIGHT = 80, 24


def _row(source: str, status: AccessStatus, why: str, opens: str = "") -> Access:
    return Access(group=Group.HERE, source=source, status=status, why=why, opens=opens)


def settings_row(options: Options, environ: Mapping[str, str]) -> tuple[Access, Config]:
    """Are the settings valid? Where they are not, the usual ones are gone on with."""
    try:
        config = load_settings(options, environ)
    except CannotWork as error:
        return _row("settings files", AccessStatus.REFUSED, visible(str(error))), Config()
    try:
        own = Path(options.config) if options.config else config_path(environ, Path.home())
    except RuntimeError:
        own = None
    read = [str(path) for path in (own, SITE_PATH) if path is not None and path.exists()]
    why = ", ".join([*map(visible, read), *map(visible, config.notes)])
    if not read:
        return _row("settings files", AccessStatus.ABSENT, "none: the usual settings hold"), config
    return _row("settings files", AccessStatus.REACHABLE, why), config


def state_row(environ: Mapping[str, str]) -> Access:
    """Can the log of actions be written? Nothing is made or written to find out."""
    source = "log of actions"
    try:
        folder = state_folder(environ)
    except RuntimeError:
        why = "this user has no home, so no action can be logged"
        return _row(source, AccessStatus.REFUSED, why, "XDG_STATE_HOME names another folder")
    shown = visible(str(folder))
    try:
        info = folder.lstat()
    except FileNotFoundError:
        return _to_be_made(source, folder)
    except OSError as error:
        return _row(source, AccessStatus.REFUSED, f"{shown}: {error.strerror}")
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        why = f"{shown} must be a folder of yours of mode 0700"
        return _row(source, AccessStatus.REFUSED, why, f"chmod 700 {shown}")
    log = folder / LOG_NAME
    if not os.access(folder, os.W_OK | os.X_OK) or (log.exists() and not os.access(log, os.W_OK)):
        return _row(source, AccessStatus.REFUSED, f"{shown} cannot be written to")
    return _row(source, AccessStatus.REACHABLE, visible(str(log)) + _bundles(folder / BUNDLES))


def _bundles(folder: Path) -> str:
    """How many bundles lie there and how large they are: nobody else counts or deletes them."""
    try:
        sizes = [file.lstat().st_size for one in folder.iterdir() for file in one.iterdir()]
        count = sum(1 for one in folder.iterdir())
    except OSError:
        return ""
    if not count:
        return ""
    return f"; {plural(count, 'bundle')} beside it, {sum(sizes) / 1e6:,.1f} MB"


def _to_be_made(source: str, folder: Path) -> Access:
    parent = next(one for one in folder.parents if one.exists())
    shown = visible(str(folder))
    if os.access(parent, os.W_OK | os.X_OK):
        return _row(source, AccessStatus.REACHABLE, f"{shown} is made with the first action")
    why = f"{shown} cannot be made: {visible(str(parent))} cannot be written to"
    return _row(source, AccessStatus.REFUSED, why, "XDG_STATE_HOME names another folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Standard output as a person sees it; ``size`` is columns and lines, None in a pipe."""

    size: tuple[int, int] | None
    term: str
    colorterm: str
    no_color: bool
    encoding: str


def this_terminal(environ: Mapping[str, str]) -> Terminal:
    size = None
    if sys.stdout.isatty():
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            size = (0, 0)
        else:
            size = (found.columns, found.lines)
    return Terminal(
        size=size,
        term=environ.get("TERM", ""),
        colorterm=environ.get("COLORTERM", ""),
        no_color=bool(environ.get("NO_COLOR")),
        encoding=(sys.stdout.encoding or "").lower(),
    )


def terminal_row(terminal: Terminal) -> Access:
    """Size, colours and letters."""
    if terminal.size is None:
        return _row("terminal", AccessStatus.NOT_ASKED, "standard output is no terminal")
    term = visible(terminal.term)
    if not can_paint(terminal.term):
        why = f"TERM={term} is no terminal that a screen can be painted on"
        return _row("terminal", AccessStatus.REFUSED, why, "TERM=xterm-256color, or what it is")
    columns, lines = terminal.size
    parts = [f"{columns}x{lines}", f"TERM={term}", _colours(terminal)]
    utf8 = terminal.encoding.replace("-", "") == "utf8"
    parts.append("Unicode" if utf8 else "no Unicode: some signs are replaced")
    opens = "" if utf8 else "LANG=C.UTF-8"
    if columns < _WIDTH or lines < _HEIGHT:
        parts.append(f"smaller than {_WIDTH}x{_HEIGHT}: columns are left out")
    return _row("terminal", AccessStatus.REACHABLE, ", ".join(parts), opens)


def _colours(terminal: Terminal) -> str:
    if terminal.no_color:
        return "no colour (NO_COLOR)"
    if terminal.colorterm in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in terminal.term else "16 colours"


def agent_row(environ: Mapping[str, str]) -> Access:
    """Is there an ssh agent, and are there keys at all? No key is read."""
    socket = environ.get("SSH_AUTH_SOCK", "")
    if socket:
        if _is_socket(Path(socket)):
            return _row("ssh keys", AccessStatus.REACHABLE, f"agent at {visible(socket)}")
        why = f"SSH_AUTH_SOCK names {visible(socket)}, which is no socket (any more)"
        return _row("ssh keys", AccessStatus.REFUSED, why, "log in again, or start ssh-agent")
    keys = _keys()
    if keys:
        return _row(
            "ssh keys", AccessStatus.REACHABLE, f"no agent; {plural(keys, 'key')} in ~/.ssh"
        )
    return _row(
        "ssh keys",
        AccessStatus.ABSENT,
        "no agent and no key in ~/.ssh",
        "ssh-keygen, and the public half in ~/.ssh/authorized_keys on the nodes; a site may also"
        " let in by host or by ticket, without keys",
    )


def _is_socket(path: Path) -> bool:
    try:
        return path.is_socket()
    except OSError:
        return False


def _keys() -> int:
    try:
        return len(list((Path.home() / ".ssh").glob("id_*.pub")))
    except (OSError, RuntimeError):
        return 0
