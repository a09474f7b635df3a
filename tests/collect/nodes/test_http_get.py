"""One HTTP request against a real server on the loopback: bounds, packing, refusals."""

import asyncio
import gzip
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from slurmtop.collect.nodes import http_get as module
from slurmtop.collect.nodes.http_get import HttpFailed, http_get, shown_url
from slurmtop.model.snapshot import Trouble


@asynccontextmanager
async def serving(
    answer: bytes | Callable[[bytes], bytes], *, hang: bool = False
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives ``answer`` to each request and closes; its address, what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-le")]
        body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
        asked.append(head + body)
        if hang:
            await reader.read()
        else:
            writer.write(answer(head) if callable(answer) else answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http://127.0.0.1:{port}/metrics", asked


def said(body: bytes, *headers: str, status: str = "200 OK", length: bool = True) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_a_plain_answer_and_what_is_asked() -> None:
    async with serving(said(b"up 1\n")) as (url, asked):
        assert await http_get(url) == b"up 1\n"
        assert await http_get(url + "?x=1", form=b"query=up") == b"up 1\n"
    assert asked[0].startswith(b"GET /metrics HTTP/1.1\r\n")
    assert b"Accept-Encoding: gzip" in asked[0]
    assert asked[1].startswith(b"POST /metrics?x=1 HTTP/1.1\r\n")
    assert asked[1].endswith(b"\r\n\r\nquery=up")


async def test_packed_in_chunks_and_without_a_length() -> None:
    packed = gzip.compress(b"up 1\n")
    async with serving(said(packed, "Content-Encoding: gzip")) as (url, _):
        assert await http_get(url) == b"up 1\n"
    chunks = b"3\r\nup \r\n2;x=y\r\n1\n\r\n0\r\n\r\n"
    async with serving(said(chunks, "Transfer-Encoding: chunked", length=False)) as (url, _):
        assert await http_get(url) == b"up 1\n"
    async with serving(said(b"up 1\n", length=False)) as (url, _):
        assert await http_get(url) == b"up 1\n"


async def test_a_name_and_password_go_out_and_into_no_message() -> None:
    async with serving(said(b"", status="401 Unauthorized")) as (url, asked):
        secret = url.replace("http://", "http://me:s%40cret@")
        with pytest.raises(HttpFailed) as caught:
            await http_get(secret)
    assert b"Authorization: Basic bWU6c0BjcmV0" in asked[0]
    assert caught.value.failure.trouble is Trouble.DENIED
    assert "cret" not in str(caught.value)
    assert shown_url("https://me:pw@prom:9090/x") == "https://prom:9090/x"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (said(b"", status="302 Found"), "HTTP status 302"),
        (said(b"", status="500 Oh"), "HTTP status 500"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "larger than 16 MiB"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "cannot be read"),
        (b"", "cannot be read"),
        (said(b"no gzip", "Content-Encoding: gzip"), "gzip is broken"),
        (said(b"zz\r\n", "Transfer-Encoding: chunked", length=False), "cannot be read"),
    ],
)
async def test_what_is_no_answer_is_a_sentence(answer: bytes, says: str) -> None:
    async with serving(answer) as (url, _):
        with pytest.raises(HttpFailed, match=says) as caught:
            await http_get(url)
    assert not caught.value.nothing_there


async def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1_000_000)
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < 1_000_000
    async with serving(said(bomb, "Content-Encoding: gzip")) as (url, _):
        with pytest.raises(HttpFailed, match="unpacked"):
            await http_get(url)
    async with serving(said(b"0" * 1_100_000, length=False)) as (url, _):
        with pytest.raises(HttpFailed, match="larger"):
            await http_get(url)


@pytest.mark.parametrize("left", [0, 5, 60, -9, -8, -1])
async def test_a_gzip_that_was_cut_does_not_pass_as_whole(left: int) -> None:
    page = b"".join(b'DCGM_FI_DEV_GPU_UTIL{gpu="%d"} 97\n' % gpu for gpu in range(200))
    packed = gzip.compress(page)
    async with serving(said(packed[:left], "Content-Encoding: gzip")) as (url, _):
        with pytest.raises(HttpFailed, match="its gzip is cut"):
            await http_get(url)
    async with serving(said(packed, "Content-Encoding: gzip")) as (url, _):
        assert await http_get(url) == page


async def test_nothing_there_and_a_server_that_hangs_are_told_apart() -> None:
    async with serving(b"") as (url, _):
        pass
    with pytest.raises(HttpFailed, match="Nothing answers") as caught:
        await http_get(url)
    assert caught.value.nothing_there
    async with serving(b"", hang=True) as (url, _):
        with pytest.raises(HttpFailed, match="did not answer within") as late:
            await http_get(url, timeout_s=0.05)
    assert late.value.failure.trouble is Trouble.TIMEOUT


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of localhost, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    now = datetime.now(UTC)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "one.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + signed.public_bytes(Encoding.PEM)
    )
    return path


@contextmanager
def over_tls(certified: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes) -> Iterator[str]:
    """A server that sends ``answer`` and then neither speaks nor says goodbye; its address."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certified))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certified)
    done = threading.Event()

    def serve(listening: socket.socket) -> None:
        with tls.wrap_socket(listening.accept()[0], server_side=True) as one:
            one.recv(65536)
            one.sendall(answer)
            done.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield f"https://localhost:{listening.getsockname()[1]}/metrics"
        finally:
            done.set()
            thread.join()


async def test_the_time_limit_holds_over_tls(
    certified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with over_tls(certified, monkeypatch, said(b"up 1\n")) as url:
        began = time.monotonic()
        assert await http_get(url) == b"up 1\n"
        assert time.monotonic() - began < 5
    with over_tls(certified, monkeypatch, b"HTTP/1.1 200 OK\r\n") as url:
        began = time.monotonic()
        with pytest.raises(HttpFailed, match="did not answer within"):
            await http_get(url, timeout_s=0.5)
        assert time.monotonic() - began < 5


async def test_the_time_limit_holds_for_a_server_that_does_not_speak_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(HttpFailed, match="did not answer within"):
            await http_get(f"https://localhost:{silent.getsockname()[1]}/", timeout_s=0.2)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "http://", "http://[x/"])
async def test_only_http_is_asked(url: str) -> None:
    with pytest.raises(HttpFailed, match="cannot be read"):
        await http_get(url)
