import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.model.ids import JobKey
from slurmtop.parse.slurm.ids import (
    federation_parts,
    key_of,
    looks_like_job_id,
    parse_job_id,
    split_cluster,
)
from tests.parse.slurm.support import case, expected


def _ids(number: str, command: int) -> list[str]:
    return [line.split("|")[0] for line in case(number, command).decode().splitlines()]


@pytest.mark.parametrize(
    ("command", "answer"),
    [(1, "first_command"), (2, "second_command"), (3, "third_command")],
)
def test_case_003_tasks_of_whole_and_of_cut_ids(command: int, answer: str) -> None:
    for text, row in zip(_ids("003", command), expected("003")[answer]["rows"], strict=False):
        id = parse_job_id(text)
        if "task" in row:
            assert id.tasks is None
            assert f"{id.base}_{id.task}" == row["id"]
            continue
        assert id.base == row["id"]
        assert id.tasks is not None
        assert id.tasks.exact is row["exact"]
        count = int(str(row["tasks"]).removeprefix("at least "))
        assert id.tasks.count == count
        assert id.tasks.count_text() == (str(count) if row["exact"] else f"{count}+")
        if row["throttle"] == "unknown":
            assert not id.tasks.throttle_known
            assert id.cut
        else:
            assert id.tasks.throttle_known
            assert id.tasks.throttle == row["throttle"]
            assert not id.cut


@pytest.mark.parametrize(
    ("text", "count", "throttle"),
    [
        ("123_[1-4%10]", 4, 10),
        ("123_[0-9:2]", 5, None),
        ("123_[1,3,7-9]", 5, None),
        ("29_[1,3-9]", 8, None),
        ("57829110_[0-9999%50]", 10_000, 50),
    ],
)
def test_D3_throttle_and_stride_are_no_tasks(text: str, count: int, throttle: int | None) -> None:
    tasks = parse_job_id(text).tasks
    assert tasks is not None
    assert (tasks.count, tasks.throttle, tasks.exact) == (count, throttle, True)


def test_case_006_a_cut_throttle_is_unknown() -> None:
    id = parse_job_id("57829110_[0-9999%5")
    assert id.cut
    assert id.tasks is not None
    assert id.tasks.throttle is None
    assert not id.tasks.throttle_known
    assert id.stable == "57829110_[*]"


def test_case_026_a_plus_without_digits_is_a_cut() -> None:
    texts = [line.split()[0] for line in case("026").decode().splitlines()[2:]]
    ids = [parse_job_id(text) for text in texts]
    assert [id.cut for id in ids] == [False, False, False, True, False]
    assert [id.step for id in ids] == [None, "batch", "extern", None, None]
    assert ids[3].task is None
    assert ids[4].het_offset == 0
    assert ids[4].stable == "7302+0"


@pytest.mark.parametrize(
    ("text", "stable", "step"),
    [
        ("4711", "4711", None),
        ("4711_3", "4711_3", None),
        ("4711+1", "4711+1", None),
        ("4711_[1,3-5]", "4711_[*]", None),
        ("4711_*", "4711_[*]", None),
        ("4711.0", "4711", "0"),
        ("4711_3.0", "4711_3", "0"),
        ("4711+1.0", "4711+1", "0"),
        ("4711.0+1", "4711", "0+1"),
        ("4711.batch", "4711", "batch"),
        ("4711.4294967291", "4711", "batch"),
        ("4711.4294967292", "4711", "extern"),
        ("4711.4294967290", "4711", "interactive"),
        ("4711.4294967293", "4711", "TBD"),
        ("4711.4294967294", "4711", "batch"),
        ("4711.4294967295", "4711", "extern"),
    ],
)
def test_every_shape_of_section_6(text: str, stable: str, step: str | None) -> None:
    id = parse_job_id(text)
    assert (id.stable, id.step, id.cut, id.text) == (stable, step, False, text)


@pytest.mark.parametrize("text", ["", "JOBID", "(null)", "-1", "x1", "4711;a", "4711_x", "4711 "])
def test_what_is_no_id_has_no_base_and_is_no_key(text: str) -> None:
    id = parse_job_id(text)
    assert id.base == ""
    assert id.cut


def test_the_key_of_a_shrinking_rest_stays() -> None:
    before = key_of(parse_job_id("12345_[8-5000]"), "alpha")
    after = key_of(parse_job_id("12345_[9-5000%4]"), "alpha")
    assert before == after == JobKey("alpha", "12345_[*]")


def test_case_059_federated_ids_are_explained_and_kept_whole() -> None:
    rows = expected("059")["jobs"]
    for line, row in zip(case("059").decode().splitlines(), rows, strict=True):
        id = parse_job_id(line.split("|")[0])
        assert id.base == row["id"]
        assert federation_parts(id) == (row["origin_cluster_id"], row["local_id"])
    assert federation_parts(parse_job_id("4711")) is None
    assert federation_parts(parse_job_id("JOBID")) is None


@pytest.mark.parametrize(
    ("text", "is_id"),
    [
        ("4711", True),
        ("4711_3", True),
        ("4711+1", True),
        ("4711_[1-3]", True),
        ("4711_[0-998:2%10]", True),
        ("4711_*", True),
        ("./4711", False),
        ("4711/", False),
        ("4711.log", False),
        ("4711_", False),
        ("run4711", False),
        ("4711_[a]", False),
        ("", False),
        ("٤٧١١", False),
    ],
)
def test_an_argument_is_a_job_or_a_file(text: str, is_id: bool) -> None:
    assert looks_like_job_id(text) is is_id


def test_D9_parsable_keeps_both_parts() -> None:
    assert split_cluster("4711;beta\n") == ("4711", "beta")
    assert split_cluster("4711\n") == ("4711", "")


@given(st.text(alphabet="0123456789_[]%,:-+.* \tbatchx²٣", max_size=40))
@example("9" * 5_000)
@example("1_[" + "9" * 5_000 + "]")
@example("1_[0-99999999999:1]")
@example("1_[]")
@example("1_[...")
def test_any_text_is_taken_and_never_more_than_was_said(text: str) -> None:
    id = parse_job_id(text)
    assert id.text == text
    assert sum(part is not None for part in (id.task, id.tasks, id.het_offset)) <= 1
    assert id.base == "" or text.startswith(id.base)
    if id.base == "":
        assert id.cut
    if looks_like_job_id(text):
        assert id.base != ""


@given(
    base=st.integers(1, 4_000_000_000),
    pieces=st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 60), st.integers(1, 9)), min_size=1
    ),
    throttle=st.none() | st.integers(1, 99),
    cut=st.integers(0, 200),
)
def test_a_count_is_right_or_a_lower_bound(
    base: int, pieces: list[tuple[int, int, int]], throttle: int | None, cut: int
) -> None:
    start, texts, tasks = 0, [], 0
    for gap, length, step in pieces:
        low = start + gap
        texts.append(f"{low}-{low + length}:{step}" if length else str(low))
        tasks += len(range(low, low + length + 1, step)) if length else 1
        start = low + length + 2
    text = f"{base}_[{','.join(texts)}{'' if throttle is None else f'%{throttle}'}]"
    whole = parse_job_id(text).tasks
    assert whole is not None
    assert (whole.count, whole.exact, whole.throttle) == (tasks, True, throttle)
    shorter = parse_job_id(text[: max(len(str(base)) + 2, len(text) - 1 - cut)])
    assert shorter.cut
    assert shorter.tasks is not None
    assert shorter.tasks.count <= tasks
    assert not shorter.tasks.throttle_known
