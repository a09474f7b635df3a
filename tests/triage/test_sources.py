"""What was asked for a verdict and what came of it: in order, folded, with what opens it."""

from dataclasses import replace
from datetime import timedelta

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.live import LiveFacts, Sample
from slurmtop.model.probe import NodeProbe
from slurmtop.model.verdict import SOURCES, Fate, Missing, SourceFate, State, Verdict
from slurmtop.triage.report import report_lines
from slurmtop.triage.sources import folded, no_reader_text, opens_text, sources_of
from tests.collect.test_live import a_job, some_facts
from tests.fakes import START

REFUSED = SourceFate(
    source="kernel log",
    fate=Fate.REFUSED,
    why="dmesg may not be read there",
    command="ssh gpu01 sudo dmesg -T",
)


def probe(host: str, *fates: SourceFate) -> NodeProbe:
    return NodeProbe(host=host, at=START, fates=fates)


def looked(*probes: NodeProbe, fates: tuple[SourceFate, ...] = ()) -> JobFacts:
    sample = Sample(began_at=START, probes=probes, whole=True)
    hosts = tuple(one.host for one in probes)
    return some_facts(live=LiveFacts(job="4711", hosts=hosts, samples=(sample,), fates=fates))


def by_name(facts: JobFacts) -> dict[str, list[SourceFate]]:
    out: dict[str, list[SourceFate]] = {}
    for one in sources_of(facts):
        out.setdefault(one.source, []).append(one)
    return out


def test_every_source_of_a_running_job_is_there_though_nobody_looked() -> None:
    told = by_name(some_facts())
    assert set(told) == set(SOURCES)
    assert {one.fate for name in SOURCES[3:] for one in told[name]} == {Fate.NOT_ASKED}
    assert [one.fate for one in told["slurm"] + told["logs"]] == [Fate.ANSWERED] * 2


def test_a_job_that_does_not_run_has_no_nodes_to_ask() -> None:
    from slurmtop.parse.slurm.states import parse_state

    facts = some_facts(job=a_job(state=parse_state("PENDING")), logs=())
    assert set(by_name(facts)) == {"slurm", "accounting"}


def test_nodes_with_the_same_word_are_told_once() -> None:
    other = replace(REFUSED, command="ssh gpu02 sudo dmesg -T")
    facts = looked(probe("gpu01", REFUSED), probe("gpu02", other))
    [kernel] = by_name(facts)["kernel log"]
    assert kernel.hosts == ("gpu01", "gpu02")
    assert kernel.command == REFUSED.command


def test_the_newest_answer_of_a_node_counts_and_the_look_stands_above_it() -> None:
    facts = looked(probe("gpu01", REFUSED))
    assert facts.live is not None
    read = replace(REFUSED, fate=Fate.ANSWERED, why="", command=None)
    later = Sample(began_at=START + timedelta(seconds=5), probes=(probe("gpu01", read),))
    facts = replace(facts, live=replace(facts.live, samples=(*facts.live.samples, later)))
    assert [one.fate for one in by_name(facts)["kernel log"]] == [Fate.ANSWERED]
    assert facts.live is not None
    above = replace(REFUSED, fate=Fate.FAILED, hosts=("gpu01",))
    facts = replace(facts, live=replace(facts.live, fates=(above,)))
    assert [one.fate for one in by_name(facts)["kernel log"]] == [Fate.FAILED]


def test_a_silent_controller_and_silent_accounting() -> None:
    facts = some_facts(
        controller_answered=False,
        accounting_answered=False,
        missing=(
            Missing("slurm", "squeue did not answer.", "squeue -j 4711"),
            Missing("slurm", "sacct did not answer.", "sacct -j 4711"),
        ),
    )
    told = by_name(facts)
    assert (told["slurm"][0].fate, told["slurm"][0].command) == (Fate.TIMED_OUT, "squeue -j 4711")
    assert (told["accounting"][0].fate, told["accounting"][0].command) == (
        Fate.FAILED, "sacct -j 4711",
    )  # fmt: skip


def test_logs_by_their_status() -> None:
    def fate_of(status: LogStatus) -> Fate:
        log = LogFacts(label="stdout", path="/w/a b.out", status=status, why="no")
        [told] = by_name(some_facts(logs=(log,)))["logs"]
        return told.fate

    assert fate_of(LogStatus.DENIED) is Fate.REFUSED
    assert fate_of(LogStatus.HANGS) is Fate.TIMED_OUT
    assert fate_of(LogStatus.ABSENT) is Fate.ABSENT
    assert fate_of(LogStatus.FAILED) is Fate.FAILED


def test_a_source_that_nobody_knows_comes_last() -> None:
    names = [
        one.source
        for one in folded(
            SourceFate(source=name, fate=Fate.ANSWERED) for name in ("oracle", "ras", "slurm")
        )
    ]
    assert names == ["slurm", "ras", "oracle"]


def test_the_report_lists_them() -> None:
    other = replace(REFUSED, command="ssh gpu01 sudo dmesg -T")
    sources = sources_of(looked(probe("gpu01", other), probe("gpu02")))
    by = SourceFate(source="nodes", fate=Fate.ANSWERED, hosts=("gpu01", "gpu02"), why="by ssh")
    verdict = Verdict(job="4711", state=State.UNKNOWN, summary="?", sources=(*sources, by))
    text = "\n".join(report_lines(verdict, width=100))
    part = text[text.index("sources") :].splitlines()
    assert part[1] == "  read: slurm, logs, nodes (by ssh)"
    assert "  refused: kernel log on gpu01: dmesg may not be read there" in part
    assert "    ssh gpu01 sudo dmesg -T" in part
    assert "  not asked: accounting (the controller knows the job)" in part
    assert "flight recorder, ras (a later version of slurmtop reads them)" in text.replace(
        "reads it", "reads them"
    )


def test_host_keys_that_nobody_knows_are_one_line_however_many_nodes() -> None:
    ways = ("By ssh: key SHA256:{key} of {host}, add {host} ssh-ed25519 AAAA{key}.", "By srun: no.")
    many = []
    for number in range(64):
        host = f"gpu{number:02}"
        order = ways if number % 2 else ways[::-1]
        told = " ".join(order).format(host=host, key=f"aB{number:02}" * 10)
        why = f"There is no way onto {host} now. {told}"
        many.append(SourceFate(source="nodes", fate=Fate.REFUSED, hosts=(host,), why=why))
    (one,) = folded(many)
    assert len(one.hosts) == 64
    assert "gpu00" in one.why, "one of them is the example"
    other = replace(many[0], hosts=("gpu77",), why="gpu77 is down")
    assert len(folded([*many, other])) == 2


def test_what_only_the_owner_can_do_is_told_as_theirs() -> None:
    save = replace(REFUSED, command="slurmtop triage 4711 --save DIR")
    assert opens_text(save) == (
        "its owner, or root, can keep it for you: slurmtop triage 4711 --save DIR"
    )
    assert opens_text(REFUSED) == (REFUSED.command or "")


def test_a_verdict_without_stacks_says_how_to_get_them() -> None:
    why = "No py-spy was found on gpu01: pip install 'slurmtop-tui[stacks]'"
    fates = tuple(
        SourceFate(source="stacks", fate=Fate.ABSENT, hosts=(host,), why=why)
        for host in ("gpu01", "gpu02")
    )
    verdict = Verdict(job="4711", state=State.HUNG, summary="?", sources=fates)
    assert no_reader_text(verdict) == (f"judged without stacks (and on 1 other node): {why}")
    assert no_reader_text(replace(verdict, state=State.HEALTHY)) == ""
    assert no_reader_text(replace(verdict, sources=())) == ""
