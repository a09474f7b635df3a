"""A bundle of a simulated job gives the very verdict that was told live, without one secret."""

import asyncio
import errno
import gzip
import json
import os
import re
import shutil
import zipfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from slurmtop.cli.bundles import Answer, ask_and_save, ask_job, job_manifest, judge_again
from slurmtop.cli.main import main
from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.bundle import CannotSave
from slurmtop.collect.bundle_open import open_bundle
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.job_triage import Door
from slurmtop.collect.live import LookSettings
from slurmtop.collect.private_files import PrivateFolder
from slurmtop.collect.who import Who
from slurmtop.config import Config
from slurmtop.demo import DEFAULT_SCENARIO, DEMO_UID, DEMO_USER, DemoClock, make_demo
from slurmtop.model.facts import JobFacts
from slurmtop.model.ports import Command, Completed, FileStat, NodeUnreachable, Runner
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.verdict import Fate, State, Verdict, verdict_dict
from slurmtop.parse.mask import mask_json
from tests.cli.planted import SECRETS, Planting
from tests.collect.test_bundle import names_in

HUNG = "4817"


class Hasty:
    """The demo's clock; what is waited for on purpose goes by at once."""

    def __init__(self, clock: DemoClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        self._clock.skip(seconds)


def demo_door(planting: bool = False, speed: float = 1.0) -> Door:
    inner, clock = make_demo(DEFAULT_SCENARIO, SystemClock(), speed)
    assert isinstance(clock, DemoClock)
    runner: Runner = Planting(inner) if planting else inner
    who = Who(DEMO_UID, DEMO_USER)
    return Door(runner=runner, clock=Hasty(clock), who=who, mark=new_record_mark())


async def saved(to: Path, door: Door, job: str = HUNG, **settings: Any) -> Answer:
    look = LookSettings(once=True, **settings)

    async def ask(recorded: Door) -> Answer:
        return await ask_job(recorded, job, look, None, whole=False)

    answer, result = await ask_and_save(door, job_manifest(job, look, Config()), str(to), ask)
    assert not isinstance(result, CannotSave)
    assert result.notes == ()
    return answer


def form(answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = mask_json(verdict_dict(answer.verdict))
    return made


async def again(path: Path) -> Answer:
    bundle = open_bundle(path)
    assert bundle is not None
    assert bundle.notes == ()
    return await judge_again(bundle)


@pytest.mark.parametrize("name", ["b", "b.tar.gz"])
async def test_of_a_hung_job_every_word_comes_back(tmp_path: Path, name: str) -> None:
    live = await saved(tmp_path / name, demo_door())
    assert live.verdict.state is State.HUNG
    assert live.verdict.culprits
    assert live.facts is not None
    assert live.facts.live is not None
    assert live.facts.live.two_samples
    assert form(await again(tmp_path / name)) == form(live)


@pytest.mark.parametrize(
    "settings",
    [{"stacks": False}, {"nodes": False, "why_not": "--no-nodes"}, {"always": True}],
    ids=["no stacks", "no nodes", "always"],
)
async def test_what_was_left_out_then_is_left_out_again(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    live = await saved(tmp_path / "b", demo_door(), **settings)
    assert form(await again(tmp_path / "b")) == form(live)


class Failing(Planting):
    """A runner without its secrets, on which one thing does not work."""

    def __init__(self, inner: Runner, how: str) -> None:
        super().__init__(inner)
        self._how = how

    async def run(self, command: Command) -> Completed:
        if command.host == "gpu04" and self._how == "silent":
            await asyncio.Event().wait()
        if command.host == "gpu04" and self._how == "refused":
            why = Failure(Trouble.DENIED, "gpu04: ssh was refused.", copy="ssh-add")
            raise NodeUnreachable("gpu04", why)
        return await self._inner.run(command)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        if self._how == "log":
            raise PermissionError(13, "Permission denied", path)
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)


@pytest.mark.parametrize("how", ["refused", "log", "silent"])
async def test_what_failed_then_fails_again(tmp_path: Path, how: str) -> None:
    door = demo_door(speed=5.0)
    door = replace(door, runner=Failing(door.runner, how))
    live = await saved(tmp_path / "b", door)
    assert {one.fate for one in live.verdict.sources} & {Fate.REFUSED, Fate.TIMED_OUT}
    assert form(await again(tmp_path / "b")) == form(live)


async def test_a_job_of_any_state_comes_back(tmp_path: Path) -> None:
    door = demo_door()
    for job in ("4711", "4815", "4816", "4818", "4820", "4799", "123456"):
        live = await saved(tmp_path / job, door, job)
        assert form(await again(tmp_path / job)) == form(live), job


async def test_thirty_planted_secrets_are_nowhere(tmp_path: Path) -> None:
    assert len(SECRETS) == len(set(SECRETS)) == 30
    door = demo_door(planting=True)
    live = await saved(tmp_path / "b", door)
    clean = await saved(tmp_path / "clean", demo_door())
    kept = b"".join(one.read_bytes() for one in sorted((tmp_path / "b").iterdir())).decode()
    assert [secret for secret in SECRETS if secret in kept] == []
    assert kept.count("masked") >= len(SECRETS)
    assert [secret for secret in SECRETS if secret in json.dumps(form(live))] == []
    assert form(await again(tmp_path / "b")) == form(live)
    told = ("state", "class", "culprits", "summary")
    assert [form(live)[name] for name in told] == [form(clean)[name] for name in told]


def test_the_command_judges_a_bundle_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    live = asyncio.run(saved(tmp_path / "b.tar.gz", demo_door()))
    said = elsewhere(tmp_path, monkeypatch, "--json", str(tmp_path / "b.tar.gz"))
    out, err = capsys.readouterr()
    assert said == 2
    assert json.loads(out) == form(live)
    assert err.startswith("slurmtop: from a bundle of ")
    assert "by alice with slurmtop" in err
    assert len(err.splitlines()) == 1


class Steps(Planting):
    """The log of the job tells its steps alone, and no hang."""

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        lines = (await self._inner.read(path, offset, length, host)).split(b"\n")
        return b"\n".join(line if line.startswith(b"step ") else b" " * len(line) for line in lines)


@pytest.mark.parametrize("at", ["first answer", "looking", "between the looks"])
async def test_one_that_was_broken_off_says_what_was_told_by_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    """What was suspected then is never well by what had been kept until then."""
    look, told, now = LookSettings(once=True), [], asyncio.Event()

    def news(facts: JobFacts, verdict: Verdict) -> None:
        told.append(verdict)
        samples = facts.live.samples if facts.live is not None else ()
        whole = bool(samples) and samples[-1].whole
        if at == "first answer" or (samples and (whole or at == "looking")):
            now.set()

    async def ask(recorded: Door) -> Answer:
        return await ask_job(recorded, HUNG, look, news, whole=False)

    about = job_manifest(HUNG, look, Config())
    door = demo_door()
    door = replace(door, runner=Steps(door.runner))
    saving = asyncio.ensure_future(ask_and_save(door, about, str(tmp_path / "b"), ask))
    await now.wait()
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    err = capsys.readouterr().err
    judges = f"not saved whole: broken off; slurmtop triage {tmp_path / 'b'} judges what is in it"
    assert err == f"slurmtop: {judges}\n"
    with pytest.raises(CannotSave) as again:
        await ask_and_save(door, about, str(tmp_path / "b"), ask)
    assert "name a new folder; what is there now is not whole" in str(again.value)
    bundle = open_bundle(tmp_path / "b")
    assert bundle is not None
    assert not bundle.manifest.finished
    answer = await judge_again(bundle)
    assert answer.verdict.state is told[-1].state is State.UNKNOWN
    assert not answer.verdict.culprits
    if at == "between the looks":
        same, _, _ = told[-1].summary.partition(";")
        assert same.startswith("may be stuck")
        assert answer.verdict.summary.startswith(same)


@pytest.mark.parametrize("name", ["hung.bin", "7", "hung.tar"])
def test_a_packed_bundle_is_judged_whatever_it_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    live = asyncio.run(saved(tmp_path / "b.tar.gz", demo_door()))
    path, data = tmp_path / name, (tmp_path / "b.tar.gz").read_bytes()
    path.write_bytes(gzip.decompress(data) if name == "hung.tar" else data)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(data)
    assert elsewhere(tmp_path, monkeypatch, "--json", str(path)) == 2
    assert json.loads(capsys.readouterr().out) == form(live)
    # Beside others and below a folder it is no log, and nothing is well by it.
    for words in ([str(path), str(tmp_path / "b.tar.gz")], [str(tmp_path / "logs")]):
        assert elsewhere(tmp_path, monkeypatch, *words) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert "not read: a bundle that slurmtop saved" in err


def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The command in an environment without Slurm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return main(["triage", *words])


def test_a_changed_bundle_tells_that_and_what_it_said_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(saved(tmp_path / "b", demo_door()))
    commands = tmp_path / "b" / "commands.jsonl"
    lines = commands.read_bytes().splitlines(keepends=True)
    commands.write_bytes(
        b"".join(line for line in lines if b'"host":null' in line).ljust(
            sum(map(len, lines)), b"\n"
        )
    )
    said = elsewhere(tmp_path, monkeypatch, str(tmp_path / "b"))
    err = capsys.readouterr().err
    assert said in (0, 2)
    assert "its sha256 differs" in err
    assert "the verdict that was saved with it was another one: hung: rank 11" in err


async def test_of_a_packed_one_that_was_broken_off_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to, began = str(tmp_path / "b.tar.gz"), asyncio.Event()

    async def ask(recorded: Door) -> Answer:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    about = job_manifest(HUNG, LookSettings(), Config())
    saving = asyncio.ensure_future(ask_and_save(demo_door(), about, to, ask))
    await began.wait()
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    err = capsys.readouterr().err
    assert err == f"slurmtop: not saved: broken off before it was whole: {to}\n"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("left", ["nothing", "a part", "no verdict"])
def test_a_verdict_that_cannot_be_read_is_not_called_another_one(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    left: str,
) -> None:
    asyncio.run(saved(tmp_path / "b", demo_door()))
    verdict = tmp_path / "b" / "verdict.json"
    data = verdict.read_bytes()
    verdict.write_bytes(data[:40] if left == "a part" else b"[]".ljust(len(data)))
    if left == "nothing":
        verdict.unlink()
    assert elsewhere(tmp_path, monkeypatch, str(tmp_path / "b")) == 2
    err = capsys.readouterr().err
    assert "was another one" not in err
    assert "the verdict that was saved with it cannot be read" in err


def test_files_are_kept_as_they_were_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank0.log").write_text("step 1 loss 2\nRuntimeError: CUDA out of memory\n" * 3)
    long = b"step 1 loss 2.0\n" * 120_000
    (logs / "rank1.log").write_bytes(long + b"password=hunter2hunter2\n")
    to = tmp_path / "kept"
    assert main(["triage", str(logs), "--save", str(to), "--json"]) == 2
    first = capsys.readouterr()
    assert f"saved: {to}" in first.err
    for one in logs.iterdir():
        one.unlink()
    assert main(["triage", str(to), "--json"]) == 2
    second = capsys.readouterr()
    assert json.loads(second.out) == json.loads(first.out)
    kept = b"".join(one.read_bytes() for one in to.iterdir())
    assert b"hunter2hunter2" not in kept
    assert len(kept) < 2.5 * 1024 * 1024, "both ends, not the middle"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--save", "x", "-"], "standard input"),
        (["--save", "x", "--timeline", "a.log"], "--timeline"),
        (["--save", "", "a.log"], "--save wants a path"),
    ],
)
def test_what_cannot_be_saved_is_told(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triage", *words]) == 64
    assert says in capsys.readouterr().err


def test_a_folder_that_holds_something_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text("RuntimeError: CUDA out of memory\n")
    to = tmp_path / "mine"
    to.mkdir(mode=0o700)
    (to / "thesis.tex").write_text("x")
    assert main(["triage", str(tmp_path / "a.log"), "--save", str(to)]) == 1
    assert "name a new folder" in capsys.readouterr().err
    assert [one.name for one in to.iterdir()] == ["thesis.tex"]


def test_a_place_that_cannot_be_written_costs_the_bundle_not_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(self: PrivateFolder, path: Path | str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(PrivateFolder, "__init__", cannot)
    (tmp_path / "a.log").write_text("RuntimeError: CUDA out of memory\n")
    assert main(["triage", str(tmp_path / "a.log"), "--save", str(tmp_path / "x")]) == 1
    out, err = capsys.readouterr()
    assert "gpu-oom" in out
    assert "not saved: cannot save to" in err


def test_of_what_is_not_there_no_folder_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "kept"
    assert main(["triage", str(tmp_path / "nosuch"), "--save", str(to)]) == 1
    assert not to.exists()


def test_what_is_saved_is_shown_with_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "hf_" + "Abcd1234" * 4 + "Zz"
    (tmp_path / "a.log").write_text(f'KeyError: "{token}"\n')
    assert main(["triage", str(tmp_path / "a.log"), "--save", str(tmp_path / "x")]) == 2
    out = capsys.readouterr().out
    assert token not in out
    assert "‹masked›" in out


@pytest.mark.parametrize(
    "words",
    [
        "itself Authorization: Bearer abcdef0123456789SECRET.xyz.and.more.abcdefghijklmnopqrst",
        'itself with password="correct horse battery staple SECRET"',
        "the tokenizer from https://bob:SECRETaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@git.example.com/a/b",
        f"token={'SECRETabcdefghij' * 12} x",
        "and left: Command '['mc', 'cp', '--password', 'SECRETDS9', 'x']' failed",
    ],
)
def test_a_secret_over_the_end_of_a_line_of_the_report_is_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """Each is cut or broken somewhere: by the summary, by the width of the report."""
    for before in range(0, 80, 8):
        text = f"RuntimeError: {'so ' * (before // 2)} {words}\n"
        (tmp_path / "a.log").write_text(text)
        to = tmp_path / f"kept{before}"
        for more in ((), ("--json",)):
            said = to.with_name(f"{to.name}{len(more)}")
            assert main(["triage", str(tmp_path / "a.log"), "--save", str(said), *more]) == 2
            live = capsys.readouterr().out
            kept = b"".join(one.read_bytes() for one in said.iterdir()).decode()
            assert "SECRET" not in live + kept
        assert main(["triage", str(said)]) == 2
        out, err = capsys.readouterr()
        assert "another one" not in err
        assert "SECRET" not in out


def test_what_no_mask_can_read_is_not_kept_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fold"
    folder.mkdir()
    with zipfile.ZipFile(folder / "creds.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x", "password=SECRET\n" * 100)
    (folder / "old.lz4").write_bytes(b"\x04\x22\x4d\x18" + b"\x64\x40\xa7 my words SECRET " * 4)
    (folder / "dump.bin").write_bytes(bytes(range(256)) * 40 + b"SECRET")
    (folder / "conf.py").write_text("import os\n" * 4 + "def f():\n    return 'SECRET'\n")
    (folder / "wide.log").write_bytes("step 1 loss 2.0\npassword=SECRETWIDE x\n".encode("utf-16"))
    (folder / "a.log").write_text("step 1 loss 2\nRuntimeError: CUDA out of memory\n")
    to = tmp_path / "kept"
    assert main(["triage", str(folder), "--save", str(to), "--json"]) == 2
    first = capsys.readouterr()
    for name in ("creds.zip", "old.lz4", "dump.bin", "conf.py"):
        assert f"fold/{name}" in first.err
    bundle = open_bundle(to)
    assert bundle is not None
    assert "creds.zip" in bundle.manifest.notes[0]
    kept = b"".join(one.read_bytes() for one in to.iterdir())
    assert b"SECRET" not in kept
    assert b"S\\u0000E\\u0000C" not in kept
    shutil.rmtree(folder)
    assert main(["triage", str(to), "--json"]) == 2
    second = json.loads(capsys.readouterr().out)
    assert (second["class"], second["sources"]) == (
        json.loads(first.out)["class"],
        json.loads(first.out)["sources"],
    )


@pytest.mark.parametrize("name", ["pad_token={}", "api_key={}"])
def test_folders_of_a_sweep_stay_apart_when_their_names_are_masked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    for value, text in (
        (
            "eos7",
            "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        ),
        ("pad7", "step 2 loss 2.0\nTraining finished.\n"),
    ):
        (tmp_path / "sweep" / name.format(value)).mkdir(parents=True)
        (tmp_path / "sweep" / name.format(value) / "train.log").write_text(text)
    to = tmp_path / "kept"
    paths = [str(one) for one in sorted((tmp_path / "sweep").iterdir())]
    for asked in ([str(tmp_path / "sweep")], paths):
        assert main(["triage", *asked, "--save", str(to), "--json"]) == 2
        live = json.loads(capsys.readouterr().out)
        assert live["class"] == "gpu-oom"
        assert main(["triage", str(to), "--json"]) == 2
        offline = json.loads(capsys.readouterr().out)
        told = ("state", "class", "summary")
        assert [offline[word] for word in told] == [live[word] for word in told]
        shutil.rmtree(to)


@pytest.mark.parametrize("prefix", ["node-", "pk-h100-compute-gpu", "sk-a1-pool-h100-gpu-"])
async def test_a_host_is_named_offline_however_it_is_called(tmp_path: Path, prefix: str) -> None:
    door = demo_door(speed=5.0)
    live = await saved(tmp_path / "b", replace(door, runner=Renamed(door.runner, prefix)))
    assert live.verdict.culprits
    assert form(await again(tmp_path / "b")) == form(live)


class Renamed(Planting):
    """The same cluster with other names of its nodes."""

    def __init__(self, inner: Runner, prefix: str) -> None:
        super().__init__(inner)
        self._prefix = prefix

    async def run(self, command: Command) -> Completed:
        host = command.host and command.host.replace(self._prefix, "gpu")
        argv = tuple(word.replace(self._prefix, "gpu") for word in command.argv)
        done = await self._inner.run(replace(command, host=host, argv=argv))
        return replace(done, stdout=self._renamed(done.stdout))

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return self._renamed(await self._inner.read(path, offset, length, host))

    def _renamed(self, data: bytes) -> bytes:
        return re.sub(rb"\bgpu(?=\d\d|\[\d)", self._prefix.encode(), data)


def test_many_long_notes_are_not_all_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(saved(tmp_path / "b", demo_door()))
    manifest = tmp_path / "b" / "manifest.json"
    form = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**form, "notes": ["x" * 4_000] * 2_000}))
    main(["triage", str(tmp_path / "b")])
    err = capsys.readouterr().err
    assert len(err) < 10_000
    assert "notes more" in err
