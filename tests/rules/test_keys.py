"""One table of keys feeds everything; these hold it to that."""

from pathlib import Path

from slurmtop.ui.keys import KEYS, Level, conflicts

ROOT = Path(__file__).resolve().parents[2]


def test_ids_are_unique() -> None:
    ids = [key.id for key in KEYS]
    assert len(ids) == len(set(ids))


def test_no_key_does_two_things_in_one_scope() -> None:
    assert conflicts() == []


def test_every_key_has_words() -> None:
    for key in KEYS:
        assert key.label
        assert key.help
        assert key.keys


def test_destructive_keys_are_capitals() -> None:
    for key in KEYS:
        if key.level is not Level.SAFE:
            assert all(name.isupper() for name in key.keys if len(name) == 1), key.id


def test_readme_lists_every_key() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for key in KEYS:
        assert f"`{key.id}`" in readme, (
            f"README lacks {key.id}: run python -m tests.rules.key_table"
        )
