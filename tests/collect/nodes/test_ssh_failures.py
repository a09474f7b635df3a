"""Every way in which a login fails, in words. Raw lines are OpenSSH 9.2p1's own."""

import errno
import socket
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.openssh_failures import explain_openssh
from slurmtop.collect.nodes.ssh_failures import (
    NEVER,
    Attempt,
    explain_adopt,
    explain_login,
    explain_no_shell,
)
from slurmtop.model.snapshot import Trouble
from slurmtop.model.text import visible
from slurmtop.parse.ssh_config import SshSettings

HERE = Attempt(host="gpu01", settings=SshSettings(host="gpu01", hostname="gpu01", user="alice"))

ADOPT = [
    "Access denied by pam_slurm_adopt: you have no active jobs on this node",
    "No Slurm jobs found on node.",
    "Access denied: user alice (uid=1001) has no active jobs on this node.",
]


@pytest.mark.parametrize("said", ADOPT)
def test_refusals_for_want_of_a_job(said: str) -> None:
    stderr = f"{said}\r\nConnection closed by 10.0.0.11 port 22\r\n".encode()
    for failure in (
        explain_openssh("gpu01", 255, stderr),
        explain_no_shell("gpu01", 255, stderr, b""),
        explain_adopt("gpu01", said),
    ):
        assert failure is not None
        assert (failure.trouble, failure.retry_after_s) == (Trouble.DENIED, NEVER)
        assert "running job" in failure.sentence
        assert said in failure.raw


@pytest.mark.parametrize(
    "said",
    [
        "Access denied by pam_slurm_adopt: unable to determine source job",
        "pam_slurm_adopt: adoption failure",
    ],
)
def test_refusals_although_there_may_be_a_job(said: str) -> None:
    failure = explain_openssh("gpu01", 255, said.encode())
    assert (failure.trouble, failure.retry_after_s) == (Trouble.DENIED, NEVER)
    assert "could not tie this login to a job" in failure.sentence


def test_a_banner_that_speaks_of_adoption_is_no_refusal() -> None:
    banner = b"This cluster uses pam_slurm_adopt: log in where you have a job.\n"
    assert explain_adopt("gpu01", banner.decode()) is None
    failure = explain_openssh("gpu01", 255, banner + b"alice@gpu01: Permission denied (publickey).")
    assert "refused every key of alice (it offers publickey)" in failure.sentence


OPENSSH = [
    (
        b"No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict "
        b"checking.\r\nHost key verification failed.\r\n",
        Trouble.DENIED,
        "The host key of 127.0.0.1 is not known here",
    ),
    (
        b"@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
        b"Host key for gpu01 has changed and you have requested strict checking.\r\n"
        b"Host key verification failed.\r\n",
        Trouble.DENIED,
        "THE HOST KEY OF gpu01 HAS CHANGED",
    ),
    (
        b"@       WARNING: REVOKED HOST KEY DETECTED!               @\r\n"
        b"Host key verification failed.\r\n",
        Trouble.DENIED,
        "revoked",
    ),
    (
        b"alice@gpu01: Permission denied (publickey,gssapi-with-mic).\r\n",
        Trouble.DENIED,
        "it offers publickey, gssapi-with-mic",
    ),
    (
        b"alice@gpu01: Permission denied (keyboard-interactive).\r\n",
        Trouble.DENIED,
        "asks questions at its login (keyboard-interactive), which slurmtop never answers",
    ),
    (
        b"ssh: connect to host gpu01 port 2222: Connection refused\r\n",
        Trouble.DOWN,
        "refuses connections on port 2222",
    ),
    (
        b"ssh: connect to host gpu01 port 22: Connection timed out\r\n",
        Trouble.TIMEOUT,
        "did not answer in time",
    ),
    (b"ssh: connect to host gpu01 port 22: No route to host\r\n", Trouble.DOWN, "no route"),
    (
        b"ssh: Could not resolve hostname gpu01: Name or service not known\r\n",
        Trouble.OTHER,
        "The name gpu01 is not known",
    ),
    (
        b"kex_exchange_identification: Connection closed by remote host\r\n"
        b"Connection closed by 10.0.0.11 port 22\r\n",
        Trouble.BUSY,
        "MaxStartups",
    ),
    (
        b"Received disconnect from 10.0.0.11 port 22:2: Too many authentication failures\r\n"
        b"Disconnected from 10.0.0.11 port 22\r\n",
        Trouble.DENIED,
        "IdentitiesOnly",
    ),
    (
        b"Bad owner or permissions on /home/alice/.ssh/config\r\n",
        Trouble.LOCAL,
        "Bad owner or permissions on /home/alice/.ssh/config",
    ),
    (b"something new\x1b[2J\r\n", Trouble.OTHER, "something new\u241b[2J"),
    (b"", Trouble.OTHER, "without a word"),
]


@pytest.mark.parametrize(("stderr", "trouble", "words"), OPENSSH)
def test_what_ssh_says(stderr: bytes, trouble: Trouble, words: str) -> None:
    failure = explain_openssh("gpu01", 255, stderr)
    assert (failure.trouble, words in failure.sentence) == (trouble, True), failure.sentence
    assert "\x1b" not in failure.sentence


def test_an_ssh_that_does_not_end() -> None:
    assert explain_openssh("gpu01", None, b"").trouble is Trouble.TIMEOUT


@pytest.mark.parametrize(
    ("error", "trouble", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), Trouble.OTHER, "is not known"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Trouble.DOWN, "no sshd is running"),
        (TimeoutError(), Trouble.TIMEOUT, "in time"),
        (OSError(errno.EHOSTUNREACH, "x"), Trouble.DOWN, "no route"),
        (OSError(errno.EMFILE, "x"), Trouble.LOCAL, "too many files"),
        (ConnectionResetError(errno.ECONNRESET, "x"), Trouble.BUSY, "MaxStartups"),
        (OSError(errno.EIO, "odd\x1b"), Trouble.DOWN, "odd\u241b"),
        (ValueError("odd"), Trouble.OTHER, "odd"),
    ],
)
def test_what_our_own_connection_meets(error: Exception, trouble: Trouble, words: str) -> None:
    failure = explain_login(HERE, error)
    assert (failure.trouble, words in failure.sentence) == (trouble, True), failure.sentence


class ConnectionLost(Exception):
    """Bears the name of asyncssh's."""


def test_the_nodes_own_reason_stands_before_a_guess() -> None:
    for said, words in (
        (b"System is booting up. Unprivileged users are not permitted to log in yet.", "booting"),
        (b"Your account has expired; please contact your system administrator.\r\n", "expired"),
        (b"Closed for maintenance.\r\n", "it said 'Closed for maintenance'"),
    ):
        sentence = explain_login(replace(HERE, said=said), ConnectionLost("lost")).sentence
        assert words in sentence
        assert "MaxStartups" not in sentence
    assert "MaxStartups" in explain_login(HERE, ConnectionLost("lost")).sentence


@pytest.mark.parametrize(
    ("rc", "stdout", "words"),
    [
        (1, b"This account is currently not available.\n", "has no login shell"),
        (0, b"Only backups here\x07\n", "forced command"),
        (127, b"", "no /bin/sh"),
        (None, b"Lmod ...", "did not get as far"),
    ],
)
def test_a_login_without_a_shell(rc: int | None, stdout: bytes, words: str) -> None:
    sentence = explain_no_shell("gpu01", rc, stdout, b"").sentence
    assert words in sentence
    assert "\x07" not in sentence


@given(st.binary(), st.one_of(st.none(), st.integers(0, 255)))
def test_any_bytes_are_a_sentence_on_one_line(data: bytes, rc: int | None) -> None:
    for failure in (
        explain_openssh("gpu01", rc, data),
        explain_no_shell("gpu01", rc, data, data),
        explain_login(HERE, OSError(data.decode("latin-1"))),
    ):
        assert failure.sentence
        assert visible(failure.sentence) == failure.sentence
