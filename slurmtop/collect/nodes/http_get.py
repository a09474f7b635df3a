"""One HTTP request to an address out of the settings: time, size and redirects are bounded.

Only ``http`` and ``https``. A redirect is not followed (an exporter has no reason to send one), a
proxy of the environment is not used, and a name and password in the address go into the request
and into no message.
"""

import asyncio
import base64
import contextlib
import ssl
import zlib
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from slurmtop.collect.nodes.connecting import connected
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.text import visible

TIMEOUT_S = 8.0
MAX_BYTES = 16 * 1024 * 1024
_MAX_HEAD = 64 * 1024
_WORDS_CHARS = 120
_RETRY_S = 60.0


class HttpFailed(Exception):
    """No usable answer; ``nothing_there``: nothing listens at that address."""

    def __init__(self, failure: Failure, *, nothing_there: bool = False) -> None:
        super().__init__(failure.sentence)
        self.failure = failure
        self.nothing_there = nothing_there


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def shown_url(url: str) -> str:
    """``url`` without a name and password in it, cut, harmless to look at."""
    try:
        parts = urlsplit(url)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    except ValueError:
        bare = "(an address that cannot be read)"
    return visible(bare)[:_WORDS_CHARS]


async def http_get(url: str, *, form: bytes | None = None, timeout_s: float = TIMEOUT_S) -> bytes:
    """The body of a good answer, unpacked. ``form`` is sent as a POST.

    Raises :class:`HttpFailed`. What is larger than 16 MiB, packed or not, is refused.
    """
    where = shown_url(url)
    try:
        async with asyncio.timeout(timeout_s):
            answer = await _ask(urlsplit(url), form)
    except TimeoutError as error:
        raise _failed(Trouble.TIMEOUT, f"{where} did not answer within {timeout_s:.0f} s.") from (
            error
        )
    except (ConnectionRefusedError, ConnectionResetError) as error:
        says = f"Nothing answers at {where}."
        failure = Failure(Trouble.DOWN, says, retry_after_s=_RETRY_S)
        raise HttpFailed(failure, nothing_there=True) from error
    except (OSError, ssl.SSLError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
        why = visible(str(error) or type(error).__name__)[:_WORDS_CHARS]
        raise _failed(Trouble.OTHER, f"{where} cannot be read: {why}") from error
    if answer.status != 200:
        trouble = Trouble.DENIED if answer.status in (401, 403) else Trouble.OTHER
        raise _failed(trouble, f"{where} answered with HTTP status {answer.status}.")
    return answer.body


def _failed(trouble: Trouble, says: str) -> HttpFailed:
    return HttpFailed(Failure(trouble, says, retry_after_s=_RETRY_S))


async def _ask(url: SplitResult, form: bytes | None) -> _Answer:
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("only http:// and https:// addresses can be read")
    port = url.port or (443 if url.scheme == "https" else 80)
    tls = ssl.create_default_context() if url.scheme == "https" else None
    reader, writer = await asyncio.open_connection(
        sock=await connected(url.hostname, port),
        ssl=tls,
        server_hostname=None if tls is None else url.hostname,
        limit=_MAX_HEAD,
    )
    try:
        writer.write(_request(url, form))
        await writer.drain()
        return await _answer(reader)
    finally:
        # No close(): over TLS it waits half a minute for the other side's goodbye.
        writer.transport.abort()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()


def _request(url: SplitResult, form: bytes | None) -> bytes:
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    host = url.netloc.rpartition("@")[2]
    lines = [
        f"{'GET' if form is None else 'POST'} {target} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: slurmtop",
        "Accept-Encoding: gzip",
        "Connection: close",
    ]
    if url.username is not None:
        pair = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        lines.append(f"Authorization: Basic {base64.b64encode(pair).decode('ascii')}")
    if form is not None:
        lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(form)}"]
    head = "\r\n".join(lines)
    if not head.isascii() or not head.replace("\r\n", "").isprintable():
        raise ValueError("the address holds characters that no address may hold")
    return head.encode("ascii") + b"\r\n\r\n" + (form or b"")


async def _answer(reader: asyncio.StreamReader) -> _Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ", 2)
    if not words[0].startswith("HTTP/") or len(words) < 2 or not words[1].isdecimal():
        raise ValueError("it does not speak HTTP")
    pairs = (line.partition(":") for line in head[1:])
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _chunks(reader)
    else:
        length = headers.get("content-length", "")
        body = await _upto(reader, int(length) if length.isdecimal() else None)
    if headers.get("content-encoding", "").lower() == "gzip":
        body = _unpacked(body)
    return _Answer(int(words[1]), headers, body)


async def _upto(reader: asyncio.StreamReader, length: int | None) -> bytes:
    if length is not None:
        if length > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
        return await reader.readexactly(length)
    got = bytearray()
    while chunk := await reader.read(64 * 1024):
        got += chunk
        if len(got) > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    return bytes(got)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    got = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0].strip(), 16)
        if size < 0 or len(got) + size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
        if size == 0:
            return bytes(got)
        got += await reader.readexactly(size)
        await reader.readexactly(2)


def _unpacked(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(body, MAX_BYTES)
    except zlib.error as error:
        raise ValueError("its gzip is broken") from error
    if unpacker.unconsumed_tail:
        raise ValueError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB unpacked")
    # Half a page would read as GPUs that are gone.
    if not unpacker.eof:
        raise ValueError("its gzip is cut")
    return text
