"""Which of a job's nodes slurmtop itself runs on."""

from slurmtop.cli.gpu_service import this_node


def test_the_node_that_slurmtop_runs_on_is_told_by_its_whole_name() -> None:
    racks = ("gpu01.rack1", "gpu01.rack2")
    assert this_node(racks, {}, "gpu01.rack2") == "gpu01.rack2"
    assert this_node(racks, {}, "gpu01.rack2.example") == "gpu01.rack2"
    assert this_node(racks, {}, "gpu01") is None
    assert this_node(("gpu01", "gpu02"), {}, "gpu02.cluster.example") == "gpu02"
    assert this_node(("10.1.0.7",), {}, "10.1.0.1") is None


def test_the_name_that_slurmd_goes_by_stands_before_that_of_the_machine() -> None:
    assert this_node(("n1", "n2"), {"SLURMD_NODENAME": "n2"}, "n1") == "n2"
    assert this_node(("n1",), {}, "login1") is None
