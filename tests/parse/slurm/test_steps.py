"""Running steps, from ``squeue -s``."""

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.slurm.steps import STEP_FIELDS, parse_steps, steps_format


def record(*values: str) -> bytes:
    return "\x1f".join(values).encode() + b"\x1e\n"


#: As printed by Slurm 22.05.8.
ANSWER = record("60.0", "RUNNING", "2031-05-05T16:08:57", "1", "gpu01", "sleep") + record(
    "59_1.batch", "RUNNING", "2031-05-05T16:08:57", "1", "gpu[01-02]", "batch"
)


def test_steps_of_jobs_and_tasks() -> None:
    parsed = parse_steps(ANSWER)
    assert parsed.bad == 0
    plain, batch = parsed.rows
    assert (plain.job.stable, plain.id, plain.name, plain.by_srun) == ("60", "0", "sleep", True)
    assert (batch.job.stable, batch.id, batch.by_srun) == ("59_1", "batch", False)
    assert (batch.node_count, batch.nodes, batch.tasks) == (2, "gpu[01-02]", 1)
    assert plain.start is not None
    assert plain.start.isoformat() == "2031-05-05T16:08:57+00:00"


def test_numbers_of_special_steps_are_their_words() -> None:
    (step,) = parse_steps(record("7.4294967292", "RUNNING", "N/A", "N/A", "", "extern")).rows
    assert (step.id, step.tasks, step.nodes, step.node_count, step.start) == (
        "extern",
        *(None, None, None, None),
    )


def test_a_step_over_several_parts_is_named_by_its_number() -> None:
    parsed = parse_steps(record("62.0+1", "RUNNING", "N/A", "1", "gpu02", "x"))
    assert [(step.job.base, step.id) for step in parsed.rows] == [("62", "0")]


def test_a_name_cannot_shift_a_value_and_with_a_secret_mark_forges_no_step() -> None:
    name = "a\x1fb\x1e\n9.0\x1fRUNNING\x1fN/A\x1f1\x1fgpu09\x1fforged"
    mark = b"\x1esecret"
    data = record("60.0", "RUNNING", "N/A", "1", "gpu01", name).removesuffix(b"\x1e\n") + mark
    parsed = parse_steps(data + b"\n", record_mark=mark)
    assert [(step.id, step.nodes, step.name) for step in parsed.rows] == [("0", "gpu01", name)]


def test_what_is_no_step_is_counted() -> None:
    odd = record("60", "RUNNING", "N/A", "1", "gpu01", "x") + record("60.0", "RUNNING")
    parsed = parse_steps(odd + ANSWER)
    assert (parsed.bad, len(parsed.rows)) == (2, 2)
    assert parsed.first_bad is not None
    assert "60" in parsed.first_bad.why


def test_the_question_names_its_fields_in_order() -> None:
    asked = [piece.partition(":")[0] for piece in steps_format(b"\x1eq").split(",")]
    assert tuple(asked) == STEP_FIELDS
    assert steps_format(b"\x1eq").endswith("StepName:\x1eq")


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    parsed = parse_steps(data)
    assert len(parsed.rows) + parsed.bad <= data.count(b"\x1e") + 1


@given(
    job=st.integers(1, 2**31),
    step=st.integers(0, 99_999),
    name=st.text(max_size=20).filter(lambda text: "\x1e" not in text),
)
def test_what_was_printed_is_read(job: int, step: int, name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    (found,) = parse_steps(record(f"{job}.{step}", "RUNNING", "N/A", "3", "gpu01", name)).rows
    assert (found.job.base, found.id, found.name, found.tasks) == (str(job), str(step), name, 3)
