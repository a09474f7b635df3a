"""How a script gets past a login shell, and how nothing of it is left behind on the node.

sshd hands the command of a request to the user's login shell, which may be csh, fish or a bash
with a noisy ``.bashrc``. So the command is one word list that all of them read alike, and the
script itself comes on stdin, which is then held open::

    exec /bin/sh -c 's=$(head -c 1234) && case $s in *"#5f0c2a") eval "$s";; esac'

What came is run only if it came whole: half a script is none. It says its mark first, so that a
shell that never ran it (a menu, a forced command, ``nologin``) is told from one that did. Then the
script runs in a session of its own, beside a watchdog that reads stdin: at its end (a closed
channel, a dead slurmtop) the shell that sshd waits for ends at once, so that a process that cannot
be ended (state D) keeps nobody waiting, and all of that session is ended, politely and a second
later surely. Pure but for the random mark.
"""

import secrets
import shlex
from dataclasses import dataclass

#: What a shell may print before our mark; the end of it is kept for whoever asks why.
NOISE_BYTES = 16 * 1024

# The fields of /proc/PID/stat stand behind the last bracket: state, parent, group, session.
_WATCHED = """\
echo {mark}
exec 3<&0 </dev/null
if command -v setsid >/dev/null 2>&1; then own=setsid; else own=; fi
$own /bin/sh -c {script} 3<&- &
p=$!
(
gone() {{
kill -$1 $p
for f in /proc/[0-9]*; do
k=${{f#/proc/}}
read -r l <$f/stat || continue
l=${{l##*) }}
s=${{l#* * * }}
[ "${{s%% *}}" = $p ] && kill -$1 $k
done
}}
while read -r l <&3; do :; done
kill -KILL $$
gone TERM
sleep 1
gone KILL
) >/dev/null 2>&1 &
w=$!
exec 3<&- >/dev/null 2>&1
wait $p
rc=$?
kill -KILL $w -$p
exit $rc
#{mark}"""


@dataclass(frozen=True, slots=True)
class Entrance:
    """One way in for one script: the command for the request, and what goes to its stdin."""

    mark: str
    command: str
    payload: bytes


def entrance(script: bytes) -> Entrance:
    """``script`` made ready for a login shell; its stdin is empty, and ours is the watchdog's."""
    mark = f"slurmtop-in-{secrets.token_hex(6)}"
    quoted = shlex.quote(script.decode("utf-8", "surrogateescape"))
    payload = _WATCHED.format(mark=mark, script=quoted).encode("utf-8", "surrogateescape")
    # No quote, backslash, line break or "!" inside: csh and fish read them in their own ways.
    inner = f's=$(head -c {len(payload)}) && case $s in *"#{mark}") eval "$s";; *) exit 97;; esac'
    return Entrance(mark=mark, command=f"exec /bin/sh -c '{inner}'", payload=payload)


class Doorway:
    """Takes what comes before the mark out of a stream whose chunks are cut anywhere.

    ``inside`` turns true with the mark. ``noise`` is what the login shell said before it.
    """

    def __init__(self, mark: str) -> None:
        self.inside = False
        self._mark = f"{mark}\n".encode()
        self._seen = bytearray()

    @property
    def noise(self) -> bytes:
        return bytes(self._seen)

    def feed(self, chunk: bytes) -> bytes:
        """The part of ``chunk`` that the script itself printed."""
        if self.inside:
            return chunk
        self._seen += chunk
        before, found, after = bytes(self._seen).partition(self._mark)
        if found:
            self.inside = True
            self._seen[:] = before[-NOISE_BYTES:]
            return after
        del self._seen[: max(0, len(self._seen) - NOISE_BYTES - len(self._mark))]
        return b""
