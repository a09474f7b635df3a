"""``ssh -G`` and known-hosts files. Sample lines are OpenSSH 9.2p1's own, of invented hosts."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.known_hosts import (
    KnownKey,
    fingerprint,
    known_hosts_name,
    parse_known_hosts,
)
from slurmtop.parse.ssh_config import Jump, SshSettings, expanded, parse_ssh_g

SAID = b"""\
host gpu01
user alice
hostname gpu01.cluster
port 2222
addressfamily inet
controlmaster auto
hashknownhosts yes
hostbasedauthentication no
identitiesonly yes
pubkeyauthentication true
hostkeyalgorithms ssh-ed25519-cert-v01@openssh.com,ssh-ed25519,rsa-sha2-512
controlpath /home/alice/.ssh/cm-alice@gpu01:22
identityagent /run/user/1001/agent
identityfile ~/.ssh/id_rsa
identityfile ~/a b/%h_key
certificatefile ~/.ssh/alice-cert.pub
globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2
userknownhostsfile /home/alice/my known /home/alice/.ssh/gpu01_kh
connecttimeout 7
proxyjump alice@login2:2222,[10.0.0.1]:22,fe80
proxycommand none
"""
ED = "AAAAC3NzaC1lZDI1NTE5AAAAIKR3Zd4KaQsJ0AK1AfQrCscVcJnVT35cDLHty4Q/z9vk"
ED2 = "AAAAC3NzaC1lZDI1NTE5AAAAIPA5rIvY2P+nVXR1QVT22QM8u3RND+slwVcskGI/2bx2"


def test_the_settings_of_one_host() -> None:
    got = parse_ssh_g(SAID)
    assert (got.host, got.hostname, got.port, got.user) == ("gpu01", "gpu01.cluster", 2222, "alice")
    assert got.identityfile == ("~/.ssh/id_rsa", "~/a b/%h_key")
    assert got.certificatefile == ("~/.ssh/alice-cert.pub",)
    assert got.identitiesonly
    assert got.identityagent == "/run/user/1001/agent"
    assert got.userknownhostsfile == ("/home/alice/my known", "/home/alice/.ssh/gpu01_kh")
    assert got.globalknownhostsfile == ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
    assert got.proxyjump == (
        Jump(host="login2", user="alice", port=2222),
        Jump(host="10.0.0.1", port=22),
        Jump(host="fe80"),
    )
    assert got.proxycommand is None
    assert got.controlpath == "/home/alice/.ssh/cm-alice@gpu01:22"
    assert got.connecttimeout_s == 7.0
    assert (got.key_name, got.key_port) == ("gpu01.cluster", 2222)


def test_an_alias_names_the_key_without_a_port() -> None:
    got = parse_ssh_g(SAID + b"hostkeyalias Nodes\n")
    assert (got.key_name, got.key_port) == ("nodes", 22)


def test_nothing_and_no_agent_are_not_the_same() -> None:
    assert parse_ssh_g(b"") == SshSettings()
    assert parse_ssh_g(b"").identityagent is None
    assert parse_ssh_g(b"identityagent none\n").identityagent == ""
    assert parse_ssh_g(b"connecttimeout none\nport x\n").port == 22
    assert parse_ssh_g(b"revokedhostkeys /etc/ssh/krl\n").unsupported == ("revokedhostkeys",)
    assert not parse_ssh_g(b"pubkeyauthentication no\n").pubkeyauthentication


def test_names_of_key_files_are_filled_in() -> None:
    settings = parse_ssh_g(SAID)

    def fill(path: str) -> str:
        return expanded(path, settings, home="/home/al", local_user="al", uid=7)

    assert fill("~/.ssh/id_rsa") == "/home/al/.ssh/id_rsa"
    assert fill("%d/%h-%n-%p-%r-%u-%i-100%%") == "/home/al/gpu01.cluster-gpu01-2222-alice-al-7-100%"
    assert fill("/keys/%Z%") == "/keys/%Z%"


@given(st.binary())
def test_any_bytes_are_settings(data: bytes) -> None:
    got = parse_ssh_g(data)
    assert 0 < got.port < 65536
    expanded("~/%h%n%%%", got, home="/h", local_user="u", uid=1)


@given(st.lists(st.sampled_from(SAID.split(b"\n"))), st.binary(max_size=20))
def test_lines_in_any_order_and_broken_are_settings(lines: list[bytes], junk: bytes) -> None:
    parse_ssh_g(b"\n".join([*lines, junk, *lines]))


def keys(text: str, name: str, port: int = 22) -> list[tuple[str, str]]:
    found = parse_known_hosts(text.encode()).keys_for(name, port)
    return [(key.mark, key.base64) for key in found]


def test_names_lists_patterns_and_exceptions() -> None:
    text = f"""
# a comment
gpu01,10.0.0.11 ssh-ed25519 {ED} a comment
*.cluster,!bad.cluster ssh-ed25519 {ED2}
gpu0? ssh-rsa AAAAB3
"""
    assert keys(text, "GPU01") == [("", ED), ("", "AAAAB3")]
    assert keys(text, "10.0.0.11") == [("", ED)]
    assert keys(text, "a.cluster") == [("", ED2)]
    assert keys(text, "bad.cluster") == []
    assert keys(text, "gpu011") == []
    assert keys(text, "") == []


def test_ports_as_openssh_searches_them() -> None:
    text = f"[gpu01]:2222 ssh-ed25519 {ED}\ngpu01 ssh-ed25519 {ED2}\n"
    assert keys(text, "gpu01", 2222) == [("", ED)]
    assert keys(text, "gpu01") == [("", ED2)]
    # Where nothing stands under the port, the name without one counts.
    assert keys(text, "gpu01", 2200) == [("", ED2)]


def test_what_is_revoked_under_either_name_is_revoked() -> None:
    text = f"[gpu01]:2222 ssh-ed25519 {ED}\n@revoked * ssh-ed25519 {ED}\n"
    assert keys(text, "gpu01", 2222) == [("", ED), ("revoked", ED)]


def test_authorities_and_hashed_names() -> None:
    # Made by `ssh-keygen -H` of OpenSSH 9.2p1 for the name gpu01.
    hashed = "|1|EwKTYK2wfOdZWf1A/v5At02MT48=|K1zn2zBUbhnSiVnZgmPlnS3584g="
    text = f"{hashed} ssh-ed25519 {ED}\n@cert-authority *.c ssh-ed25519 {ED2}\n"
    assert keys(text, "gpu01") == [("", ED)]
    assert keys(text, "gpu02") == []
    assert keys(text, "x.c") == [("cert-authority", ED2)]


def test_a_broken_line_trusts_nobody_and_costs_no_other() -> None:
    text = f"""\
gpu01
gpu01 ssh-ed25519
@unknown gpu01 ssh-ed25519 {ED2}
@revoked gpu01 ssh-ed25519
|1|x|y ssh-ed25519 {ED2}
|2|AAAA|AAAA ssh-ed25519 {ED2}
,, ssh-ed25519 {ED2}
gpu01,,x ssh-ed25519 {ED}
"""
    assert keys(text, "gpu01") == [("", ED)]
    assert keys(text, "") == []


def test_a_pattern_made_to_be_slow_is_not() -> None:
    text = "*a" * 200 + f" ssh-ed25519 {ED}\n"
    assert keys(text, "a" * 199 + "b") == []
    assert keys(text, "a" * 200) == [("", ED)]


@given(st.binary(), st.text(max_size=20), st.integers(1, 65535))
def test_any_bytes_are_known_hosts(data: bytes, name: str, port: int) -> None:
    parse_known_hosts(data, data).keys_for(name, port)
    parse_known_hosts(b"|1|" + data, b"@revoked " + data, b"* ssh-rsa " + data).keys_for(name, port)


@given(st.text(alphabet="ab*?!,.", min_size=1, max_size=12), st.text(alphabet="ab.", max_size=8))
def test_any_pattern_matches_or_does_not(pattern: str, name: str) -> None:
    parse_known_hosts(f"{pattern} ssh-ed25519 {ED}".encode()).keys_for(name)


def test_how_a_key_is_named() -> None:
    assert known_hosts_name("gpu01") == "gpu01"
    assert known_hosts_name("gpu01", 2222) == "[gpu01]:2222"
    assert KnownKey("", "ssh-ed25519", ED).line == f"ssh-ed25519 {ED}"
    # As `ssh-keygen -lf` prints it.
    assert fingerprint(ED) == "SHA256:iPaSgfCqbv2WEcvPOKSSY3+CyQM4AOSranIGShX4A+Q"
    assert fingerprint("no key!") is None
