"""``slurmtop triage`` as a person runs it: files, folders, standard input, a job."""

import gzip
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slurmtop.cli.main import main
from slurmtop.model.text import cell_width
from tests.cli.stand_ins import StandIns, detail_text, queue_row, slurmtop

TIME_LIMIT = (
    "step 100 loss 2.1\n"
    "slurmstepd: error: *** JOB 4711 ON gn01 CANCELLED AT 2031-05-05T10:00:00"
    " DUE TO TIME LIMIT ***\n"
)
OUT_OF_MEMORY = """[rank3]: Traceback (most recent call last):
[rank3]:   File "/w/train.py", line 88, in step
[rank3]:     loss.backward()
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a \
total capacity of 79.11 GiB of which 1.02 GiB is free.
"""
FINE = "step 1/2 loss 2.1\nstep 2/2 loss 2.0\nTraining completed.\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "job.out").write_text(TIME_LIMIT)
    return folder


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["triage", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_file_is_exit_2_when_a_problem_was_found(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = told(capsys, str(logs / "job.out"))
    lines = out.splitlines()
    assert (status, err) == (2, "")
    assert lines[0] == "FAILED  slurm-time-limit"
    assert "who" in lines
    assert f"{logs}/job.out:2" in out.replace("\n  ", "")
    assert "DUE TO TIME LIMIT" in out.replace("\n  | ", " ")
    assert "what now" in lines
    parts = [line for line in lines if line and not line.startswith(" ")]
    assert parts.index("who") < parts.index("proof") < parts.index("what now")


def test_json_is_one_object(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = told(capsys, "--json", str(logs))
    verdict = json.loads(out)
    assert status == 2
    assert verdict["schema"] == "slurmtop.verdict/1"
    assert (verdict["state"], verdict["class"]) == ("failed", "slurm-time-limit")
    assert verdict["ended_by"] == "slurm"
    assert verdict["job"] is None
    assert verdict["culprits"] == []
    (first, *_) = verdict["evidence"]
    assert (first["source"], first["line"]) == (f"{logs}/job.out", 2)


def test_fine_is_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.out"
    path.write_text(FINE)
    status, out, _ = told(capsys, "--json", str(path))
    assert (status, json.loads(out)["state"]) == (0, "healthy")


def test_a_culprit_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.out").write_text(FINE.replace("Training completed.\n", "") + OUT_OF_MEMORY)
    # A long path would be broken over two lines.
    monkeypatch.chdir(tmp_path)
    status, out, _ = told(capsys, "x.out")
    assert status == 2
    assert out.startswith("FAILED  gpu-oom\n")
    assert "  rank 3" in out
    assert "x.out:6" in out


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "not-there.out", "no such file"),
        (lambda folder: folder, "nothing there holds text"),
        (lambda folder: _binary(folder), "it holds no text"),
        (lambda folder: Path(os.devnull), "a pipe or a device"),
    ],
    ids=["absent", "empty folder", "binary", "device"],
)
def test_nothing_to_read_is_exit_1_and_one_line(
    tmp_path: Path, make: object, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    status, out, err = told(capsys, str(make(tmp_path)))
    assert (status, out) == (1, "")
    assert says in err
    assert len(err.splitlines()) == 1


def _binary(folder: Path) -> Path:
    path = folder / "model.pt"
    path.write_bytes(bytes(range(256)) * 99)
    return path


def test_a_named_file_that_is_not_there_beside_a_good_one_is_told(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = str(tmp_path / "gone.out")
    status, out, err = told(capsys, "--json", str(logs), gone)
    assert status == 2
    assert err == f"slurmtop: {gone}: not read: there is no such file\n"
    assert any(gone in one["why"] for one in json.loads(out)["missing"])
    fine = tmp_path / "fine.out"
    fine.write_text(FINE)
    assert told(capsys, str(fine), gone)[0] == 1


@pytest.mark.parametrize(
    "arguments", [[], [""], ["a\0b"], ["-", "-"], ["--json", "--timeline", "x"], ["4711", "./x"]]
)
def test_wrong_usage_is_exit_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = told(capsys, *arguments)
    assert (status, out) == (64, "")
    assert len(err.splitlines()) == 1


def test_a_name_that_reads_as_a_job_is_a_job_and_with_a_slash_a_file(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "4711").write_text(TIME_LIMIT)
    environ = {**os.environ, "PATH": "/nowhere", "HOME": str(home)}
    run = [sys.executable, "-m", "slurmtop", "triage", "--json"]
    environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    job = subprocess.run(
        [*run, "4711"], env=environ, cwd=tmp_path, capture_output=True, check=False
    )
    assert job.returncode == 1
    assert b"Slurm is not here" in job.stderr
    file = subprocess.run(
        [*run, "./4711"], env=environ, cwd=tmp_path, capture_output=True, check=False
    )
    assert file.returncode == 2
    assert json.loads(file.stdout)["evidence"][0]["source"] == "./4711"


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(tmp_path: Path, packed: bool) -> None:
    data = TIME_LIMIT.encode()
    done = subprocess.run(
        [sys.executable, "-m", "slurmtop", "triage", "--json", "-"],
        input=gzip.compress(data) if packed else data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    verdict = json.loads(done.stdout)
    assert verdict["class"] == "slurm-time-limit"
    assert (verdict["evidence"][0]["source"], verdict["evidence"][0]["line"]) == ("-", 2)


def test_standard_input_from_a_file_and_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    path.write_text(TIME_LIMIT)
    run = [sys.executable, "-m", "slurmtop", "triage", "--json", "-"]
    with path.open() as file:
        assert subprocess.run(run, stdin=file, capture_output=True, check=False).returncode == 2
    done = subprocess.run(run, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["state"] == "unknown"


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_standard_input_by_another_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.out"
    path.write_text(TIME_LIMIT)
    run = [sys.executable, "-m", "slurmtop", "triage", name]
    with path.open() as file:
        assert subprocess.run(run, stdin=file, capture_output=True, check=False).returncode == 2


def test_another_open_file_of_the_shell_is_told_what_reads_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, _, err = told(capsys, "/dev/fd/63")
    assert (status, "| slurmtop triage -" in err) == (64, True)


def test_the_middle_of_a_long_file_is_told_with_the_command_that_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.out"
    with path.open("wb") as file:
        file.write(b"step 1/9000 loss 2.1\n" + b"\n" * 4096)
        file.truncate(30 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\nstep 9000/9000 loss 2.1\n")
    _, out, _ = told(capsys, "--json", str(path))
    missing = json.loads(out)["missing"]
    assert any(
        one["command"] == f"slurmtop triage --whole {path}" and "middle" in one["why"]
        for one in missing
    ), missing


def test_lines_are_shown_without_their_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil\x1b[2J.out"
    path.write_text("\x1b]0;x\x07\x1b[31m" + OUT_OF_MEMORY.replace("CUDA", "\u202eCUDA"))
    for form in ([], ["--timeline"]):
        _, out, _ = told(capsys, *form, str(path))
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_text_is_80_columns_wide_but_for_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ("a-rather-long-name-for-a-log-" * 3 + ".out")
    path.write_text(FINE.replace("Training completed.\n", "") + OUT_OF_MEMORY * 2)
    _, out, _ = told(capsys, str(path))
    wide = [line for line in out.splitlines() if cell_width(line) > 80]
    assert all(str(path) in line and line.startswith("   ") for line in wide), wide
    _, out, _ = told(capsys, "--timeline", str(path))
    assert max(cell_width(line) for line in out.splitlines()) <= 80


def test_the_timeline_has_one_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank, minute in ((0, 7), (1, 3)):
        (tmp_path / f"rank{rank}.log").write_text(
            f"[rank{rank}]:[E612 11:{minute:02}:07.118342917 ProcessGroupNCCL.cpp:616] [Rank"
            f" {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4,"
            " OpType=ALLREDUCE, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600021"
            " milliseconds before timing out.\n"
        )
    status, out, _ = told(capsys, "--timeline", str(tmp_path))
    first, second = (line for line in out.splitlines() if "Watchdog" in line or "rank" in line)
    assert status == 2
    assert first.startswith("11:03:07.118 rank 1")
    assert second.startswith("11:07:07.118 rank 0")


def test_a_job_that_failed_is_told_by_its_log(slurm: StandIns, home: Path, tmp_path: Path) -> None:
    log = tmp_path / "4711.out"
    log.write_text("step 100/200 loss 2.1\n" + OUT_OF_MEMORY)
    written = datetime(2031, 5, 5, 9, 59, tzinfo=UTC).timestamp()
    os.utime(log, (written, written))
    why, path = "NonZeroExitCode", str(log)
    slurm.say(
        jobs=[queue_row("4711", "FAILED", Reason=why, STDOUT=path, STDERR=path)],
        details={"4711": detail_text("4711", "FAILED", exit="1:0", out=path, reason=why)},
    )
    done = slurmtop(slurm.environ(home), "triage", "4711", "--json")
    verdict = json.loads(done.stdout)
    assert done.returncode == 2
    assert (verdict["job"], verdict["state"], verdict["class"]) == ("4711", "failed", "gpu-oom")
    assert [one["rank"] for one in verdict["culprits"]] == [3]
    assert verdict["evidence"][0]["source"] == path


def test_a_job_that_waits_and_one_that_nobody_knows(slurm: StandIns, home: Path) -> None:
    slurm.say(
        jobs=[queue_row("4711", "PENDING", Reason="JobHeldUser")],
        details={"4711": detail_text("4711", "PENDING", reason="JobHeldUser", start="Unknown",
                                     end="Unknown")},
    )  # fmt: skip
    done = slurmtop(slurm.environ(home), "triage", "4711")
    assert done.returncode == 0
    assert done.stdout.startswith("job 4711: PENDING")
    assert slurmtop(slurm.environ(home), "triage", "4799").returncode == 1
