import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.log_paths import expand_log_path
from slurmtop.parse.slurm.squeue import parse_squeue
from tests.parse.slurm.support import NAMED_FIELDS, QUEUE_MARKED_FIELDS, VERSIONS, fixture


def _job(
    id: str = "24022",
    raw_id: str | None = None,
    *,
    nodes: str | None = "gpu01",
    workdir: str | None = "/home/alice/pt",
    name_unsure: bool = False,
) -> Job:
    parsed = parse_job_id(id)
    return Job(
        key=JobKey("", parsed.stable),
        id=parsed,
        raw_id=raw_id if raw_id is not None else (None if parsed.task is not None else parsed.base),
        name="my job",
        user="alice",
        nodes=nodes,
        workdir=workdir,
        name_unsure=name_unsure,
    )


def test_real_every_letter_as_a_22_05_cluster_filled_it_in() -> None:
    pattern = "/home/alice/pt/o-%J_%s_%t_%n_%N_%u_%x_%4j_%3a_%A_%%_%4N_%q_%5q.out"
    assert expand_log_path(pattern, _job()) == (
        "/home/alice/pt/"
        "o-24022_batch_0_0_gpu01_alice_my job_24022_4294967294_24022_%_gpu01_%q_5q.out"
    )


def test_real_array_tasks_on_22_05() -> None:
    job = _job("24023_7", "24025")
    assert expand_log_path("arr-%A_%4a-%j.out", job) == "/home/alice/pt/arr-24023_0007-24025.out"


def test_real_a_backslash_fills_nothing_in() -> None:
    assert expand_log_path(r"/home/alice/pt/d\\%j.out", _job()) == r"/home/alice/pt/d\%j.out"


def test_D1_the_default_of_an_array_task() -> None:
    job = _job("4711_3", "4720")
    assert expand_log_path("slurm-%A_%a.out", job) == "/home/alice/pt/slurm-4711_3.out"
    assert expand_log_path("/w/slurm-%A_%4t.out", job) == "/w/slurm-4711_0000.out"
    assert expand_log_path("%x.%b.%2b", _job("4711_37", "4720")) == "/home/alice/pt/my job.7.07"


@pytest.mark.parametrize("version", VERSIONS)
def test_real_array_tasks_of_three_releases_lead_to_the_same_kind_of_file(version: str) -> None:
    parsed = parse_squeue(
        fixture(version, "squeue_O"), fields=NAMED_FIELDS, separator=b"|", record_mark=b"|\n"
    )
    array = {"22.05.8": "3", "24.11.5": "19", "26.05.5": "66"}[version]
    paths = {}
    for row in parsed.rows:
        job = Job(
            key=row.key, id=row.id, raw_id=row.raw_id, stdout=row.stdout, workdir="/shared/alice/w"
        )
        paths[row.key.id] = expand_log_path(job.stdout or "", job)
    # scontrol of each release names these files; 22.05's squeue names slurm-16.out instead.
    for task in range(4):
        assert paths[f"{array}_{task}"] == f"/shared/alice/w/slurm-{array}_{task}.out"
    assert paths[f"{array}_[*]"] is None


def test_real_het_parts_write_into_the_file_of_the_leader() -> None:
    parsed = parse_squeue(
        fixture("22.05.8", "queue_marked"),
        fields=QUEUE_MARKED_FIELDS,
        record_mark=b"\x1eq7Vd2k",
    )
    jobs = {job.key.id: job for job in parsed.rows}
    for id in ("32+0", "32+1"):
        path = expand_log_path(jobs[id].stdout or "", jobs[id])
        assert path == "/home/alice/pt/slurm-32.out"
    # ls in that folder showed slurm-29_0.out, slurm-29_2.out and slurm-32.out.
    assert expand_log_path(jobs["29_2"].stdout or "", jobs["29_2"]) == (
        "/home/alice/pt/slurm-29_2.out"
    )
    assert expand_log_path(jobs["35"].stdout or "", jobs["35"]) == "/home/alice/pt/slurm-35.out"


def test_F5_a_relative_path_is_joined_to_the_work_directory() -> None:
    assert expand_log_path("logs/%j.out", _job()) == "/home/alice/pt/logs/24022.out"
    assert expand_log_path("/abs/%j.out", _job(workdir=None)) == "/abs/24022.out"
    assert expand_log_path("logs/%j.out", _job(workdir=None)) is None


def test_nodes() -> None:
    job = _job(nodes="gpu[01-03].cluster.example")
    assert expand_log_path("/w/%N-%n", job) == "/w/gpu01-0"
    assert expand_log_path("/w/%N-%2n", job, node="GPU03") == "/w/GPU03-02"
    assert expand_log_path("/w/%n", job, node="elsewhere") is None
    assert expand_log_path("/w/%N", _job(nodes=None)) is None
    assert expand_log_path("/w/%N", _job(nodes="gpu[1")) is None


def test_what_is_not_known_gives_no_path() -> None:
    assert expand_log_path("%j.out", _job("4711_3")) is None
    assert expand_log_path("%x.out", _job(name_unsure=True)) is None
    for nothing in ("", "(null)", "N/A"):
        assert expand_log_path(nothing, _job()) is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/w/slurm-%A_%a.out", None),
        ("/w/%j.out", None),
        ("/w/slurm-4711.out", None),
        ("/w/slurm-4711_4294967294.out", None),
        ("/w/all-%A.out", "/w/all-4711.out"),
        ("/dev/null", "/dev/null"),
    ],
)
def test_the_waiting_rest_has_a_file_only_if_all_tasks_share_it(
    pattern: str, path: str | None
) -> None:
    assert expand_log_path(pattern, _job("4711_[1-5]", "4711", nodes=None)) == path


def test_padding_is_for_numbers_and_at_most_ten_wide() -> None:
    assert expand_log_path("/w/%99j", _job()) == "/w/0000024022"
    assert expand_log_path("/w/%9u", _job()) == "/w/alice"


def test_a_number_in_the_name_stays_as_it_is() -> None:
    assert expand_log_path("/w/slurm-24022.log", _job()) == "/w/slurm-24022.log"
    assert expand_log_path("/a%%b/slurm-4720.out", _job("4711_3", "4720")) == (
        "/a%%b/slurm-4711_3.out"
    )


@given(st.text(max_size=60) | st.text(alphabet="%0123456789AajJxuNntsbqz/\\", max_size=40))
def test_any_pattern_is_taken(pattern: str) -> None:
    for job in (_job(), _job("1_2", "3"), _job("1_[2-4]", "1"), _job("1+1", "2")):
        path = expand_log_path(pattern, job)
        assert path is None or path.startswith("/")
