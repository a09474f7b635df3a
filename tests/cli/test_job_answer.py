"""What options and settings allow to be asked of the nodes of a job."""

from pathlib import Path

import pytest

from slurmtop.cli.job_answer import look_settings
from slurmtop.cli.options import Options, parse_arguments


def allowed(tmp_path: Path, text: str = "", **options: object) -> Options:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return Options(config=str(path), **options)  # type: ignore[arg-type]


def test_the_usual(tmp_path: Path) -> None:
    looks = look_settings(allowed(tmp_path), once=False)
    assert (looks.nodes, looks.stacks, looks.always, looks.once) == (True, True, False, False)
    assert (looks.sudo, looks.why_not) == (False, "")
    assert looks.tools is not None
    assert "any:/usr/bin/py-spy" in looks.tools


def test_sudo_and_the_tool_come_from_the_settings(tmp_path: Path) -> None:
    text = "node_sudo: true\nstacks:\n  tool: /shared/bin/py-spy\n"
    looks = look_settings(allowed(tmp_path, text), once=True)
    assert looks.sudo
    assert looks.once
    assert looks.tools is not None
    assert looks.tools[0] == "any:/shared/bin/py-spy"


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        ("", {"no_nodes": True}, "--no-nodes"),
        ("", {"node_access": "off"}, "the settings say so (node_access: off, --node-access)"),
        ("node_access: off\n", {}, "the settings say so (node_access: off, "),
    ],
)
def test_nodes_are_left_alone(tmp_path: Path, text: str, more: dict[str, object], why: str) -> None:
    looks = look_settings(allowed(tmp_path, text, **more), once=True)
    assert not looks.nodes
    assert looks.why_not.startswith(why)


@pytest.mark.parametrize("command", ["why", "triage"])
def test_the_options_of_a_look(command: str) -> None:
    told = parse_arguments([command, "4711", "--no-nodes", "--no-stacks", "--look"])
    assert (told.no_nodes, told.no_stacks, told.look) == (True, True, True)
    told = parse_arguments([command, "4711"])
    assert (told.no_nodes, told.no_stacks, told.look) == (False, False, False)
