"""Stacks of living processes, as gdb, pstack and py-spy print them.

Source: gdb's ``bt`` and ``thread apply all bt``, py-spy's ``dump`` (with and without native
frames), for example::

    #4  0x00007fefe4a7fe62 in ncclCommAbort () from /usr/lib/libnccl.so.2
        destroy_process_group (torch/distributed/distributed_c10d.py:2168)

Of all frames only those are told that close a communicator or a group.
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.reports import StackFrame
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import MOST_REPEATS, PlainReader

_CLOSING = (
    r"(?:p?ncclComm(?:Abort|Destroy|Finalize)|commReclaim|abortCommsFromMap|abortComms"
    r"|_?destroy_process_group|_?abort_process_group|_shutdown_backend|destroy_model_parallel"
    r"|destroy_distributed_environment)"
)
_GDB = re.compile(
    rf"\s{{0,8}}#\d{{1,3}}\s{{1,4}}(?:0x[0-9a-fA-F]{{1,16}} in )?(?:[\w:~<>]{{0,200}}::)?"
    rf"(?P<function>{_CLOSING})\b ?\("
)
_PY_SPY = re.compile(
    rf"\s{{1,12}}(?:[\w:~]{{0,200}}::)?(?P<function>{_CLOSING}) \([^()\s]{{1,300}}\)\s*$"
)


class StackReader(PlainReader):
    """:class:`StackFrame` for each frame that closes something."""

    words: tuple[bytes, ...] = (
        b"ncclComm",
        b"commReclaim",
        b"abortComms",
        b"_process_group",
        b"_shutdown_backend",
        b"destroy_model_parallel",
        b"destroy_distributed_environment",
    )

    def __init__(self) -> None:
        self._told = 0

    def read(self, message: Message) -> Iterable[Event]:
        found = _GDB.match(message.text) or _PY_SPY.match(message.text)
        if found is not None and self._told < MOST_REPEATS:
            self._told += 1
            yield StackFrame(at=message.at, function=found["function"])
