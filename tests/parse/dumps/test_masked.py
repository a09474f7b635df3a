"""A job may call its threads and variables what it likes: the search for secrets has its bounds."""

import json

import pytest

from slurmtop.model.process import NodeProcess
from slurmtop.parse.dumps import masked
from slurmtop.parse.dumps.probe import parse_processes
from slurmtop.parse.dumps.stacks_answer import parse_stacks_answer
from slurmtop.parse.mask import MARK, mask
from tests.fakes import START

_DEAR = "pass=1/3 " * 33


class Searched:
    """How much was searched for secrets."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, data: bytes) -> bytes:
        self.bytes += len(data)
        return mask(data)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Searched:
    found = Searched()
    monkeypatch.setattr(masked, "mask", found)
    return found


def _stacks(names: list[str]) -> bytes:
    frames = [{"name": "forward", "filename": "/home/a/train.py", "line": 12}]
    threads = [
        {"thread_name": name, "os_thread_id": 9000 + at, "active": True, "frames": frames}
        for at, name in enumerate(names)
    ]
    lines = [line.strip() for line in json.dumps(threads, indent=1).split("\n")]
    told = ["slurmtop-stacks 1", "I 0 0", "S 4711 S", *(f"N 4711 {line}" for line in lines)]
    return "\n".join([*told, "E 4711 0 S own", "end", ""]).encode()


PROCESS = NodeProcess(host="gpu01", pid=4711, start_ticks=9, state="S")


def test_names_of_threads_are_searched_up_to_a_limit(searched: Searched) -> None:
    names = ["MainThread", *(f"{_DEAR}{at}" for at in range(900))]
    (found,) = parse_stacks_answer(_stacks(names), "gpu01", [PROCESS], START)
    assert searched.bytes < masked.MOST_OTHER + 1024
    assert found.failure is None
    assert [one.frames[0].function for one in found.threads] == ["forward"] * 901
    assert found.threads[0].name == "MainThread"
    assert {one.name for one in found.threads[100:800]} == {MARK.decode()}
    assert not any("1/3" in one.name for one in found.threads)


def test_a_text_is_searched_once_and_numbers_not_at_all(searched: Searched) -> None:
    parse_stacks_answer(_stacks(["worker"] * 900), "gpu01", [PROCESS], START)
    assert searched.bytes < 200


def test_usual_names_of_thousands_of_threads_are_all_told() -> None:
    names = [f"Thread-{at} (_monitor <lambda>)" for at in range(1000)]
    (found,) = parse_stacks_answer(_stacks(names), "gpu01", [PROCESS], START)
    assert sorted(one.name for one in found.threads) == sorted(names)


def test_a_secret_in_a_name_is_masked_before_and_behind_the_limit() -> None:
    names = ["token=abcdef0123456789SECRET", *(f"{_DEAR}{at}" for at in range(300))]
    (found,) = parse_stacks_answer(_stacks([*names, names[0] + "2"]), "gpu01", [PROCESS], START)
    assert not any("SECRET" in one.name for one in found.threads)


def test_variables_are_searched_up_to_a_limit(searched: Searched) -> None:
    told = ["slurmtop-processes 1", "M time 1"]
    for pid in range(1000, 1020):
        told += [f"S {pid} 5 1 S python", f"U {pid} 1 0 0 1 -", f"R {pid}", f"E {pid} RANK={pid}"]
        told += [f"E {pid} TORCH_X{pid}_{at}={_DEAR}" for at in range(60)]
        told += [f"E {pid} SLURM_JOB_ID=77", f"A {pid} python", f"T {pid} 5"]
    look = parse_processes("\n".join([*told, "end"]).encode(), "gpu01", START)
    assert searched.bytes < masked.MOST_OTHER + 4096
    assert len(look.processes) == 20
    for process in look.processes:
        env = dict(process.env or ())
        assert (env["RANK"], process.job) == (str(process.pid), "77")
        assert not any("1/3" in value for value in env.values())
    assert dict(look.processes[-1].env or ())["TORCH_X1019_0"] == MARK.decode()
