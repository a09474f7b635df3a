"""NCCL's errors as PyTorch tells them, and those of gloo.

Sources: ``NCCLUtils.cpp`` of torch 1.8 to 2.13 and ``gloo/transport/tcp``, for example::

    torch.distributed.DistBackendError: NCCL error in: …/NCCLUtils.hpp:268, remote process exited …
    ncclRemoteError: A call failed possibly due to a network error or a remote process exiting …
    Last error:
    socketProgressOpt: Call to recv from 10.0.0.5<33759> failed : Connection reset by peer
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from slurmtop.model.events.torch import GlooError, GlooTrouble, NcclError
from slurmtop.model.trace import Event
from slurmtop.parse.logs import nccl_warn
from slurmtop.parse.logs.line import Message
from slurmtop.parse.logs.torch_words import Begun, number, operation, shown

_ERROR = re.compile(
    r"NCCL (?:[Ee]rror in|error|Error)\s?(?:\d{1,3})?: ?(?P<said>.{0,600})", re.DOTALL
)
_FAILED = re.compile(
    r"\bnccl[A-Z]\w{2,40}(?:\(\))? failed: (?P<said>.{0,600})"
    r"|NCCL failure \S{1,200} '(?P<test>[^'/]{1,300}?)(?: / (?P<last>[^']{0,600})|'|$)",
    re.DOTALL,
)
_NAMED = re.compile(
    r"\b(?P<name>nccl(?:System|Remote|Internal|UnhandledCuda)Error|ncclInvalid(?:Usage|Argument)"
    r"|ncclTimeout)\b: "
)
#: NCCL's own words where whoever passed them on left out all that stood before them.
_BARE = re.compile(r"(?:ncclSocket\w{2,40}|socket(?:Progress|StartConnect|PollConnect)\w{0,20}): ")
_ABORTED = re.compile(r"NCCL communicator (?:was|encountered error) ?(?:aborted|set by)")
#: ``ncclGetErrorString`` of 2.8 to 2.30.
_RESULTS = (
    ("remote process exited", "ncclRemoteError"),
    ("unhandled system error", "ncclSystemError"),
    ("unhandled cuda error", "ncclUnhandledCudaError"),
    ("internal error", "ncclInternalError"),
    ("invalid usage", "ncclInvalidUsage"),
    ("invalid argument", "ncclInvalidArgument"),
)
_VERSION = re.compile(r"NCCL version (?P<version>\d{1,3}(?:\.\d{1,4}){1,3})")
_SEQ = re.compile(r"WorkNCCL\(SeqNum=(?P<seq>\d{1,19})\s?,")
_LAST = re.compile(
    r"Last (?:error|NCCL warning\(error\) log entry \(may be unrelated\)):? ?'?(?P<rest>.{0,2000})",
    re.DOTALL,
)

_GLOO = re.compile(
    r"gloo/|gloo::|Gloo connect|connectFullMesh|Connection closed by peer"
    r"|\bConnect(?:ion)? ?timeout|waiting \d{1,12}ms for (?:send|recv)"
)
#: Before 2.3 the function had no word of its own beside gloo's file.
_GLOO_MESH = re.compile(r"connectFullMesh failed|Gloo (?:connect|rendezvous)\w{0,20} failed with")
_GLOO_TIMED_OUT = re.compile(r"[Tt]imed out waiting (?P<ms>\d{1,12})ms for (?:send|recv) operation")
_GLOO_PEER = re.compile(
    r"(?P<what>Connection closed by peer|Connection reset by peer|Connection refused|[Tt]imed? ?out"
    r"|Broken pipe"
    r"|[Cc]onnect(?:ion)? timeout)(?:,? \[(?P<peer>[0-9A-Fa-f:.%a-z]{2,60})\](?::\d{1,5})?)?"
)

#: Messages between ``NCCL error`` and the words of NCCL behind ``Last error:``.
_BLOCK_REACH = 12
_MOST_OPEN = 256


class _Block:
    """One ``NCCL error … Last error: …`` of one writer, of which some is still to come."""

    def __init__(self, message: Message) -> None:
        self.begun = Begun(message)
        self.first = message.at.order
        self.named = False
        self.wants_last = False


class NcclErrorReader:
    """Reads errors of NCCL and gloo; see :class:`~slurmtop.parse.logs.line.Reader`."""

    words: tuple[bytes, ...] = (
        b"NCCL error",
        b"NCCL Error",
        b"NCCL communicator",
        b"ncclSystemError",
        b"ncclRemoteError",
        b"ncclInternalError",
        b"ncclUnhandledCuda",
        b"ncclInvalid",
        b"ncclTimeout",
        b" failed: ",
        b"NCCL failure",
        b"NCCL warning",
        b"Last error",
        b"ncclSocket",
        b"socketProgress",
        b"socketStartConnect",
        b"socketPollConnect",
        b"gloo",
        b"Gloo ",
        b"connectFullMesh",
        b"onnection closed by peer",
        b"for send operation",
        b"for recv operation",
    )

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    @property
    def open(self) -> bool:
        return bool(self._blocks)

    def see(self, message: Message) -> Iterable[Event]:
        order = message.at.order
        self._blocks = [one for one in self._blocks if order - one.first <= _BLOCK_REACH]
        block = self._block_of(message)
        if block is not None and block.wants_last:
            if not message.text.strip():
                return
            self._blocks.remove(block)
            warned = list(_quoted(message, block, message.text))
            yield from warned
            if warned:
                return
            block = None
        yield from self._error(message, block)
        yield from _gloo(message)

    def finish(self) -> Iterable[Event]:
        self._blocks = []
        return ()

    def _block_of(self, message: Message) -> _Block | None:
        same = [one for one in self._blocks if one.begun.message.stream == message.stream]
        if same:
            return same[-1]
        reach = [one for one in self._blocks if one.begun.goes_on(message, reach=_BLOCK_REACH)]
        return reach[-1] if reach else None

    def _error(self, message: Message, block: _Block | None) -> Iterator[Event]:
        text = message.text
        if "NCCL WARN" in text or "NCCL INFO" in text:
            return
        found, named = _ERROR.search(text), _NAMED.search(text)
        failed = _FAILED.search(text) if found is None else None
        last = _LAST.search(text)
        aborted = _ABORTED.search(text)
        if found is not None:
            block = self._open(message)
            block.named = True
            yield _error_event(message, found.start(), found["said"])
        elif failed is not None:
            block = self._open(message)
            block.named = True
            yield _error_event(message, failed.start(), failed["said"] or failed["test"])
            if failed["last"]:
                yield from _quoted(message, block, failed["last"])
        elif named is not None:
            if block is None or not block.named:
                block = self._open(message)
                block.named = True
                yield NcclError(at=shown(message, named.start()), result=named["name"])
        elif aborted is not None:
            yield NcclError(at=shown(message, aborted.start()), result=None)
        elif last is None and block is None and _BARE.match(text) is not None:
            yield from _quoted(message, _Block(message), text)
        if last is not None:
            if block is None:
                block = self._open(message)
            if last["rest"].strip():
                if block in self._blocks:
                    self._blocks.remove(block)
                yield from _quoted(message, block, last["rest"])
            else:
                block.wants_last = True
                block.begun = Begun(replace(message, at=block.begun.at(message)))

    def _open(self, message: Message) -> _Block:
        block = _Block(message)
        self._blocks = [one for one in self._blocks if one.begun.message.stream != message.stream][
            -_MOST_OPEN:
        ]
        self._blocks.append(block)
        return block


def _error_event(message: Message, start: int, said: str) -> NcclError:
    named = _NAMED.search(message.text)
    result = next((name for words, name in _RESULTS if words in said), None)
    version = _VERSION.search(message.text)
    seq = _SEQ.search(message.text)
    return NcclError(
        at=shown(message, start),
        result=named["name"] if named is not None else result,
        version=version["version"] if version is not None else None,
        seq=number(seq["seq"]) if seq is not None else None,
        op=operation(message.text),
    )


def _quoted(message: Message, block: _Block, text: str) -> Iterator[Event]:
    at = block.begun.at(message)
    warned = nccl_warn.read_warn(text.strip().rstrip("'"), at, quoted=True)
    if warned is not None:
        yield warned


def _gloo(message: Message) -> Iterator[Event]:
    text = message.text
    if "NCCL" in text or _GLOO.search(text) is None:
        return
    mesh = _GLOO_MESH.search(text)
    if mesh is not None:
        yield GlooError(at=shown(message, mesh.start()), kind=GlooTrouble.MESH)
        return
    timed_out = _GLOO_TIMED_OUT.search(text)
    if timed_out is not None:
        limit = number(timed_out["ms"])
        yield GlooError(
            at=shown(message, timed_out.start()),
            kind=GlooTrouble.TIMED_OUT,
            timeout_s=limit / 1000 if limit is not None else None,
        )
        return
    found = _GLOO_PEER.search(text)
    if found is None:
        return
    yield GlooError(
        at=shown(message, found.start()), kind=_trouble(found["what"]), peer=_address(found["peer"])
    )


def _trouble(what: str) -> GlooTrouble:
    if "closed" in what:
        return GlooTrouble.CLOSED
    if "reset" in what or "pipe" in what:
        return GlooTrouble.RESET
    return GlooTrouble.REFUSED if "refused" in what else GlooTrouble.TIMED_OUT


def _address(peer: str | None) -> str | None:
    if not peer:
        return None
    return peer.removeprefix("::ffff:").partition("%")[0] or None
