#!/usr/bin/env python3
"""Score a triage command against the cases of a folder.

    python -m tests.cases.score [--json] CASES_DIR -- COMMAND ARG...   run and score
    python -m tests.cases.score --check CASES_DIR                      check the case files

COMMAND is run once per case with the case's input directory appended (30 s each, 2 at a time). It
must print one JSON verdict on stdout; exit codes 0 and 2 are fine. Needs Python 3.11 and PyYAML.

The rules stand in ``tests/cases/nccl/README.md``. They came with the cases and are not ours to
bend: a case that is judged wrongly by them stays wrong. ``test_nccl_cases`` uses the same
functions without a child process a case.
"""

import contextlib
import ipaddress
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml

LIMIT_S = 30
EVIDENCE_ITEMS, EVIDENCE_CHARS = 8, 400  # what is shown to a person: more is not looked at
PARALLEL = 2
OK_EXIT = (0, 2)
STATES = ("pending", "hung", "failed", "slow", "recovering", "healthy", "idle", "unknown")
CONFIDENCES = ("certain", "likely", "unknown")
Answer = dict[str, Any]
Key = int | str | None
Named = list[tuple[Key, str | None]]

ACCEPT_KEYS = {"state", "class", "culprit_ranks", "culprit_hosts"}


# ---------------------------------------------------------------- small helpers
def squeeze(text: object) -> str:
    return " ".join(str(text).split())


def word(value: object) -> str | None:
    """A slug or state word; None for 'nothing said'."""
    if value is None:
        return None
    text = str(value).strip().lower()
    return None if text in ("", "null", "none", "unknown", "undetermined") else text


def rank_key(value: Any) -> Key:
    """int for a rank, None for 'no rank', the raw text for anything else."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(value)
    except (TypeError, ValueError):
        text = str(value).strip()
        return None if text.lower() in ("", "null", "none", "unknown", "-") else text


def host_key(value: object) -> str | None:
    """Lower case; names lose their domain, addresses stay whole."""
    if value is None:
        return None
    text = str(value).strip().lower()
    if text in ("", "null", "none", "unknown", "-"):
        return None
    try:
        ipaddress.ip_address(text)
        return text
    except ValueError:
        return text.split(".")[0]


def rank_set(values: Iterable[Any] | None) -> set[Key] | None:
    if not values:
        return None
    return {rank_key(v) for v in values}


def host_set(values: Iterable[Any] | None) -> set[Key] | None:
    if not values:
        return None
    return {host_key(v) for v in values}


# ---------------------------------------------------------------- the case files
def find_cases(folder: pathlib.Path) -> list[pathlib.Path]:
    def here(path: pathlib.Path) -> list[pathlib.Path]:
        return sorted(
            d
            for d in path.iterdir()
            if d.is_dir() and (d / "expected.yaml").is_file() and (d / "input").is_dir()
        )

    cases = here(folder)
    if not cases and (folder / "nccl").is_dir():
        cases = here(folder / "nccl")
    return cases


def read_families(folder: pathlib.Path) -> dict[str, str]:
    """slug -> heading of CLASSES.md (the family)."""
    for path in (
        folder / "CLASSES.md",
        folder / "nccl" / "CLASSES.md",
        folder.parent / "CLASSES.md",
    ):
        if not path.is_file():
            continue
        families: dict[str, str] = {}
        heading = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                heading = line[3:].strip()
            m = re.match(r"\|\s*([a-z0-9-]+)\s*\|", line)
            if m and heading and m.group(1) not in ("slug",) and set(m.group(1)) != {"-"}:
                families[m.group(1)] = heading
        return families
    return {}


def alternatives(expected: Answer) -> list[Answer]:
    """The main answer and every accepted one, each complete."""
    main = {k: expected.get(k) for k in ACCEPT_KEYS}
    out = [main]
    for item in expected.get("accept") or []:
        out.append({**main, **item})
    return out


def is_not_a_fault(expected: Answer) -> bool:
    slug = expected.get("class") or ""
    return bool(
        expected.get("state") == "healthy"
        or slug == "user-interrupt"
        or slug.startswith("slurm-")
        or bool(expected.get("not_a_fault"))
    )


# ---------------------------------------------------------------- the rules
def named(verdict: Answer) -> Named:
    """[(rank or None, host or None)] of the culprits that name somebody."""
    out: Named = []
    items = verdict.get("culprits") or []
    if isinstance(items, dict):
        items = [items]
    for item in items:
        if isinstance(item, dict):
            rank, host = rank_key(item.get("rank")), host_key(item.get("host"))
        else:
            rank, host = rank_key(item), None
        if rank is not None or host is not None:
            out.append((rank, host))
    return out


def judge_culprits(who: Named, ranks: Any, hosts: Any) -> str:
    """right | abstained | wrong blame, for one complete answer."""
    ranks, hosts = rank_set(ranks), host_set(hosts)
    if ranks is None and hosts is None:
        return "wrong blame" if who else "right"
    named_ranks = {r for r, _ in who if r is not None}
    named_hosts = {h for _, h in who if h is not None}
    if hosts is None:  # only ranks expected, hosts not judged
        if not named_ranks:
            return "abstained"
        return "right" if named_ranks <= ranks else "wrong blame"
    if not who:
        return "abstained"
    if not named_hosts <= hosts:
        return "wrong blame"
    if ranks is None:  # only hosts expected
        # a rank on a right host is not judged, a rank without any host is
        return "wrong blame" if any(h is None for _, h in who) else "right"
    return "right" if named_ranks <= ranks else "wrong blame"


def judge(expected: Answer, verdict: Answer, families: dict[str, str]) -> Answer:
    alts = alternatives(expected)
    unknown = expected.get("confidence") == "unknown"
    state = str(verdict.get("state") or "").strip().lower()
    slug = word(verdict.get("class"))
    if slug is None and state == "healthy":
        slug = "healthy"

    state_ok = [state == a["state"] for a in alts]
    class_ok = [slug == word(a["class"]) for a in alts]

    who = named(verdict)
    outcomes = [judge_culprits(who, a["culprit_ranks"], a["culprit_hosts"]) for a in alts]
    if unknown:
        outcomes = ["right" if not who else o for o in outcomes]
    culprit = "right" if "right" in outcomes else outcomes[0]

    banned_ranks = rank_set(expected.get("must_not_blame_ranks")) or set()
    banned_hosts = host_set(expected.get("must_not_blame_hosts")) or set()
    banned = [x for x in who if x[0] in banned_ranks or x[1] in banned_hosts]
    if banned:
        culprit = "wrong blame"

    texts = []
    for item in (verdict.get("evidence") or [])[:EVIDENCE_ITEMS]:
        texts.append(item.get("text") if isinstance(item, dict) else item)
    shown = squeeze("\n".join(str(t)[:EVIDENCE_CHARS] for t in texts if t is not None))
    wanted = expected.get("evidence") or []
    evidence = any(squeeze(w) in shown for w in wanted) if wanted else None

    whole = not banned and any(
        s and (c or unknown) and o == "right"
        for s, c, o in zip(state_ok, class_ok, outcomes, strict=True)
    )

    if any(class_ok):
        info = "same"
    elif slug is None:
        info = "none given"
    elif families.get(slug) and families.get(slug) == families.get(str(expected.get("class"))):
        info = "same family"
    else:
        info = "other family"
    return {
        "state_right": any(state_ok),
        "class_right": any(class_ok),
        "class_counts": not unknown,
        "class_info": info,
        "culprit": culprit,
        "must_not_blame_hit": bool(banned),
        "evidence_found": evidence,
        "whole_right": whole,
        "got": {"state": state, "class": slug, "culprits": who},
    }


# ---------------------------------------------------------------- running
def load_expected(case: pathlib.Path) -> Answer:
    expected: Answer = yaml.safe_load((case / "expected.yaml").read_text(encoding="utf-8"))
    return expected


def start_row(name: str, expected: Answer) -> Answer:
    """A row of the table before anything was judged."""
    healthy = expected.get("state") == "healthy"
    return {
        "case": name,
        "confidence": expected.get("confidence"),
        "expect_healthy": healthy,
        "not_a_fault": is_not_a_fault(expected),
        "status": "ran",
    }


def run_case(case: pathlib.Path, command: list[str], families: dict[str, str]) -> Answer:
    expected = load_expected(case)
    row = start_row(case.name, expected)
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            proc = subprocess.Popen(
                [*command, str(case / "input")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as exc:
            row.update(status="crashed", detail=str(exc))
            return row
        try:
            code = proc.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()
            row.update(status="timeout", seconds=round(time.monotonic() - start, 1))
            return row
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
        err.seek(0)
        tail = err.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    row["seconds"] = round(time.monotonic() - start, 2)
    if code not in OK_EXIT:
        row.update(status="crashed", detail=f"exit {code} {' '.join(tail)}"[:160])
        return row
    try:
        verdict = json.loads(text)
        if not isinstance(verdict, dict) or "state" not in verdict:
            raise ValueError("no verdict object")
        row.update(judge(expected, verdict, families))
    except (ValueError, TypeError, AttributeError) as exc:
        row.update(status="no JSON", detail=str(exc)[:120])
    return row


def total(rows: list[Answer]) -> dict[str, int]:
    ran = [r for r in rows if r["status"] == "ran"]
    judged_class = [r for r in rows if r["confidence"] != "unknown"]
    with_evidence = [r for r in rows if not r["expect_healthy"]]
    return {
        "cases": len(rows),
        "ran": len(ran),
        "crashed": sum(r["status"] == "crashed" for r in rows),
        "no_json": sum(r["status"] == "no JSON" for r in rows),
        "timeout": sum(r["status"] == "timeout" for r in rows),
        "state_right": sum(r["state_right"] for r in ran),
        "class_right": sum(r["class_right"] for r in ran if r["class_counts"]),
        "family_right": sum(
            r["class_right"] or r["class_info"] == "same family" for r in ran if r["class_counts"]
        ),
        "class_of": len(judged_class),
        "culprit_right": sum(r["culprit"] == "right" for r in ran),
        "culprit_abstained": sum(r["culprit"] == "abstained" for r in ran),
        "wrong_blame": sum(r["culprit"] == "wrong blame" for r in ran),
        "must_not_blame_hits": sum(r["must_not_blame_hit"] for r in ran),
        "evidence_found": sum(bool(r["evidence_found"]) for r in ran if not r["expect_healthy"]),
        "evidence_of": len(with_evidence),
        "whole_right": sum(r["whole_right"] for r in ran),
    }


def totals(rows: list[Answer]) -> dict[str, dict[str, int]]:
    return {
        "all": total(rows),
        "certain_likely": total([r for r in rows if r["confidence"] in ("certain", "likely")]),
        "not_a_fault": total([r for r in rows if r["not_a_fault"]]),
    }


def line_of(row: Answer) -> str:
    if row["status"] != "ran":
        return f"{row['case']:<52} {row['status'].upper()} {row.get('detail', '')}".rstrip()
    got = row["got"]
    who = (
        ",".join(
            (f"r{r}" if r is not None else "") + (f"@{h}" if h else "") for r, h in got["culprits"]
        )
        or "nobody"
    )
    mark = {True: "ok", False: "NO", None: "-"}
    slug = mark[row["class_right"]] if row["class_counts"] else f"({row['class_info']})"
    blame = row["culprit"] + ("!" if row["must_not_blame_hit"] else "")
    return (
        f"{row['case']:<52} state {mark[row['state_right']]:<3} class {slug:<3}"
        f" culprit {blame:<12} "
        f"evidence {mark[row['evidence_found']]:<3} got {got['state']}/{got['class']} {who}"
    )


def summary_of(t: dict[str, int]) -> str:
    return (
        f"{t['cases']} cases, ran {t['ran']}, crashed {t['crashed']}, no JSON {t['no_json']},"
        f" timeout {t['timeout']}\n"
        f"  state right {t['state_right']}/{t['cases']}, class right"
        f" {t['class_right']}/{t['class_of']}, family {t['family_right']}, evidence found"
        f" {t['evidence_found']}/{t['evidence_of']}, wholly right {t['whole_right']}/{t['cases']}\n"
        f"  culprit right {t['culprit_right']}, abstained {t['culprit_abstained']},"
        f" wrong blame {t['wrong_blame']} (of these in must_not_blame {t['must_not_blame_hits']})"
    )


# ---------------------------------------------------------------- checking the case files
def check(folder: pathlib.Path) -> int:
    families, bad = read_families(folder), 0

    def complain(case: pathlib.Path, text: str) -> None:
        nonlocal bad
        bad += 1
        print(f"{case.name}: {text}")

    cases = find_cases(folder)
    for case in cases:
        try:
            exp = yaml.safe_load((case / "expected.yaml").read_text(encoding="utf-8"))
        except yaml.YAMLError as exc:
            complain(case, f"not YAML: {exc}")
            continue
        if "accept_also" in exp:
            complain(case, "accept_also still there")
        if exp.get("state") not in STATES:
            complain(case, f"state {exp.get('state')}")
        if exp.get("confidence") not in CONFIDENCES:
            complain(case, f"confidence {exp.get('confidence')}")
        for key in (
            "class",
            "culprit_ranks",
            "culprit_hosts",
            "collective",
            "evidence",
            "fix",
            "accept",
        ):
            if key not in exp:
                complain(case, f"field {key} missing")
        if not isinstance(exp.get("accept", []), list):
            complain(case, "accept is not a list")
            continue
        banned_r = rank_set(exp.get("must_not_blame_ranks")) or set()
        banned_h = host_set(exp.get("must_not_blame_hosts")) or set()
        for alt in exp.get("accept") or []:
            if not isinstance(alt, dict) or not alt or set(alt) - ACCEPT_KEYS:
                complain(case, f"accept item {alt}")
        for alt in alternatives(exp):
            if alt["state"] not in STATES:
                complain(case, f"state {alt['state']}")
            if families and alt["class"] is not None and alt["class"] not in families:
                complain(case, f"class {alt['class']} not in CLASSES.md")
            if (rank_set(alt["culprit_ranks"]) or set()) & banned_r or (
                host_set(alt["culprit_hosts"]) or set()
            ) & banned_h:
                complain(case, "an accepted culprit is also in must_not_blame")
        body = squeeze(
            "\n".join(
                p.read_bytes().decode("utf-8", "replace")
                for p in sorted((case / "input").rglob("*"))
                if p.is_file()
            )
        )
        for text in exp.get("evidence") or []:
            if squeeze(text) not in body:
                complain(case, f"evidence not in the input: {text}")
    print(f"{len(cases)} cases, {bad} complaints")
    return 1 if bad else 0


def main(argv: list[str]) -> int:
    args: list[str] = argv
    command: list[str] = []
    if "--" in argv:
        cut = argv.index("--")
        args, command = argv[:cut], argv[cut + 1 :]
    flags = {a for a in args if a.startswith("--")}
    places = [a for a in args if not a.startswith("--")]
    if (
        len(places) != 1
        or flags - {"--json", "--check"}
        or (not command and "--check" not in flags)
    ):
        print(__doc__, file=sys.stderr)
        return 64
    folder = pathlib.Path(places[0])
    if not folder.is_dir():
        print(f"no such folder: {folder}", file=sys.stderr)
        return 64
    if "--check" in flags:
        return check(folder)
    families, cases = read_families(folder), find_cases(folder)
    rows = []
    with ThreadPoolExecutor(PARALLEL) as pool:
        for row in pool.map(lambda c: run_case(c, command, families), cases):
            rows.append(row)
            if "--json" not in flags:
                print(line_of(row), flush=True)
    sums = totals(rows)
    if "--json" in flags:
        print(json.dumps(sums, indent=1))
        return 0
    for name, counts in sums.items():
        print(f"\n{name}: {summary_of(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
