"""Connections to names: a name server that hangs, and one that names several addresses."""

import socket
import subprocess
import sys
import time

import pytest

from slurmtop.collect.nodes.connecting import connected

#: In a process of its own: that a thread keeps the whole interpreter is the point.
HANGS = """
import socket, threading
socket.getaddrinfo = lambda *args, **more: threading.Event().wait(60)
from slurmtop.cli.headless import run_to_end
from slurmtop.collect.nodes.http_get import HttpFailed, http_get

async def ask():
    try:
        await http_get("http://exporter.example:9400/metrics", timeout_s=0.2)
    except HttpFailed as failed:
        print(failed)

run_to_end(ask())
"""


def test_a_name_server_that_hangs_keeps_nobody_from_leaving() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=50, check=True
    )
    assert time.monotonic() - began < 30
    assert "exporter.example:9400/metrics did not answer within" in done.stdout
    assert done.stderr == ""


async def test_each_address_of_the_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody listens at port 1 of this machine.
    dead = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = listening.getsockname()
        found = [dead, (*dead[:4], there)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
        with await connected("gpu01", 9400) as sock:
            assert sock.getpeername() == there
        found.pop()
        with pytest.raises(ConnectionRefusedError):
            await connected("gpu01", 9400)


@pytest.mark.parametrize("name", ["x" * 300, "a..b", "gpu\0"])
async def test_a_name_that_is_none_is_an_ordinary_failure(name: str) -> None:
    with pytest.raises(OSError):
        await connected(name, 1)
