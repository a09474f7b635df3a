"""Lines of a node's kernel inside a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.system import (
    HostHardware,
    KernelLink,
    KernelOom,
    LinkTrouble,
    PcieFatal,
    Xid,
)
from slurmtop.parse.logs.kernel_words import KernelReader
from tests.parse.logs.messages import read


@pytest.mark.parametrize(
    ("line", "code", "bus_id", "pid", "caused_by"),
    [
        (
            "NVRM: Xid (PCI:0000:83:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
            79,
            "0000:83:00",
            1234,
            None,
        ),
        (
            "kernel: NVRM: Xid (PCI:0000:DC:00): 45, pid=18, name=p, caused by previous Xid 149",
            45,
            "0000:dc:00",
            18,
            149,
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00", None, None),
        ("NVRM: Xid (PCI:0000:83:00): 63", 63, "0000:83:00", None, None),
    ],
)
def test_xid_in_all_forms(
    line: str, code: int, bus_id: str, pid: int | None, caused_by: int | None
) -> None:
    (event,) = read(KernelReader(), line)
    assert isinstance(event, Xid)
    assert (event.code, event.bus_id, event.pid) == (code, bus_id, pid)
    assert event.caused_by == caused_by
    assert not event.switch


@pytest.mark.parametrize(("severity", "fatal"), [("Fatal", True), ("Non-fatal", False)])
def test_sxid_of_a_switch(severity: str, fatal: bool) -> None:
    line = f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, {severity}, Link 30 LTSSM Fault Up"
    (event,) = read(KernelReader(), line)
    assert isinstance(event, Xid)
    assert (event.code, event.switch, event.fatal) == (20034, True, fatal)


@pytest.mark.parametrize(
    "lines",
    [
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: The NVIDIA GPU 0000:3b:00.0\n"
        "NVRM: (PCI ID: 10de:20b5) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
    ],
)
def test_a_lost_card_without_a_code_is_the_same_as_xid_79(lines: str) -> None:
    (event,) = read(KernelReader(), lines)
    assert isinstance(event, Xid)
    assert (event.code, event.bus_id) == (79, "0000:3b:00")


def test_a_card_that_is_only_named_is_not_lost() -> None:
    lines = "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: is fine\nstep 1\nstep 2"
    assert read(KernelReader(), lines) == []


@pytest.mark.parametrize(
    ("line", "pid", "name", "cgroup"),
    [
        (
            "Out of memory: Killed process 71 (python) total-vm:1kB, anon-rss:1kB",
            71,
            "python",
            False,
        ),
        ("Memory cgroup out of memory: Killed process 71 (pt main) total-vm", 71, "pt main", True),
        (
            "Out of memory: Kill process 71 (python) score 99 or sacrifice child",
            71,
            "python",
            False,
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,task_memcg=/slurm,"
            "task=python,pid=71,uid=0",
            71,
            "python",
            True,
        ),
    ],
)
def test_oom_kills_of_the_kernel(line: str, pid: int, name: str, cgroup: bool) -> None:
    (event,) = read(KernelReader(), line)
    assert isinstance(event, KernelOom)
    assert (event.pid, event.name, event.cgroup) == (pid, name, cgroup)


def test_one_victim_is_told_once() -> None:
    line = "Memory cgroup out of memory: Killed process 71 (python) total-vm:1kB"
    assert len(read(KernelReader(), [line, line])) == 1


@pytest.mark.parametrize(
    ("line", "kind", "device"),
    [
        ("mlx5_core 0000:0c:00.0 ib0: Link down", LinkTrouble.DOWN, "ib0"),
        ("mlx5_core 0000:0c:00.0 ib0: Link up", LinkTrouble.UP, "ib0"),
        ("bnxt_en 0000:0c:00.0 eth2: NIC Link is Down", LinkTrouble.DOWN, "eth2"),
        (
            "bond0: link status definitely down for interface eth0, disabling it",
            LinkTrouble.DOWN,
            "eth0",
        ),
        ("IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready", LinkTrouble.UP, "ib0"),
        (
            "mlx5_core 0000:0c:00.0: poll_health:800:(pid 0): device's health compromised",
            LinkTrouble.FATAL,
            "0000:0c:00.0",
        ),
        ("mlx5_core 0000:0c:00.0: Fatal error 1 detected", LinkTrouble.FATAL, "0000:0c:00.0"),
    ],
)
def test_links_of_adapters(line: str, kind: LinkTrouble, device: str) -> None:
    (event,) = read(KernelReader(), line)
    assert isinstance(event, KernelLink)
    assert (event.kind, event.device) == (kind, device)


@pytest.mark.parametrize(
    ("line", "device"),
    [
        ("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010", "0000:00:02.0"),
        (
            "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction",
            "0000:00:02.0",
        ),
        ("pcieport 0000:00:02.0:    [ 5] Surprise Down Error    (First)", "0000:00:02.0"),
        ("nvidia 0000:02:00.0: device has no AER-aware driver", "0000:02:00.0"),
    ],
)
def test_fatal_errors_of_the_bus(line: str, device: str) -> None:
    (event,) = read(KernelReader(), line)
    assert isinstance(event, PcieFatal)
    assert event.device == device


@pytest.mark.parametrize(
    "line",
    [
        "{1}[Hardware Error]: event severity: fatal",
        "Kernel panic - not syncing: Fatal exception",
        "EDAC MC0: 1 UE memory read error",
    ],
)
def test_broken_hardware_of_the_host(line: str) -> None:
    (event,) = read(KernelReader(), line)
    assert isinstance(event, HostHardware)


@pytest.mark.parametrize(
    "line",
    [
        "pcieport 0000:00:02.0: AER: Corrected error received: id=0010",
        "pcieport 0000:00:02.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer",
        "[Hardware Error]: Corrected error, no action required.",
        "mce: CPU supports 20 MCE banks",
        "see the docs on Xid 79 and how links go down",
        "the link is down: http://example.org",
        "mlx5_core 0000:0c:00.0: firmware version: 28.39.1002",
        "IPv6: ADDRCONF(NETDEV_UP): ib0: link is not ready",
    ],
)
def test_what_healthy_nodes_say_is_nothing(line: str) -> None:
    assert read(KernelReader(), line) == []


@given(st.lists(st.text(), max_size=5))
def test_any_text_is_read(texts: list[str]) -> None:
    for prefix in ("NVRM: Xid (PCI:0000:83:00)", "mlx5_core 0000:0c:00.0", "AER", ""):
        reader = KernelReader()
        read(reader, [prefix + text for text in texts])
