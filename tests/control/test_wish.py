"""Commands of a verdict, as wishes that slurmtop has a dialog for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Details, Kind, Recipient
from slurmtop.control.wish import Wish, wish_of


@pytest.mark.parametrize(
    ("command", "wish"),
    [
        ("scancel 4711", Wish(Kind.CANCEL, "4711")),
        ("scancel -M hpc2 4711_3", Wish(Kind.CANCEL, "4711_3", cluster="hpc2")),
        ("scontrol requeue 4711", Wish(Kind.REQUEUE, "4711")),
        ("scontrol requeuehold 4711", Wish(Kind.REQUEUE_HOLD, "4711")),
        ("scontrol -M hpc2 release 4711", Wish(Kind.RELEASE, "4711", cluster="hpc2")),
        ("scontrol hold 4711", Wish(Kind.HOLD, "4711")),
        ("scancel --signal=CONT 4711", Wish(Kind.SIGNAL, "4711", Details(signal="CONT"))),
        (
            "scancel -s SIGUSR1 --batch 4711",
            Wish(Kind.SIGNAL, "4711", Details(signal="USR1", recipient=Recipient.BATCH)),
        ),
        (
            "scancel --signal=TERM --full 4711",
            Wish(Kind.SIGNAL, "4711", Details(signal="TERM", recipient=Recipient.EVERYTHING)),
        ),
        (
            "scontrol update JobId=4711 ExcNodeList=gpu[07-08],gpu07",
            Wish(Kind.EXCLUDE, "4711", Details(exclude=("gpu07", "gpu08"))),
        ),
        (
            "scontrol update JobId=4711 TimeLimit=1-02:00:00",
            Wish(Kind.LIMIT, "4711", Details(limit_minutes=1_560)),
        ),
    ],
)
def test_a_command_that_is_wholly_understood_is_a_wish(command: str, wish: Wish) -> None:
    assert wish_of(command) == wish


@pytest.mark.parametrize(
    "command",
    [
        "",
        "export NCCL_DEBUG=INFO",
        "scancel",
        "scancel -u anna",
        "scancel --state=PENDING 4711",
        "scancel 4711 4712",
        "scancel --signal= 4711",
        "scancel --batch 4711",
        "scancel 4711; rm -rf /",
        "scontrol resume 4711",
        "scontrol requeue 4711 4712",
        "scontrol requeue -x",
        "scontrol update JobId=4711 ArrayTaskThrottle=0",
        "scontrol update JobId=4711 ExcNodeList=gpu[1-",
        "scontrol update JobId=4711 ExcNodeList=",
        "scontrol update JobId=4711 TimeLimit=UNLIMITED",
        "scontrol update NodeName=gpu07 State=DRAIN",
        "scancel 'unclosed",
        "/usr/bin/scancel 4711",
    ],
)
def test_any_other_line_is_no_wish(command: str) -> None:
    assert wish_of(command) is None


@given(st.text(max_size=80) | st.text("scontrel update=JobId-M47_[]' \\\"", max_size=60))
def test_no_text_raises(text: str) -> None:
    for command in (text, f"scancel {text}", f"scontrol {text}", f"scontrol update {text}"):
        wish_of(command)
