"""Exporters and Prometheus: one look at many nodes, and the use of jobs from it."""

import json
from datetime import timedelta
from urllib.parse import parse_qs

import pytest

from slurmtop.collect.nodes.exporter import Exporters, Told
from slurmtop.collect.nodes.gpu_watch import look_once, with_told
from slurmtop.collect.nodes.http_get import HttpFailed
from slurmtop.collect.nodes.job_use import JobUseWatch
from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.ports import Command
from slurmtop.model.snapshot import Failure, Trouble
from tests.build import make_job
from tests.collect.nodes.gpu_fakes import GPU, FakeNodes, begun, ended, lines, rows, unreachable
from tests.fakes import START, FakeClock

REFUSED = HttpFailed(Failure(Trouble.DOWN, "Nothing answers at x."), nothing_there=True)
BROKEN = HttpFailed(Failure(Trouble.OTHER, "http://gpu02 answered with HTTP status 500."))


def metrics(host: str, *utils: float, job: str | None = None, label: str = "Hostname") -> bytes:
    extra = "" if job is None else f',hpc_job="{job}"'
    return lines(
        *(
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",UUID="{GPU.format(i)}",{label}="{host}"{extra}}} {u}'
            for i, u in enumerate(utils)
        ),
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="0",UUID="{GPU.format(0)}",{label}="{host}"{extra}}} 0.9',
    )


class Web:
    """Answers by address; what was asked stands in ``asked``."""

    def __init__(self, **answers: bytes | HttpFailed) -> None:
        self.answers = answers
        self.asked: list[tuple[str, bytes | None]] = []

    async def __call__(self, url: str, form: bytes | None) -> bytes:
        self.asked.append((url, form))
        host = url.removeprefix("http://").partition(":")[0]
        answer = self.answers[host]
        if isinstance(answer, HttpFailed):
            raise answer
        return answer


def exporters(web: Web, clock: FakeClock | None = None) -> Exporters:
    url = "http://{host}:9400/metrics"
    return Exporters(clock or FakeClock(), exporter_url=url, fetch=web)


async def test_each_node_is_asked_for_itself_and_fails_for_itself() -> None:
    web = Web(gpu01=metrics("gpu01", 97), gpu02=BROKEN, gpu03=REFUSED, gpu04=b"# only words\n")
    told = await exporters(web).ask(("gpu01", "gpu02", "gpu03", "gpu04"))
    assert [one.util_percent for one in told["gpu01"].node.samples] == [97]
    answers = {host: one.node.answer for host, one in told.items()}
    assert answers == {
        "gpu01": Answer.OK,
        "gpu02": Answer.OTHER,
        "gpu03": Answer.NOT_THERE,
        "gpu04": Answer.NO_DATA,
    }
    assert sorted(url for url, _ in web.asked)[0] == "http://gpu01:9400/metrics"


async def test_without_addresses_nobody_is_asked() -> None:
    assert not Exporters(FakeClock()).set_up
    assert await Exporters(FakeClock()).ask(("gpu01",)) == {}


def series(name: str, value: str, **labels: str) -> dict[str, object]:
    return {"metric": {"__name__": name, **labels}, "value": [1_767_139_200.5, value]}


def vector(*result: dict[str, object]) -> bytes:
    tree = {"status": "success", "data": {"resultType": "vector", "result": list(result)}}
    return json.dumps(tree).encode()


async def test_prometheus_is_asked_for_all_nodes_together_and_how_old_its_answer_is() -> None:
    clock = FakeClock()
    minute_ago = clock.now().timestamp() - 60
    values = vector(
        series("DCGM_FI_DEV_GPU_UTIL", "97", Hostname="gpu01", gpu="0", UUID=GPU.format(0)),
        series("DCGM_FI_DEV_GPU_UTIL", "3", hostname="gpu02.cluster.example", gpu="0", UUID="G"),
        series("DCGM_FI_DEV_GPU_UTIL", "5", instance="gpu03:9400", gpu="0", UUID="H"),
        series("DCGM_FI_DEV_GPU_UTIL", "7", Hostname="gpu99", gpu="0", UUID="I"),
    )
    asked: list[tuple[str, str]] = []

    async def fetch(url: str, form: bytes | None) -> bytes:
        (query,) = parse_qs((form or b"").decode())["query"]
        asked.append((url, query))
        if query.startswith("timestamp("):
            return vector(series("", f"{minute_ago:.3f}", Hostname="gpu01", gpu="0"))
        return values

    source = Exporters(clock, prometheus_url="http://prom:9090/", fetch=fetch)
    told = await source.ask(("gpu01", "gpu02", "gpu03", "gpu04"))
    assert [url for url, _ in asked] == ["http://prom:9090/api/v1/query"] * 2
    assert 'Hostname=~"(gpu01|gpu02|gpu03|gpu04)' in asked[0][1]
    utils = {host: [gpu.util_percent for gpu in one.node.samples] for host, one in told.items()}
    assert utils == {"gpu01": [97], "gpu02": [3], "gpu03": [5], "gpu04": []}
    assert told["gpu04"].node.answer is Answer.NO_DATA
    # The time of the values, where it is told, not that of the question.
    ages = {host: (clock.now() - one.at).total_seconds() for host, one in told.items()}
    assert ages == {"gpu01": 60, "gpu02": 0, "gpu03": 0, "gpu04": 0}


async def test_prometheus_names_more_gpus_than_a_node_has() -> None:
    one = ("DCGM_FI_DEV_GPU_UTIL", "97")
    many = [series(*one, Hostname="gpu01", UUID=f"GPU-{gpu}") for gpu in range(300)]
    web = Web(prometheus=vector(*many, series(*one, Hostname="gpu02", UUID="GPU-x")))
    source = Exporters(FakeClock(), prometheus_url="http://prometheus:9090", fetch=web)
    told = await source.ask(("gpu01", "gpu02"))
    assert not told["gpu01"].node.samples
    assert told["gpu01"].node.failure is not None
    assert "names more GPUs on gpu01" in told["gpu01"].node.failure.sentence
    assert len(told["gpu02"].node.samples) == 1


async def of_names(*names: str, hosts: tuple[str, ...]) -> dict[str, list[str | None]]:
    """UUIDs by host, of machines of these names with two GPUs each."""
    rows = [
        series("DCGM_FI_DEV_GPU_UTIL", "97", Hostname=name, gpu=f"{gpu}", UUID=f"{at}-{gpu}")
        for at, name in enumerate(names)
        for gpu in range(2)
    ]
    source = Exporters(
        FakeClock(), prometheus_url="http://prometheus:9090", fetch=Web(prometheus=vector(*rows))
    )
    told = await source.ask(hosts)
    return {host: [gpu.uuid for gpu in one.node.samples] for host, one in told.items()}


async def test_nodes_that_differ_behind_the_first_dot_have_their_own_gpus() -> None:
    hosts = ("gpu01.a", "gpu01.b")
    assert await of_names("gpu01.a", "gpu01.b.example", hosts=hosts) == {
        "gpu01.a": ["0-0", "0-1"],
        "gpu01.b": ["1-0", "1-1"],
    }
    assert await of_names("gpu01.c", "gpu01", hosts=hosts) == {"gpu01.a": [], "gpu01.b": []}
    assert await of_names("10.1.0.7", hosts=("10.1.0.1", "10")) == {"10.1.0.1": [], "10": []}


async def test_a_node_of_the_very_name_stands_before_one_with_a_domain() -> None:
    found = await of_names("gpu01.other.example", "GPU01", hosts=("gpu01",))
    assert found == {"gpu01": ["1-0", "1-1"]}


@pytest.mark.parametrize("names", [("gpu01.a.example", "gpu01.b.example"), ("gpu01", "gpu01")])
async def test_several_machines_of_one_name_are_none_of_them(names: tuple[str, ...]) -> None:
    rows = [
        series("DCGM_FI_DEV_GPU_UTIL", "97", Hostname=name, gpu="0", UUID=f"GPU-{at}")
        for at, name in enumerate(names)
    ]
    web = Web(prometheus=vector(*rows))
    source = Exporters(FakeClock(), prometheus_url="http://prometheus:9090", fetch=web)
    node = (await source.ask(("gpu01",)))["gpu01"].node
    assert not node.samples
    assert node.failure is not None
    assert "several machines by the name of gpu01" in node.failure.sentence
    assert "prometheus_url" in node.failure.sentence


async def test_prometheus_refuses() -> None:
    said = b'{"status": "error", "errorType": "bad_data", "error": "too many series"}'
    source = Exporters(FakeClock(), prometheus_url="http://prom:9090", fetch=Web(prom=said))
    failure = (await source.ask(("gpu01",)))["gpu01"].node.failure
    assert failure is not None
    assert failure.sentence == "Prometheus at http://prom:9090 refuses: too many series"


async def test_an_exporter_fills_in_for_a_node_that_cannot_be_reached() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock)
    nodes.dead["gpu01"] = unreachable("gpu01")
    told = await exporters(Web(gpu01=metrics("gpu01", 97)), clock).ask(("gpu01",))
    look = with_told(await look_once(nodes, clock, "gpu01"), told["gpu01"])
    assert look.failure is not None
    assert look.sources == ("exporter",)
    assert look.gpus is not None
    assert look.gpus.samples[0].util_percent == 97


async def test_an_exporter_that_is_not_there_is_said_beside_the_values() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock)
    nodes.on("gpu01", "once", lambda command: begun() + rows(command.argv[6], 96) + ended(0))
    for web, says in [
        (Web(gpu01=REFUSED), "There is no GPU exporter on gpu01."),
        (Web(gpu01=BROKEN), BROKEN.failure.sentence),
    ]:
        told = await exporters(web, clock).ask(("gpu01",))
        look = with_told(await look_once(nodes, clock, "gpu01"), told["gpu01"])
        assert (look.sources, look.failure) == (("nvidia-smi",), None)
        assert says in look.hints


async def test_one_look_for_a_command_is_merged_from_what_is_there() -> None:
    clock = FakeClock()
    nodes = FakeNodes(clock)

    def answer(command: Command) -> bytes:
        fields = command.argv[6]
        return (
            lines("#slurmtop seen ", "#slurmtop part cgroup", "0::/job_4711/step_extern")
            + begun()
            + rows(fields, 96, 95)
            + ended(0)
        )

    nodes.on("gpu01", "once", answer)
    told = await exporters(Web(gpu01=metrics("gpu01", 50, job="4711")), clock).ask(("gpu01",))
    look = with_told(await look_once(nodes, clock, "gpu01"), told["gpu01"])
    assert look.failure is None
    assert (look.sources, look.inside) == (("nvidia-smi", "exporter"), "4711")
    assert look.gpus is not None
    first, second = look.gpus.samples
    # nvidia-smi's own number stands; what it does not have comes from the exporter.
    assert (first.util_percent, first.sm_active, first.jobs) == (96, 0.9, ("4711",))
    assert (second.util_percent, second.sm_active) == (95, None)


def running(id: str, nodes: str, gpus: int, count: int) -> Job:
    return make_job(id, nodes=nodes, node_count=count, gpus=gpus)


async def test_the_use_of_jobs_is_known_for_those_that_are_looked_at() -> None:
    clock = FakeClock()
    web = Web(gpu01=metrics("gpu01", 97, job="4711"), gpu02=metrics("gpu02", 53, job="4711"))
    watch = JobUseWatch(exporters(web, clock), clock)
    mine = running("4711", "gpu[01-02]", 2, 2)
    watch.saw([mine])
    await watch.tick()
    assert web.asked == []
    assert watch.use_of(mine.key) is None
    await watch.tick()
    use = watch.use_of(mine.key)
    assert use is not None
    assert (use.mean_percent, use.known, use.held, use.source) == (75, 2, 2, "exporter")
    # What is old is not "now"; nobody looks, so nobody is asked.
    await clock.advance(200)
    assert watch.use_of(mine.key) is None
    watch.saw([])
    await watch.tick()
    assert len(web.asked) == 2


def test_what_prometheus_read_minutes_ago_is_not_mixed_with_values_of_now() -> None:
    now = GpuSample(index=0, uuid="GPU-0", util_percent=100.0)
    look = HostLook(
        host="gpu01", gpus=NodeGpus(host="gpu01", samples=(now,)), gpus_at=START, sources=("smi",)
    )
    old = GpuSample(dcgm_id=0, uuid="GPU-0", sm_active=0.9)
    node = NodeGpus(host="gpu01", samples=(old,))
    mixed = with_told(look, Told(node, START - timedelta(minutes=4, seconds=50), "prometheus"))
    assert mixed.gpus is not None
    assert mixed.gpus.samples == (now,)
    assert mixed.sources == ("smi",)
    (hint,) = mixed.hints
    assert "prometheus" in hint
    fresh = with_told(look, Told(node, START - timedelta(seconds=20), "prometheus"))
    assert fresh.gpus is not None
    assert fresh.gpus.samples[0].sm_active == 0.9
    four = START - timedelta(minutes=4)
    alone = with_told(HostLook(host="gpu01"), Told(node, four, "prometheus"))
    assert alone.gpus_at == four, "its age is told"


def test_a_card_that_is_lost_stays_lost_beside_what_an_exporter_tells() -> None:
    gpus = NodeGpus(host="gpu01", answer=Answer.GPU_LOST, lost=("0000:02:00.0",))
    look = HostLook(host="gpu01", gpus=gpus, gpus_at=START)
    node = NodeGpus(host="gpu01", samples=(GpuSample(dcgm_id=0, uuid="GPU-0", power_w=70.0),))
    merged = with_told(look, Told(node, START, "exporter"))
    assert merged.gpus is not None
    assert (len(merged.gpus.samples), merged.gpus.lost) == (1, ("0000:02:00.0",))
