import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.parse.slurm.hostlist import (
    HostlistError,
    compress_hosts,
    count_hosts,
    expand_hosts,
    hosts_in,
    hosts_or_text,
    together,
)
from tests.parse.slurm.support import VERSIONS, fixture


@pytest.mark.parametrize("version", VERSIONS)
def test_agrees_with_real_scontrol(version: str) -> None:
    names = fixture(version, "scontrol_hostnames").decode().split()
    assert names == ["gpu01", "gpu02", "gpu03", "gpu07", "login1"]
    assert list(expand_hosts("gpu[01-03,07],login1")) == names


def test_D15_agrees_with_real_scontrol_on_generated_lists() -> None:
    lines = fixture("22.05.8", "hostnames_lists").decode().splitlines()
    assert len(lines) == 80
    for line in lines:
        text, _, names = line.partition("\t")
        assert list(expand_hosts(text)) == names.split(" ")
        assert count_hosts(text) == len(names.split(" "))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[1-3,7]", "gpu1 gpu2 gpu3 gpu7"),
        ("gpu[08-11]", "gpu08 gpu09 gpu10 gpu11"),
        ("gpu[8-11]", "gpu8 gpu9 gpu10 gpu11"),
        ("gpu[098-101]", "gpu098 gpu099 gpu100 gpu101"),
        ("n[9-011]", "n9 n10 n11"),
        ("nodeA,n[001,003-004],nodeC", "nodeA n001 n003 n004 nodeC"),
        ("r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"),
        ("rack[0-1]_blade[0-1]", "rack0_blade0 rack0_blade1 rack1_blade0 rack1_blade1"),
        ("gpu[1-2]-ib", "gpu1-ib gpu2-ib"),
        ("login1,gpu[01-02,05]a,cpu9", "login1 gpu01a gpu02a gpu05a cpu9"),
        ("gpu[1-1]", "gpu1"),
        ("gpu[3]", "gpu3"),
        ("node[1-7:2]", "node1 node3 node5 node7"),
        ("a b\tc\nd", "a b c d"),
        (",,a,", "a"),
    ],
)
def test_every_shape_of_section_9(text: str, names: str) -> None:
    assert expand_hosts(text) == tuple(names.split())
    assert count_hosts(text) == len(names.split())


@pytest.mark.parametrize("text", ["", "(null)", "None assigned", "n/a", "N/A", "None", " "])
def test_words_for_nothing_are_no_hosts(text: str) -> None:
    assert expand_hosts(text) == ()
    assert count_hosts(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "gpu[1-2",
        "gpu]1",
        "node[3-1]",
        "n[]",
        "n[1,]",
        "n[a-c]",
        "n[1-3:0]",
        "n[[1]]",
        "bgl[000x133]",
        "n[1-²]",
        "n[-1]",
    ],
)
def test_D13_a_broken_list_is_an_error_and_never_a_wrong_host(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hosts(text)
    assert count_hosts(text) is None


def test_a_huge_list_is_counted_and_not_made() -> None:
    text = "r[0-99999]n[0-99999]"
    assert count_hosts(text) == 10**10
    with pytest.raises(HostlistError, match="more than 65536"):
        expand_hosts(text)
    assert len(expand_hosts("n[1-65536]")) == 65_536
    with pytest.raises(HostlistError):
        expand_hosts("n[1-65537]")
    with pytest.raises(HostlistError):
        expand_hosts("n[1-4]", limit=3)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["gpu01", "gpu02", "gpu03", "gpu07", "login1"], "gpu[01-03,07],login1"),
        (["gpu10", "gpu9", "gpu8"], "gpu[8-10]"),
        (["gpu08", "gpu09", "gpu10"], "gpu[08-10]"),
        (["gpu9", "gpu010"], "gpu[9,010]"),
        (["a", "a", "b"], "a,b"),
        (["gpu1"], "gpu1"),
        (["gpu", "gpu1"], "gpu,gpu1"),
        ([], ""),
    ],
)
def test_compress(names: list[str], text: str) -> None:
    assert compress_hosts(names) == text


_PREFIX = st.sampled_from(["gpu", "n", "cn-", "rack1x", "a.b"])
_NUMBER = st.integers(0, 1_200).flatmap(
    lambda number: st.sampled_from([str(number), str(number).zfill(3), str(number).zfill(5)])
)
_NAME = st.builds(str.__add__, _PREFIX, _NUMBER | st.just(""))


@given(st.lists(_NAME, max_size=60))
def test_compress_and_expand_are_inverse(names: list[str]) -> None:
    text = compress_hosts(names)
    assert sorted(expand_hosts(text)) == sorted(set(names))
    assert count_hosts(text) == len(set(names))


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=8))
@example("n[" + "9" * 5_000 + "]", ["n" + "9" * 5_000])
def test_any_text_gives_names_or_the_one_error(text: str, names: list[str]) -> None:
    try:
        hosts = expand_hosts(text, limit=1_000)
    except HostlistError:
        hosts = ()
    assert len(hosts) <= 1_000
    count_hosts(text)
    compress_hosts(names)


def _reference(text: str) -> list[str]:
    """A slow second opinion: one regular expression and a product."""
    names: list[str] = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        choices: list[list[str]] = []
        for literal, inner in re.findall(r"([^\[]+)|\[([^\]]*)\]", item):
            if literal:
                choices.append([literal])
                continue
            numbers = []
            for part in inner.split(","):
                low, _, high = part.partition("-")
                numbers += [f"{n:0{len(low)}d}" for n in range(int(low), int(high or low) + 1)]
            choices.append(numbers)
        names += ["".join(parts) for parts in itertools.product(*choices)]
    return names


_RANGE = st.builds(
    lambda low, more, width: (
        str(low).zfill(width) + (f"-{str(low + more).zfill(width)}" if more else "")
    ),
    st.integers(0, 120),
    st.integers(0, 6),
    st.integers(1, 4),
)
_BRACKET = st.lists(_RANGE, min_size=1, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
_ITEM = st.lists(
    st.sampled_from(["gpu", "n", "-", "_blade"]) | _BRACKET, min_size=1, max_size=4
).map("".join)


@given(st.lists(_ITEM, min_size=1, max_size=4))
def test_agrees_with_a_simple_reference(items: list[str]) -> None:
    text = ",".join(items)
    assert list(expand_hosts(text, limit=10**6)) == _reference(text)


def test_lists_together_hold_each_host_once() -> None:
    assert together(["gpu[01-02]", "gpu02,gpu05"]) == ("gpu01", "gpu02", "gpu05")
    assert together(["gpu01", None]) is None
    assert together(["gpu[01", "gpu02"]) is None
    assert together([]) == ()


@pytest.mark.parametrize(("text", "hosts"), [("gpu[01-02]", ("gpu01", "gpu02")), ("(null)", ())])
def test_lists_that_can_be_read(text: str, hosts: tuple[str, ...]) -> None:
    assert hosts_in(text) == hosts_or_text(text) == hosts


def test_a_broken_list_names_nobody_and_is_found_as_written() -> None:
    assert hosts_in("gpu[01") == hosts_in(None) == hosts_in("gpu[1-9]", limit=8) == ()
    assert hosts_or_text("gpu[01") == ("gpu[01",)
