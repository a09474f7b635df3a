"""Calls that NCCL itself refused or compared."""

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.events.program import PyException
from slurmtop.model.verdict import State
from slurmtop.triage.judge import explain_traces
from tests.triage.traces import traces, where


def warn(kind: Warn, text: str) -> NcclWarn:
    return NcclWarn(at=where(text, host="n1", pid=7), kind=kind, text=text)


def test_calls_that_nccl_found_to_differ_are_a_mismatch_of_nobody() -> None:
    verdict = explain_traces(traces(warn(Warn.CALLS_DIFFER, "Mismatched collective detected")))
    assert (verdict.state, verdict.cls) == (State.FAILED, "collective-op-mismatch")
    assert verdict.culprits == ()


def test_a_wrong_argument_is_a_failure_without_a_class() -> None:
    verdict = explain_traces(traces(warn(Warn.USAGE, "Broadcast : invalid root 9")))
    assert (verdict.state, verdict.cls, verdict.culprits) == (State.FAILED, None, ())
    assert verdict.evidence[0].text == "Broadcast : invalid root 9"


def test_two_threads_in_one_communicator_use_it_at_once() -> None:
    text = "Fatal: host threads are racing to launch"
    assert explain_traces(traces(warn(Warn.USAGE, text))).cls == "concurrent-use"


def test_the_programs_own_exception_says_more() -> None:
    thrown = PyException(at=where("ValueError: bad root"), name="ValueError", message="bad root")
    verdict = explain_traces(traces(warn(Warn.USAGE, "invalid root 9"), thrown))
    assert verdict.cls == "python-exception"
