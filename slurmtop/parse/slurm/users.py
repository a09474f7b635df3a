"""Users as accounting knows them: who is an operator, who coordinates which accounts.

Source: ``sacctmgr -n -P show user where name=NAME withcoord``, columns ``User|Def Acct|Admin|Coord
Accounts`` (a site that tracks workload keys has one more in the middle)::

    alice|ml|None|
    carol|bio|Operator|bio,chem
"""

from slurmtop.model.rights import AccountUser
from slurmtop.model.snapshot import BadRecord, Parsed

_FEWEST_COLUMNS = 4
_LEVELS = {"none": False, "not set": False, "operator": True, "administrator": True}
_EXCERPT_CHARS = 80


def parse_users(data: bytes) -> Parsed[AccountUser]:
    """Every user of the answer. A line of another form is a bad record; never raises."""
    lines = data.decode("utf-8", "replace").split("\n")
    return Parsed.of(_user(index, line) for index, line in enumerate(lines) if line.strip())


def _user(index: int, line: str) -> AccountUser | BadRecord:
    columns = [column.strip() for column in line.split("|")]
    if len(columns) < _FEWEST_COLUMNS or not columns[0]:
        return BadRecord(index, "not the columns of a user", line[:_EXCERPT_CHARS])
    level = _LEVELS.get(columns[-2].lower())
    if level is None:
        return BadRecord(index, "an admin level that is not known", line[:_EXCERPT_CHARS])
    accounts = frozenset(name.strip() for name in columns[-1].split(",") if name.strip())
    return AccountUser(name=columns[0], operator=level, coordinates=accounts)
