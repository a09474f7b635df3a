"""Documents that must not drift from the code."""

import argparse
import ast
import re
from datetime import UTC, datetime
from pathlib import Path

from slurmtop.cli.action_report import Report, report_dict
from slurmtop.cli.options import build_parser
from slurmtop.config import SETTINGS
from slurmtop.control.actions import Details, Kind, Recipient, Target
from slurmtop.control.commands import argvs_for
from slurmtop.control.outcome import Result
from slurmtop.demo import SCENARIOS
from slurmtop.model.ids import JobKey
from slurmtop.store.node_query import NODE_ALIASES, NODE_KEYS
from slurmtop.store.query import parse_query
from slurmtop.store.query_keys import ALIASES, QUERY_KEYS
from slurmtop.ui.present.help import help_lines
from slurmtop.ui.present.spans import plain
from tests.rules.key_table import with_table

ROOT = Path(__file__).resolve().parents[2]
#: Programs that a login node or a cluster may offer and that slurmtop could start.
PROGRAMS = re.compile(
    r"^(squeue|scontrol|sinfo|sacct|scancel|sdiag|sbatch|srun|salloc|sstat|sprio|sshare|sacctmgr|"
    r"ssh|scp|nvidia-smi|dcgmi|amd-smi|rocm-smi|py-spy|cat|sh|bash|sudo|logger|pdsh|kill|ps|dmesg)$"
)


def programs_in_code() -> set[str]:
    """Every whole string that is a program's name, in the rooms that may start one.

    The demo starts nothing; parse and the pure rooms only read and speak of programs.
    """
    found: set[str] = set()
    for room in ("collect", "control", "cli", "ui"):
        for path in sorted((ROOT / "slurmtop" / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            # The keys of a table speak of programs, e.g. of what each would cost.
            keys = {
                id(key)
                for node in ast.walk(tree)
                if isinstance(node, ast.Dict)
                for key in node.keys
            }
            for node in ast.walk(tree):
                if not isinstance(node, ast.Constant) or id(node) in keys:
                    continue
                if isinstance(node.value, str) and PROGRAMS.match(node.value):
                    found.add(node.value)
    return found


def programs_in_security_page() -> set[str]:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = text.split("## Commands", 1)[1].split("\n## ", 1)[0]
    return {
        word
        for word in re.findall(r"^\| `([a-z-]+)", section, re.MULTILINE)
        if PROGRAMS.match(word)
    }


def test_security_page_lists_exactly_the_programs_that_are_started() -> None:
    assert programs_in_security_page() == programs_in_code()


def test_security_page_has_every_word_of_the_commands_that_act() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    section = text.split("## Commands", 1)[1].split("\n## ", 1)[0]
    target = Target(key=JobKey("", "4711"), ids=("4711",), name="", user="", state_word="RUNNING")
    words: set[str] = set()
    for kind in Kind:
        for recipient in (Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING):
            details = Details(
                signal="USR1", recipient=recipient, limit_minutes=5, exclude=("gpu01",)
            )
            for argv in argvs_for(kind, [target], "", details):
                words |= {word.split("=", 1)[0] for word in argv if not word[0].isdigit()}
                words |= {word.split("=", 1)[0] for word in argv if "=" in word}
    assert len(words) > 8
    assert {word for word in words if word not in section} == set()


def test_the_control_page_names_every_outcome_and_every_field_of_the_json() -> None:
    text = (ROOT / "docs" / "control.md").read_text(encoding="utf-8")
    for result in Result:
        assert f"`{result.name.lower()}`" in text, result
    report = Report(kind=Kind.CANCEL, started_at=datetime.now(UTC))
    for name in report_dict(report):
        assert name == "slurmtop" or f"`{name}`" in text, name


def test_every_setting_is_on_its_page() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)
    assert set(rows) == set(SETTINGS)


def test_the_nodes_page_is_what_the_filter_of_nodes_knows() -> None:
    text = (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+):` \|([^|]*)\|", text, re.MULTILINE)
    assert [key for key, _ in rows] == list(NODE_KEYS)
    told = {name: key for key, also in rows for name in (key, *re.findall(r"`([a-z]+):`", also))}
    assert told == NODE_ALIASES


def test_the_readme_key_table_is_the_table() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(text) == text


def test_the_readme_says_which_name_to_install() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    installs = re.findall(r"^.*\b(?:pip|pipx|uv tool) install.*$", text, re.MULTILINE)
    assert installs
    for line in installs:
        assert not re.search(r"install\s+slurmtop(\s|$)", line), line


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    found: set[str] = set()
    for action in parser._actions:
        found |= {name for name in action.option_strings if name.startswith("--")}
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found |= options_of(inner)
    return found


def test_the_readme_lists_exactly_the_options_and_the_scenarios() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("| option |", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| (`--[^|]+) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"--[a-z-]+", row)} == options_of(
        build_parser()
    )
    (demo,) = re.findall(r"^\| `slurmtop demo.*scenarios: ([^|]+) \|$", text, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", demo)) == set(SCENARIOS)


def test_the_filter_page_is_what_the_filter_knows() -> None:
    text = (ROOT / "docs" / "filter.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+):` \|([^|]*)\|", text, re.MULTILINE)
    assert [key for key, _ in rows] == list(QUERY_KEYS)
    told = {name: key for key, also in rows for name in (key, *re.findall(r"`([a-z]+):`", also))}
    assert told == ALIASES
    examples = text.split("```filter\n", 1)[1].split("```", 1)[0].splitlines()
    assert len(examples) >= 4
    for example in examples:
        query = parse_query(example)
        assert query.error is None, example
        assert query, example


def test_the_help_names_the_filter_page() -> None:
    assert "docs/filter.md" in "\n".join(plain(line) for line in help_lines((), {}, 80))


def test_every_room_is_in_the_architecture_page() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for folder in sorted((ROOT / "slurmtop").iterdir()):
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"`{folder.name}`" in text, folder.name


def test_fixtures_have_a_manifest() -> None:
    text = (ROOT / "fixtures" / "MANIFEST.md").read_text(encoding="utf-8")
    for folder in sorted((ROOT / "fixtures").rglob("*")):
        if folder.is_dir() and any(item.is_file() for item in folder.iterdir()):
            assert f"`{folder.relative_to(ROOT / 'fixtures')}`" in text, folder
