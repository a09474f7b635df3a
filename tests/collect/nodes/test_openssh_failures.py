"""What ``ssh`` printed, in words: whose trouble it is, and what opens it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.nodes.openssh_failures import explain_openssh
from slurmtop.model.snapshot import Trouble

#: What the outer ssh writes where its jump host failed.
BEHIND_JUMP = (
    b"kex_exchange_identification: Connection closed by remote host\r\n"
    b"Connection closed by UNKNOWN port 65535\r\n"
)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"ssh: connect to host jump1 port 2200: Connection refused\r\n", "jump1 refuses"),
        (b"ssh: connect to host jump1 port 22: No route to host\r\n", "no route to jump1"),
        (b"ssh: connect to host jump1 port 22: Connection timed out\r\n", "jump1 did not answer"),
        (b"ssh: connect to host jump1 port 22: Odd thing\r\n", "ssh to jump1"),
        (b"ssh: Could not resolve hostname jump1: Name or service not known\r\n", "name jump1"),
        (b"alice@jump1: Permission denied (publickey).\r\n", "jump1 refused every key of alice"),
        (b"alice@jump1: Permission denied (password).\r\n", "jump1 asks questions"),
        (
            b"No ED25519 host key is known for [jump1]:2200 and you have requested strict "
            b"checking.\r\nHost key verification failed.\r\n",
            "host key of jump1 is not known",
        ),
        (
            b"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
            b"Host key for jump1 has changed and you have requested strict checking.\r\n"
            b"Host key verification failed.\r\n",
            "THE HOST KEY OF jump1 HAS CHANGED",
        ),
    ],
)
def test_the_trouble_of_a_jump_host_is_not_told_as_the_nodes(said: bytes, words: str) -> None:
    sentence = explain_openssh("gpu01", 255, said + BEHIND_JUMP).sentence
    assert sentence.startswith("On the way to gpu01: ")
    assert words in sentence
    assert "gpu01 refuse" not in sentence


@pytest.mark.parametrize("name", ["gpu01", "GPU01", "gpu01.cluster.example"])
def test_a_message_about_the_node_itself_is_told_of_it(name: str) -> None:
    said = f"ssh: connect to host {name} port 22: Connection refused\r\n".encode()
    assert explain_openssh("gpu01", 255, said).sentence.startswith("gpu01 refuses connections")


def test_what_a_jump_host_says_of_the_node_is_told_of_the_node() -> None:
    said = (
        b"channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding failed\r\n"
    )
    failure = explain_openssh("gpu01", 255, said + BEHIND_JUMP)
    assert failure.trouble is Trouble.DOWN
    assert "jump host could not open a way to gpu01: connect failed: Connection refused" in (
        failure.sentence
    )
    said = b"channel 0: open failed: administratively prohibited: open failed\r\n"
    failure = explain_openssh("gpu01", 255, said + BEHIND_JUMP)
    assert (failure.trouble, "AllowTcpForwarding" in failure.sentence) == (Trouble.DENIED, True)


def test_a_way_that_is_closed_without_a_word_may_be_either_of_them() -> None:
    sentence = explain_openssh("gpu01", 255, BEHIND_JUMP).sentence
    assert sentence.startswith("gpu01, or a host before it, closed the connection")


BOOTING = (
    b"System is booting up. Unprivileged users are not permitted to log in yet. Please come back "
    b"later. For technical details, see pam_nologin(8).\r\n"
)


@pytest.mark.parametrize(
    ("said", "trouble", "words"),
    [
        (BOOTING, Trouble.BUSY, "System is booting up."),
        (
            b"Your account has expired; please contact your system administrator.\r\n",
            Trouble.DENIED,
            "Your account has expired",
        ),
        (b"There were too many logins for 'alice'.\r\n", Trouble.BUSY, "too many logins for"),
        # The file of an admin's own words, and a limit of some other module.
        (b"Maintenance until 18:00.\r\n", Trouble.BUSY, "Maintenance until 18:00"),
    ],
)
def test_the_nodes_own_reason_is_told(said: bytes, trouble: Trouble, words: str) -> None:
    failure = explain_openssh("gpu01", 255, said + b"Connection closed by 10.0.0.1 port 22\r\n")
    assert (failure.trouble, words in failure.sentence) == (trouble, True), failure.sentence
    assert "MaxStartups" not in failure.sentence
    assert said.decode().strip() in failure.raw


def test_the_reason_of_a_disconnect_is_the_nodes_own() -> None:
    said = (
        b"Received disconnect from 10.0.0.1 port 22:12: this host is being drained\r\n"
        b"Disconnected from 10.0.0.1 port 22\r\n"
        b"Connection closed by 10.0.0.1 port 22\r\n"
    )
    assert "it said 'this host is being drained'" in explain_openssh("gpu01", 255, said).sentence


def changed(file: str, name: str) -> bytes:
    return (
        f"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
        f"Offending ED25519 key in {file}:3\r\n  remove with:\r\n"
        f'  ssh-keygen -f "{file}" -R "{name}"\r\n'
        f"Host key for {name} has changed and you have requested strict checking.\r\n"
        f"Host key verification failed.\r\n"
    ).encode()


def test_a_changed_key_is_taken_out_of_the_file_and_under_the_name_that_ssh_tells() -> None:
    failure = explain_openssh("gpu01", 255, changed("/home/a b/known", "[gpu01]:2222"))
    assert failure.copy == "ssh-keygen -f '/home/a b/known' -R '[gpu01]:2222'"
    assert failure.sentence.endswith(failure.copy)
    assert "/home/a b/known, line 3" in failure.sentence


def test_only_the_site_changes_a_key_in_its_own_file() -> None:
    failure = explain_openssh("gpu01", 255, changed("/etc/ssh/ssh_known_hosts", "gpu01"))
    assert (failure.copy, "ssh-keygen" in failure.sentence) == ("", False)
    assert "/etc/ssh/ssh_known_hosts, line 3, a file of the site" in failure.sentence


@given(st.text(alphabet=" @:[]()/\n.abn019", max_size=200))
def test_any_words_are_a_sentence(text: str) -> None:
    signs = "Host key for {} has changed IDENTIFICATION HAS CHANGED\nssh: connect to host {} port 9"
    for said in (text, signs.format(text, text), f"{text}: Permission denied ({text})"):
        failure = explain_openssh("gpu01", 255, said.encode())
        assert failure.sentence.endswith(failure.copy)
