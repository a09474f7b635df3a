"""What ``sdiag`` prints of the RPCs that the controller served."""

from __future__ import annotations

import re

SDIAG_USER = re.compile(
    r"\s*(?P<name>\S+)\s*\(\s*(?P<uid>\d+)\)\s*count:(?P<count>\d+)\s+ave_time:(?P<ave>\d+)\s+total_time:(?P<total>\d+)"
)


def parse_sdiag(text: str) -> dict[str, dict[str, int]]:
    """RPC counts and times (µs) by user name."""
    _, _, part = text.partition("Remote Procedure Call statistics by user")
    found = {}
    for line in part.partition("Pending RPC statistics")[0].splitlines():
        match = SDIAG_USER.match(line)
        if match:
            found[match["name"]] = {
                "uid": int(match["uid"]),
                "count": int(match["count"]),
                "ave_us": int(match["ave"]),
                "total_us": int(match["total"]),
            }
    return found


def parse_sdiag_types(text: str) -> dict[str, int]:
    """RPC counts by message type."""
    _, _, part = text.partition("Remote Procedure Call statistics by message type")
    part = part.partition("Remote Procedure Call statistics by user")[0]
    pairs = re.findall(r"^\s*(\w+)\s*\(\s*\d+\)\s*count:(\d+)", part, re.MULTILINE)
    return {name: int(count) for name, count in pairs}
