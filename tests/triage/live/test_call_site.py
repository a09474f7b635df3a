"""Real stacks of four ranks, by what one of them does: ``fixtures/stacks``."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import NodeProcess, NodeProcesses, RankProcess
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.model.stacks import Frame, ProcessStacks, ThreadStack
from slurmtop.parse.dumps.stacks import parse_py_spy_json
from slurmtop.triage.live.call_site import call_site, group_stacks, normalised
from slurmtop.triage.live.class_lines import class_lines
from slurmtop.triage.live.doing import site_text
from tests.fakes import START

FOLDER = Path(__file__).parents[3] / "fixtures" / "stacks"


def _stacks(case: str, which: str = "") -> list[ProcessStacks]:
    found = []
    for rank in range(4):
        data = (FOLDER / case / f"{which}rank{rank}.json").read_bytes()
        threads = parse_py_spy_json(data)
        assert threads, case
        assert threads[0].name == "MainThread"
        host = f"gpu0{rank + 1}"
        found.append(
            ProcessStacks(host=host, pid=100 + rank, start_ticks=7, at=START, threads=threads)
        )
    return found


def _ranks(count: int = 4) -> list[RankProcess]:
    return [
        RankProcess(
            process=NodeProcess(host=f"gpu0{n + 1}", pid=100 + n, start_ticks=7),
            rank=n,
            world_size=count,
        )
        for n in range(count)
    ]


SITES = {
    "data-sleep": ("train.py:36 in read_shard", "train.py:48 in average_gradients"),
    "data-worker": ("train.py:137 in main", "train.py:48 in average_gradients"),
    "data-fifo": ("train.py:30 in Tokens.__getitem__", "train.py:48 in average_gradients"),
    "loop": ("train.py:55 in preprocess", "train.py:48 in average_gradients"),
    "gil": ("train.py:59 in tokenise", "train.py:48 in average_gradients"),
    "d-state": ("train.py:64 in wait_in_kernel", "train.py:48 in average_gradients"),
    "branch": ("train.py:101 in go_astray", "train.py:48 in average_gradients"),
    "lock": ("train.py:81 in log_metrics", "train.py:48 in average_gradients"),
    "checkpoint": ("train.py:75 in save_checkpoint", "train.py:153 in main"),
    "sub-order": ("train.py:109 in go_astray", "train.py:143 in main"),
    "teardown": ("", "train.py:169 in main"),
}


@pytest.mark.parametrize(("case", "sites"), SITES.items())
def test_the_one_that_is_elsewhere_stands_alone(case: str, sites: tuple[str, str]) -> None:
    both = group_stacks(_stacks(case), _ranks())
    assert [one.ranks_text for one in both] == ["0-1,3", "2"]
    assert [site_text(one.site) for one in both] == [sites[1], sites[0]]
    assert both[0].hosts == ("gpu01", "gpu02", "gpu04")
    assert (both[0].count, both[0].nameless, both[0].moved) == (3, 0, None)


def test_all_alike_are_one_class() -> None:
    (one,) = group_stacks(_stacks("compile"), _ranks())
    assert (one.ranks_text, site_text(one.site)) == ("0-3", "train.py:86 in compile_model")


def test_frames_that_pass_a_call_on_are_left_out() -> None:
    waiting = group_stacks(_stacks("loop"), _ranks())[0]
    assert [frame.function for frame in waiting.frames] == [
        "all_reduce",
        "average_gradients",
        "train_step",
        "main",
        "<module>",
    ]


def test_a_stack_that_changed_is_told_from_one_that_did_not() -> None:
    before, now = _stacks("loop"), _stacks("loop")
    assert {one.moved for one in group_stacks(now, _ranks(), before)} == {False}
    now[0] = replace(now[0], threads=now[2].threads)
    found = group_stacks(now, _ranks(), before)
    assert [(one.ranks_text, one.moved) for one in found] == [
        ("1,3", False),
        ("0", True),
        ("2", False),
    ]
    assert {one.moved for one in group_stacks(now, _ranks(), before[:2])} == {True, False, None}


def test_only_ranks_whose_stack_was_read_are_told() -> None:
    stacks = _stacks("loop")
    refused = Failure(Trouble.DENIED, "closed")
    stacks[1] = replace(stacks[1], threads=(), failure=refused)
    found = group_stacks(stacks, _ranks()[:3])
    assert [one.ranks_text for one in found] == ["0", "2"]


def test_a_rank_without_a_number_is_counted() -> None:
    ranks = _ranks()
    ranks[1] = replace(ranks[1], rank=None)
    helper = NodeProcess(host="gpu03", pid=102, start_ticks=7)
    ranks[2] = RankProcess(
        process=NodeProcess(host="gpu03", pid=50, start_ticks=3), perhaps=(helper,)
    )
    found = group_stacks(_stacks("loop"), ranks)
    assert [(one.ranks_text, one.nameless, one.count) for one in found] == [
        ("0,3", 1, 3),
        ("", 1, 1),
    ]


def test_no_python_frame_is_a_place_of_its_own() -> None:
    empty = ThreadStack(name="MainThread")
    stacks = [replace(one, threads=(empty,)) for one in _stacks("loop")]
    (one,) = group_stacks(stacks, _ranks())
    assert (one.frames, one.site) == ((), None)
    assert call_site(empty) is None
    assert call_site(None) is None


def test_addresses_and_the_interpreters_own_way_say_nothing() -> None:
    own = Frame("step", "/home/a/train.py", 5)
    frames = (
        Frame("0x7f981f0b01f5", "/usr/lib/libc.so.6"),
        own,
        Frame("Thread.run", "/usr/lib/python3.11/threading.py", 975),
        Frame("Thread._bootstrap_inner", "/usr/lib/python3.11/threading.py", 1038),
        Frame("_run_code", "<frozen runpy>", 88),
    )
    assert normalised(frames) == (own,)


def test_a_function_of_ones_own_may_have_any_name() -> None:
    frames = (Frame("wrapper", "/home/a/train.py", 5), Frame("run", "/home/a/threading.py", 7))
    assert normalised(frames) == frames


def _live(case: str, *looks: list[ProcessStacks]) -> LiveFacts:
    env = {"SLURM_JOB_ID": "77", "WORLD_SIZE": "4", "MASTER_PORT": "29500"}
    samples = []
    for number, stacks in enumerate(looks):
        probes = []
        for rank in range(4):
            host = f"gpu0{rank + 1}"
            process = NodeProcess(
                host=host,
                pid=100 + rank,
                start_ticks=7,
                state="S",
                name="python",
                argv=("python", f"{case}.py"),
                job="77",
                step="0",
                env=tuple(sorted({**env, "RANK": str(rank), "LOCAL_RANK": "0"}.items())),
            )
            look = NodeProcesses(host=host, at=START, processes=(process,))
            probes.append(NodeProbe(host=host, at=START, processes=look))
        samples.append(
            Sample(
                began_at=START + timedelta(seconds=6 * number),
                probes=tuple(probes),
                stacks=tuple(stacks),
                stacks_asked=True,
                whole=True,
            )
        )
    return LiveFacts(job="77", samples=tuple(samples))


def test_the_report_says_where_the_ranks_stand() -> None:
    lines = class_lines(_live("train", _stacks("loop"), _stacks("loop")), width=110)
    assert lines == (
        "where the ranks stand (4 stacks read)",
        "  3 ranks (0-1, 3) on gpu01, gpu02, gpu04; train.py:48 in average_gradients;"
        " same place as before",
        "      all_reduce (distributed_c10d.py:3252)",
        "      average_gradients (train.py:48)",
        "      train_step (train.py:122)",
        "      main (train.py:156)",
        "      <module> (train.py:174)",
        "  rank 2 on gpu03; train.py:55 in preprocess; same place as before",
        "      preprocess (train.py:55)",
        "      go_astray (train.py:95)",
        "      main (train.py:141)",
        "      <module> (train.py:174)",
    )
    assert class_lines(None) == ()
    assert class_lines(_live("train", [])) == ()


def test_a_name_of_a_frame_is_shown_harmless() -> None:
    stacks = _stacks("loop")
    evil = Frame("\x1b[31m[bold]\nrank 7", "/home/a/\u202eyp.niart", 1)
    stacks[2] = replace(stacks[2], threads=(ThreadStack(frames=(evil,)),))
    lines = class_lines(_live("train", stacks))
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("rank") for line in lines)
