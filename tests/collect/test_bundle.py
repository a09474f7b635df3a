"""A bundle gives the same verdict anywhere, tells what was changed, and trusts nobody."""

import asyncio
import contextlib
import gzip
import io
import json
import stat
import tarfile
import tracemalloc
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurmtop.collect import replay
from slurmtop.collect.bundle import CannotSave, Found, NothingFound, save_bundle
from slurmtop.collect.bundle_form import (
    JOB,
    NAMES,
    BundleError,
    Manifest,
    is_manifest,
    parse_manifest,
    parse_said,
    same_verdict,
)
from slurmtop.collect.bundle_open import Bundle, open_bundle
from slurmtop.collect.clock import pause, spawn, within
from slurmtop.collect.job_triage import Door
from slurmtop.collect.live import LookSettings
from slurmtop.collect.who import Who
from slurmtop.model.ports import (
    Command,
    Completed,
    NodeUnreachable,
    ReplayMiss,
    RunnerError,
)
from slurmtop.model.reach import Reach, Way
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import Culprit, State, Verdict, verdict_dict
from tests.fakes import START, FakeClock, FakeRunner

ABOUT = Manifest(kind=JOB, asked=("4711",), look=LookSettings(stacks=False, budget_s=12.5))
ALICE = Who(1001, "alice")
SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


class SteppingClock(FakeClock):
    """Every reading is later than the one before, as it is in life."""

    def now(self) -> datetime:
        self.step(0.125)
        return super().now()


def make_door(runner: FakeRunner, clock: FakeClock) -> Door:
    def reached(host: str) -> Reach | None:
        if host == "gpu01":
            return Reach(host=host, way=Way.SSH)
        why = Failure(Trouble.DENIED, "ssh was refused", copy="ssh-add")
        return Reach(host=host, failure=why, refused=((Way.SSH, why),))

    return Door(runner=runner, clock=clock, who=ALICE, cluster="hpc", reached=reached)


async def look(door: Door) -> Found:
    """Two samples of two nodes, a log, and all of it with its times in the verdict."""
    told: list[str] = []
    began = door.clock.now()
    for _ in range(2):
        told.append(door.clock.now().isoformat())
        told += await asyncio.gather(*(probe(door, host) for host in ("gpu01", "gpu02")))
        await pause(door.clock, 5.0)
    try:
        slow = door.runner.run(Command(("slow",)))
        await within(door.clock, slow, 3.0, name="slow one")
    except TimeoutError:
        told.append("slow timed out")
    told.append((await door.runner.read("/w/log", 0, 100)).decode().splitlines()[0])
    size = (await door.runner.stat("/w/log")).size
    ages = (door.clock.now() - began).total_seconds()
    verdict = Verdict(
        job="4711",
        state=State.HUNG,
        summary=f"{told} {size} bytes, {ages} s",
        culprits=(Culprit(rank=3, host="gpu01"),),
        made_at=door.clock.now(),
    )
    return Found(verdict=verdict, report=["hung", f"token={SECRET}"])


async def probe(door: Door, host: str) -> str:
    async def ask() -> str:
        at = door.clock.now()
        try:
            done = await door.runner.run(Command(("/bin/sh", "-c", "probe"), host=host))
        except NodeUnreachable as error:
            return f"{host}: {error} {error.failure.copy} {door.reached(host)}"
        return f"{host} {at} {done.stdout.decode()} {door.clock.now()} {door.reached(host)}"

    return await spawn(ask(), name=f"probe of {host}")


def names_in(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir())


def make_world() -> tuple[FakeRunner, SteppingClock]:
    clock = SteppingClock()
    runner = FakeRunner(clock)
    counts: dict[str | None, int] = {}

    def answer(command: Command) -> Completed:
        counts[command.host] = counts.get(command.host, 0) + 1
        if command.host == "gpu02" and counts[command.host] == 2:
            why = Failure(Trouble.DENIED, "gpu02: refused", copy=f"ssh-add {command.host}")
            raise NodeUnreachable("gpu02", why)
        text = f"ticks {counts[command.host]} api_key={SECRET}"
        return Completed(0, text.encode(), b"", clock.now(), 0.5)

    runner.on_call("/bin/sh*", answer)
    runner.files["/w/log"] = f"step 7\nlogin with password: {SECRET}\n".encode()
    runner.mtimes["/w/log"] = START

    async def hang() -> None:
        await clock.sleep(1e6)

    inner = runner.run

    async def run(command: Command) -> Completed:
        if command.argv == ("slow",):
            await hang()
        return await inner(command)

    runner.run = run  # type: ignore[method-assign]
    return runner, clock


async def saved(to: Path) -> Verdict:
    runner, clock = make_world()
    seen: list[Verdict] = []

    async def keep(door: Door) -> Found:
        found = await look(door)
        seen.append(found.verdict)
        return found

    work = spawn(save_bundle(to, make_door(runner, clock), ABOUT, keep), name="save")
    while not work.done():
        await asyncio.sleep(0)
        await clock.advance(1.0)
    await work
    return seen[0]


async def judged(bundle: Bundle) -> Verdict:
    return (await look(bundle.door(FakeClock()))).verdict


@pytest.mark.parametrize("name", ["out", "out.tar.gz"])
async def test_the_verdict_of_a_bundle_is_that_of_the_look(tmp_path: Path, name: str) -> None:
    to = tmp_path / name
    live = await saved(to)
    bundle = open_bundle(to)
    assert bundle is not None
    assert (bundle.manifest.kind, bundle.manifest.asked) == (JOB, ("4711",))
    assert bundle.manifest.look == ABOUT.look
    assert (bundle.manifest.cluster, bundle.manifest.who) == ("hpc", ALICE)
    assert bundle.notes == ()
    again = await judged(bundle)
    masked = live.summary.replace(SECRET, "‹masked›")
    assert again.made_at == live.made_at
    assert again.summary == masked
    assert bundle.verdict["made_at"] == verdict_dict(live)["made_at"]
    everything = b"".join(bundle.files.values()) + to.name.encode()
    assert SECRET.encode() not in everything


async def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    await saved(tmp_path / "out")
    await saved(tmp_path / "p.tar.gz")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "out").iterdir()} == {0o600}
    assert {one.name for one in (tmp_path / "out").iterdir()} == set(NAMES)
    assert stat.S_IMODE((tmp_path / "p.tar.gz").stat().st_mode) == 0o600
    assert names_in(tmp_path) == ["out", "p.tar.gz"]


@pytest.mark.parametrize("name", ["out", "out.tar.gz"])
async def test_what_is_there_is_never_written_over(tmp_path: Path, name: str) -> None:
    to = tmp_path / name
    if name == "out":
        to.mkdir(mode=0o700)
        (to / "mine").write_text("mine")
    else:
        to.write_text("mine")
    with pytest.raises(CannotSave, match="name a new"):
        await saved(to)
    assert (to / "mine" if name == "out" else to).read_text() == "mine"
    assert names_in(tmp_path) == [name]


async def test_a_changed_file_is_told_and_a_torn_one_refused(tmp_path: Path) -> None:
    to = tmp_path / "out"
    await saved(to)
    commands = to / "commands.jsonl"
    whole = commands.read_bytes()
    commands.write_bytes(whole.replace(b"ticks 1", b"ticks 9"))
    bundle = open_bundle(to)
    assert bundle is not None
    assert "commands.jsonl" in bundle.notes[0]
    assert "sha256" in bundle.notes[0]
    commands.write_bytes(whole[:-30])
    with pytest.raises(BundleError, match="torn"):
        open_bundle(to)
    commands.unlink()
    with pytest.raises(BundleError, match="torn"):
        open_bundle(to)


@pytest.mark.parametrize("length", [60, 300])
async def test_a_torn_manifest_is_refused(tmp_path: Path, length: int) -> None:
    to = tmp_path / "out"
    await saved(to)
    manifest = to / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:length])
    with pytest.raises(BundleError, match="its manifest is cut short or was changed"):
        open_bundle(to)


async def test_a_manifest_without_sums_was_changed(tmp_path: Path) -> None:
    to = tmp_path / "out"
    await saved(to)
    manifest = to / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "files": {}}))
    bundle = open_bundle(to)
    assert bundle is not None
    assert "commands.jsonl of the bundle has no sum in its manifest" in " ".join(bundle.notes)


@pytest.mark.parametrize("name", ["manifest.json", "files.jsonl"])
async def test_what_grows_to_gigabytes_is_not_unpacked(tmp_path: Path, name: str) -> None:
    await saved(tmp_path / "out")
    good = (tmp_path / "out" / "manifest.json").read_bytes()
    first = tarfile.TarInfo("b/manifest.json")
    first.size = len(good)
    large = tarfile.TarInfo(f"b/{name}")
    large.size = 5 << 30
    to = tmp_path / "bomb.tar.gz"
    head = first.tobuf() + good + bytes(-len(good) % 512) if name != "manifest.json" else b""
    to.write_bytes(gzip.compress(head + large.tobuf() + bytes(1 << 20)))
    tracemalloc.start()
    try:
        if head:
            with pytest.raises(BundleError, match="larger than"):
                open_bundle(to)
        else:
            assert open_bundle(to) is None
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


async def test_of_a_look_that_found_nothing_nothing_is_left(tmp_path: Path) -> None:
    async def fails(door: Door) -> Found:
        raise NothingFound("nothing was read")

    for name in ("out", "p.tar.gz"):
        with pytest.raises(NothingFound):
            await save_bundle(tmp_path / name, make_door(*make_world()), ABOUT, fails)
    assert names_in(tmp_path) == []


async def test_saving_that_was_stopped_says_so(tmp_path: Path) -> None:
    runner, clock = make_world()

    async def fails(door: Door) -> Found:
        await door.runner.run(Command(("/bin/sh", "-c", "probe"), host="gpu01"))
        raise RunnerError("stopped")

    with pytest.raises(RunnerError):
        await save_bundle(tmp_path / "out", make_door(runner, clock), ABOUT, fails)
    bundle = open_bundle(tmp_path / "out")
    assert bundle is not None
    assert "stopped on the way" in bundle.notes[0]
    with pytest.raises(RunnerError):
        await save_bundle(tmp_path / "p.tar.gz", make_door(*make_world()), ABOUT, fails)
    assert names_in(tmp_path) == ["out"]


async def test_packed_files_are_not_kept_and_that_is_told(tmp_path: Path) -> None:
    runner, clock = make_world()
    packed = gzip.compress(f"password={SECRET}\n".encode() * 200)
    runner.files["/w/log.gz"] = packed

    async def reads(door: Door) -> Found:
        at = 0
        while data := await door.runner.read("/w/log.gz", at, 10):
            at += len(data)
        return Found(verdict=Verdict(job=None, state=State.UNKNOWN, summary=""))

    done = await save_bundle(tmp_path / "out", make_door(runner, clock), ABOUT, reads)
    assert "log.gz: packed" in done.notes[0]
    text = (tmp_path / "out" / "files.jsonl").read_text()
    assert "b64" not in text
    assert "packed" in text


async def test_of_files_without_text_only_some_are_named(tmp_path: Path) -> None:
    runner, clock = make_world()
    for at in range(9):
        runner.files[f"/w/{at}.bin"] = bytes(range(256)) * 8 + SECRET.encode()

    async def reads(door: Door) -> Found:
        for at in range(9):
            await door.runner.read(f"/w/{at}.bin", 0, 4_000)
            await door.runner.read(f"/w/{at}.bin", 1_000, 4_000)
        return Found(verdict=Verdict(job=None, state=State.UNKNOWN, summary=""))

    done = await save_bundle(tmp_path / "out", make_door(runner, clock), ABOUT, reads)
    (note,) = done.notes
    assert note.startswith("/w/0.bin, /w/1.bin, /w/2.bin, /w/3.bin and 5 more: no log")
    assert SECRET not in (tmp_path / "out" / "files.jsonl").read_text()


async def test_links_and_pipes_are_no_files_of_a_bundle(tmp_path: Path) -> None:
    to = tmp_path / "out"
    await saved(to)
    (tmp_path / "elsewhere").write_bytes((to / "said.json").read_bytes())
    (to / "said.json").unlink()
    (to / "said.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match=r"said\.json"):
        open_bundle(to)


def _measured(path: Path) -> tuple[str, int]:
    """What opening ``path`` for a replay says, and the most bytes that it held meanwhile."""
    tracemalloc.start()
    try:
        bundle = open_bundle(path)
        if bundle is not None:
            bundle.door(FakeClock())
        said = "" if bundle is not None else "no bundle"
    except BundleError as error:
        said = str(error)
    finally:
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return said, held


_HEAD = b'{"schema": "slurmtop.bundle/1", "kind": "job", "asked": ["1"]'
_LISTS = b"[" + b"[]," * 3_000_000 + b"[]]"
_HOLDS = "holds more names, numbers and brackets than there ever are"
_SMALL = b'{"t":"x","op":"stat","path":"%d","host":null,"error":{"kind":"timeout","text":""}}\n'
_SESSION = b'{"schema": "slurmtop.recording/1", "mark": "m", "started_at": "2031-01-01"}'


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (
            "commands.jsonl",
            _LISTS,
            f"its recording cannot be read: commands.jsonl {_HOLDS}",
        ),
        ("session.json", _LISTS[:1_000_000], "its recording cannot be read"),
        ("said.json", _LISTS, ""),
        ("verdict.json", _LISTS, ""),
        ("manifest.json", _HEAD + b', "x": ' + _LISTS + b"}", f"its manifest {_HOLDS}"),
    ],
)
async def test_what_is_small_until_it_is_read_is_not_read(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    files = {"manifest.json": _HEAD + b"}", "session.json": _SESSION, name: data}
    members = [(tarfile.TarInfo(f"b/{one}"), text) for one, text in files.items()]
    (tmp_path / "b").mkdir()
    for one, text in files.items():
        (tmp_path / "b" / one).write_bytes(text)
    (tmp_path / "b.tar.gz").write_bytes(archive(members))
    for path in (tmp_path / "b", tmp_path / "b.tar.gz"):
        said, held = _measured(path)
        # A packed file whose first member is no manifest may be anybody's.
        unknown = path.name == "b.tar.gz" and name == "manifest.json"
        assert said.startswith("no bundle" if unknown else says)
        assert bool(said) is bool(says)
        assert held < 40_000_000


def test_more_lines_than_a_look_has_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_MOST_BETWEEN", 50_000)
    (tmp_path / "manifest.json").write_bytes(_HEAD + b"}")
    (tmp_path / "session.json").write_bytes(_SESSION)
    (tmp_path / "files.jsonl").write_bytes(b"".join(_SMALL % n for n in range(500)))
    assert _measured(tmp_path)[0] == ""
    (tmp_path / "files.jsonl").write_bytes(b"".join(_SMALL % n for n in range(5_000)))
    assert _HOLDS in _measured(tmp_path)[0]
    monkeypatch.setattr(replay, "_LONGEST_LINE", 1 << 20)
    (tmp_path / "files.jsonl").write_bytes(b'{"data": "' + b"x" * (2 << 20) + b'"}\n')
    assert "has a line of more than 1 MiB" in _measured(tmp_path)[0]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE])
def test_what_an_archive_says_of_itself_is_not_held(tmp_path: Path, kind: bytes) -> None:
    attributes = b"".join(b"14 k%07d=v\n" % n for n in range(500_000))
    first, extra = tarfile.TarInfo("b/manifest.json"), tarfile.TarInfo("b/x")
    extra.type = kind
    out = b""
    for info, data in ((first, _HEAD + b"}"), (extra, attributes)):
        info.size = len(data)
        out += info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)
    (tmp_path / "p.tar.gz").write_bytes(gzip.compress(out + bytes(1024), 1))
    said, held = _measured(tmp_path / "p.tar.gz")
    assert said
    assert held < 10_000_000


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
async def test_a_bundle_that_somebody_packed_again_is_one(tmp_path: Path, form: int) -> None:
    await saved(tmp_path / "out")
    long = "n" * (60 if form == tarfile.USTAR_FORMAT else 180)
    with tarfile.open(tmp_path / "p.tgz", "w:gz", format=form) as tar:
        for name in reversed(NAMES):
            tar.add(tmp_path / "out" / name, f"{long}/{name}")
    bundle = open_bundle(tmp_path / "p.tgz")
    assert bundle is not None
    assert bundle.notes == ()
    assert set(bundle.files) == set(NAMES)


def test_other_folders_and_files_are_no_bundles(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema": "something/1"}')
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(b"plain text\n" * 2000))
    (tmp_path / "b.tar.gz").write_bytes(b"\x1f\x8bnot packed at all")
    for path in (tmp_path, tmp_path / "a.tar.gz", tmp_path / "b.tar.gz", tmp_path / "none"):
        assert open_bundle(path) is None


def archive(members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


async def test_a_hostile_archive_reaches_nothing_outside(tmp_path: Path) -> None:
    await saved(tmp_path / "out")
    good = [(tarfile.TarInfo(f"b/{n}"), (tmp_path / "out" / n).read_bytes()) for n in NAMES[::-1]]
    link = tarfile.TarInfo("b/verdict.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    bad = [
        (tarfile.TarInfo("../../outside"), b"x"),
        (tarfile.TarInfo("/abs/said.json"), b"{}"),
        (link, b""),
    ]
    to = tmp_path / "evil.tar.gz"
    to.write_bytes(archive([good[0], *bad, *good[1:]]))
    bundle = open_bundle(to)
    assert bundle is not None
    assert bundle.notes == ()
    assert set(bundle.files) == set(NAMES)
    assert names_in(tmp_path) == ["evil.tar.gz", "out"]


async def test_an_archive_that_was_cut_is_torn(tmp_path: Path) -> None:
    to = tmp_path / "p.tar.gz"
    await saved(to)
    to.write_bytes(to.read_bytes()[:-200])
    with pytest.raises(BundleError, match="torn"):
        open_bundle(to)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_manifest_or_a_sentence(data: bytes) -> None:
    is_manifest(data)
    parse_said(data)
    with contextlib.suppress(BundleError):
        parse_manifest(data)


WORDS = (
    *("schema", "kind", "asked", "files", "look", "user", "uid", "made_at", "notes", "clock"),
    *("reach", "main", "way", "failure", "refused", "session.json", "size", "sha256", "argv"),
    *("host", "stdin", "rc", "t", "stdout", "op", "path"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JSON, line=JSON, noise=st.binary(max_size=60))
def test_any_json_is_a_bundle_or_a_sentence(
    tmp_path: Path, value: object, line: object, noise: bytes
) -> None:
    form = value if isinstance(value, dict) else {}
    head = {"schema": "slurmtop.bundle/1", "kind": "job", "asked": ["1"], **form}
    session = b'{"schema": "slurmtop.recording/1", "mark": "m", "started_at": "2031-01-01"}'
    (tmp_path / "manifest.json").write_text(json.dumps(head))
    (tmp_path / "session.json").write_bytes(session)
    (tmp_path / "said.json").write_text(json.dumps(value))
    (tmp_path / "verdict.json").write_text(json.dumps(value))
    for name in ("commands.jsonl", "files.jsonl"):
        (tmp_path / name).write_bytes(json.dumps(line).encode() + b"\n" + noise)
    with contextlib.suppress(BundleError):
        bundle = open_bundle(tmp_path)
        if bundle is not None:
            clock = bundle.door(FakeClock()).clock
            clock.now(), clock.monotonic()
            same_verdict(bundle.verdict, bundle.verdict)


async def test_pauses_of_a_replay_do_not_wait(tmp_path: Path) -> None:
    await saved(tmp_path / "out")
    bundle = open_bundle(tmp_path / "out")
    assert bundle is not None
    clock = bundle.door(FakeClock()).clock
    before = clock.monotonic()
    await pause(clock, 5.0)
    assert clock.monotonic() >= before + 5.0
    asked = [clock.now() for _ in range(40)]
    assert asked == sorted(asked)
    assert asked[-1] - START < timedelta(minutes=5)


def test_a_manifest_of_another_version_is_told() -> None:
    data = b'{"schema": "slurmtop.bundle/9"}'
    assert is_manifest(data)
    with pytest.raises(BundleError, match="another version"):
        parse_manifest(data)


def test_two_verdicts_are_the_same_where_they_tell_a_person_the_same() -> None:
    one = {"state": "hung", "class": None, "summary": "s", "culprits": [{"rank": 1, "world": "8"}]}
    assert same_verdict(one, {**one, "culprits": [{"rank": 1, "world": None}], "made_at": "x"})
    assert not same_verdict(one, {**one, "culprits": [{"rank": 2}]})
    assert not same_verdict(one, {**one, "summary": "t"})
    assert not same_verdict(one, None)


async def test_a_script_of_another_version_is_known_by_its_name(tmp_path: Path) -> None:
    runner, clock = make_world()
    asked: list[str] = []

    async def asks(door: Door) -> Found:
        for text in ("echo one", "echo two"):
            argv = ("sudo", "-n", "/bin/sh", "-c", f"{text} {SECRET}", "slurmtop-probe", "4711")
            try:
                done = await door.runner.run(Command(argv, host="gpu01"))
            except RunnerError:
                asked.append("nothing")
            else:
                asked.append(done.stdout.decode().split()[1])
        return Found(verdict=Verdict(job=None, state=State.UNKNOWN, summary=""))

    runner.on_call("sudo*", runner.answers[0][1])
    await save_bundle(tmp_path / "out", make_door(runner, clock), ABOUT, asks)
    kept = (tmp_path / "out" / "commands.jsonl").read_text()
    assert "echo" not in kept
    assert "sha256:" in kept
    bundle = open_bundle(tmp_path / "out")
    assert bundle is not None
    await asks(bundle.door(FakeClock()))
    assert asked == ["1", "2", "1", "2"]
    third = Command(("sudo", "-n", "/bin/sh", "-c", "x", "slurmtop-probe", "4711"), host="gpu01")
    door = bundle.door(FakeClock())
    await door.runner.run(third)
    await door.runner.run(third)
    with pytest.raises(ReplayMiss, match="no more than 2 times"):
        await door.runner.run(third)
