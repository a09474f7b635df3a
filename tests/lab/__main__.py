"""Command line of the lab: ``python3 -m tests.lab run|score``; see README.md here."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TextIO

from tests.lab.plan import Planned, full, usual

#: By which number the file of rows is handed from root to the cluster's user.
_HANDED = "SLURMTOP_LAB_ROWS"
#: Where bundles are kept, below the home of the cluster's user.
KEPT = ".cache/slurmtop-lab"
ROOT = Path(__file__).resolve().parents[2]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="make the runs that a file of rows lacks")
    run.add_argument("--fault", action="append", metavar="CASE", help="only these cases")
    run.add_argument("--rank", action="append", type=int, help="only these ranks")
    run.add_argument("--sync", action="append", help="only these ways to meet")
    run.add_argument("--no-stacks", action="store_true", help="nodes refuse ptrace")
    run.add_argument("--full", action="store_true", help="the whole matrix")
    run.add_argument("--seed", type=int, default=1, help="for the random seconds (default 1)")
    run.add_argument("--out", default="lab-rows.jsonl", help="the file of rows")
    run.add_argument("--keep", action="store_true", help=f"keep the bundles, in ~/{KEPT}")
    run.add_argument("--dry", action="store_true", help="make the faults; look by hand only")
    run.add_argument("--list", action="store_true", help="say what would be run")
    told = verbs.add_parser("score", help="the table of one or more files of rows")
    told.add_argument("rows", nargs="+", type=Path)
    return parser


def _plan(options: argparse.Namespace) -> list[Planned]:
    mode = "no-stacks" if options.no_stacks else "stacks"
    plan = full(mode, options.seed) if options.full else usual(mode, options.seed)
    return [
        one
        for one in plan
        if (not options.fault or one.case in options.fault)
        and (not options.rank or one.rank in options.rank)
        and (not options.sync or one.sync in options.sync)
    ]


def _as_user(argv: list[str], out: Path) -> None:
    """Go on as the cluster's normal user, inside of it, with the file of rows already open."""
    handle = os.open(out, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    os.set_inheritable(handle, True)
    python = "/usr/bin/python3"
    inner = [".venv/bin/python", "-m", "tests.lab", *argv]
    env = ["--env", "PYTHONPATH=.", "--env", f"{_HANDED}={handle}"]
    os.chdir(ROOT)
    os.execv(python, [python, "-m", "tests.cluster", "exec", "--cwd", ".", *env, "--", *inner])


def _run(options: argparse.Namespace, argv: list[str]) -> int:
    plan = _plan(options)
    if options.list:
        print("\n".join(one.key for one in plan))
        return 0
    if os.geteuid() == 0:
        _as_user(argv, Path(options.out).resolve())
    handed = os.environ.get(_HANDED)
    with (
        os.fdopen(int(handed), "a+", encoding="utf-8")
        if handed
        else Path(options.out).open("a+", encoding="utf-8") as stream
    ):
        return _make(plan, stream, options)


def _make(plan: list[Planned], stream: TextIO, options: argparse.Namespace) -> int:
    """Make what is not there yet. Runs that come to nothing are rows as well, and no error."""
    # Only here: whoever scores rows needs no cluster.
    from tests.cluster.fixtures import alone
    from tests.lab.rows import append, read_rows
    from tests.lab.running import run_one
    from tests.lab.session import sitting

    stream.seek(0)
    there = {row.key for row in read_rows(stream) if row.void is None}
    todo = [one for one in plan if one.key not in there]
    print(f"{len(plan)} runs, {len(plan) - len(todo)} of them are there", flush=True)
    if not todo:
        return 0
    keep = Path.home() / KEPT if options.keep else None
    with alone() as cluster, sitting(cluster, sealed=options.no_stacks, keep=keep) as here:
        for number, planned in enumerate(todo, 1):
            row = run_one(here.cluster, here.faults, planned, here.folder, dry=options.dry)
            append(stream, row)
            said = [
                f"{one.when}: {(one.verdict or {}).get('state')}/{(one.verdict or {}).get('class')}"
                for one in row.looks
            ]
            ended = f"void: {row.void[:300]}" if row.void else "; ".join(said)
            clock = time.strftime("%H:%M:%S")
            print(f"{clock} {number}/{len(todo)} {row.key}: {ended} ({row.took_s} s)", flush=True)
    return 0


def _score(paths: list[Path]) -> int:
    from tests.lab.rows import newest, read_rows
    from tests.lab.score import table

    rows = []
    for path in paths:
        with path.open(encoding="utf-8") as stream:
            rows += read_rows(stream)
    print(table(newest(rows)))
    return 0


def main() -> int:
    argv = sys.argv[1:]
    options = _parser().parse_args(argv)
    return _score(options.rows) if options.verb == "score" else _run(options, argv)


if __name__ == "__main__":
    sys.exit(main())
