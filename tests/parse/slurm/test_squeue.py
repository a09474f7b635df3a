from datetime import UTC, datetime

import pytest

from slurmtop.model.ids import JobKey
from slurmtop.model.job import UNKNOWN_LIMIT, ExitCode, Job, LimitKind, Phase, TimeLimit
from slurmtop.model.text import visible
from slurmtop.parse.slurm.squeue import (
    LETTERS,
    QUEUE_FIELDS,
    QUEUE_NAMES,
    TEXT_FIELDS,
    merge_partitions,
    parse_squeue,
    queue_format,
)
from tests.parse.slurm.support import (
    FIXTURES,
    LETTER_FIELDS,
    NAMED_FIELDS,
    QUEUE_MARKED_FIELDS,
    VERSIONS,
    case,
    expected,
    fields_asked,
    fixture,
)

_MARK = b"\x1eq7Vd2k"
#: Two that are over, and six that are not, whatever stands in the record.
_STATE_WORDS = (
    *("FAILED", "COMPLETED"),
    *("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "NOVEL"),
)
_WEIRD = '[bold red]we|rd, "ünï" [/] $(x)'


def _letters(text: str) -> tuple[str, ...]:
    return tuple(LETTERS[letter] for letter in text)


def _parse(data: bytes, letters: str) -> tuple[Job, ...]:
    parsed = parse_squeue(data, fields=_letters(letters), separator=b"|", record_mark=b"\n")
    assert parsed.bad == 0
    return parsed.rows


def _by_id(rows: tuple[Job, ...]) -> dict[str, Job]:
    found = {job.key.id: job for job in rows}
    assert len(found) == len(rows)
    return found


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- what slurmtop itself asks for -----------------------------------------------------------


def test_the_format_asks_for_plain_values_first_and_nothing_that_ticks() -> None:
    plain = [name for name in QUEUE_NAMES if name not in TEXT_FIELDS]
    assert QUEUE_NAMES[: len(plain)] == tuple(plain)
    assert not {"used", "left"} & set(QUEUE_NAMES)
    text = queue_format(_MARK)
    assert text.startswith("JobArrayID:\x1f,JobID:\x1f,State:\x1f,")
    assert text.endswith("STDOUT:\x1f,STDERR:\x1eq7Vd2k")
    assert text.count(",") == len(QUEUE_FIELDS) - 1


def test_the_format_is_the_one_that_real_squeue_was_asked_for() -> None:
    asked = (FIXTURES / "22.05.8" / "queue_exit_codes.cmd").read_text(encoding="utf-8")
    assert queue_format(_MARK).replace("\x1f", "\\x1f").replace("\x1e", "\\x1e") in asked
    assert fields_asked("22.05.8", "queue_exit_codes") == QUEUE_NAMES


def test_an_older_capture_was_asked_for_all_but_the_exit_codes() -> None:
    without = [name for name in QUEUE_NAMES if name not in ("exit_status", "derived_status")]
    assert list(QUEUE_MARKED_FIELDS) == without
    titles = fixture("22.05.8", "queue_marked_M").split(b"\n")[1]
    assert titles.removesuffix(_MARK).split(b"\x1f") == [
        b"JOBID", b"JOBID", b"STATE", b"REASON", b"PARTITION", b"USER", b"ACCOUNT", b"QOS",
        b"SUBMIT_TIME", b"ELIGIBLE_TIME", b"START_TIME", b"END_TIME", b"TIME_LIMIT", b"NODES",
        b"NODELIST", b"TRES_ALLOC", b"PRIORITY", b"RESTART_COUNT", b"HET_JOB_ID",
        b"ARRAY_JOB_ID", b"DEPENDENCY", b"NAME", b"COMMENT", b"WORK_DIR", b"COMMAND", b"STDOUT",
        b"STDERR",
    ]  # fmt: skip


def test_real_marked_queue() -> None:
    parsed = parse_squeue(
        fixture("22.05.8", "queue_marked"),
        fields=QUEUE_MARKED_FIELDS,
        record_mark=_MARK,
        cluster="alpha",
    )
    assert (parsed.bad, parsed.first_bad) == (0, None)
    jobs = _by_id(parsed.rows)
    assert list(jobs) == [
        "29_[*]",
        "35",
        "34",
        "29_2",
        "29_0",
        "30",
        "32+0",
        "32+1",
        "31",
    ]
    rest = jobs["29_[*]"]
    assert rest.key == JobKey("alpha", "29_[*]")
    assert rest.id.tasks is not None
    assert rest.id.tasks.count == 8
    assert rest.state.phase is Phase.PENDING
    assert (rest.reason, rest.priority, rest.array_id) == ("JobArrayTaskLimit", 4294901741, "29")
    assert (rest.start, rest.eligible, rest.nodes) == (None, None, None)
    assert rest.tres.gpus == 1
    task = jobs["29_2"]
    assert (task.raw_id, task.nodes, task.group_id) == ("39", "gpu03", "29")
    assert task.start == _utc("2026-11-30T09:18:13")
    assert task.limit == TimeLimit(LimitKind.SECONDS, 3600)
    assert task.tres.gpus_by_type == (("h100", 1),)
    assert jobs["35"].dependency == "afterok:28(failed)"
    assert jobs["35"].reason == "DependencyNeverSatisfied"
    assert (jobs["34"].reason, jobs["34"].priority) == ("JobHeldUser", 0)
    assert [jobs[id].het_leader for id in ("32+0", "32+1", "31")] == ["32", "32", None]
    assert [jobs[id].nodes for id in ("32+0", "32+1")] == ["gpu03", "gpu04"]
    assert jobs["31"].partitions == ("gpu", "low")
    assert jobs["31"].eligible == _utc("2026-11-30T10:18:07")
    assert jobs["31"].name == "b\u202egnp \ufffd [bold]"
    assert jobs["31"].stdout == "/home/alice/pt/slurm-31.out"
    assert (jobs["31"].command, jobs["31"].comment) == (None, None)


def test_real_exit_codes() -> None:
    parsed = parse_squeue(fixture("22.05.8", "queue_exit_codes"), record_mark=_MARK)
    assert parsed.bad == 0
    ends = {
        job.name.partition("\x1f")[0]: (job.state.word, job.exit_code, job.derived_exit_code)
        for job in parsed.rows
    }
    none = ExitCode(0, 0)
    assert ends == {
        "exit3": ("FAILED", ExitCode(3, 0), none),
        "exit137": ("FAILED", ExitCode(137, 0), none),
        "segv": ("FAILED", ExitCode(0, 11), none),
        # 4021 in the answer; scontrol and sacct wrote 0:53 for the same job.
        "nodir": ("FAILED", ExitCode(0, 53), none),
        "stepfails": ("COMPLETED", none, ExitCode(1, 0)),
        "toolong": ("TIMEOUT", ExitCode(0, 15), none),
        "cancelme": ("CANCELLED", ExitCode(0, 15), none),
        "gone": ("CANCELLED", none, none),
        "held": ("PENDING", None, None),
        "x": ("COMPLETED", none, none),
    }


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("0", ExitCode(0, 0)),
        ("256", ExitCode(1, 0)),
        ("65280", ExitCode(255, 0)),
        ("139", ExitCode(0, 11)),
        ("125", ExitCode(0, 125)),
        ("65536", None),
        ("4294967294", None),
        ("-1", None),
        ("N/A", None),
        ("", None),
    ],
)
def test_a_raw_wait_status_is_read(status: str, code: ExitCode | None) -> None:
    """139 is SIGSEGV with a core dump; 4294967294 is Slurm's mark for no value."""
    fields = ("id", "state", "exit_status", "derived_status")
    data = "".join(f"{n}|{word}|{status}|{status}\n" for n, word in enumerate(_STATE_WORDS, 1))
    parsed = parse_squeue(data.encode(), fields=fields, separator=b"|", record_mark=b"\n")
    codes = [(job.exit_code, job.derived_exit_code) for job in parsed.rows]
    assert codes == [(code, code)] * 2 + [(None, None)] * 6


def test_A2_a_name_with_separators_marks_and_line_breaks_forges_nothing() -> None:
    parsed = parse_squeue(
        fixture("22.05.8", "queue_marked"), fields=QUEUE_MARKED_FIELDS, record_mark=_MARK
    )
    job = _by_id(parsed.rows)["30"]
    assert (job.user, job.state.word, job.nodes) == ("alice", "RUNNING", "gpu03")
    assert job.name_unsure
    assert job.name.startswith("x\x1fROOT\x1fCOMPLETED\x1e\n1\x1f1\x1fCOMPLETED\x1ftwo\nlines\x1f|")
    assert "\n" not in visible(job.name)
    assert (job.comment, job.workdir, job.stdout) == (None, None, None)


def test_a_mark_in_front_of_the_records() -> None:
    parsed = parse_squeue(
        fixture("22.05.8", "queue_marked_P"),
        fields=("id", "partition", "state", "raw_id", "reason", "name"),
        record_mark=_MARK,
    )
    assert parsed.bad == 0
    jobs = _by_id(parsed.rows)
    assert list(jobs) == ["29_[*]", "31", "35", "34"]
    assert jobs["31"].partitions == ("gpu", "low")
    assert jobs["34"].name == "held"


# --- the captures of three releases ----------------------------------------------------------

_COUNT = {"22.05.8": 16, "24.11.5": 15, "26.05.5": 16}


@pytest.mark.parametrize("version", VERSIONS)
def test_real_fields(version: str) -> None:
    parsed = parse_squeue(
        fixture(version, "squeue_fields"), fields=LETTER_FIELDS, record_mark=b"\n"
    )
    # The line break in one comment leaves half a line of it.
    assert len(parsed.rows) == _COUNT[version]
    assert parsed.bad == 1
    assert parsed.first_bad is not None
    assert parsed.first_bad.excerpt == "line | comment"
    jobs = _by_id(parsed.rows)
    weird = next(job for job in parsed.rows if job.name == _WEIRD)
    assert (weird.user, weird.state.word, weird.comment) == ("alice", "RUNNING", "multi")
    base = {"22.05.8": ("3", "2"), "24.11.5": ("19", "18"), "26.05.5": ("66", "65")}[version]
    rest, train = jobs[f"{base[0]}_[*]"], jobs[base[1]]
    assert rest.id.tasks is not None
    assert (rest.id.tasks.count, rest.id.tasks.throttle) == (16, 4)
    assert rest.used_s == 0
    assert (train.name, train.account, train.qos) == ("llm-pretrain", "ml", "normal")
    assert train.limit == TimeLimit(LimitKind.SECONDS, 3600)
    assert train.left == TimeLimit(LimitKind.SECONDS, 59 * 60 + 47)
    assert train.used_s == 13
    assert train.start is not None
    assert train.end is not None
    assert (train.end - train.start).total_seconds() == 3600
    assert train.tres.gpus == (16 if version == "22.05.8" else 4)
    assert train.command in ("/shared/alice/w/train1.sh", "/shared/alice/w/train2.sh")
    assert jobs[f"{base[0]}_3"].raw_id in ("19", "35", "82")


@pytest.mark.parametrize("version", VERSIONS)
def test_real_named_fields(version: str) -> None:
    parsed = parse_squeue(
        fixture(version, "squeue_O"), fields=NAMED_FIELDS, separator=b"|", record_mark=b"|\n"
    )
    assert (len(parsed.rows), parsed.bad) == (_COUNT[version], 0)
    unsure = [job for job in parsed.rows if job.name_unsure]
    assert len(unsure) == 1
    # The name came before the state here, and it holds the separator: better unknown than wrong.
    assert unsure[0].state.phase is Phase.UNKNOWN
    assert unsure[0].name.startswith(_WEIRD)
    assert unsure[0].end is not None
    sure = [job for job in parsed.rows if not job.name_unsure]
    assert {job.state.word for job in sure} == {"PENDING", "RUNNING"}
    het = [job for job in sure if job.name == "het"]
    assert len({job.het_leader for job in het}) == 1
    assert {job.restarts for job in sure} == {0}
    patterns = {job.stdout for job in sure if job.id.task is not None}
    assert (
        patterns
        == {
            "22.05.8": {f"/shared/alice/w/slurm-{raw}.out" for raw in (16, 17, 18, 19)},
            "24.11.5": {"/shared/alice/w/slurm-%A_%a.out"},
            "26.05.5": {"slurm-%A_%a.out"},
        }[version]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_real_both_formats_agree(version: str) -> None:
    by_letter = parse_squeue(
        fixture(version, "squeue_fields"), fields=LETTER_FIELDS, record_mark=b"\n"
    )
    by_name = parse_squeue(
        fixture(version, "squeue_O"), fields=NAMED_FIELDS, separator=b"|", record_mark=b"|\n"
    )
    left, right = _by_id(by_letter.rows), _by_id(by_name.rows)
    assert list(left) == list(right)
    for id, job in left.items():
        other = right[id]
        if not other.name_unsure:
            assert (job.name, job.state, job.reason) == (other.name, other.state, other.reason)
            assert (job.nodes, job.raw_id) == (other.nodes, other.raw_id)
        assert (job.start, job.end) == (other.start, other.end)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_after_a_requeue(version: str) -> None:
    (job,) = _parse(fixture(version, "squeue_after_requeue"), "iTrSM")
    assert job.state.phase is Phase.PENDING
    assert job.reason == (None if version == "22.05.8" else "BeginTime")
    assert job.used_s == 0


# --- cases with known answers ----------------------------------------------------------------


def test_case_001_over_a_year_is_no_alarm() -> None:
    rows = _parse(case("001"), "ilLMT")
    assert rows[1].limit == rows[1].left == TimeLimit(LimitKind.OVER_A_YEAR)
    assert rows[1].used_s == 184
    assert rows[0].left == TimeLimit(LimitKind.SECONDS, 31457469)
    assert rows[3].limit == TimeLimit(LimitKind.PARTITION_DEFAULT)


def test_A5_time_left_past_the_limit_is_unknown_and_not_over_a_year() -> None:
    (job,) = _parse(b"5|1:00:00|INVALID|COMPLETING\n", "ilLT")
    assert job.left == UNKNOWN_LIMIT
    assert job.state.word == "COMPLETING"


@pytest.mark.parametrize(("command", "name"), [(1, "first_command"), (2, "second_command")])
def test_case_003_ids_cut_or_whole(command: int, name: str) -> None:
    rows = _parse(case("003", command), "iTr")
    assert len(rows) == 5
    for job, row in zip(rows, expected("003")[name]["rows"], strict=False):
        assert job.key.id == (f"{row['id']}" if "task" in row else f"{row['id']}_[*]")


def test_case_004_and_053_A16_reason_and_nodes_out_of_one_field() -> None:
    rows = [_parse(case("004", command), "itTrRS")[0] for command in (1, 2, 3)]
    assert [job.nodes for job in rows] == ["gpu[03-04]", "gpu[03-04]", None]
    assert [job.reason for job in rows] == [None, None, "BeginTime"]
    assert len({job.key for job in rows}) == 1
    states = [_parse(case("053", command), "iTr")[0].state.word for command in (7, 8)]
    assert states == ["COMPLETING", "PENDING"]


def test_case_013_foreign_time_formats_are_unknown() -> None:
    for command in (1, 2):
        for job in _parse(case("013", command), "iSeV"):
            assert (job.start, job.end, job.submit) == (None, None, None)
    (job,) = _parse(case("013", 3), "iS")
    assert job.start == _utc("2031-05-05T14:24:22")


def test_case_029_escapes_and_markup_come_through_raw_and_are_made_visible() -> None:
    parsed = parse_squeue(case("029"), fields=_letters("iTjk"))
    assert parsed.bad == 0
    red, markup = parsed.rows
    assert [job.key.id for job in parsed.rows] == ["7501", "7502"]
    assert [job.state.word for job in parsed.rows] == ["RUNNING", "RUNNING"]
    assert red.name == "\x1b[2J\x1b[31mred\x1b[0m"
    assert red.comment == "a\tb\rc\x07"
    assert "\x1b" not in visible(red.name)
    assert markup.name == "[bold]x[/bold] [link=file:///etc]"
    assert markup.comment == "\u202egnp.exe"
    assert "\u202e" not in visible(markup.comment)


@pytest.mark.parametrize(
    ("number", "command", "letters", "ids"),
    [
        ("031", 1, "iT", []),
        ("031", 2, "iT", ["7601"]),
        ("031", 3, "iT", []),
        ("039", 3, "iT", ["8201", "8202", "8203"]),
        ("061", 2, "iT", []),
        ("059", 1, "iTN", ["67113575", "134222439"]),
    ],
)
def test_cases_031_039_059_061_ids(number: str, command: int, letters: str, ids: list[str]) -> None:
    assert [job.key.id for job in _parse(case(number, command), letters)] == ids


def test_case_058_het_parts_and_their_gpus() -> None:
    rows = _parse(case("058", 1), "iATNb") + _parse(case("058", 6), "iATr")
    first, second = expected("058")["groups"]
    assert [job.key.id for job in rows if job.group_id == first["leader"]] == first["components"]
    gpus = [job.tres.gpus for job in rows if job.group_id == first["leader"]]
    # N/A on the first part is "not said", never 0; 4 a node on two nodes are 8.
    assert gpus == [None, first["gpus"]]
    assert (
        sorted(job.key.id for job in rows if job.group_id == second["leader"])
        == (second["components"])
    )
    assert all(job.array_id is None for job in rows)


def test_case_063_one_job_with_all_its_partitions() -> None:
    answer = expected("063")["jobs"]
    for command, letters in ((1, "iPTrQ"), (2, "iPT"), (3, "iPT")):
        rows = _parse(case("063", command), letters)
        assert len(rows) == answer["count"]
        assert [job.key.id for job in rows] == answer["ids"]
        assert rows[0].partitions == ("gpu", "gpu-long", "preempt")


# --- keys ------------------------------------------------------------------------------------


def _rest(raw_id: str, tasks: str, partition: str = "gpu") -> bytes:
    return f"4711_[{tasks}]|{raw_id}|{partition}|PENDING".encode()


@pytest.mark.parametrize("turned", [False, True])
def test_two_rests_of_one_array_have_two_keys_in_any_order(turned: bool) -> None:
    lines = [_rest("4711", "5-9"), _rest("4720", "2"), _rest("4721", "3")]
    rows = _parse(b"\n".join(reversed(lines) if turned else lines), "iAPT")
    keys = {job.raw_id: job.key.id for job in rows}
    assert keys == {"4711": "4711_[*]", "4720": "4711_[*4720]", "4721": "4711_[*4721]"}


def test_two_rests_in_two_partitions_each() -> None:
    lines = [_rest(raw, "1", part) for part in ("gpu", "low") for raw in ("4711", "4720")]
    rows = _by_id(_parse(b"\n".join(lines), "iAPT"))
    assert {id: job.partitions for id, job in rows.items()} == {
        "4711_[*]": ("gpu", "low"),
        "4711_[*4720]": ("gpu", "low"),
    }


def test_rests_without_a_raw_id_are_told_apart_by_their_tasks() -> None:
    rows = _parse(b"4711_[5-9]|PENDING\n4711_[2]|PENDING\n", "iT")
    assert len({job.key for job in rows}) == 2


def test_merge_keeps_rows_that_need_nothing() -> None:
    rows = _parse(b"1|gpu|PENDING\n2|gpu|PENDING\n", "iPT")
    assert merge_partitions(rows) == rows
    assert merge_partitions(()) == ()
