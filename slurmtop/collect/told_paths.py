"""Paths as a recording tells them: secrets masked, and different paths still different ones.

::

    sweep/api_key=x1/train.log  ->  sweep/api_key=‹masked›/train.log
    sweep/api_key=y2/train.log  ->  sweep/api_key=‹masked-2›/train.log
"""

from slurmtop.collect.record_form import mask_path
from slurmtop.parse.mask import MARK

_MARK = MARK.decode()


class ToldPaths:
    """Call it with a path. Which number a path gets hangs on which came first."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], str] = {}
        self._count: dict[tuple[str, str], int] = {}

    def __call__(self, path: str) -> str:
        masked = mask_path(path)
        if masked == path:
            return path
        parts, shown = path.split("/"), masked.split("/")
        if len(parts) != len(shown):
            return self._numbered("", path, masked)
        folder: list[str] = []
        for part, one in zip(parts, shown, strict=True):
            where = "/".join(folder).removeprefix("./")
            folder.append(part if part == one else self._numbered(where, part, one))
        return "/".join(folder)

    def name(self, folder: str, name: str) -> str:
        """The name of a file in ``folder``."""
        return self(f"{folder}/{name}").rpartition("/")[2]

    def _numbered(self, where: str, was: str, masked: str) -> str:
        if (where, was) not in self._told:
            number = self._count[where, masked] = self._count.get((where, masked), 0) + 1
            mark = _MARK if number == 1 else f"{_MARK[:-1]}-{number}{_MARK[-1]}"
            self._told[where, was] = masked.replace(_MARK, mark)
        return self._told[where, was]
