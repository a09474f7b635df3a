"""UCX's own lines about adapters: MPI and NCCL's plugins speak through it.

Source: ``uct/ib/base/ib_device.c`` and ``uct/ib/mlx5/ib_mlx5_log.c`` of UCX 1.4 to 1.19, for
example::

    [node-a:6471 :async]  ib_device.c:475  UCX  WARN  IB Async event on mlx5_0: port error on port 1
    [node-a:31180:0:31180] ib_mlx5_log.c:143  Transport retry count exceeded on mlx5_0:1/IB (synd

They are told as the warnings of NCCL that say the same.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.trace import Event, Where
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.nccl_ib import async_event
from slurmtop.parse.logs.plain import PlainReader
from slurmtop.parse.logs.torch_words import shown

_EVENT = re.compile(
    r"IB Async event on (?P<device>[\w.-]{1,64}(?::\d{1,3})?): (?P<event>[^\n]{1,80})"
)
_COMPLETION = re.compile(
    r"ib_mlx5_log\.c.{0,200}?(?: on (?P<device>[\w.-]{1,64})(?::\d{1,3})?.{0,120}?)?"
    r"\(synd 0x(?P<syndrome>[0-9a-f]{1,2}) vend(?:or)? 0x(?P<vendor>[0-9a-f]{1,4})"
)
#: The adapter's syndrome to ibv_wc_status, as the driver maps it.
_STATUS = {1: 1, 2: 2, 4: 4, 5: 5, 6: 6, 0x10: 7, 0x11: 7, 0x12: 8, 0x13: 9, 0x14: 10}
_STATUS |= {0x15: 12, 0x16: 13, 0x22: 14}
_HOST = re.compile(r"\[(?P<host>[^\s\[\]:]{1,255}):(?P<pid>\d{1,10}) ?:")
_MOST_TOLD = 64


class UcxReader(PlainReader):
    """Failed transports and events of adapters, a bounded number of each."""

    words: tuple[bytes, ...] = (b"IB Async event", b"ib_mlx5_log")

    def __init__(self) -> None:
        self._told = 0

    def read(self, message: Message) -> Iterable[Event]:
        event = _read(message)
        if event is not None and self._told < _MOST_TOLD:
            self._told += 1
            yield event


def _read(message: Message) -> NcclWarn | None:
    text = message.text
    if (found := _EVENT.search(text)) is not None:
        told = async_event(found["event"].partition(" on port")[0], found["device"])
        # UCX reports the change of a table of addresses of healthy clusters, too.
        kind = Warn.BENIGN if "GID" in found["event"] else told.kind
        at = _at(message, found.start())
        return NcclWarn(
            at=at, kind=kind, text=found[0][:400], error=told.error, device=found["device"]
        )
    if (found := _COMPLETION.search(text)) is not None:
        return NcclWarn(
            at=_at(message, found.start()),
            kind=Warn.IB_COMPLETION,
            text=text[found.start() : found.start() + 400],
            status=_STATUS.get(int(found["syndrome"], 16)),
            vendor=int(found["vendor"], 16),
            device=found["device"],
        )
    return None


def _at(message: Message, start: int) -> Where:
    at = shown(message, start)
    who = _HOST.search(message.text[:start] or message.at.text)
    if at.host is None and who is not None:
        return replace(at, host=who["host"], pid=int(who["pid"]))
    return at
