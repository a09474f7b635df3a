"""An answer of a node with banners around it: case 051, through a real connection."""

import asyncio
import re
from typing import Any

import pytest

from slurmtop.collect.nodes.script import framed, new_mark
from slurmtop.model.ports import NodeUnreachable
from slurmtop.parse.gpu.nvidia_smi import parse_query
from tests.cases.support import Case, found, load, product, sentence, values
from tests.collect.nodes.ssh_server import Answer, Node, ask, desk, serving

FIELDS = ("index", "uuid", "utilization.gpu")


@values("051")
def test_values(path: str, wanted: Any) -> None:
    assert found(path) == wanted


def _parts(case: Case) -> tuple[bytes, bytes, bytes]:
    """What stood before, between and after the marks of the case: ours are other words."""
    before, between, after = re.split(rb"<<<st-7f3a(?:-end)?>>>[^\n]*\n", case[1].stdout)
    return before, between, after


async def _answer(case: Case, *, rc: int = 0, cut: bool = False) -> Answer:
    """A node whose login shell says what stands around the answer of the case."""
    before, between, after = _parts(case)
    async with desk() as here, serving(Node()) as node:
        node.authorized = here.user_key.convert_to_public()
        node.noise, node.noise_after, node.stderr_noise = before, after, case[1].stderr
        here.host("gpu05", node)
        here.know(node)
        if cut:
            node.mode, node.half = "cut", len(between) // 2 + 64
        lines = between.decode().splitlines()
        says = "; ".join(f"echo '{line}'" for line in lines)
        try:
            return await ask(here.way, "gpu05", f"{says}; exit {rc}")
        finally:
            await here.way.aclose()


@product("051")
def answer_051(case: Case) -> Any:
    got = asyncio.run(_answer(case))
    assert (got.complete, got.rc) == (True, case[1].exit)
    samples = parse_query(got.stdout, FIELDS).rows
    return {
        "rows": {
            str(place): {"index": gpu.index, "util": gpu.util_percent}
            for place, gpu in enumerate(samples, 1)
        }
    }


@sentence("051", "only the part between the marks counts")
async def test_case_051_must_take_the_part_between_the_marks() -> None:
    case = load("051")
    assert (await _answer(case)).stdout == _parts(case)[1]


@sentence("051", "exit status is taken from the end mark")
async def test_case_051_must_take_the_exit_status_from_the_mark() -> None:
    got = await _answer(load("051"), rc=9)
    # The login shell itself, with its hook at the end, ends with 0.
    assert (got.rc, got.complete) == (9, True)


@sentence("051", "missing end mark = cut answer, discard")
async def test_case_051_must_discard_a_cut_answer() -> None:
    with pytest.raises(NodeUnreachable):
        await _answer(load("051"), cut=True)


@sentence("051", "treat the setlocale warning as failure")
async def test_case_051_must_not_take_a_warning_for_a_failure() -> None:
    case = load("051")
    assert b"setlocale" in case[1].stderr
    got = await _answer(case)
    assert (got.rc, got.stderr) == (0, b"")


@sentence("051", "parse the .bashrc line")
async def test_case_051_must_not_parse_the_line_of_bashrc() -> None:
    case = load("051")
    assert b"GPU-xxxx" in _parts(case)[0]
    samples = parse_query((await _answer(case)).stdout, FIELDS)
    assert [gpu.uuid for gpu in samples.rows] == [
        "GPU-11111111-0000-0000-0000-000000000001",
        "GPU-11111111-0000-0000-0000-000000000002",
    ]
    assert samples.bad == 0


def test_the_marks_are_not_to_be_guessed() -> None:
    assert new_mark() != new_mark()
    assert b"st-7f3a" not in framed(("true",), new_mark())
