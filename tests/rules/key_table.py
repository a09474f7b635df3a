"""Print the README's key table: ``python -m tests.rules.key_table [--write]``."""

import sys
from pathlib import Path

from slurmtop.ui.keys import KEYS, key_sign

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- keys -->", "<!-- /keys -->"


def table() -> str:
    lines = ["| key | where | what | name in the keymap |", "|---|---|---|---|"]
    for key in KEYS:
        shown = " ".join(f"`{key_sign(name)}`" for name in key.keys)
        lines.append(f"| {shown} | {', '.join(key.scopes)} | {key.help} | `{key.id}` |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    head, rest = text.split(START, 1)
    _, tail = rest.split(END, 1)
    return f"{head}{START}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        path = ROOT / "README.md"
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())
