"""Settings: what is read, and how an error names the file, the line and the nearest key."""

import os
from pathlib import Path

import pytest

from slurmtop.config import (
    LARGEST_FILE,
    SETTINGS,
    Config,
    ConfigError,
    NodeAccess,
    config_path,
    load_config,
)
from slurmtop.ui.keys import KEYS

IDS = [key.id for key in KEYS]


def load(tmp_path: Path, text: str, site: str | None = None) -> Config:
    own = tmp_path / "config.yaml"
    own.write_text(text, encoding="utf-8")
    site_path = tmp_path / "site.yaml"
    if site is not None:
        site_path.write_text(site, encoding="utf-8")
    return load_config(own, site_path=site_path, action_ids=IDS)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    sentence = str(caught.value)
    assert str(tmp_path / "config.yaml") in sentence
    assert "\n" not in sentence
    return sentence


def test_no_file_is_the_defaults(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert load_config(missing, site_path=missing, action_ids=IDS) == Config()
    assert load_config(None, site_path=None, action_ids=IDS) == Config()


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "x.yaml", site_path=None, action_ids=IDS, must_exist=True)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing\n") == Config()


def test_every_setting(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "theme: slurmtop-light\nqueue_interval_s: 30\nread_only: true\nall_users: true\n"
        "syslog: true\nnode_access: srun\n"
        "exporter_url: http://{host}:9400/metrics\nprometheus_url: https://prom.example:9090\n"
        "dcgm: off\n"
        "stacks: {tool: {x86_64: /shared/x86/py-spy, aarch64: /shared/arm/py-spy}}\n"
        "node_sudo: true\n"
        "keymap:\n  jobs.sort: f5\n  app.jobs: [1, f1]\n",
    )
    assert config == Config(
        theme="slurmtop-light",
        queue_interval_s=30.0,
        read_only=True,
        all_users=True,
        syslog=True,
        node_access=NodeAccess.SRUN,
        node_access_from=str(tmp_path / "config.yaml"),
        exporter_url="http://{host}:9400/metrics",
        prometheus_url="https://prom.example:9090",
        dcgm="off",
        stacks=(("x86_64", "/shared/x86/py-spy"), ("aarch64", "/shared/arm/py-spy")),
        node_sudo=True,
        keymap=(("jobs.sort", ("f5",)), ("app.jobs", ("1", "f1"))),
        read_only_from=str(tmp_path / "config.yaml"),
    )
    assert set(SETTINGS) == {
        "theme",
        "queue_interval_s",
        "read_only",
        "all_users",
        "syslog",
        "node_access",
        "exporter_url",
        "prometheus_url",
        "dcgm",
        "stacks",
        "node_sudo",
        "keymap",
    }


@pytest.mark.parametrize(
    "line",
    [
        "exporter_url: gpu01:9400",
        "exporter_url: file:///etc/passwd",
        "exporter_url: http://gpu01:9400/metrics",
        "exporter_url: http://[{host}/metrics",
        "prometheus_url: 'http://'",
        "prometheus_url: 9090",
        "dcgm: yes please",
        "dcgm: 1",
    ],
)
def test_addresses_are_http_and_name_the_node_and_dcgm_is_one_of_three(
    tmp_path: Path, line: str
) -> None:
    with pytest.raises(ConfigError, match=line.split(":")[0]):
        load(tmp_path, line)


def test_one_tool_for_all_machines(tmp_path: Path) -> None:
    config = load(tmp_path, "stacks:\n  tool: /usr/local/bin/py-spy\n")
    assert config.stacks == (("any", "/usr/local/bin/py-spy"),)


@pytest.mark.parametrize(
    "value",
    ["py-spy", "{tool: py-spy}", "{tool: '/a b'}", "{tool: '/a;b'}", "{tool: {'x;y': /a}}", "{}"],
)
def test_a_tool_is_an_absolute_path_that_needs_no_quotes(tmp_path: Path, value: str) -> None:
    assert "line 1: stacks: " in refusal(tmp_path, f"stacks: {value}\n")


def test_which_file_made_it_read_only(tmp_path: Path) -> None:
    own, site = str(tmp_path / "config.yaml"), str(tmp_path / "site.yaml")
    assert load(tmp_path, "").read_only_from == ""
    assert load(tmp_path, "", "read_only: true").read_only_from == site
    assert load(tmp_path, "read_only: true", "read_only: true").read_only_from == own
    assert load(tmp_path, "read_only: true", "read_only: false").read_only_from == own


def test_ones_own_word_stands_above_the_sites(tmp_path: Path) -> None:
    config = load(tmp_path, "read_only: false", "read_only: true")
    assert (config.read_only, config.read_only_from) == (False, "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("theme: nord\nsyslog: maybe\n", "line 2: syslog: true or false is wanted"),
        ("sislog: true\n", "line 1: no setting 'sislog'; did you mean 'syslog'?"),
    ],
)
def test_syslog_is_yes_or_no(tmp_path: Path, text: str, says: str) -> None:
    assert says in refusal(tmp_path, text)


def test_the_floor_is_kept_and_said(tmp_path: Path) -> None:
    config = load(tmp_path, "queue_interval_s: 5")
    assert config.queue_interval_s == 20.0
    assert "20" in config.notes[0]


def test_the_site_moves_the_floor(tmp_path: Path) -> None:
    config = load(tmp_path, "queue_interval_s: 30", "queue_interval_s: 60")
    assert config.queue_interval_s == 60.0
    assert "this site's floor" in config.notes[0]
    assert load(tmp_path, "", "queue_interval_s: 60").queue_interval_s == 60.0
    lower = load(tmp_path, "queue_interval_s: 5", "queue_interval_s: 5")
    assert (lower.queue_interval_s, lower.notes) == (5.0, ())
    assert load(tmp_path, "", "queue_interval_s: 5").queue_interval_s == 20.0


def test_the_site_gives_defaults(tmp_path: Path) -> None:
    site = "read_only: true\ntheme: nord\nkeymap: {jobs.sort: f5, jobs.copy: c}"
    assert load(tmp_path, "", site).read_only
    config = load(tmp_path, "read_only: false\nkeymap: {jobs.copy: f9}", site)
    assert not config.read_only
    assert config.theme == "nord"
    assert dict(config.keymap) == {"jobs.sort": ("f5",), "jobs.copy": ("f9",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read_only: true\nthem: x\n", ["line 2", "'them'", "did you mean 'theme'?"]),
        ("\nqueue_interval: 30\n", ["line 2", "did you mean 'queue_interval_s'?"]),
        ("zzzzzz: 1\n", ["line 1", "known are"]),
        ("theme: x\nread_only: maybe\n", ["line 2", "read_only", "true or false", "'maybe'"]),
        ("read_only: 1\n", ["line 1", "true or false"]),
        ("queue_interval_s: fast\n", ["line 1", "number of seconds", "'fast'"]),
        ("queue_interval_s: true\n", ["line 1", "number of seconds"]),
        ("queue_interval_s: .nan\n", ["line 1", "between"]),
        ("queue_interval_s: 0.1\n", ["line 1", "between 2 and 3600"]),
        ("theme: [a]\n", ["line 1", "theme", "a name is wanted"]),
        ("keymap: f5\n", ["line 1", "keymap"]),
        ("theme: a\nread_only: true\ntheme: b\n", ["line 3", "'theme'", "again", "line 1"]),
        ("keymap:\n  jobs.sort: f5\n  jobs.sort: f6\n", ["line 3", "'jobs.sort'", "line 2"]),
        ("{theme: a, theme: a}\n", ["line 1", "'theme'", "again"]),
        ("theme: x\nkeymap:\n  jobs.sorted: f5\n", ["line 3", "did you mean 'jobs.sort'?"]),
        ("keymap:\n  jobs.sort: on\n", ["line 2", "jobs.sort", "True"]),
        ("keymap:\n  jobs.sort: []\n", ["line 2", "a key"]),
        ("keymap:\n  jobs.sort: 'a,b'\n", ["line 2", "a key"]),
        ("- a\n- b\n", ["line 1", "settings are lines"]),
        ("theme: [a\nx: y\n", ["line", "not YAML"]),
        ("theme: 'open\n", ["line", "not YAML"]),
        ("a: b: c\n", ["line 1", "not YAML"]),
        ("\tx: 1\n", ["line 1", "not YAML"]),
        ("theme: !!python/object/apply:os.system [x]\n", ["line 1", "not YAML"]),
        ("theme: \x00\n", ["not YAML"]),
        ("a: &a [*a, *a]\n" + "b: " + "[" * 3_000 + "\n", ["config.yaml"]),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, words: list[str]) -> None:
    sentence = refusal(tmp_path, text)
    for word in words:
        assert word in sentence, sentence


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    for named in (False, True):
        with pytest.raises(ConfigError, match="cannot be read: it is a folder, not a file"):
            load_config(tmp_path, site_path=None, action_ids=IDS, must_exist=named)


@pytest.mark.parametrize("named", [False, True])
def test_only_a_plain_file_of_some_size_is_read(tmp_path: Path, named: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (LARGEST_FILE + 1))
    for path, word in ((pipe, "a pipe"), (Path("/dev/zero"), "a device"), (large, "larger")):
        with pytest.raises(ConfigError, match=f"{path}: cannot be read: it is {word}"):
            load_config(path, site_path=None, action_ids=IDS, must_exist=named)


def test_odd_bytes_never_raise(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"theme: \xff\xfe\n")
    assert load_config(path, site_path=None, action_ids=IDS).theme


def test_where_the_settings_are() -> None:
    home = Path("/home/anna")
    assert config_path({}, home) == Path("/home/anna/.config/slurmtop/config.yaml")
    assert config_path({"XDG_CONFIG_HOME": "/x"}, home) == Path("/x/slurmtop/config.yaml")
    assert config_path({"XDG_CONFIG_HOME": "rel"}, home) == Path(
        "/home/anna/.config/slurmtop/config.yaml"
    )


def test_a_site_that_closes_its_nodes_means_everybody(tmp_path: Path) -> None:
    config = load(tmp_path, "node_access: ssh\n", site="node_access: off\n")
    assert config.node_access is NodeAccess.OFF
    assert config.node_access_from == str(tmp_path / "site.yaml")
    config = load(tmp_path, "node_access: off\n", site="node_access: ssh\n")
    assert config.node_access is NodeAccess.OFF
    assert config.node_access_from == str(tmp_path / "config.yaml")
    config = load(tmp_path, "", site="node_access: openssh\n")
    assert config.node_access is NodeAccess.OPENSSH
    assert "one of auto, ssh, openssh, srun, off is wanted" in refusal(
        tmp_path, "node_access: telnet\n"
    )
