"""Calls of ranks that differ, in the words of Horovod, gloo and MPI.

Sources: ``controller.cc`` of horovod 0.11 to 0.28, gloo's ``pair.cc``, the error codes of MPI::

    Mismatched allreduce tensor shapes: One rank sent a tensor of shape [1], but another rank …
    Mismatched MPI operations: One rank did an allreduce, but another rank did an allgather.
    [enforce fail at …/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 24 vs 8
"""

import re
from collections.abc import Iterable

from slurmtop.model.events.reports import CallsApart
from slurmtop.model.trace import Event
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.plain import MOST_REPEATS, PlainReader
from slurmtop.parse.logs.torch_words import shown

_APART = re.compile(
    r"(?P<op>Mismatched (?:MPI|collective|[Hh]orovod)? ?operations\b"
    r"|Mismatched [\w ]{2,30} (?:root ranks|reduce ops?|process sets?|CPU/GPU device selection)"
    r"|Mismatched (?:prescale|postscale) factors)"
    r"|Mismatched (?:(?i:allreduce|allgather|broadcast|alltoall|reducescatter|grouped \w{2,20}) "
    r"tensor (?:shapes|sizes|ranks)|data types|tensor (?:shapes|ranks|sizes))"
    r"|op\.preamble\.length <= op\.nbytes|MPI_ERR_TRUNCATE"
)


class CallsApartReader(PlainReader):
    """:class:`CallsApart` for each such line."""

    words: tuple[bytes, ...] = (b"Mismatched ", b"op.preamble.length", b"MPI_ERR_TRUNCATE")

    def __init__(self) -> None:
        self._told = 0

    def read(self, message: Message) -> Iterable[Event]:
        found = _APART.search(message.text)
        if found is not None and self._told < MOST_REPEATS:
            self._told += 1
            yield CallsApart(at=shown(message, found.start()), shape=found["op"] is None)
