"""sacct of the demo against the captures."""

import re

import pytest

from tests.demo.kit import Lab, capture, lab

FIELDS = capture("sacct_fields.cmd").splitlines()[0].split(" -o ")[1]


async def rows(demo: Lab, *argv: str) -> list[dict[str, str]]:
    out = await demo.ask("sacct", "-P", "--delimiter=\x1f", "-o", FIELDS, *argv)
    head, *lines = out.splitlines()
    return [
        dict(zip(head.split("\x1f"), line.split("\x1f"), strict=True))
        for line in lines
        if line.count("\x1f") == head.count("\x1f")
    ]


async def test_every_field_of_the_capture_is_known_and_named_alike() -> None:
    demo = lab()
    head = (await demo.ask("sacct", "-P", "-o", FIELDS, "-j", "4811")).splitlines()[0]
    assert head == FIELDS.replace(",", "|")


async def test_a_running_job_and_its_steps_look_like_the_captured_one() -> None:
    demo = lab()
    real = [
        line.split("\x1f")
        for line in capture("sacct_fields.out").splitlines()
        if re.match(r"18(\.\w+)?\x1f", line)
    ]
    ours = [list(row.values()) for row in await rows(demo, "-j", "4822")]
    assert [row[0] for row in ours] == ["4822", "4822.batch", "4822.0"]
    for want, got in zip(real, ours, strict=True):
        for name, left, right in zip(FIELDS.split(","), want, got, strict=True):
            if name not in ("AllocTRES", "ReqTRES"):
                assert bool(left) == bool(right), (name, left, right)
    tres = ours[0][FIELDS.split(",").index("AllocTRES")]
    assert tres == "billing=64,cpu=64,gres/gpu:h100=4,gres/gpu=4,mem=940G,node=1"


async def test_states_and_codes_of_what_has_ended() -> None:
    demo = lab()
    found = {row["JobID"]: row for row in await rows(demo, "-j", "4788,4795,4801,4803,4805,4809")}
    assert {(job, row["State"], row["ExitCode"]) for job, row in found.items()} >= {
        ("4788", "CANCELLED by 1001", "0:15"),
        ("4795", "NODE_FAIL", "0:0"),
        ("4801", "FAILED", "1:0"),
        ("4801.0", "FAILED", "1:0"),
        ("4803", "OUT_OF_MEMORY", "0:125"),
        ("4805", "TIMEOUT", "0:0"),
        ("4805.batch", "CANCELLED", "0:15"),
        ("4809", "COMPLETED", "0:0"),
    }
    assert found["4801"]["DerivedExitCode"] == "1:0"
    assert found["4803.0"]["MaxRSS"] == "134217728K"
    assert found["4803"]["MaxRSS"] == ""


async def test_what_never_started_has_no_start() -> None:
    demo = lab()
    row = (await rows(demo, "-j", "4910"))[0]
    assert (row["Start"], row["End"], row["NodeList"]) == ("Unknown", "Unknown", "None assigned")
    await demo.ask("scancel", "4910")
    row = (await rows(demo, "-j", "4910"))[0]
    assert (row["Start"], row["State"]) == ("None", "CANCELLED by 1001")
    assert row["End"] == "2031-05-05T12:00:00"
    assert row["Elapsed"] == "00:00:00"


async def test_duplicates_show_the_run_before_the_requeue() -> None:
    demo = lab()
    newest = await rows(demo, "-X", "-j", "4822")
    assert [row["State"] for row in newest] == ["RUNNING"]
    both = await rows(demo, "-X", "-D", "-j", "4822")
    assert [(row["State"], row["ExitCode"]) for row in both] == [
        ("REQUEUED", "0:0"),
        ("RUNNING", "0:0"),
    ]
    steps = await rows(demo, "-D", "-j", "4822")
    assert [row["State"] for row in steps[:3]] == ["REQUEUED", "CANCELLED", "CANCELLED"]


async def test_the_window_starts_today_unless_ids_are_named() -> None:
    demo = lab()
    today = {row["JobID"] for row in await rows(demo, "-X")}
    assert "4702" not in today
    assert "4788" in today
    assert [row["JobID"] for row in await rows(demo, "-X", "-j", "4702")] == ["4702"]
    week = {row["JobID"] for row in await rows(demo, "-X", "-S", "now-7days")}
    assert "4702" in week
    hour = {row["JobID"] for row in await rows(demo, "-X", "-S", "now-1hour")}
    assert "4788" not in hour
    assert {"4801", "4811", "4910"} <= hour
    before = {
        row["JobID"]
        for row in await rows(demo, "-X", "-S", "2031-05-02", "-E", "2031-05-03T00:00:00")
    }
    assert before == {"4702"}


async def test_own_jobs_only_unless_all_are_asked_for() -> None:
    demo = lab()
    assert {row["User"] for row in await rows(demo, "-X")} == {"alice"}
    assert {"alice", "bob"} <= {row["User"] for row in await rows(demo, "-X", "-a")}
    assert {row["User"] for row in await rows(demo, "-X", "-u", "bob")} == {"bob"}


async def test_het_jobs_and_arrays_have_their_ids() -> None:
    demo = lab()
    het = [(row["JobID"], row["JobIDRaw"]) for row in await rows(demo, "-X", "-j", "4815")]
    assert het == [("4815+0", "4815"), ("4815+1", "4816")]
    waiting = [(row["JobID"], row["JobIDRaw"]) for row in await rows(demo, "-X", "-j", "4918")]
    assert waiting == [("4918", "4918"), ("4919", "4919")]
    array = [row["JobID"] for row in await rows(demo, "-X", "-j", "4830")]
    assert array[0] == "4830_[76-999%8]"
    assert "4830_75" in array
    assert [row["JobID"] for row in await rows(demo, "-X", "-j", "4830_5")] == ["4830_5"]


async def test_a_long_task_list_is_cut_with_dots() -> None:
    demo = lab()
    odd = ",".join(str(task) for task in range(101, 900, 2))
    await demo.ask("scancel", f"4830_[{odd}]")
    row = (await rows(demo, "-X", "-j", "4830"))[0]
    assert re.fullmatch(r"4830_\[.{60}\.\.\.%8\]", row["JobID"])
    assert len(await demo.ask("squeue", "-h", "-t", "PD", "-j", "4830", "-o", "%i")) > 1_000


async def test_the_padded_form_is_that_of_the_capture() -> None:
    demo = lab()
    lines = (await demo.ask("sacct")).splitlines()
    assert lines[:2] == capture("sacct_default.out").splitlines()[:2]
    assert "4811         llm-pretr+       long         ml        256    RUNNING      0:0 " in lines
    assert any("OUT_OF_ME+" in line for line in lines)
    short = await demo.ask("sacct", "-n", "-X", "-j", "4811", "-o", "JobID,JobName%-30,Elapsed")
    assert short == "4811         llm-pretrain-7b                  05:12:00 \n"
    assert await demo.ask("sacct", "-p", "-n", "-X", "-j", "4811", "-o", "jobid,state") == (
        "4811|RUNNING|\n"
    )


async def test_states_may_be_chosen() -> None:
    found = await rows(lab(), "-X", "-s", "F,TO", "-S", "now-1day")
    assert {row["State"] for row in found} == {"FAILED", "TIMEOUT"}


async def test_an_unknown_id_is_an_empty_answer() -> None:
    assert await lab().ask("sacct", "-n", "-X", "-P", "-j", "99999999", "-o", "JobID") == ""


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (("-o", "bogus"), 'sacct: error: Invalid field requested: "bogus"\n'),
        (("--bogus",), "sacct: unrecognized option '--bogus'\n"),
        (("-j", "abc"), "sacct: fatal: Bad job/step specified: abc\n"),
        (("-s", "nosuch"), "sacct: fatal: unrecognized job state value 'nosuch'\n"),
        (("-S", "yesterdayx"), "Invalid time specification (pos=0): yesterdayx\n"),
        (("-u", "nosuch"), "sacct: error: Invalid user id: nosuch\n"),
    ],
)
async def test_complaints_are_the_real_ones(argv: tuple[str, ...], complaint: str) -> None:
    assert await lab().refused("sacct", *argv) == (1, complaint)


async def test_helpformat_names_what_can_be_asked_for() -> None:
    demo = lab()
    names = (await demo.ask("sacct", "--helpformat")).split()
    real = capture("sacct_helpformat.out").split()
    assert names == real
    done = await demo.done("sacct", "-P", "-o", ",".join(names), "-j", "4817")
    assert done.rc == 0
