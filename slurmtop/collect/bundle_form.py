"""What stands in a bundle: a recording, and beside it what it is and what came out.

A bundle is a folder (0700, files 0600) or the same packed as ``NAME.tar.gz``. Its recording
(``session.json``, ``commands.jsonl``, ``files.jsonl``) is that of :mod:`.record_form`. Beside it:

``manifest.json``::

    {"schema": "slurmtop.bundle/1", "slurmtop": "0.1.0", "finished": true, "kind": "job",
     "asked": ["4711"], "files": {"commands.jsonl": {"size": 9123, "sha256": "5f70..."}}, ...}

``said.json``: what the clock said and how nodes were reached, so that ages and ways come out as
they were. ``verdict.json`` is the verdict, ``report.txt`` the same for people.

All of it may come from anybody: nothing that is read here raises anything but
:class:`BundleError`, and nothing but these files is ever looked at.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from slurmtop.collect import bounded_json
from slurmtop.collect.bounded_json import TooMuch
from slurmtop.collect.live import LookSettings
from slurmtop.collect.log_content import begins_bundle
from slurmtop.collect.record_form import (
    COMMANDS,
    FILES,
    SESSION,
    failure_form,
    failure_of,
    mask_path,
)
from slurmtop.collect.who import Who
from slurmtop.model.facts import JobFacts
from slurmtop.model.reach import Reach, Way
from slurmtop.parse.mask import mask_json

SCHEMA = "slurmtop.bundle/1"
_FAMILY = "slurmtop.bundle/"
MANIFEST, SAID, VERDICT, REPORT = "manifest.json", "said.json", "verdict.json", "report.txt"
#: Every file that a bundle may hold.
NAMES = (SESSION, COMMANDS, FILES, SAID, VERDICT, REPORT, MANIFEST)
#: What the verdict comes out of.
RECORDED = (SESSION, COMMANDS, FILES, SAID)
#: A job of thousands of ranks is some tens of megabytes; what is larger is something else.
MOST_BYTES = 512 * 1024 * 1024
_LONGEST_TEXT = 4_096
_BROKEN = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

JOB, PATHS = "job", "paths"


class BundleError(Exception):
    """It is no bundle, or one that cannot be used; ``str()`` is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One file as it was saved."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle is of. ``kind`` is :data:`JOB` or :data:`PATHS`, ``asked`` the id of the job
    or the paths. ``login_host`` is where it was made. ``look`` is what might be asked of nodes,
    ``whole`` whether long logs were read from end to end. ``stack_tools`` are those on the nodes:
    host, path, version, sha256. ``finished`` false: saving it was stopped on the way.
    """

    kind: str
    asked: tuple[str, ...]
    version: str = ""
    finished: bool = False
    cluster: str = ""
    who: Who | None = None
    made_at: datetime | None = None
    login_host: str = ""
    look: LookSettings = field(default_factory=LookSettings)
    whole: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    stack_tools: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    """What is not in it, and why."""
    files: Mapping[str, Sum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``clock`` are readings as :class:`.bundle_clock.RecordingClock` keeps them."""

    clock: Mapping[str, Any] = field(default_factory=dict)
    reach: Mapping[str, Reach] = field(default_factory=dict)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file, secrets masked."""
    who = manifest.who
    form = {
        "kind": manifest.kind,
        "asked": list(manifest.asked),
        "cluster": manifest.cluster,
        "user": None if who is None else who.name,
        "uid": None if who is None else who.uid,
        "made_at": None if manifest.made_at is None else manifest.made_at.isoformat(),
        "login_host": manifest.login_host,
        "look": asdict(manifest.look),
        "whole": manifest.whole,
        "settings": dict(manifest.settings),
        "stack_tools": [dict(tool) for tool in manifest.stack_tools],
        "notes": list(manifest.notes),
    }
    # Sums are no secrets, and a mask must not take one for a key.
    sums = {name: asdict(one) for name, one in manifest.files.items()}
    tools = [tool.get("sha256") for tool in manifest.stack_tools]
    form = mask_json(form)
    # Told as the recording tells them.
    form["asked"] = [mask_path(one) for one in manifest.asked]
    for tool, digest in zip(form["stack_tools"], tools, strict=True):
        tool["sha256"] = digest
    head = {"schema": SCHEMA, "slurmtop": manifest.version, "finished": manifest.finished}
    return json_bytes({**head, **form, "files": sums})


def is_manifest(data: bytes) -> bool:
    """Does this file say that it is a bundle's, of this version or another?"""
    try:
        schema = bounded_json.loads(data)["schema"]
    except _BROKEN:
        return False
    return isinstance(schema, str) and schema.startswith(_FAMILY)


def check_manifest(data: bytes) -> bool:
    """:func:`is_manifest`. Raises :class:`BundleError` for one of a bundle that is torn."""
    if is_manifest(data):
        return True
    if begins_bundle(data):
        try:
            bounded_json.between(data)
        except TooMuch as error:
            raise BundleError(f"its manifest holds {error}") from error
        raise BundleError("its manifest is cut short or was changed")
    return False


def parse_manifest(data: bytes) -> Manifest:
    """What :func:`manifest_bytes` wrote. Raises :class:`BundleError`."""
    try:
        form = bounded_json.loads(data)
        if form["schema"] != SCHEMA:
            raise BundleError(
                f"it is a bundle of another version of slurmtop ({_text(form['schema'])})"
            )
        kind = form["kind"]
        asked = tuple(_text(one) for one in form["asked"])
        if kind not in (JOB, PATHS) or not asked or (kind == JOB and len(asked) != 1):
            raise BundleError("its manifest does not say what it is of")
        return Manifest(
            kind=kind,
            asked=asked,
            version=_text(form.get("slurmtop") or ""),
            finished=form.get("finished") is True,
            cluster=_text(form.get("cluster") or ""),
            who=_who(form),
            made_at=_time(form.get("made_at")),
            login_host=_text(form.get("login_host") or ""),
            look=_look(form.get("look")),
            whole=form.get("whole") is True,
            settings=form["settings"] if isinstance(form.get("settings"), dict) else {},
            notes=tuple(_text(one) for one in form.get("notes") or ()),
            files={
                name: Sum(size=int(form["files"][name]["size"]), sha256=_sum(form, name))
                for name in NAMES
                if name in (form.get("files") or {})
            },
        )
    except _BROKEN as error:
        raise BundleError("its manifest is torn, or somebody changed it") from error


def _sum(form: Any, name: str) -> str:
    return _text(form["files"][name]["sha256"])


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "\0" in value:
        raise ValueError("no text")
    return value


def _who(form: Any) -> Who | None:
    uid, name = form.get("uid"), form.get("user")
    return Who(uid, name) if isinstance(uid, int) and isinstance(name, str) and name else None


def _time(text: Any) -> datetime | None:
    if text is None:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _look(form: Any) -> LookSettings:
    """What is known of the settings; of a newer version's there may be more."""
    plain = LookSettings()
    known: dict[str, Any] = {}
    for one in fields(LookSettings):
        value = form.get(one.name) if isinstance(form, dict) else None
        usual = getattr(plain, one.name)
        words = usual is None or isinstance(usual, tuple)
        if words and isinstance(value, list):
            known[one.name] = tuple(_text(word) for word in value)
        same_kind = type(value) is type(usual)
        if same_kind or (isinstance(usual, float) and type(value) is int):
            known[one.name] = value
    return LookSettings(**known)


def said_bytes(clock: Mapping[str, Any], reach: Mapping[str, Reach]) -> bytes:
    return json_bytes({"clock": clock, "reach": {h: _reach_form(r) for h, r in reach.items()}})


def parse_said(data: bytes) -> Said:
    """What can be read of it; it is worth having without the rest."""
    try:
        form = bounded_json.loads(data)
        clock = form.get("clock")
        reach = form.get("reach")
    except _BROKEN:
        return Said()
    found = {}
    for host, one in reach.items() if isinstance(reach, dict) else ():
        try:
            found[host] = _reach_of(host, one)
        except _BROKEN:
            continue
    return Said(clock=clock if isinstance(clock, dict) else {}, reach=found)


def _reach_form(reach: Reach) -> dict[str, Any]:
    return {
        "way": None if reach.way is None else reach.way.value,
        "failure": None if reach.failure is None else failure_form(reach.failure),
        "refused": [[way.value, failure_form(failure)] for way, failure in reach.refused],
    }


def _reach_of(host: str, form: Any) -> Reach:
    return Reach(
        host=host,
        way=None if form["way"] is None else Way(form["way"]),
        failure=None if form["failure"] is None else failure_of(form["failure"]),
        refused=tuple((Way(way), failure_of(failure)) for way, failure in form["refused"]),
    )


def stack_tools(facts: JobFacts | None) -> tuple[Mapping[str, Any], ...]:
    """Which programs may have read stacks, by node."""
    live = None if facts is None else facts.live
    found = {
        (probe.host, tool.path): {"host": probe.host, **asdict(tool)}
        for sample in (() if live is None else live.samples)
        for probe in sample.probes
        for tool in probe.stack_tools
    }
    return tuple(found.values())


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


#: What a reader of a verdict goes by.
_TOLD = ("state", "class", "summary")
_WHO = ("rank", "host", "gpu", "pid", "link", "mount")


def same_verdict(one: Any, other: Any) -> bool:
    """Do two verdicts, in their JSON form, say the same to a person?"""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    same = all(one.get(name) == other.get(name) for name in _TOLD)
    return same and _who_of(one) == _who_of(other)


def _who_of(verdict: dict[str, Any]) -> list[Any]:
    culprits = verdict.get("culprits")
    return [
        tuple(str(one.get(name)) for name in _WHO) if isinstance(one, dict) else one
        for one in (culprits if isinstance(culprits, list) else ())
    ]
