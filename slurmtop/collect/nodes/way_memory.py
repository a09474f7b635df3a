"""Which way onto nodes answered the last time, kept for the next start.

One small file of the person's own, for all clusters::

    {"schema": "slurmtop.ways/1",
     "ways": {"@login1": {"way": "srun", "at": "2031-05-05T12:00:00+00:00"}}}
"""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder
from slurmtop.model.reach import Way

FILE_NAME = "ways.json"
_SCHEMA = "slurmtop.ways/1"
#: What a site closed or opened since then must be found again.
_BELIEVED = timedelta(days=7)
_MOST_BYTES = 64 * 1024
_MOST_CLUSTERS = 50


class WayMemory:
    """``load`` and ``keep`` the way of one cluster. Neither raises: it is a convenience."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def load(self, now: datetime) -> Way | None:
        entry = self._ways().get(self._key)
        try:
            age = now - datetime.fromisoformat(entry["at"])  # type: ignore[index]
            way = Way(entry["way"])  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            return None
        return way if timedelta(minutes=-5) < age < _BELIEVED else None

    def keep(self, way: Way, now: datetime) -> None:
        ways = self._ways()
        ways.pop(self._key, None)
        newest = dict(list(ways.items())[-_MOST_CLUSTERS:])
        newest[self._key] = {"way": way.value, "at": now.isoformat()}
        try:
            data = json.dumps({"schema": _SCHEMA, "ways": newest}).encode()
            PrivateFolder(self._folder).write(FILE_NAME, data)
        except (OSError, UnsafeFolder):
            return

    def _ways(self) -> dict[str, Any]:
        if not self._folder.is_dir():
            return {}
        try:
            data = PrivateFolder(self._folder).read(FILE_NAME, _MOST_BYTES)
            found = json.loads(data or b"{}")
            ways = found["ways"] if found.get("schema") == _SCHEMA else {}
        except (OSError, UnsafeFolder, ValueError, KeyError, AttributeError, RecursionError):
            return {}
        return ways if isinstance(ways, dict) else {}
