"""One line to the system's log, for sites that want to see who did what to a job.

The form is that of ``syslog(3)`` without a time, which the receiver adds itself::

    <13>slurmtop: alice requeue 4711: requeued
"""

import socket

SOCKET = "/dev/log"
#: Facility user, severity notice.
_PRIORITY = 13
_MAX_BYTES = 1_000


def send_line(text: str, *, path: str = SOCKET) -> None:
    """Hand ``text`` over without waiting; ``OSError`` where nobody takes it. A line break in it
    would forge a second line, so it becomes a blank."""
    line = f"<{_PRIORITY}>slurmtop: {' '.join(text.splitlines())}".encode("utf-8", "replace")
    if len(line) > _MAX_BYTES:
        line = line[: _MAX_BYTES - 3].decode("utf-8", "ignore").encode() + "…".encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        # A log that is full must not hold up the screen.
        door.setblocking(False)
        door.connect(path)
        door.send(line)
