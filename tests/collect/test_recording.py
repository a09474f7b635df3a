"""A recording replays what was seen, without its secrets, for its owner alone."""

import json
import math
import stat
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.private_files import PrivateFolder, UnsafeFolder
from slurmtop.collect.record_form import (
    bytes_form,
    bytes_of,
    mask_argv,
    mask_block,
    mask_output,
)
from slurmtop.collect.recording import _CONTEXT_BYTES, RecordingExists, RecordingRunner
from slurmtop.collect.replay import ReplayRunner
from slurmtop.collect.streams import closing
from slurmtop.model.ports import (
    Command,
    Completed,
    FileStat,
    FileTimeout,
    NodeUnreachable,
    ReplayMiss,
    RunnerError,
)
from slurmtop.model.snapshot import Failure, Trouble
from tests.fakes import START, FakeClock, FakeRunner

MARK = b"\x1eAbCdEf"
SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"


def returning(answer: Completed) -> Callable[[Command], Completed]:
    return lambda _command: answer


class Tape:
    """A runner, its recording, and the replay of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.inner = FakeRunner(self.clock)
        self.recorder = RecordingRunner(
            self.inner, PrivateFolder(path), clock=self.clock, mark=MARK
        )

    async def replay(self) -> ReplayRunner:
        await self.recorder.aclose()
        return ReplayRunner(self.path)


@pytest.fixture
async def tape(tmp_path: Path) -> AsyncIterator[Tape]:
    made = Tape(tmp_path / "rec")
    yield made
    await made.recorder.aclose()


async def test_commands_come_back_as_they_were(tape: Tape) -> None:
    command = Command(("squeue", "-h", "-O", "JobID:\x1f,Name:\x1eAbCdEf"))
    answers = [
        Completed(0, b"4711\x1fname\x1eAbCdEf\n", b"", START, 0.25),
        Completed(1, b"", b"error: \xff\xfe\x00", START + timedelta(seconds=20), 1 / 3),
        Completed(None, b"half", b"", START, 120.0, truncated=True),
    ]
    seen = []
    for answer in answers:
        tape.inner.on_call("squeue*", returning(answer))
        seen.append(await tape.recorder.run(command))
    replay = await tape.replay()
    assert seen == answers
    assert [await replay.run(command) for _ in answers] == answers
    assert await replay.run(command) == answers[-1]
    assert replay.mark == MARK
    assert replay.started_at == START
    assert (replay.torn, replay.bad) == (0, 0)


async def test_an_unchanged_answer_is_written_once(tape: Tape) -> None:
    command = Command(("squeue",))
    tape.inner.on("squeue", "row\n" * 1000)
    first = await tape.recorder.run(command)
    tape.inner.on_call("squeue", RunnerError("no"))
    with pytest.raises(RunnerError):
        await tape.recorder.run(command)
    tape.inner.on("squeue", "row\n" * 1000, took_s=0.7)
    again = await tape.recorder.run(command)
    replay = await tape.replay()
    assert (tape.path / "commands.jsonl").stat().st_size < 6000
    assert await replay.run(command) == first
    with pytest.raises(RunnerError):
        await replay.run(command)
    assert await replay.run(command) == again


async def test_commands_differ_by_host_stdin_and_kind(tape: Tape) -> None:
    commands = [
        Command(("cat",)),
        Command(("cat",), stdin=b"one"),
        Command(("cat",), stdin=b"\xff"),
        Command(("cat",), host="gpu01"),
    ]
    tape.inner.on_call(
        "cat",
        lambda command: Completed(0, f"{command.host}{command.stdin!r}".encode(), b"", START, 0.1),
    )
    seen = [await tape.recorder.run(command) for command in commands]
    streamed = [chunk async for chunk in tape.recorder.stream(commands[0])]
    replay = await tape.replay()
    assert [await replay.run(command) for command in commands] == seen
    assert [chunk async for chunk in replay.stream(commands[0])] == streamed
    with pytest.raises(ReplayMiss, match="cat"):
        await replay.run(Command(("cat",), stdin=b"two"))
    with pytest.raises(ReplayMiss):
        _ = [chunk async for chunk in replay.stream(commands[1])]


async def test_what_is_missing_is_told_in_words(tape: Tape) -> None:
    """Not with the marks between the fields, and of a queue what to do instead."""
    queue = Command(("squeue", "-h", "--me", "-O", "JobArrayID:\x1f,State:\x1e,"))
    tape.inner.on("tool*", "")
    await tape.recorder.run(Command(("tool",)))
    replay = await tape.replay()
    with pytest.raises(ReplayMiss, match=r"holds no queue.*why JOB") as missed:
        await replay.run(queue)
    assert str(missed.value).isprintable()
    with pytest.raises(ReplayMiss, match=r"does not hold sacct --parsable …\.$"):
        await replay.run(Command(("sacct", "--parsable", "--delimiter=\x1fab\x1f")))


async def test_another_queue_than_the_recorded_one_is_told_as_such(tape: Tape) -> None:
    tape.inner.on("squeue*", "")
    await tape.recorder.run(Command(("squeue", "-h", "--me", "-O", "State:\x1e,")))
    replay = await tape.replay()
    with pytest.raises(ReplayMiss, match=r"does not hold squeue -h -a -O …\.$"):
        await replay.run(Command(("squeue", "-h", "-a", "-O", "State:\x1e,")))


async def test_commands_that_could_not_start_come_back_as_such(tape: Tape) -> None:
    def missing(_command: Command) -> Completed:
        raise RunnerError("squeue was not found on this machine.") from FileNotFoundError(2, "x")

    tape.inner.on_call("squeue", missing)
    tape.inner.on_call("sinfo", RunnerError("out of memory"))
    for name in ("squeue", "sinfo"):
        with pytest.raises(RunnerError):
            await tape.recorder.run(Command((name,)))
        with pytest.raises(RunnerError):
            _ = [chunk async for chunk in tape.recorder.stream(Command((name,)))]
    replay = await tape.replay()
    with pytest.raises(RunnerError, match="not found") as error:
        await replay.run(Command(("squeue",)))
    assert isinstance(error.value.__cause__, FileNotFoundError)
    with pytest.raises(RunnerError, match="out of memory") as error:
        _ = [chunk async for chunk in replay.stream(Command(("sinfo",)))]
    assert error.value.__cause__ is None


async def test_nodes_that_could_not_be_reached_come_back_as_such(tape: Tape) -> None:
    failures = [
        Failure(Trouble.DENIED, "gpu01 accepts no key of yours.", "Permission denied", 300.0),
        Failure(Trouble.DOWN, f"gpu01 hung up; token {SECRET}.", "", None),
        Failure(Trouble.TOO_OLD, "srun here does not know --overlap.", "", math.inf),
    ]
    command = Command(("nvidia-smi", "-L"), host="gpu01")
    for failure in failures:
        tape.inner.on_call("nvidia-smi*", NodeUnreachable("gpu01", failure))
        with pytest.raises(NodeUnreachable):
            await tape.recorder.run(command)
        with pytest.raises(NodeUnreachable):
            _ = [chunk async for chunk in tape.recorder.stream(command)]
    replay = await tape.replay()
    assert replay.bad == 0
    assert SECRET not in (tape.path / "commands.jsonl").read_text()
    for failure in failures:
        with pytest.raises(NodeUnreachable) as error:
            await replay.run(command)
        assert error.value.host == "gpu01"
        assert error.value.failure.trouble is failure.trouble
        assert error.value.failure.retry_after_s == failure.retry_after_s
        with pytest.raises(NodeUnreachable):
            _ = [chunk async for chunk in replay.stream(command)]
    with pytest.raises(ReplayMiss):
        await replay.run(Command(("nvidia-smi", "-L"), host="gpu02"))


async def test_a_stream_that_is_left_ends_at_its_source_at_once(tape: Tape) -> None:
    ended: list[str] = []

    async def endless(_command: Command) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"row\n"
        finally:
            ended.append("source")

    tape.inner.stream = endless  # type: ignore[assignment]
    metered = MeteredRunner(tape.recorder, tape.clock)
    async with closing(metered.stream(Command(("nvidia-smi",), host="gpu01"))) as rows:
        assert await anext(rows) == b"row\n"
        assert await anext(rows) == b"row\n"
    assert ended == ["source"]
    replay = await tape.replay()
    command = Command(("nvidia-smi",), host="gpu01")
    assert [chunk async for chunk in replay.stream(command)] == [b"row\nrow\n"]


async def test_files_come_back_as_they_were(tape: Tape) -> None:
    log = b"line one\nline \xff two\n" * 200
    tape.inner.files["/w/log"] = log
    tape.inner.files["/w/denied"] = PermissionError(13, "Permission denied")
    tape.inner.files["/w/hangs"] = FileTimeout("/w/hangs did not answer")
    tape.inner.files["/w/odd"] = RunnerError("no process")
    reads = [(0, 10), (5, 2000), (4000, 100), (10_000, 5)]
    seen = [await tape.recorder.read("/w/log", *at) for at in reads]
    assert seen == [log[a : a + b] for a, b in reads]
    stat_seen = await tape.recorder.stat("/w/log")
    names = await tape.recorder.list("/w")
    trouble = (
        ("/w/denied", PermissionError),
        ("/w/none", FileNotFoundError),
        ("/w/hangs", FileTimeout),
        ("/w/odd", RunnerError),
    )
    for path, kind in trouble:
        with pytest.raises(kind):
            await tape.recorder.stat(path)
        with pytest.raises(kind):
            await tape.recorder.read(path, 0, 5)
    replay = await tape.replay()
    assert [await replay.read("/w/log", *at) for at in reads] == seen
    assert await replay.stat("/w/log") == stat_seen
    assert await replay.list("/w") == names
    for path, kind in trouble:
        with pytest.raises(kind):
            await replay.stat(path)
        with pytest.raises(kind):
            await replay.read(path, 0, 5)
    with pytest.raises(ReplayMiss, match="/w/log"):
        await replay.read("/w/log", 0, 11)


async def test_secrets_never_reach_the_disk_and_replay_still_finds_its_lines(tape: Tape) -> None:
    command = Command(("tool", "--token", SECRET, f"API_KEY={SECRET}"), stdin=SECRET.encode())
    tape.inner.on("tool*", f"export HF_TOKEN={SECRET}\n", stderr=f"token {SECRET}")
    await tape.recorder.run(command)
    log = b"step 1\nHF_TOKEN=" + SECRET.encode() + b"\nstep 2\n"
    tape.inner.files["/w/log"] = log
    for offset in range(len(log)):
        await tape.recorder.read("/w/log", offset, 20)
    await tape.recorder.read("/w/log", 0, 1000)
    replay = await tape.replay()
    names_written = ("session.json", "commands.jsonl", "files.jsonl")
    for name in names_written:
        written = (tape.path / name).read_text()
        assert SECRET not in written
    done = await replay.run(command)
    assert b"HF_TOKEN=" in done.stdout
    assert SECRET.encode() not in done.stdout
    whole = await replay.read("/w/log", 0, 1000)
    assert len(whole) == len(log)
    assert whole.startswith(b"step 1\nHF_TOKEN=")
    assert whole.endswith(b"\nstep 2\n")
    pieces = [await replay.read("/w/log", offset, 20) for offset in range(len(log))]
    for piece in pieces:
        for start in range(len(SECRET) - 8):
            assert SECRET[start : start + 8].encode() not in piece


def test_a_masked_name_does_not_swallow_our_separators() -> None:
    row = b"7\x1fpassword=hunter2\x1f/w\x1eAbCdEf\n8\x1fplain\x1f/w\x1eAbCdEf\n"
    masked = mask_output(row)
    assert b"hunter2" not in masked
    assert masked.count(b"\x1f") == row.count(b"\x1f")
    assert masked.count(b"\x1eAbCdEf\n") == 2
    assert masked.endswith(b"8\x1fplain\x1f/w\x1eAbCdEf\n")


def test_a_masked_block_keeps_its_length() -> None:
    for text in (b"password=x1", b"password=" + b"q1" * 40, b"no secret"):
        data = b"before\n" + text + b"\nafter\n"
        masked = mask_block(data, 0, len(data))
        assert len(masked) == len(data)
        assert masked.startswith(b"before\n")
        assert masked.endswith(b"\nafter\n")
    assert b"x1" not in mask_block(b"password=x1 y\n", 0, 14)


@pytest.mark.parametrize("inside", [100, 1_200, 2_900])
def test_a_key_over_the_edge_of_a_block_is_masked_on_both_sides(inside: int) -> None:
    lines = [f"{at:03}" + "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5z" * 2 for at in range(45)]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    data = ("step 1\n" * 4_000 + key + "\n" + "step 2\n" * 4_000).encode()
    edge = data.index(b"-----BEGIN") + inside
    for first, last in ((edge - 4_096, edge), (edge, edge + 8_192)):
        begin = max(0, first - _CONTEXT_BYTES)
        kept = mask_block(data[begin : last + _CONTEXT_BYTES], first - begin, last - first)
        assert len(kept) == last - first
        assert b"step" in kept
        assert not [line for line in lines if line[3:30].encode() in kept]


def test_a_block_that_begins_far_inside_of_a_key_keeps_none_of_its_lines() -> None:
    line = b"aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zaB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3"
    data = line[20:] + b"\n" + (line + b"\n") * 500 + b"step 2\n" * 100
    kept = mask_block(data, 24 * 1024, len(data) - 24 * 1024)
    assert line[:30] not in kept
    assert kept.endswith(b"step 2\n" * 100)


@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be", "utf-16"])
@pytest.mark.parametrize("cut", [0, 1])
def test_text_of_two_bytes_a_letter_is_masked_as_its_letters(code: str, cut: int) -> None:
    text = f"Größe 5\nlogin with password={SECRET} and on\nstep 7 ü\n"
    data = text.encode(code)[cut:]
    kept = mask_block(data, 0, len(data))
    assert len(kept) == len(data)
    assert SECRET not in kept[cut:].decode(code.removesuffix("-le"), "replace")
    assert SECRET[:8].encode() not in kept.replace(b"\0", b"")
    assert kept.endswith("step 7 ü\n".encode("utf-16-be" if code.endswith("be") else "utf-16-le"))
    assert kept[:8] == data[:8]


async def test_files_whose_masked_paths_are_one_stay_several(tape: Tape) -> None:
    paths = ["/w/api_key=aaa1/log", "/w/api_key=bbb2/log", "/w/pad_token=eos/log"]
    for path in paths:
        tape.inner.files[path] = str(paths.index(path)).encode()
        await tape.recorder.read(path, 0, 100)
    replay = await tape.replay()
    told = [tape.recorder.told(path) for path in paths]
    assert told == ["/w/api_key=‹masked›/log", "/w/api_key=‹masked-2›/log", paths[2]]
    assert len({await replay.read(path, 0, 100) for path in told}) == 3
    assert b"aaa1" not in (tape.path / "files.jsonl").read_bytes()


def test_a_secret_in_a_word_of_its_own_is_masked() -> None:
    assert mask_argv(("tool", "--token", SECRET))[:2] == ("tool", "--token")
    assert SECRET not in " ".join(mask_argv(("tool", "--password", "plainword1")))
    assert "plainword1" not in mask_argv(("tool", "--password", "plainword1"))
    plain = ("squeue", "-h", "-u", "anna", "-O", "JobID:\x1f", "\udcff")
    assert mask_argv(plain) == plain


@given(st.binary(max_size=60))
def test_any_bytes_survive_the_form(data: bytes) -> None:
    assert bytes_of(json.loads(json.dumps(bytes_form(data)))) == data


async def test_files_are_for_the_owner_alone(tape: Tape) -> None:
    tape.inner.on("squeue", "x")
    await tape.recorder.run(Command(("squeue",)))
    await tape.recorder.aclose()
    assert stat.S_IMODE(tape.path.stat().st_mode) == 0o700
    for name in ("session.json", "commands.jsonl"):
        assert stat.S_IMODE((tape.path / name).stat().st_mode) == 0o600


async def test_one_folder_holds_one_recording(tape: Tape, tmp_path: Path) -> None:
    with pytest.raises(RecordingExists, match="holds a recording already"):
        Tape(tape.path)
    full = tmp_path / "full"
    full.mkdir(mode=0o700)
    (full / "letters.txt").write_text("x")
    with pytest.raises(RecordingExists, match="holds other files already"):
        Tape(full)
    assert [path.name for path in full.iterdir()] == ["letters.txt"]
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(UnsafeFolder):
        Tape(shared)


async def test_a_torn_or_broken_line_costs_only_itself(tape: Tape) -> None:
    tape.inner.on("squeue", "x")
    seen = await tape.recorder.run(Command(("squeue",)))
    await tape.recorder.aclose()
    path = tape.path / "commands.jsonl"
    good = path.read_bytes()
    broken = [b"{}\n", b"[]\n", b"not json\n", b'{"argv": 5, "host": null}\n']
    path.write_bytes(b"".join(broken) + good + good[: len(good) // 2])
    (tape.path / "files.jsonl").write_bytes(
        b'{"op":"chmod","path":"/x","host":null}\n'
        b'{"op":"stat","path":"/x","host":null,"error":{"kind":"strange"}}\n'
        b'{"op":"stat","path":"/x","host":null,"stat":{"size":1}}\n'
    )
    replay = ReplayRunner(tape.path)
    assert (replay.torn, replay.bad) == (1, 7)
    assert await replay.run(Command(("squeue",))) == seen


def test_a_folder_without_a_recording_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no recording"):
        ReplayRunner(tmp_path)
    (tmp_path / "session.json").write_text('{"schema": "other/1"}')
    with pytest.raises(ValueError, match="of another version"):
        ReplayRunner(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[]", "null", "not json", "9" * 9_000, "[" * 200_000])
def test_a_session_that_is_none_is_refused_in_our_own_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(ValueError) as told:
        ReplayRunner(tmp_path)
    assert str(told.value) == f"{tmp_path}/session.json is torn, or somebody changed it."


async def test_a_full_disk_stops_the_recording_and_nothing_else(
    tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_name: str, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tape.recorder._writer._folder, "append", full)
    tape.inner.on("squeue", "x")
    for _ in range(3):
        assert (await tape.recorder.run(Command(("squeue",)))).stdout == b"x"
    await tape.recorder.aclose()
    assert tape.recorder.trouble is not None
    assert "No space left" in tape.recorder.trouble


async def test_the_size_is_limited(tape: Tape) -> None:
    tape.recorder._writer._left = 500
    for number in range(20):
        tape.inner.on("squeue", str(number))
        await tape.recorder.run(Command(("squeue",)))
    await tape.recorder.aclose()
    assert (tape.path / "commands.jsonl").stat().st_size <= 500
    assert tape.recorder.trouble is not None
    assert "size limit" in tape.recorder.trouble


async def test_a_stuck_disk_neither_blocks_nor_grows_without_bound(
    tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(
        tape.recorder._writer._folder, "append", lambda _name, _data: stuck.wait(60)
    )
    tape.inner.on("squeue", "x")
    for _ in range(400):
        await tape.recorder.run(Command(("squeue",)))
    assert tape.recorder.lost > 100
    stuck.set()


async def test_a_stat_keeps_what_kind_it_was(tape: Tape, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = FileStat(size=0, mtime=START, device=2**40, inode=2**60, is_regular=False)

    async def answer(_path: str, _host: str | None = None) -> FileStat:
        return seen

    monkeypatch.setattr(tape.inner, "stat", answer)
    await tape.recorder.stat("/w/pipe")
    assert await (await tape.replay()).stat("/w/pipe") == seen


def test_a_coloured_block_keeps_its_length_and_its_lines() -> None:
    data = b"\x1b[1mx\x1b[0m\n\x1b[36mpassword\x1b[0m=\x1b[35mhunter2xyz\x1b[0m\nrank 3\n"
    kept = mask_block(data, 0, len(data))
    assert len(kept) == len(data)
    assert [line.rstrip() for line in kept.split(b"\n")] == [
        *(b"\x1b[1mx\x1b[0m", "password=‹masked›".encode(), b"rank 3", b"")
    ]
