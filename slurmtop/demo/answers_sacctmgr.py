"""sacctmgr: who the people of this cluster are to accounting. It changes nothing."""

from slurmtop.demo.answers_squeue import VERSION
from slurmtop.demo.jobs import USERS
from slurmtop.demo.options import Answer, Table, said
from slurmtop.demo.values import View

_OPTIONS = Table(
    "sacctmgr",
    flags={
        "associations": "s", "help": "h", "immediate": "i", "noheader": "n", "parsable": "p",
        "parsable2": "P", "quiet": "Q", "readonly": "r", "usage": "", "verbose": "v",
        "version": "V",
    },
    values={},
)  # fmt: skip
#: User, default account, what the user is to accounting, accounts that the user coordinates.
_HEADINGS = ("User", "Def Acct", "Admin", "Coord Accounts")
_WIDTHS = (10, 10, 9, 20)
_COORDINATES = {"bob": "ml"}


def answer(view: View, argv: tuple[str, ...]) -> Answer:
    """``show user [where name=alice] [withcoord]``; anything else is refused in words."""
    options = _OPTIONS.parse(argv)
    if options.has("version"):
        return said(VERSION)
    if options.has("help") or options.has("usage"):
        return said("sacctmgr [<OPTION>] [<COMMAND>]\n")
    words = [word.lower() for word in options.words]
    if words[:1] not in (["show"], ["list"]):
        named = options.words[0] if options.words else ""
        return said(err=f"invalid keyword: {named}\n", rc=1)
    if words[1:2] not in (["user"], ["users"]):
        return said(err="No valid entity in list command\n", rc=1)
    wanted: set[str] | None = None
    coordinators = False
    for word in words[2:]:
        name, equals, value = word.partition("=")
        if name in ("name", "names", "user", "users") and equals:
            wanted = {one for one in value.split(",") if one}
        elif name == "withcoord":
            coordinators = True
        elif name != "where":
            return said(err=f" Unknown condition: {word}\n", rc=1)
    size = 4 if coordinators else 3
    rows = [_row(name)[:size] for name in sorted(USERS) if wanted is None or name in wanted]
    plain = options.has("parsable2") or options.has("parsable")
    if not options.has("noheader"):
        rules = [] if plain else [tuple("-" * width for width in _WIDTHS[:size])]
        rows = [_HEADINGS[:size], *rules, *rows]
    return said("".join(f"{_line(row, plain, options.has('parsable'))}\n" for row in rows))


def _row(name: str) -> tuple[str, ...]:
    admin = "Administrator" if name == "root" else "None"
    return name, USERS[name][1], admin, _COORDINATES.get(name, "")


def _line(row: tuple[str, ...], plain: bool, closed: bool) -> str:
    if plain:
        return "|".join(row) + "|" * closed
    return "".join(f"{cell:>{width}.{width}} " for cell, width in zip(row, _WIDTHS, strict=False))
