"""What slurmtop saved is never read as what a run said, whoever packed it and however."""

import gzip
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slurmtop.collect import left_behind
from slurmtop.collect.bundle_form import MANIFEST, NAMES, BundleError
from slurmtop.collect.bundle_open import open_bundle
from slurmtop.collect.left_behind import read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_content import Content, content_of
from slurmtop.model.facts import LogStatus
from tests.collect.test_bundle import saved
from tests.fakes import FakeClock

LINE = b"step 100 loss 2.1034 lr 0.0003 tokens 4096000\n"
VERDICT = b'{\n "schema": "slurmtop.verdict/1",\n "state": "hung"\n}\n'
FORMS = {
    "ours": (None, 0.0),
    "ustar": (tarfile.USTAR_FORMAT, 0.0),
    "gnu": (tarfile.GNU_FORMAT, 0.0),
    "pax with parts of seconds": (tarfile.PAX_FORMAT, 0.5),
}


@pytest.fixture
async def runner() -> AsyncIterator[LocalRunner]:
    made = LocalRunner(FakeClock(), os.environ)
    yield made
    await made.aclose()


async def packed(folder: Path, how: str, *, manifest_first: bool = True) -> bytes:
    """A bundle as one file: as slurmtop packs it, or as somebody's ``tar`` does."""
    form, part_of_second = FORMS[how]
    if form is None:
        await saved(folder / "ours.tar.gz")
        return (folder / "ours.tar.gz").read_bytes()
    await saved(folder / "b")
    with tarfile.open(folder / "again.tgz", "w:gz", format=form) as tar:
        tar.add(folder / "b", "b", recursive=False)
        for name in reversed(NAMES) if manifest_first else NAMES:
            info = tar.gettarinfo(folder / "b" / name, f"b/{name}")
            info.mtime += part_of_second
            with (folder / "b" / name).open("rb") as data:
                tar.addfile(info, data)
    return (folder / "again.tgz").read_bytes()


async def blocks(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 4_096):
        yield data[at : at + 4_096]


@pytest.mark.parametrize("how", FORMS)
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("unzipped", [False, True])
async def test_a_packed_bundle_is_no_log(
    runner: LocalRunner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    pooled: bool,
    unzipped: bool,
) -> None:
    """Named, below a folder and on standard input, in this process and in others."""
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", -1 if pooled else 1 << 40)
    data = await packed(tmp_path, how)
    data = gzip.decompress(data) if unzipped else data
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "3").write_bytes(data)
    (logs / "rank0.log").write_bytes(LINE)
    for paths in ([str(logs)], [str(logs / "3"), str(logs / "rank0.log")]):
        traces = await read_traces(runner, paths)
        told = {Path(one.name).name: one for one in traces.sources}
        assert told["rank0.log"].status is LogStatus.READ
        assert told["3"].status is LogStatus.NOT_A_FILE
        assert "a bundle that slurmtop saved" in told["3"].why
    (source,) = (await read_traces(runner, ["-"], stdin=blocks(data))).sources
    assert source.status is LogStatus.NOT_A_FILE
    assert "a bundle that slurmtop saved" in source.why


@pytest.mark.parametrize("how", [name for name in FORMS if name != "ours"])
@pytest.mark.parametrize("unzipped", [False, True])
async def test_it_is_opened_whatever_stands_first_in_it(
    tmp_path: Path, how: str, unzipped: bool
) -> None:
    data = await packed(tmp_path, how, manifest_first=False)
    path = tmp_path / "hung.bin"
    path.write_bytes(gzip.decompress(data) if unzipped else data)
    bundle = open_bundle(path)
    assert bundle is not None
    assert bundle.notes == ()
    assert set(bundle.files) == set(NAMES)


async def test_ours_needs_no_heads_beside_its_files(tmp_path: Path) -> None:
    data = gzip.decompress(await packed(tmp_path, "ours"))
    assert data.startswith(b"ours/manifest.json\0")
    assert b"PaxHeader" not in data


async def test_each_of_its_files_alone_is_no_log(runner: LocalRunner, tmp_path: Path) -> None:
    await saved(tmp_path / "b")
    (tmp_path / "verdict").write_bytes(VERDICT)
    names = ("manifest.json", "session.json", "commands.jsonl", "files.jsonl")
    for path in (tmp_path / "verdict", *(tmp_path / "b" / name for name in names)):
        if path.exists():
            (source,) = (await read_traces(runner, [str(path)])).sources
            assert source.status is LogStatus.NOT_A_FILE, path
            assert "slurmtop saved" in source.why


def test_a_log_that_begins_with_a_verdict_is_a_log() -> None:
    assert content_of(VERDICT) is content_of(VERDICT[:-5]) is Content.SAVED
    assert content_of(VERDICT + LINE) is Content.TEXT


async def test_an_archive_of_logs_that_holds_a_bundle_is_none(tmp_path: Path) -> None:
    await saved(tmp_path / "b")
    (tmp_path / "a.log").write_bytes(LINE)
    with tarfile.open(tmp_path / "logs.tar", "w") as tar:
        tar.add(tmp_path / "a.log", "logs/a.log")
        tar.add(tmp_path / "b", "logs/b")
    assert content_of((tmp_path / "logs.tar").read_bytes()) is not Content.BUNDLE


@pytest.mark.parametrize("left_out", ["manifest", "all of a bundle"])
async def test_a_folder_of_ours_that_is_no_whole_bundle_is_told_as_what_it_is(
    runner: LocalRunner, tmp_path: Path, left_out: str
) -> None:
    folder = tmp_path / "b"
    await saved(folder)
    (folder / MANIFEST).unlink()
    if left_out != "manifest":
        for name in ("said.json", "verdict.json", "report.txt"):
            (folder / name).unlink()
    (folder / "files.jsonl").touch()
    (source,) = (await read_traces(runner, [str(folder)])).sources
    assert source.status is LogStatus.FAILED
    says = "manifest.json is missing" if left_out == "manifest" else f"--replay {folder}"
    assert says in source.why


async def test_a_bundle_of_files_without_its_manifest_is_no_folder_of_logs(
    runner: LocalRunner, tmp_path: Path
) -> None:
    for name in ("session.json", "files.jsonl", "said.json", "verdict.json", "report.txt"):
        (tmp_path / name).write_bytes(LINE)
    (source,) = (await read_traces(runner, [str(tmp_path)])).sources
    assert "manifest.json is missing" in source.why


@pytest.mark.parametrize("cut", [1, 4, 8])
async def test_one_that_lost_the_end_with_its_checksum_is_torn(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "p.tar.gz"
    await saved(path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(BundleError, match="torn"):
        open_bundle(path)


async def test_one_that_is_damaged_in_its_middle_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "p.tar.gz"
    await saved(path)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = b"\xff" * 40
    path.write_bytes(data)
    with pytest.raises(BundleError, match="torn"):
        open_bundle(path)
