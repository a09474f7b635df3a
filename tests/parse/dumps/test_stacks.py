"""Stacks of py-spy, whatever stands in them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.process import NodeProcess
from slurmtop.model.snapshot import Trouble
from slurmtop.model.stacks import Frame
from slurmtop.parse.dumps.stacks import parse_py_spy_json
from slurmtop.parse.dumps.stacks_answer import parse_stacks_answer
from slurmtop.parse.mask import MARK, mask
from tests.fakes import START


def _thread(name: object = "MainThread", os_id: object = 4711, **more: Any) -> dict[str, Any]:
    frame = {
        "name": "step",
        "filename": "/home/a/train.py",
        "module": None,
        "short_filename": "train.py",
        "line": 37,
        "locals": None,
        "is_entry": True,
        "is_shim_entry": False,
    }
    return {
        "pid": 4711,
        "thread_id": 139,
        "thread_name": name,
        "os_thread_id": os_id,
        "active": True,
        "owns_gil": False,
        "frames": [frame],
        "process_info": None,
        **more,
    }


def _json(*threads: object) -> bytes:
    return json.dumps(threads, indent=2).encode()


def test_the_main_thread_comes_first_and_the_oldest_of_the_others_next() -> None:
    data = _json(_thread("pin", 4790), _thread("watch", 4720), _thread("MainThread", 4711))
    found = parse_py_spy_json(data)
    assert [one.name for one in found] == ["MainThread", "watch", "pin"]
    assert found[0].frames == (Frame("step", "/home/a/train.py", 37),)
    assert (found[0].active, found[0].gil, found[0].os_id) == (True, False, 4711)


def test_the_number_of_the_process_counts_for_more_than_a_name() -> None:
    data = _json(_thread("MainThread", 4790), _thread("renamed", 12))
    assert parse_py_spy_json(data, (4711, 12))[0].name == "renamed"
    assert parse_py_spy_json(data, (4711, 9))[0].name == "MainThread"
    nobody = _json(_thread("b", 4790), _thread("a", 4720))
    assert [one.name for one in parse_py_spy_json(nobody, (1,))] == ["a", "b"]


def test_what_is_not_told_is_unknown() -> None:
    odd = _thread(None, None, active=None, owns_gil="yes")
    odd["frames"][0].update(line=0, name=7, filename=None)
    (found,) = parse_py_spy_json(_json(odd))
    assert (found.name, found.os_id, found.active, found.gil) == ("", None, None, None)
    assert found.frames == (Frame("", "", None),)
    assert parse_py_spy_json(_json(_thread(os_id=True)))[0].os_id is None
    assert parse_py_spy_json(_json(_thread(os_id=-1)))[0].os_id is None


def test_words_before_the_list_are_passed_over_and_other_things_are_none() -> None:
    assert parse_py_spy_json(b"Warning: [old]\n" + _json(_thread()))[0].os_id == 4711
    for data in (b"", b"{}", b"[", b"[1, 2]", b"null", b"[" * 100_000, b"[" + b"9" * 9_000 + b"]"):
        assert parse_py_spy_json(data) == ()


def test_secrets_in_names_and_paths_are_masked() -> None:
    thread = _thread("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567")
    thread["frames"][0]["filename"] = "/home/a/token=hf_abcdefghijklmnopqrstuvwxyz012345/train.py"
    (found,) = parse_py_spy_json(_json(thread))
    told = found.name + found.frames[0].file
    assert MARK.decode() in found.name
    assert "0123456789abcdef" not in told
    assert "hf_abcdefghijklm" not in told


def test_a_recursion_without_end_shows_its_innermost_calls() -> None:
    frame = _thread()["frames"][0]
    deep = [{**frame, "line": number} for number in range(1, 5_000)]
    (found,) = parse_py_spy_json(_json(_thread(frames=deep)))
    assert len(found.frames) == 300
    assert found.frames[0].line == 1


@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    for text in (data, b"[" + data, data + _json(_thread())):
        parse_py_spy_json(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(
    st.lists(
        _VALUES
        | st.fixed_dictionaries(
            {"frames": st.lists(st.fixed_dictionaries({"line": _VALUES, "name": _VALUES}))},
            optional={
                "thread_name": _VALUES,
                "os_thread_id": _VALUES,
                "active": _VALUES,
                "owns_gil": _VALUES,
            },
        ),
        max_size=4,
    )
)
def test_any_values_are_read(value: list[Any]) -> None:
    for thread in parse_py_spy_json(json.dumps(value).encode()):
        assert isinstance(thread.name, str)
        assert thread.active in (None, True, False)


PROCESS = NodeProcess(host="gpu01", pid=4711, start_ticks=9, state="S", uid=1001, user="alice")


def _answer(*lines: bytes, who: bytes = b"I 1001 1") -> bytes:
    return b"\n".join((b"a banner", b"slurmtop-stacks 1", who, *lines, b"end", b""))


def _said(text: bytes, pid: int = 4711) -> bytes:
    return b"J %d %s" % (pid, text.replace(b"\n", b"\x01"))


def test_an_answer_in_parts() -> None:
    data = _json(_thread())
    parts = (b"S 4711 S", _said(data[:90]), _said(data[90:]), b"E 4711 0 S own")
    (found,) = parse_stacks_answer(_answer(*parts), "gpu01", [PROCESS], START)
    assert found.failure is None
    assert found.main is not None
    assert found.main.frames[0].function == "step"


def test_the_last_reading_counts() -> None:
    torn = (_said(b"Error: Bad address (os error 14)\n"), b"E 4711 1 S own")
    good = (_said(_json(_thread())), b"E 4711 0 S own")
    (found,) = parse_stacks_answer(_answer(*torn, *good), "gpu01", [PROCESS], START)
    assert found.failure is None
    (ended,) = parse_stacks_answer(_answer(*good, b"G 4711"), "gpu01", [PROCESS], START)
    assert ended.threads == ()
    assert ended.failure is not None


_DENIED = _said(b"Permission Denied: Try running again with elevated permissions\n")


@pytest.mark.parametrize(
    ("who", "uid", "says", "copy"),
    [
        (b"I 1001 1", 1001, "ptrace_scope is 1)", "sysctl kernel.yama.ptrace_scope=0"),
        (b"I 1001 2", 1001, "ptrace_scope is 2)", "sysctl kernel.yama.ptrace_scope=0"),
        (b"I 1001 3", 1001, "until its next boot", ""),
        (b"I 1001 0", 1001, "CAP_SYS_PTRACE", ""),
        (b"I 1001 ", 1001, "CAP_SYS_PTRACE", ""),
        (b"I 1002 1", 1001, "the process is alice's; alice or root can read them", ""),
        (b"I 0 ", 1001, "CAP_SYS_PTRACE", ""),
    ],
)
def test_closed_stacks_say_how_they_are_opened(who: bytes, uid: int, says: str, copy: str) -> None:
    answer = _answer(_DENIED, b"E 4711 13 S own", who=who)
    (found,) = parse_stacks_answer(answer, "gpu01", [PROCESS], START)
    assert found.failure is not None
    assert found.failure.trouble is Trouble.DENIED
    assert says in found.failure.sentence
    assert found.failure.copy == copy
    assert found.failure.sentence.endswith(copy)


@pytest.mark.parametrize(
    ("argv", "name", "says", "trouble"),
    [
        (("/env/bin/python", "train.py"), "pt_main_thread", "which is a Python", Trouble.DENIED),
        ((), "python3.11", "which is a Python", Trouble.DENIED),
        (("/bin/sh", "run"), "sh", "process 4711 is no Python", Trouble.OTHER),
    ],
)
def test_a_python_without_an_interpreter_is_closed(
    argv: tuple[str, ...], name: str, says: str, trouble: Trouble
) -> None:
    said = _said(b"Error: Failed to find a python interpreter in the .data section\n")
    process = replace(PROCESS, argv=argv, name=name)
    answer = _answer(said, b"E 4711 1 S own")
    (found,) = parse_stacks_answer(answer, "gpu01", [process], START)
    assert found.failure is not None
    assert (found.failure.trouble, says in found.failure.sentence) == (trouble, True)


def test_sudo_that_wants_a_password_is_told() -> None:
    said = _said(b"sudo: a password is required\n")
    answer = _answer(_DENIED, b"E 4711 13 S own", said, b"E 4711 13 S root")
    (found,) = parse_stacks_answer(answer, "gpu01", [PROCESS], START)
    assert found.failure is not None
    assert "sudo on gpu01 did not run py-spy without a password" in found.failure.sentence


def test_nothing_told_is_no_empty_stack() -> None:
    for data in (b"", b"hello\n", _answer(), _answer(b"E 4711 0 S own"), _answer(b"J 4711 [")):
        (found,) = parse_stacks_answer(data, "gpu01", [PROCESS], START)
        assert found.failure is not None
        assert found.threads == ()


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_answer_is_read(lines: list[bytes]) -> None:
    for data in (b"\n".join(lines), _answer(*lines), _answer(*(b"E 4711 " + x for x in lines))):
        (found,) = parse_stacks_answer(data, "gpu01", [PROCESS], START)
        assert (found.failure is None) == bool(found.threads)


@pytest.mark.parametrize(
    "name",
    [
        "password=hunter2hunter2",
        "key='abcdef0123456789abcd",
        "x token: ",
        ' api_key="',
        "Authorization: Bearer abcdefghijklmnop1234",
        "-----BEGIN RSA PRIVATE KEY-----",
        '{"api_key": "abcdef0123456789abcdef"}',
        "https://bob:secretpw1@host/x",
    ],
)
def test_masked_bytes_tell_the_same(name: str) -> None:
    threads = [_thread(name), _thread("MainThread", 4712)]
    threads[0]["frames"][0]["filename"] = f"/home/a/{name}"
    lines = (b"N 4711 " + line.strip() for line in _json(*threads).split(b"\n"))
    answer = _answer(*lines, b"E 4711 0 S own")
    live = parse_stacks_answer(answer, "gpu01", [PROCESS], START)
    assert live == parse_stacks_answer(mask(answer), "gpu01", [PROCESS], START)
    assert live[0].failure is None
    assert live[0].main is not None
    assert live[0].main.frames[0].function == "step"
    assert "hunter2" not in repr(live)
    assert "0123456789" not in repr(live)
