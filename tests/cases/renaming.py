"""The same log with every accidental name in it changed: hosts, addresses, pids, paths, ids, hours.

Nothing of what the lines mean is touched, so that the verdict has to stay the same. Lengths may
change; what stands for one thing stands for the same other thing everywhere in the case.
"""

import re
from collections.abc import Callable, Iterable

_HOST = re.compile(
    r"(?<![\w./-])(?:node-?[a-z0-9]{1,4}|worker-\d{1,4}|dy-[a-z]-\d{1,3}|vm-\d{1,4}|gpu-?\d{1,4})"
    r"(?![\w/-]|\.py|\.c)"
)
_ADDRESS = re.compile(r"(?<![\d.])(?:10|172|192)\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_PIDS = (
    re.compile(r"[\w.>-]:(\d{3,7}):(\d{3,7}) (?=\[|NCCL)"),
    re.compile(r"\bpid[:= ]{1,2}(\d{3,7})\b"),
    re.compile(r"\bprocess (\d{3,7})\b"),
)
_ID = re.compile(r"(?:0x)?(?<![\w-])[0-9a-f]{10,40}(?![\w-])|0x[0-9a-f]{8,16}(?!\w)")
_HOME = re.compile(r"/(?:home|workspace|scratch|data|data1|mnt|root|work|projects?)(?=/)")
_CLOCK = re.compile(r"(?<![\d:.<])([01]\d|2[0-3])(:[0-5]\d:[0-5]\d)(?![\d:])")
_HEX = str.maketrans("123456789abcdef", "f123456789abcde")


class Renaming:
    """One consistent renaming for all files of a case. ``host_back`` gives the old name."""

    def __init__(self, texts: Iterable[str]) -> None:
        whole = "\n".join(texts)
        self._hosts = {
            name: f"tgx{number:03}q" for number, name in enumerate(_each(_HOST, whole), 1)
        }
        self._addresses = {
            name: f"172.29.{number // 200}.{number % 200 + 17}"
            for number, name in enumerate(_each(_ADDRESS, whole), 1)
        }
        pids = {
            pid
            for form in _PIDS
            for match in form.finditer(whole)
            for pid in match.groups()
            if len(pid) >= 4
        }
        self._pids = {pid: str(int(pid) + 1_000_003) for pid in pids}
        hours = {match[1] for match in _CLOCK.finditer(whole)}
        self._shift = 1 if "23" not in hours else -1 if "00" not in hours else 0
        self._back = {new: old for old, new in (self._hosts | self._addresses).items()}

    def host_back(self, host: str | None) -> str | None:
        return None if host is None else self._back.get(host, host)

    def __call__(self, text: str) -> str:
        text = _ID.sub(lambda match: _other_id(match[0]), text)
        text = _CLOCK.sub(lambda match: f"{int(match[1]) + self._shift:02}{match[2]}", text)
        if self._pids:
            text = re.sub(r"(?<![\d.])\d{4,7}(?![\d.])", _among(self._pids), text)
        text = _ADDRESS.sub(_among(self._addresses), text)
        text = _HOST.sub(_among(self._hosts), text)
        return _HOME.sub("/lustre7/zz", text)


def _each(pattern: re.Pattern[str], text: str) -> list[str]:
    return sorted({match[0] for match in pattern.finditer(text)})


def _among(names: dict[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: names.get(match[0], match[0])


def _other_id(text: str) -> str:
    """Another hexadecimal id; a number without a letter may be a count or a time and stays."""
    head, body = (text[:2], text[2:]) if text.startswith("0x") else ("", text)
    if not head and body.isdigit():
        return text
    return head + body.translate(_HEX)
