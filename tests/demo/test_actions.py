"""What cancel, hold, release, requeue and update do to the simulated cluster."""

import pytest

from tests.demo.kit import MOE_LOG, PRETRAIN_LOG, Lab, capture, lab


async def reason(demo: Lab, job: str) -> str:
    return (await demo.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%r")).strip()


async def test_a_cancel_goes_through_completing_and_is_seen_everywhere() -> None:
    demo = lab()
    done = await demo.done("scancel", "4811")
    assert (done.rc, done.stdout, done.stderr) == (0, b"", b"")
    assert await demo.state("4811") == "RUNNING"
    await demo.later(3)
    assert await demo.state("4811") == "COMPLETING"
    assert "4811" in await demo.ask("squeue", "-h", "-o", "%i")
    await demo.later(5)
    assert await demo.state("4811") == "CANCELLED"
    assert "4811" not in (await demo.ask("squeue", "-h", "-o", "%i")).split()
    shown = await demo.ask("scontrol", "show", "job", "4811")
    assert "JobState=CANCELLED Reason=None" in shown
    assert " ExitCode=0:15\n" in shown
    assert "EndTime=2031-05-05T12:00:02 " in shown
    rows = await demo.ask("sacct", "-n", "-P", "-j", "4811", "-o", "JobID,State,ExitCode,End")
    assert rows == (
        "4811|CANCELLED by 1001|0:15|2031-05-05T12:00:02\n"
        "4811.batch|CANCELLED|0:15|2031-05-05T12:00:02\n"
        "4811.0|CANCELLED|0:15|2031-05-05T12:00:02\n"
    )
    log = await demo.log(PRETRAIN_LOG)
    assert log.endswith(
        "slurmstepd: error: *** JOB 4811 ON gpu01 CANCELLED AT 2031-05-05T12:00:02 ***\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "slurmstepd: error: *** STEP 4811.0 ON gpu01 CANCELLED AT 2031-05-05T12:00:02 ***\n"
    )


async def test_what_depends_on_a_cancelled_job_never_starts() -> None:
    demo = lab()
    text = await demo.ask("squeue", "-h", "-j", "4911", "-o", "%r %E")
    assert text == "Dependency afterok:4811(unfulfilled)\n"
    await demo.ask("scancel", "4811")
    await demo.later(60)
    text = await demo.ask("squeue", "-h", "-j", "4911", "-o", "%r %E")
    assert text == "DependencyNeverSatisfied afterok:4811(failed)\n"


async def test_the_job_that_hangs_takes_kill_wait_to_die() -> None:
    demo = lab()
    await demo.ask("scancel", "4817")
    await demo.later(20)
    assert await demo.state("4817") == "COMPLETING"
    await demo.later(20)
    assert await demo.state("4817") == "CANCELLED"
    assert "*** JOB 4817 ON gpu03 CANCELLED AT" in await demo.log(MOE_LOG)
    nodes = await demo.ask("squeue", "-h", "-t", "R", "-o", "%N")
    assert "gpu[03-04]" in nodes, "a waiting job takes over what has become free"


async def test_a_waiting_job_is_cancelled_at_once() -> None:
    demo = lab()
    await demo.ask("scancel", "4910")
    assert await demo.state("4910") == "CANCELLED"
    assert await reason(demo, "4917") == "Resources", "the next one is at the head now"


async def test_unknown_and_ended_ids_are_met_with_silence() -> None:
    demo = lab()
    for job in ("99999999", "4801"):
        done = await demo.done("scancel", job)
        assert (done.rc, done.stdout, done.stderr) == (0, b"", b"")
    done = await demo.done("scancel", "-v", "4801")
    assert done.rc == 0
    assert done.stderr.decode() == capture("scancel_finished.err").replace("20", "4801")


async def test_other_peoples_jobs_are_refused() -> None:
    demo = lab()
    rc, text = await demo.refused("scancel", "4826")
    assert rc == 210
    assert text == capture("scancel_not_mine.err").replace("36", "4826")
    rc, _ = await demo.refused("scancel", "4826", "4914")
    assert rc == 210
    await demo.later(60)
    assert await demo.state("4826") == "RUNNING"
    assert await demo.state("4914") == "CANCELLED"
    done = await demo.done("scancel", "-M", "aurora", "4826")
    assert (done.rc, b"denied" in done.stderr) == (0, True)


async def test_a_waiting_part_of_a_het_job_is_refused_a_running_one_ends_alone() -> None:
    demo = lab()
    assert await demo.refused("scancel", "4919") == (
        60,
        "scancel: error: Kill job error on job id 4919:"
        " Operation not permitted on individual component of heterogeneous job\n",
    )
    await demo.ask("scancel", "4918")
    assert await demo.state("4918") == "CANCELLED\nCANCELLED"
    await demo.ask("scancel", "4816")
    await demo.later(30)
    assert await demo.state("4816") == "CANCELLED"
    assert "RUNNING" in await demo.state("4815")


async def test_a_filter_reports_what_it_does_not_find() -> None:
    demo = lab()
    missing = "scancel: error: Kill job error on job id 99999999: Invalid job id specified\n"
    assert await demo.refused("scancel", "--state=RUNNING", "99999999") == (1, missing)
    assert await demo.refused("scancel", "-u", "nosuch") == (
        1,
        "scancel: error: Invalid user name: nosuch\n",
    )
    await demo.ask("scancel", "--me", "-t", "PENDING")
    assert await demo.ask("squeue", "-h", "--me", "-t", "PD") == ""
    assert "bob" in await demo.ask("squeue", "-h", "-t", "PD")


async def test_some_tasks_of_the_waiting_rest_become_a_record_of_their_own() -> None:
    demo = lab()
    await demo.ask("scancel", "4830_[500-599,777]")
    lines = (await demo.ask("squeue", "-h", "-t", "all", "-j", "4830", "-o", "%i %T")).splitlines()
    assert "4830_[500-599,777%8] CANCELLED" in lines
    assert "4830_[76-499,600-776,778-999%8] PENDING" in lines
    await demo.ask("scancel", "4830_70")
    await demo.later(30)
    assert await demo.state("4830_70") == "CANCELLED"
    running = await demo.ask("squeue", "-h", "-t", "R", "-j", "4830", "-o", "%i")
    assert len(running.split()) == 8, "the next task has taken its place"


async def test_the_whole_array_goes_with_its_id() -> None:
    demo = lab()
    await demo.ask("scancel", "4830")
    await demo.later(60)
    assert await demo.ask("squeue", "-h", "-j", "4830") == ""


async def test_a_step_killed_by_signal_fails_the_job_and_a_kill_cancels_it() -> None:
    demo = lab()
    await demo.ask("scancel", "--signal=TERM", "4811")
    await demo.ask("scancel", "--signal=KILL", "4822")
    await demo.later(30)
    assert await demo.state("4811") == "FAILED"
    row = await demo.ask("sacct", "-n", "-X", "-P", "-j", "4811", "-o", "State,ExitCode")
    assert row == "FAILED|15:0\n"
    assert "ExitCode=143:0" in await demo.ask("scontrol", "show", "job", "4811")
    assert await demo.state("4822") == "CANCELLED"


async def test_hold_and_release() -> None:
    demo = lab()
    assert await reason(demo, "4914") == "JobHeldUser"
    await demo.ask("scontrol", "release", "4914")
    assert await reason(demo, "4914") == "Priority"
    await demo.ask("scontrol", "hold", "4922,4910")
    assert await reason(demo, "4922") == "JobHeldUser"
    assert await reason(demo, "4914") == "Resources", "the next one is at the head now"
    await demo.ask("scontrol", "release", "4910")
    assert await reason(demo, "4910") == "Resources"
    await demo.ask("scontrol", "release", "4910")


async def test_hold_of_a_running_job_shows_on_its_row_and_does_not_stop_it() -> None:
    demo = lab()
    await demo.ask("scontrol", "hold", "4811")
    assert await reason(demo, "4811") == "JobHeldUser"
    await demo.later(600)
    assert await demo.state("4811") == "RUNNING"
    await demo.ask("scontrol", "release", "4811")
    assert await reason(demo, "4811") == "None"


async def test_hold_of_a_part_holds_the_het_job() -> None:
    demo = lab()
    await demo.ask("scontrol", "hold", "4919")
    assert await reason(demo, "4918") == "JobHeldUser\nJobHeldUser"


async def test_refusals_of_hold_and_requeue_are_the_captured_ones() -> None:
    demo = lab()
    assert await demo.refused("scontrol", "hold", "4826") == (
        1,
        capture("hold_not_mine.err").replace("36", "4826"),
    )
    assert await demo.refused("scontrol", "requeue", "4826") == (
        1,
        "Access/permission denied for job 4826\n",
    )
    assert await demo.refused("scontrol", "requeue", "4801") == (
        1,
        capture("requeue_norequeue.err").replace("31", "4801"),
    )
    assert await demo.refused("scontrol", "requeue", "4922") == (
        1,
        capture("requeue_pending.err").replace("23", "4922"),
    )
    assert await demo.refused("scontrol", "requeue", "99999999") == (
        1,
        capture("requeue_unknown.err"),
    )
    assert await demo.refused("scontrol", "requeue", "4816") == (
        1,
        "Job not heterogeneous job leader for job 4816\n",
    )
    assert await demo.refused("scontrol", "hold", "4809") == (
        1,
        "Job has already finished for job 4809\nslurm_suspend error: Job has already finished\n",
    )
    assert await demo.refused("scontrol", "suspend", "4811") == (
        1,
        "Access/permission denied for job 4811\n",
    )


async def test_hold_of_an_array_answers_task_by_task() -> None:
    demo = lab()
    rc, text = await demo.refused("scontrol", "hold", "4830")
    assert rc == 1
    assert text.startswith("4830_0-66: Job has already finished\n")
    assert text.endswith("4830_75-999: No error\n")
    assert await demo.refused("scontrol", "hold", "4830_5000") == (
        1,
        "4830_5000: Invalid job id specified\n",
    )


async def test_a_requeue_waits_two_minutes_and_starts_again() -> None:
    demo = lab()
    await demo.ask("scontrol", "requeue", "4817")
    assert await demo.state("4817") == "COMPLETING"
    await demo.later(10)
    line = await demo.ask("squeue", "-h", "-j", "4817", "-o", "%T|%r|%S|%M")
    assert line == "PENDING|BeginTime|2031-05-05T12:02:01|0:00\n"
    shown = await demo.ask("scontrol", "show", "job", "4817")
    assert "Restarts=1 " in shown
    assert "SubmitTime=2031-05-05T12:00:00 " in shown
    log = await demo.log(MOE_LOG)
    assert "*** JOB 4817 ON gpu03 CANCELLED AT 2031-05-05T12:00:00 DUE TO JOB REQUEUE ***" in log
    rows = await demo.ask("sacct", "-D", "-X", "-n", "-P", "-j", "4817", "-o", "State,Start")
    assert rows == "REQUEUED|2031-05-05T09:57:00\nPENDING|Unknown\n"
    await demo.later(200)
    assert await demo.state("4817") == "RUNNING"
    await demo.later(3 * 3_600)
    log = await demo.log(MOE_LOG)
    assert "resumed from checkpoints/step-002400\n" in log
    assert "step 9590/72000" in log, "this time no rank stays away"


async def test_a_requeue_goes_on_from_the_checkpoint() -> None:
    demo = lab()
    await demo.ask("scontrol", "requeue", "4811")
    await demo.later(1_200)
    log = await demo.log(PRETRAIN_LOG)
    assert "resumed from checkpoints/step-012000\n" in log
    assert "step 12010/72000" in log


async def test_requeue_in_held_state_waits_for_a_release() -> None:
    demo = lab()
    await demo.ask("scontrol", "requeuehold", "4822")
    await demo.later(600)
    shown = await demo.ask("scontrol", "show", "job", "4822")
    assert "JobState=PENDING Reason=job_requeued_in_held_state" in shown
    assert "Priority=0 " in shown
    assert (await demo.log("/shared/alice/sft/logs/sft_4822.log")).count("DUE TO JOB REQUEUE") == 4
    await demo.ask("scontrol", "release", "4822")
    assert await reason(demo, "4822") == "Priority"


async def test_a_list_of_ids_goes_on_after_a_refusal() -> None:
    demo = lab()
    assert await demo.refused("scontrol", "hold", "4922,99999,4910") == (
        1,
        "Invalid job id specified for job 99999\nslurm_suspend error: Invalid job id specified\n",
    )
    assert await reason(demo, "4922") == "JobHeldUser"
    assert await reason(demo, "4910") == "JobHeldUser"
    assert await demo.refused("scontrol", "requeue", "4817,4922,4826,4803") == (
        1,
        "Job is pending execution for job 4922\nAccess/permission denied for job 4826\n",
    )
    assert await demo.state("4803") == "PENDING"
    limits = ("JobId=4922,99998,4910", "TimeLimit=5")
    assert await demo.refused("scontrol", "update", *limits) == (
        1,
        "Invalid job id specified for job 99998\n",
    )
    assert await demo.ask("squeue", "-h", "-j", "4922,4910", "-o", "%l") == "5:00\n5:00\n"


async def test_a_task_list_is_one_id_with_commas_of_its_own() -> None:
    demo = lab()
    done = await demo.done("scontrol", "requeue", "4830_[68,70-71]")
    assert (done.rc, done.stderr) == (0, b"")
    for task in ("68", "70", "71"):
        shown = await demo.ask("scontrol", "show", "job", f"4830_{task}")
        assert "Restarts=1 " in shown
    assert "Restarts=0 " in await demo.ask("scontrol", "show", "job", "4830_69")
    assert await demo.refused("scontrol", "update", "JobId=4830_[3-5]", "TimeLimit=3") == (
        1,
        "4830_3-5: Job has already finished\n",
    )
    rc, text = await demo.refused("scontrol", "update", "JobId=4830", "TimeLimit=3")
    assert rc == 1
    assert text.startswith("4830_0-66")
    assert text.endswith("-999: No error\n")


async def test_a_completed_task_that_is_requeued_runs_again() -> None:
    demo = lab()
    assert await demo.state("4830_3") == "COMPLETED"
    await demo.ask("scontrol", "requeue", "4830_3")
    assert await demo.state("4830_3") == "PENDING"
    rows = await demo.ask("sacct", "-D", "-X", "-n", "-P", "-j", "4830_3", "-o", "State,ExitCode")
    assert rows == "REQUEUED|0:0\nPENDING|0:0\n"


async def test_nodes_are_excluded_as_a_host_list_and_read_back_by_a_letter() -> None:
    demo = lab()
    await demo.ask("scontrol", "update", "JobId=4922,4910", "ExcNodeList=gpu[01-03,05]")
    both = await demo.ask("squeue", "--local", "-h", "-j", "4922,4910", "-o", "%i|%x")
    assert set(both.split()) == {"4922|gpu[01-03,05]", "4910|gpu[01-03,05]"}
    assert "ExcNodeList=gpu[01-03,05]\n" in await demo.ask("scontrol", "show", "job", "4922")
    assert await demo.refused("scontrol", "update", "JobId=4922", "ExcNodeList=gpu[01-99]") == (
        1,
        "Invalid node name specified for job 4922\n",
    )
    unknown = await demo.done("squeue", "-h", "-j", "4922", "-O", "ExcNodes")
    assert b"Invalid job format specification" in unknown.stderr
    flags = await demo.ask("squeue", "-h", "-j", "4914", "-O", "Requeue:|,BatchFlag:|")
    assert flags == "0|1|\n"


async def test_a_limit_is_lowered_and_never_raised() -> None:
    demo = lab()
    for job in ("4822", "4922"):
        assert await demo.refused("scontrol", "update", f"JobId={job}", "TimeLimit=1440") == (
            1,
            f"Access/permission denied for job {job}\n",
        )
        await demo.ask("scontrol", "update", f"JobId={job}", "TimeLimit=90")
        assert await demo.ask("squeue", "-h", "-j", job, "-o", "%l") == "1:30:00\n"


async def test_what_had_failed_by_itself_keeps_its_log_and_its_exit_when_it_is_put_back() -> None:
    demo = lab()
    path = "/shared/alice/rlhf/logs/reward_4807.log"
    before = await demo.log(path)
    await demo.ask("scontrol", "requeue", "4807")
    rows = await demo.ask(
        "sacct", "-D", "-n", "-P", "-j", "4807", "-o", "JobID,State,ExitCode,DerivedExitCode,End"
    )
    assert rows.splitlines()[9:] == [
        "4807|REQUEUED|1:0|1:0|2031-05-05T12:00:00",
        "4807.batch|FAILED|1:0||2031-05-05T10:33:00",
        "4807.0|FAILED|1:0||2031-05-05T10:33:00",
        "4807|PENDING|0:0|0:0|Unknown",
    ]
    assert await demo.log(path) == before, "Slurm says nothing of a requeue that ends no run"


async def test_update_changes_what_a_user_may_change() -> None:
    demo = lab()
    await demo.ask("scontrol", "update", "jobid=4910", "ExcNodeList=gpu05")
    assert "ExcNodeList=gpu05\n" in await demo.ask("scontrol", "show", "job", "4910")
    await demo.ask("scontrol", "update", "jobid=4817", "TimeLimit=2:05:00")
    await demo.later(180)
    assert await demo.state("4817") in ("COMPLETING", "TIMEOUT")
    assert await demo.refused("scontrol", "update", "jobid=4811", "TimeLimit=3-0") == (
        1,
        "Access/permission denied for job 4811\n",
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nodename=gpu01", "state=drain", "reason=x"), capture("drain_denied.err")),
        (("bogus=1",), "No valid entity in update command\n"),
        (("jobid=4910", "bogus=1"), "Update of this parameter is not supported: bogus=1\n"),
        (("jobid=99999", "timelimit=10"), "Invalid job id specified for job 99999\n"),
        (("jobid=4826", "timelimit=10"), "Invalid user id for job 4826\n"),
        (("jobid=4811", "ExcNodeList=gpu05"), "Job is no longer pending execution for job 4811\n"),
        (("jobid=4910", "TimeLimit=99-0"), "Requested time limit is invalid"),
    ],
)
async def test_refusals_of_update(words: tuple[str, ...], complaint: str) -> None:
    rc, text = await lab().refused("scontrol", "update", *words)
    assert rc == 1
    assert text.startswith(complaint)
