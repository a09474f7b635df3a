"""Network ports out of /sys: kinds, units, rates, and hostile lines."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.nic import NicKind, NicPort
from slurmtop.parse.nic import NicLook, parse_nics, total_bytes_s, with_rates

IB = b"""/proc/uptime:1000.50 90000.00
/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE
/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)
/sys/class/infiniband/mlx5_0/ports/1/link_layer:InfiniBand
/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data:1000
/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data:2000
/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error:0
/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3
/sys/class/infiniband/mlx5_bond_0/ports/1/state:1: DOWN
/sys/class/infiniband/mlx5_bond_0/ports/1/link_layer:Ethernet
"""
OTHERS = b"""/sys/class/infiniband/rdmap79s0/ports/1/state:4: ACTIVE
/sys/class/infiniband/rdmap79s0/ports/1/link_layer:Unspecified
/sys/class/infiniband/rdmap79s0/ports/1/hw_counters/rx_bytes:77
/sys/class/infiniband/rdmap79s0/ports/1/hw_counters/tx_bytes:78
/sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets:88123@1767139200.52
/sys/class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets:99@1767139200.52
/sys/class/net/eth0/operstate:up
/sys/class/net/eth0/speed:100000
/sys/class/net/eth0/statistics/rx_bytes:5
/sys/class/net/eth0/statistics/tx_bytes:6
/sys/class/net/eth0/statistics/rx_errors:2
/sys/class/net/eth1/speed:-1
"""


def test_infiniband_counts_in_words_of_four_bytes() -> None:
    look = parse_nics(IB)
    assert look.uptime_s == 1000.5
    first, second = look.ports
    assert first == NicPort(
        name="mlx5_0/1",
        kind=NicKind.IB,
        state="ACTIVE",
        speed="400 Gb/sec (4X NDR)",
        rx_bytes=4000,
        tx_bytes=8000,
        errors=3,
    )
    assert (second.kind, second.state, second.rx_bytes) == (NicKind.ROCE, "DOWN", None)
    assert (first.works, second.works) == (True, False)


def test_efa_slingshot_and_ethernet() -> None:
    efa, cxi, eth, down = parse_nics(OTHERS).ports
    assert (efa.kind, efa.rx_bytes, efa.tx_bytes) == (NicKind.EFA, 77, 78)
    assert (cxi.kind, cxi.rx_bytes, cxi.tx_bytes) == (NicKind.CXI, 88123, 99)
    assert cxi.works is None
    assert (eth.kind, eth.speed, eth.errors, eth.works) == (NicKind.ETH, "100000 Mb/s", 2, True)
    assert (down.speed, down.rx_bytes) == (None, None)


def test_a_rate_needs_two_looks_and_a_counter_that_grew() -> None:
    first = parse_nics(IB)
    later = parse_nics(IB.replace(b":1000.50", b":1010.50").replace(b"data:1000", b"data:251000"))
    assert with_rates(None, later)[0].rx_bytes_s is None
    port = with_rates(first, later)[0]
    assert (port.rx_bytes_s, port.tx_bytes_s) == (100_000.0, 0.0)
    # The driver was loaded anew: the counter is smaller, the rate is not known.
    assert with_rates(later, replace(first, uptime_s=1020.0))[0].rx_bytes_s is None
    assert with_rates(first, replace(later, uptime_s=None))[0].rx_bytes_s is None


def test_the_sum_is_not_known_while_a_port_that_is_up_is_not() -> None:
    up = NicPort(name="a", kind=NicKind.IB, state="ACTIVE", rx_bytes_s=1.0, tx_bytes_s=2.0)
    down = NicPort(name="b", kind=NicKind.IB, state="DOWN")
    assert total_bytes_s((up, down)) == 3.0
    assert total_bytes_s((up, replace(down, state="ACTIVE"))) is None
    assert total_bytes_s((down,)) is None
    assert total_bytes_s(()) is None
    eth = NicPort(name="eth0", kind=NicKind.ETH, state="up", rx_bytes_s=9.0, tx_bytes_s=9.0)
    assert total_bytes_s((eth, up)) == 3.0
    assert total_bytes_s((eth,)) == 18.0


@given(st.binary(max_size=400))
def test_any_bytes_are_taken(data: bytes) -> None:
    assert isinstance(parse_nics(data), NicLook)
    assert isinstance(parse_nics(b"/sys/class/net/eth0/" + data), NicLook)
    assert isinstance(parse_nics(b"/sys/class/infiniband/mlx5_0/ports/1/state:" + data), NicLook)
