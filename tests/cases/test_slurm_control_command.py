"""The same refusals on the command line, with programs that answer as in 049, 053 and 066."""

from pathlib import Path

import pytest

from slurmtop.parse.slurm.scontrol_replies import parse_scontrol_replies
from tests.cases.support import load
from tests.cli.stand_ins import StandIns, current_name, queue_row, slurmtop


def words_of(case: str, n: int) -> str:
    """What scontrol said, without the job that it was about."""
    step = load(case)[n]
    (reply,) = parse_scontrol_replies(step.exit, step.stderr)
    return reply.words


@pytest.mark.parametrize(
    ("case", "n", "state", "more", "says"),
    [
        ("053", 1, "RUNNING", {}, "--no-requeue"),
        ("053", 2, "RUNNING", {}, "interactive jobs cannot be requeued"),
        ("053", 4, "FAILED", {}, "too old"),
        ("053", 5, "RUNNING", {}, "not your job"),
        ("049", 3, "PENDING", {"Reason": "JobHeldUser", "PriorityLong": "0"}, "administrator"),
        ("049", 7, "PENDING", {}, "not your job"),
    ],
)
def test_kind_053_refused_on_the_command_line(
    tmp_path: Path, case: str, n: int, state: str, more: dict[str, str], says: str
) -> None:
    slurm, home = StandIns(tmp_path / "bin", current_name()), tmp_path / "home"
    home.mkdir()
    _, verb, job = load(case)[n].argv
    slurm.say(jobs=[queue_row(job, state, **more)], scontrol={job: words_of(case, n)})
    done = slurmtop(slurm.environ(home), verb, job, "--yes")
    assert ["scontrol", verb, job] in slurm.calls
    assert done.returncode == 1, done.stderr
    assert f"job {job}: " in done.stdout
    assert says in done.stdout
    assert "suspend" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "row", "says"),
    [
        (("requeue", "8901"), queue_row("8901", Requeue="0"), "--no-requeue"),
        (("requeue", "8902"), queue_row("8902", BatchFlag="0"), "interactive"),
        (("requeue", "8903"), queue_row("8903", "PENDING"), "already pending"),
        (
            ("signal", "9801", "--signal", "USR1", "--to", "everything"),
            queue_row("9801", "PENDING"),
            "not started",
        ),
        (
            ("signal", "9802", "--signal", "USR1", "--to", "batch"),
            queue_row("9802", BatchFlag="0"),
            "no batch script",
        ),
    ],
)
def test_kind_066_what_is_known_to_be_refused_is_never_sent(
    tmp_path: Path, arguments: tuple[str, ...], row: dict[str, str], says: str
) -> None:
    slurm, home = StandIns(tmp_path / "bin", current_name()), tmp_path / "home"
    home.mkdir()
    slurm.say(jobs=[row])
    done = slurmtop(slurm.environ(home), *arguments, "--yes")
    assert done.returncode == 1
    assert says in done.stdout + done.stderr
    asked = [call for call in slurm.calls if call[0] in ("scancel", "scontrol")]
    assert not [call for call in asked if call[1] == arguments[0] or "--ctld" in call]
