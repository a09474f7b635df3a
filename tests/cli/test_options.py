"""The command line: every wrong use is one line and 64, nothing ever shows a traceback."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurmtop.cli.errors import UsageError
from slurmtop.cli.main import main
from slurmtop.cli.options import parse_arguments


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], {"command": "tui", "read_only": False, "cluster": None}),
        (["--read-only", "--theme", "nord"], {"read_only": True, "theme": "nord"}),
        (["--all-users"], {"command": "tui", "all_users": True}),
        (["--replay", "d"], {"replay": "d"}),
        (["why", "4711"], {"command": "why", "job": "4711", "json": False}),
        (["why", "4711_3", "--json"], {"job": "4711_3", "json": True}),
        (["why", "4711", "--copy", "--cluster", "beta"], {"copy": True, "cluster": "beta"}),
        (["--cluster", "beta", "why", "4711"], {"cluster": "beta"}),
        (["--cluster", "beta", "why", "4711", "--cluster", "gamma"], {"cluster": "gamma"}),
        (["jobs", "--filter", "state:failed", "--all-users"], {"query": "state:failed"}),
        (["jobs", "--json", "--record", "x"], {"json": True, "record": "x"}),
        (["demo"], {"command": "demo", "scenario": None, "speed": 20.0}),
        (["demo", "busy", "--speed", "60"], {"scenario": "busy", "speed": 60.0}),
        (["demo", "--read-only"], {"read_only": True}),
    ],
)
def test_what_is_understood(arguments: list[str], wanted: dict[str, object]) -> None:
    options = parse_arguments(arguments)
    assert {name: getattr(options, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["why"], "JOB"),
        (["why", "4711", "--json", "--copy"], "not allowed"),
        (["blah"], "invalid choice"),
        (["4711"], "did you mean: slurmtop why 4711"),
        (["--reado"], "unrecognized"),
        (["--record", "a", "--replay", "b"], "exclude"),
        (["--config", ""], "--config wants a path"),
        (["--replay", "a\0b"], "--replay wants a path"),
        (["--theme", " "], "--theme wants a name"),
        (["demo", "--speed", "fast"], "a number from"),
        (["demo", "--speed", "nan"], "a number from"),
        (["jobs", "extra"], "unrecognized"),
        (["why", "4711", "\x1b[2J"], "␛[2J"),
    ],
)
def test_what_is_not(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError):
        parse_arguments(arguments)
    assert main(arguments) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert says in shown.err
    assert shown.err.startswith("slurmtop: ")
    assert shown.err.count("\n") == 1
    assert "\x1b" not in shown.err


@pytest.mark.parametrize(
    "arguments", [["--help"], ["why", "--help"], ["demo", "-h"], ["--version"]]
)
def test_help_and_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "slurmtop" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["cancel", "requeue", "hold", "release", "signal"])
def test_only_what_takes_a_step_offers_one(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert ("a step: 4711.0" in told) == (verb in ("cancel", "signal"))


WORDS = st.one_of(
    st.sampled_from(
        [
            "why",
            "jobs",
            "demo",
            "--json",
            "--copy",
            "--cluster",
            "--config",
            "--record",
            "--replay",
            "--filter",
            "--all-users",
            "--read-only",
            "--theme",
            "--speed",
            "4711",
            "4711_3",
            "4711+1",
            "4711_[1-3]",
            "./4711",
            "-",
            "--",
            "0",
            "all",
            "a,b",
            "nosuchfolder",
            "=",
            "--cluster=x",
        ]
    ),
    st.text(max_size=12),
    st.text(alphabet="\0\x1b\n\udcff/~-_[]4", max_size=6),
)


@given(arguments=st.lists(WORDS, max_size=5))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_arguments_end_in_a_traceback(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    monkeypatch.setattr("slurmtop.cli.main.has_terminal", lambda: False)
    capsys.readouterr()
    status = main(arguments)
    shown = capsys.readouterr()
    assert status in (0, 1, 2, 64)
    assert "fault of slurmtop" not in shown.err
    assert "Traceback" not in shown.out + shown.err
    if status in (1, 64):
        assert shown.err.count("\n") == 1
        assert shown.err.startswith("slurmtop: ")
