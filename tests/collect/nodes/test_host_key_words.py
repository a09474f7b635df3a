"""Advice about host keys: only what works with the settings of that host."""

from slurmtop.collect.nodes.host_key_words import explain_key
from slurmtop.model.snapshot import Failure
from slurmtop.parse.known_hosts import KnownKey, parse_known_hosts
from slurmtop.parse.ssh_config import parse_ssh_g

ED = "AAAAC3NzaC1lZDI1NTE5AAAAIKR3Zd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4K"
OLD = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPA5Zd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4KZd4K"
SHOWN = KnownKey("", "ssh-ed25519", ED)
SITE = "/etc/ssh/ssh_known_hosts"


def told(said: str, *files: str, error: str = "not trusted") -> Failure:
    """For what ``ssh -G`` says, and known-hosts files that hold this."""
    settings = parse_ssh_g(f"host gpu01\nglobalknownhostsfile {SITE}\n{said}".encode())
    known = parse_known_hosts(*(file.encode() for file in files))
    keys = known.keys_for(settings.key_name, settings.key_port)
    return explain_key("gpu01", settings, keys, SHOWN, shown_ca=False, error=error)


def test_a_line_is_added_to_a_file_that_is_read() -> None:
    failure = told("hostname gpu01\nuserknownhostsfile /dev/null /home/a/hpc_hosts\n")
    assert f"then add this line to /home/a/hpc_hosts: gpu01 ssh-ed25519 {ED}" in failure.sentence
    assert failure.copy == f"gpu01 ssh-ed25519 {ED}"
    assert "~/.ssh/known_hosts" in told("hostname gpu01\n").sentence


def test_where_no_file_of_the_user_is_read_none_is_named() -> None:
    for none in ("/dev/null", "none"):
        failure = told(f"hostname gpu01\nuserknownhostsfile {none}\n")
        assert "~/.ssh" not in failure.sentence
        assert "UserKnownHostsFile is /dev/null" in failure.sentence
        assert f"ask your site to add it to {SITE}" in failure.sentence


def test_a_changed_key_is_taken_out_of_the_file_that_it_stands_in() -> None:
    two = "hostname 10.0.0.3\nport 2222\nuserknownhostsfile /home/a/one /home/a/two\n"
    failure = told(two, "other x y\n", f"# mine\n[10.0.0.3]:2222 {OLD}\n")
    assert "another one stands in /home/a/two, line 2." in failure.sentence
    assert failure.copy == "ssh-keygen -f /home/a/two -R '[10.0.0.3]:2222'"


def test_a_changed_key_in_the_sites_file_is_the_sites() -> None:
    failure = told("hostname gpu01\nuserknownhostsfile /home/a/one\n", "", f"gpu01 {OLD}\n")
    assert f"stands in {SITE}, line 1." in failure.sentence
    assert "ssh-keygen" not in failure.sentence
    assert not failure.copy


def test_ssh_keygen_finds_no_line_with_a_pattern() -> None:
    failure = told("hostname gpu01\nuserknownhostsfile /home/a/one\n", f"gpu* {OLD}\n")
    assert "ssh-keygen" not in failure.sentence
    assert "take that line out" in failure.sentence


def test_a_revoked_key_is_told_where_it_stands() -> None:
    site = f"@revoked * ssh-ed25519 {ED}\n"
    failure = told(
        "hostname gpu01\nuserknownhostsfile /home/a/one\n", "", site, error="Host key is revoked"
    )
    assert f"marked as revoked in {SITE}, line 1:" in failure.sentence
