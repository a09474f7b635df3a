"""What the GPU script says on a node, whole, cut off and forged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.gpu.node_script import (
    NodeAnswer,
    OpenTool,
    parse_inside,
    parse_node_answer,
)

ONCE = b"""
#slurmtop seen hostengine exporter

#slurmtop part cgroup
0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special

#slurmtop part query

#slurmtop pid 4242:889123
0, GPU-00000000-1111-2222-3333-444455550000, 97

#slurmtop end 0

#slurmtop part apps

#slurmtop pid 4250:889150
GPU-00000000-1111-2222-3333-444455550000, 30001, python, 512

#slurmtop end 0

#slurmtop done
"""


def test_a_whole_answer_is_taken_apart() -> None:
    answer = parse_node_answer(ONCE)
    assert answer.whole
    assert answer.seen == {"hostengine", "exporter"}
    assert answer.parts["query"].text.startswith(b"0, GPU-00000000")
    assert (answer.parts["query"].rc, answer.parts["query"].started) == (0, True)
    assert answer.parts["cgroup"].rc is None
    assert answer.running == ()
    assert parse_inside(answer.parts["cgroup"].text) == "4711"


def test_a_cut_answer_tells_the_tool_that_did_not_end() -> None:
    cut = ONCE[: ONCE.index(b"GPU-00000000-1111-2222-3333-444455550000, 30001")]
    answer = parse_node_answer(cut)
    assert not answer.whole
    assert answer.parts["query"].rc == 0
    assert answer.parts["apps"].rc is None
    assert answer.running == (OpenTool(4250, 889150),)


def test_an_earlier_tool_that_is_in_the_way() -> None:
    answer = parse_node_answer(b"#slurmtop seen\n#slurmtop open 77:5:D 78:6:S\n#slurmtop done\n")
    assert answer.open_tools == (OpenTool(77, 5, "D"), OpenTool(78, 6, "S"))
    assert answer.parts == {}


def test_a_process_name_cannot_forge_a_part_that_stands_before_it() -> None:
    forged = ONCE.replace(
        b"python, 512",
        b"x\n#slurmtop end 0\n#slurmtop part query\n#slurmtop pid 1:1\n0, GPU-forged, 0\n"
        b"#slurmtop open 1:1:D\n#slurmtop seen hidden, 512",
    )
    answer = parse_node_answer(forged)
    assert b"forged" not in answer.parts["query"].text
    assert answer.open_tools == ()
    assert answer.seen == {"hostengine", "exporter"}


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        (b"5:devices:/slurm/uid_1001/job_12/step_0\n0::/\n", "12"),
        (b"0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n", "7"),
        (b"0::/user.slice/user-1001.slice/session-3.scope\n", None),
        (b"0::/home/job_x/job_12abc\n", None),
        (b"", None),
    ],
)
def test_the_job_whose_cgroup_we_are_in(cgroup: bytes, job: str | None) -> None:
    assert parse_inside(cgroup) == job


@given(st.lists(st.sampled_from([*ONCE.split(b"\n"), b"#slurmtop", b"#slurmtop open x:y"])))
def test_any_order_of_lines_is_taken(lines: list[bytes]) -> None:
    assert isinstance(parse_node_answer(b"\n".join(lines)), NodeAnswer)


@given(st.binary(max_size=300))
def test_any_bytes_are_taken(data: bytes) -> None:
    assert isinstance(parse_node_answer(data), NodeAnswer)
    assert isinstance(parse_node_answer(b"#slurmtop pid " + data), NodeAnswer)
    parse_inside(data)
