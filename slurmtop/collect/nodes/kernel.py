"""The NVIDIA lines of one node's kernel log: ``dmesg``, else ``journalctl -k``, where they may be
read. Filtered on the node; nothing else of the log leaves it."""

import math
import re
from dataclasses import replace

from slurmtop.model.gpu import KernelLog
from slurmtop.model.ports import Command, NodeUnreachable, Runner, RunnerError
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.parse.logs.kernel import parse_kernel

KERNEL_SCRIPT_NAME = "slurmtop-kernel"
#: A look at most this often.
INTERVAL_S = 60.0
_TIMEOUT_S = 20.0
_MAX_BYTES = 256 * 1024
#: What the script says of the oldest line that the log still has: ``#slurmtop first [TIME]``.
_FIRST = re.compile(rb"#slurmtop first \[?(?P<time>[^\]\r\n]{1,60})")

#: Reads the kernel log into ``$text``; ``$rc`` is 0 where that worked. The journal of a node that
#: shows a stranger nothing is empty and ends with 0: no answer.
READ = r"""
text=$($lim dmesg -T 2>&1) || text=$($lim dmesg 2>&1)
rc=$?
if [ $rc -ne 0 ]; then
  kept=$($lim journalctl -k -b -q --no-pager -o short-iso -n 20000 2>/dev/null)
  if [ -n "$kept" ]; then text=$kept; rc=0; fi
fi
""".strip()

#: The time of the oldest line that is still there is told too: dmesg keeps few lines, and the
#: journal is read from its end.
KERNEL_SCRIPT = (
    r"""
lim='timeout -k 2 8'; command -v timeout >/dev/null 2>&1 || lim=''
want='NVRM|nvidia-nvswitch|SXid'
"""
    + READ
    + r"""
if [ $rc -ne 0 ]; then
  printf '%s\n' "$text" | head -n 3 >&2
  exit $rc
fi
printf '%s\n' "$text" | head -n 1 | sed -n \
  -e 's/^\(\[[^]]\{1,40\}\]\).*/#slurmtop first \1/p' \
  -e 's/^\([0-9]\{4\}-[^ ]\{1,40\}\).*/#slurmtop first \1/p'
printf '%s\n' "$text" | grep -E "$want" | tail -n 400
exit 0
"""
)


async def read_kernel_log(runner: Runner, host: str) -> KernelLog:
    """What the driver wrote into the kernel log of ``host`` since it was started.

    Never raises: a refusal (``kernel.dmesg_restrict``) or a node that cannot be reached stands in
    ``failure``.
    """
    argv = ("/bin/sh", "-c", KERNEL_SCRIPT, KERNEL_SCRIPT_NAME)
    command = Command(argv, host=host, timeout_s=_TIMEOUT_S, max_bytes=_MAX_BYTES)
    try:
        done = await runner.run(command)
    except NodeUnreachable as error:
        return KernelLog(failure=error.failure)
    except RunnerError as error:
        return KernelLog(failure=Failure(Trouble.OTHER, str(error)))
    first = _FIRST.match(done.stdout)
    since = None if first is None else first["time"].decode("utf-8", "replace").strip()
    log = replace(parse_kernel(done.stdout, done.rc, done.stderr), since=since)
    if log.events or log.failure is not None or done.rc == 0:
        return log
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.rc == 127:
        sentence = "There is no dmesg on this node: Xid errors there are not known."
        return KernelLog(failure=Failure(Trouble.OTHER, sentence, said, math.inf))
    sentence = "The kernel log of this node could not be read: Xid errors there are not known."
    return KernelLog(failure=Failure(Trouble.OTHER, sentence, said))
