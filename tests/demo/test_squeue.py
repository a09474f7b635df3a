"""squeue of the demo, read by the project's own parser and held against the captures."""

import re

import pytest

from slurmtop.demo.scenario import HOSTILE_COMMENT, HOSTILE_NAME
from slurmtop.model.job import ExitCode, Job, Phase
from slurmtop.parse.slurm.exit_codes import explain_job_exit
from slurmtop.parse.slurm.squeue import parse_squeue, queue_format
from slurmtop.parse.slurm.squeue_forms import parse_squeue_default
from tests.demo.kit import Lab, capture, lab

MARK = b"\x1eQwErTy"
FORMAT = queue_format(MARK)
LETTERS = "iAFKjuaPqTtrMlLSeVDCmbNBQZoEk"


async def jobs(demo: Lab, *argv: str) -> dict[str, Job]:
    done = await demo.done("squeue", "-h", "-a", *argv, "-O", FORMAT)
    assert done.rc == 0
    parsed = parse_squeue(done.stdout, record_mark=MARK)
    assert parsed.bad == 0, parsed.first_bad
    return {job.key.id: job for job in parsed.rows}


async def test_the_parser_reads_every_job_as_the_world_has_it() -> None:
    demo = lab()
    found = await jobs(demo, "-t", "all")
    known = list(demo.world.remembered())
    assert len(found) == len(known) > 90
    by_raw = {job.raw_id: job for job in found.values()}
    for job in known:
        row = by_raw[str(job.id)]
        assert row.name == job.spec.name
        assert row.user == job.spec.user
        assert row.reason == (None if job.reason == "None" else job.reason)
        assert row.state.word == job.state
        assert row.node_count == job.node_count
        assert row.priority == job.priority
        assert row.restarts == job.restarts
        assert row.submit == demo.runner._view().when(job.submit_t)
        assert row.limit.seconds == job.limit_s
        assert row.tres.gpus == job.spec.gpus * job.node_count
        assert row.exit_code == (ExitCode(*job.exit) if row.state.ended else None)
        assert (row.derived_exit_code is not None) is row.state.ended


async def test_rows_of_the_ended_tell_how() -> None:
    found = await jobs(lab(), "-t", "all")
    told = {id: explain_job_exit(job).short for id, job in found.items() if job.state.ended}
    assert {id: told[id] for id in ("4788", "4801", "4803", "4805", "4809")} == {
        "4788": "cancelled",
        "4801": "exit 1",
        "4803": "out of memory",
        "4805": "time limit 1:00:00 reached",
        "4809": "exit 0",
    }
    assert not any("not known" in short for short in told.values())


async def test_every_reason_of_the_scenario_is_there() -> None:
    demo = lab()
    pending = [job for job in (await jobs(demo)).values() if job.state.phase is Phase.PENDING]
    assert {job.reason for job in pending} == {
        "Resources",
        "Priority",
        "QOSGrpGRES",
        "Dependency",
        "DependencyNeverSatisfied",
        "BeginTime",
        "JobHeldUser",
        "JobArrayTaskLimit",
        "ReqNodeNotAvail, UnavailableNodes:gpu07",
    }


async def test_own_jobs_are_the_default_people_want_and_me_is_alice() -> None:
    demo = lab()
    own = await jobs(demo, "--me")
    assert {job.user for job in own.values()} == {"alice"}
    assert set(own) < set(await jobs(demo))
    assert set(await jobs(demo, "-u", "alice")) == set(own)
    assert {job.user for job in (await jobs(demo, "-u", "bob,1004")).values()} == {"bob", "dave"}


async def test_states_are_filtered_in_both_spellings() -> None:
    demo = lab()
    running = await jobs(demo, "-t", "RUNNING")
    assert running.keys() == (await jobs(demo, "-t", "r")).keys()
    assert {job.state.word for job in running.values()} == {"RUNNING"}
    ended = await jobs(demo, "-t", "F,TO,OOM,NODE_FAIL")
    assert {"4801", "4803", "4805", "4795"} <= set(ended)
    assert set(await jobs(demo)).isdisjoint(ended)


async def test_ids_are_chosen_as_the_real_one_does() -> None:
    demo = lab()
    assert set(await jobs(demo, "-j", "4811,4817")) == {"4811", "4817"}
    assert set(await jobs(demo, "-j", "4815")) == {"4815+0", "4815+1"}
    assert set(await jobs(demo, "-j", "4816")) == {"4815+1"}
    assert set(await jobs(demo, "-j", "4830_70")) == {"4830_70"}
    array = await jobs(demo, "-j", "4830")
    assert {"4830_[*]", "4830_70"} <= set(array)
    assert await demo.refused("squeue", "-h", "-j", "99999999") == (
        1,
        "slurm_load_jobs error: Invalid job id specified\n",
    )
    assert await demo.ask("squeue", "-h", "-j", "99999998,99999999") == ""
    assert set(await jobs(demo, "-j", "99999999,4811")) == {"4811"}


async def test_the_array_rest_is_one_record_unless_expanded() -> None:
    demo = lab()
    rest = (await jobs(demo))["4830_[*]"]
    assert rest.id.tasks is not None
    assert rest.id.tasks.throttle == 8
    lines = (await demo.ask("squeue", "-h", "-r", "-j", "4830", "-o", "%i")).split()
    assert len(lines) == rest.id.tasks.count + 8
    assert "4830_999" in lines


async def test_a_name_cannot_forge_a_record_or_a_field() -> None:
    demo = lab()
    row = (await jobs(demo))["4826"]
    assert row.name == HOSTILE_NAME
    assert row.comment == HOSTILE_COMMENT
    assert row.user == "carol"


async def test_the_default_form_is_that_of_the_capture() -> None:
    demo = lab()
    text = await demo.ask("squeue")
    assert text.splitlines()[0] == capture("squeue_default.out").splitlines()[0]
    parsed = parse_squeue_default(text.encode())
    assert parsed.bad == 0, parsed.first_bad
    assert len(parsed.rows) == len(text.splitlines()) - 1
    assert "                4817" not in text
    assert re.search(r"^ {14}4817 +gpu moe-8x7b +alice +R +2:03:00 +2 gpu\[03-04\]$", text, re.M)
    assert "(ReqNodeNotAvail, UnavailableNodes:gpu07)" in text


async def test_long_fields_have_the_shape_of_the_capture() -> None:
    command = capture("squeue_O.cmd").split("'")[1]
    demo = lab()
    real = capture("squeue_O.out").splitlines()
    ours = (await demo.ask("squeue", "-h", "-a", "-O", command)).splitlines()
    plain = [line for line in ours if "we|rd" not in line]
    assert {line.count("|") for line in plain} == {real[0].count("|")}
    running = next(line for line in real if line.startswith("18|"))
    moe = next(line for line in ours if line.startswith("4817|"))
    shape = [_shape(part) for part in running.split("|")]
    assert [_shape(part) for part in moe.split("|")] == shape
    waiting = next(line for line in real if line.startswith("30|"))
    eval_job = next(line for line in ours if line.startswith("4911|"))
    differing = {2, 5, 6, 7, 10}
    for at, (want, got) in enumerate(zip(waiting.split("|"), eval_job.split("|"), strict=True)):
        assert at in differing or _shape(got) == _shape(want), at


def _shape(text: str) -> str:
    """Numbers, words and host lists made alike; dates and separators left."""
    text = re.sub(r"gpu\[?[\d,-]+\]?", "H", text)
    text = re.sub(r"/[\w/%.-]+", "P", text)
    text = re.sub(r"\d+[MG]?", "9", text)
    return re.sub(r"[a-z]+(-[a-z0-9]+)*", "w", text) if "=" not in text else text


async def test_letters_have_the_shape_of_the_capture() -> None:
    demo = lab()
    template = "\x1f".join(f"%{letter}" for letter in LETTERS)
    real = capture("squeue_fields.out").split("\n")
    ours = (await demo.ask("squeue", "-h", "-a", "-o", template, "-j", "4817,4911")).splitlines()
    for want, got in (("18\x1f", "4817\x1f"), ("31\x1f", "4911\x1f")):
        expected = next(line for line in real if line.startswith(want)).split("\x1f")
        found = next(line for line in ours if line.startswith(got)).split("\x1f")
        assert len(found) == len(LETTERS)
        for letter, left, right in zip(LETTERS, expected, found, strict=True):
            if letter in "SeVMlL":
                assert re.sub(r"\d+", "9", left)[:1] == re.sub(r"\d+", "9", right)[:1], letter
            if left in ("N/A", "n/a", "(null)", "") and letter not in "boE":
                assert right == left, letter


async def test_widths_cut_and_fill_by_bytes() -> None:
    demo = lab()
    line = await demo.ask("squeue", "-h", "-j", "4817", "-o", "%.6i|%6i|%.3j|%12j|%8T|")
    assert line == "  4817|4817  |moe|moe-8x7b    |RUNNING |\n"
    long = await demo.ask("squeue", "-j", "4817", "-O", "JobID:5x,State:.12y,Name")
    assert long.splitlines()[0] == "JOBIDx       STATEyNAME                "
    assert long.splitlines()[1] == "4817 x     RUNNINGymoe-8x7b            "


async def test_separators_may_be_any_bytes() -> None:
    demo = lab()
    out = await demo.ask("squeue", "-h", "-j", "4817", "-o", "\x1ekLm%i\x1f%T\x1f%j")
    assert out == "\x1ekLm4817\x1fRUNNING\x1fmoe-8x7b\n"


async def test_an_unknown_field_is_complained_about_and_printed_empty() -> None:
    demo = lab()
    done = await demo.done("squeue", "-h", "-j", "4817", "-O", "JobID:|,bogus:|,State:|")
    assert done.rc == 0
    assert done.stdout == b"4817||RUNNING|\n"
    assert done.stderr == b"squeue: error: Invalid job format specification: bogus\n"
    done = await demo.done("squeue", "-h", "-j", "4817", "-o", "%i|%~|%T")
    assert done.stderr == b"squeue: error: Invalid job format specification: ~\n"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("-t", "nosuch"), "squeue: error: Invalid job state specified: nosuch\n"),
        (("-j", "abc"), "squeue: error: Invalid job id: abc\n"),
        (("--bogus",), "squeue: unrecognized option '--bogus'\n"),
        (("-q",), "squeue: option requires an argument -- 'q'\n"),
        (("-w", "nosuch"), "squeue: error: Invalid node name nosuch\n"),
        (("-M", "nosuch"), "squeue: error: No cluster 'nosuch' known by database.\n"),
        (("-S", "%"), "squeue: error: Invalid sort specification: %\n"),
    ],
)
async def test_complaints_are_the_real_ones(argv: tuple[str, ...], complaint: str) -> None:
    rc, text = await lab().refused("squeue", *argv)
    assert rc == 1
    assert text.startswith(complaint)


async def test_an_unknown_user_is_no_failure() -> None:
    done = await lab().done("squeue", "-h", "-u", "nosuch")
    assert (done.rc, done.stdout) == (0, b"")
    assert done.stderr == b"squeue: error: Invalid user: nosuch\n\n"


async def test_start_lists_what_waits_with_the_guess() -> None:
    demo = lab()
    text = await demo.ask("squeue", "--start")
    assert "START_TIME" in text.splitlines()[0]
    assert " R " not in text
    line = next(line for line in text.splitlines() if " 4910 " in line)
    assert "2031-05-07T06:48:00" in line


async def test_sorting_by_one_key_and_its_reverse() -> None:
    demo = lab()
    up = (await demo.ask("squeue", "-h", "-S", "i", "-o", "%A")).split()
    down = (await demo.ask("squeue", "-h", "-S", "-i", "-o", "%A")).split()
    assert up == list(reversed(down))
    by_user = (await demo.ask("squeue", "-h", "-S", "u", "-o", "%u")).split()
    assert by_user == sorted(by_user)


async def test_the_cluster_is_named_above_the_header() -> None:
    demo = lab()
    assert (await demo.ask("squeue", "-M", "aurora")).startswith("CLUSTER: aurora\n")
    assert not (await demo.ask("squeue", "-h", "-M", "aurora")).startswith("CLUSTER")


async def test_a_kept_line_follows_every_change() -> None:
    demo = lab()
    before = await demo.ask("squeue", "-h", "-o", "%i %r %T %Q", "-j", "4922")
    await demo.ask("scontrol", "hold", "4922")
    held = await demo.ask("squeue", "-h", "-o", "%i %r %T %Q", "-j", "4922")
    assert held == "4922 JobHeldUser PENDING 0\n"
    await demo.ask("scontrol", "release", "4922")
    assert await demo.ask("squeue", "-h", "-o", "%i %r %T %Q", "-j", "4922") == before
