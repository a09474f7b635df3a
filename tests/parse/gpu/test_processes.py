"""Processes on GPUs: compute-apps and pmon."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.compute_apps import APP_FIELDS, apps_argv, parse_compute_apps, parse_pmon
from tests.parse.gpu.support import case, mutated


def test_what_is_no_process_is_counted() -> None:
    parsed = parse_compute_apps(b"GPU-00, x, python, 5\nGPU-00, 5\nGPU-00, 7, python, 5\n")
    assert ([one.pid for one in parsed.rows], parsed.bad) == ([7], 2)


def test_the_words_for_no_memory_are_kept() -> None:
    (one,) = parse_compute_apps(b"GPU-00, 7, [Not Found], [Insufficient Permissions]\n").rows
    assert (one.name, one.mem_mib) == (None, None)
    assert dict(one.words) == {"name": "[Not Found]", "mem_mib": "[Insufficient Permissions]"}


def test_no_field_may_hold_commas_where_no_name_was_asked_for() -> None:
    parsed = parse_compute_apps(b"GPU-00, 7, 512, 9\n", ("gpu_uuid", "pid", "used_gpu_memory"))
    assert (parsed.rows, parsed.bad) == ((), 1)


def test_texts_in_the_place_of_data_are_no_processes() -> None:
    parsed = parse_compute_apps(b"No devices were found\n")
    assert (parsed.rows, parsed.bad) == ((), 0)


def test_pmon_without_its_header_is_not_guessed() -> None:
    assert parse_pmon(b"    1      21198     C     97\n").rows == ()


def test_pmon_names_keep_their_blanks() -> None:
    (one,) = parse_pmon(b"# gpu  pid  type  sm  command\n  1  7  C  97  my tool x\n").rows
    assert (one.name, one.sm_percent, one.gpu_index) == ("my tool x", 97, 1)


def test_the_command() -> None:
    assert apps_argv()[1] == "--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory"


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    for parsed in (parse_compute_apps(data), parse_pmon(data), parse_pmon(b"# gpu pid\n" + data)):
        assert len(parsed.rows) + parsed.bad <= data.count(b"\n") + 1


@given(st.sampled_from([1, 3]), st.integers(0, 600), st.binary(max_size=9), st.integers(0, 9))
def test_captures_with_damage(which: int, place: int, piece: bytes, cut: int) -> None:
    parse_compute_apps(mutated(case("013"), place, piece, cut))
    parse_pmon(mutated(case("014", 3), place, piece, cut))
    parse_compute_apps(mutated(case("014", which), place, piece, cut), header=True)


@given(
    pid=st.integers(1, 4_194_304),
    name=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Zs"])),
    memory=st.integers(0, 200_000),
)
def test_what_was_printed_is_read(pid: int, name: str, memory: int) -> None:
    line = f"GPU-00, {pid}, a{name}, {memory}\n".encode()
    (one,) = parse_compute_apps(line, APP_FIELDS).rows
    assert (one.pid, one.name, one.mem_mib) == (pid, f"a{name}", memory)
