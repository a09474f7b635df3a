"""Rules about texts, lists and nodes that no handed case holds.

Each test is named after the number that the collection of quirks gives to its rule.
"""

import pytest

from slurmtop.model.job import (
    NO_TRES,
    Tres,
)
from slurmtop.model.node import Node
from slurmtop.parse.slurm.hostlist import HostlistError, expand_hosts
from slurmtop.parse.slurm.reasons import explain_reason
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs, parse_scontrol_nodes
from slurmtop.parse.slurm.sinfo import parse_sinfo
from slurmtop.parse.slurm.squeue import parse_squeue
from slurmtop.parse.slurm.squeue_json import parse_squeue_json
from slurmtop.parse.slurm.tres import parse_tres
from tests.cases.quirks import RELEASES, accounting, capture, queue

# 015: use of GPUs is no number of GPUs


@pytest.mark.parametrize("order", [1, -1])
def test_S015_gpu_memory_and_use(order: int) -> None:
    items = ["cpu=00:10:00", "energy=0", "fs/disk=8000", "gres/gpumem=36266M", "gres/gpuutil=200"]
    text = ",".join([*items, "mem=1024K", "pages=0", "vmem=2048K"][::order])
    used = parse_tres(text)
    assert (used.gpu_mem_bytes, used.gpu_util_percent) == (36266 * 1024**2, 200)
    assert (used.gpus, used.gpus_by_type, used.cpus) == (None, (), None)
    assert used.mem_bytes == 1024**2


def test_S015_stands_on_rows_of_steps() -> None:
    job, step = accounting(
        "7|cpu=8,gres/gpu=2,mem=4G,node=1|\n"
        "7.0|cpu=8,gres/gpu=2,mem=4G,node=1|cpu=00:00:05,gres/gpumem=0,gres/gpuutil=150\n",
        "JobID,AllocTRES,TRESUsageInTot",
    )
    assert job.usage_total is NO_TRES
    assert (step.allocated.gpus, step.usage_total.gpus) == (2, None)
    assert (step.usage_total.gpu_mem_bytes, step.usage_total.gpu_util_percent) == (0, 150)


def test_S015_no_gpu_field_is_not_zero() -> None:
    used = parse_tres("cpu=00:10:00,energy=0,mem=1024K")
    assert (used.gpu_mem_bytes, used.gpu_util_percent, used.gpus) == (None, None, None)


# 017: GPUs of squeue %b, in every form


@pytest.mark.parametrize(
    "text",
    [
        *("gres:gpu:4", "gres:gpu:h100:4", "gres/gpu:4", "gres/gpu:h100:4", "gpu:4", "gpu:h100:4"),
        *("gres/gpu=4", "gres/gpu:h100=4", "gpu=4", "gpu:h100=4", "gres:gpu=4"),
        "gres/gpu:h100:4(S:0-1)",
    ],
)
def test_S017_every_form_of_four_gpus_a_node(text: str) -> None:
    (job,) = queue(f"1|2|{text}|PENDING\n", "iDbT")
    assert job.tres.gpus == 8


@pytest.mark.parametrize("text", ["gpu", "gres:gpu", "gres/gpu", "gpu:h100", "gres:gpu:h100"])
def test_S017_a_missing_count_is_one(text: str) -> None:
    (job,) = queue(f"1|1|{text}\n", "iDb")
    assert job.tres.gpus == 1


@pytest.mark.parametrize("text", ["N/A", "(null)", ""])
def test_S017_nothing_said_is_not_no_gpu(text: str) -> None:
    (job,) = queue(f"1|1|{text}\n", "iDb")
    assert job.tres.gpus is None


def test_S017_what_is_allocated_wins_over_what_is_typed() -> None:
    data = b"1\x1f2\x1fN/A\x1fcpu=16,mem=64G,node=2,billing=16,gres/gpu=8,gres/gpu:h100=8\n"
    fields = ("id", "node_count", "tres_per_node", "tres")
    (job,) = parse_squeue(data, fields=fields, record_mark=b"\n").rows
    assert job.tres.gpus == 8


# 022: free text in place of a reason


@pytest.mark.parametrize("form", ["%s", "(%s)", "scontrol"])
@pytest.mark.parametrize(
    ("text", "word", "kind"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:gpu[03-05]", "ReqNodeNotAvail", "site"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu_a[03-05],gpu_b1", "ReqNodeNotAvail", "site"),
        ("ReqNodeNotAvail, Reserved for maintenance", "ReqNodeNotAvail", "site"),
        ("ReqNodeNotAvail, May be reserved for other job", "ReqNodeNotAvail", "site"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
            " partitions",
            "Resources",
            "site",
        ),
        ("job requeued in held state", "JobHeldUser", "held"),
        ("launch failed requeued held", "JobHoldMaxRequeue", "held"),
        ("user env retrieval failed requeued held", "JobHoldMaxRequeue", "held"),
        (
            "Job is at or exceeds QOS x's group max TRES(gres/gpu) minutes of 10 with 12",
            "AccountingPolicy",
            "limit",
        ),
    ],
)
def test_S022_free_text_is_known_by_its_start_and_kept(
    form: str, text: str, word: str, kind: str
) -> None:
    printed = text.replace(" ", "_") if form == "scontrol" else form % text
    info = explain_reason(printed)
    assert (info.word, info.kind) == (word, kind)
    assert text.endswith(info.detail or "nothing kept")


def test_S022_of_a_running_job_the_last_column_is_no_reason() -> None:
    waits, runs = queue("1|PENDING|(Nodes required, (x))\n2|RUNNING|gpu[01-02]\n", "iTR")
    assert (waits.reason, waits.nodes) == ("Nodes required, (x)", None)
    assert (runs.reason, runs.nodes) == (None, "gpu[01-02]")


@pytest.mark.parametrize(
    "text", ["FrontEndDown", "PowerNotAvail", "PowerReserved", "BlockMaxError"]
)
def test_S022_words_of_older_releases_are_known(text: str) -> None:
    assert explain_reason(text).kind != "unknown"


# 025, 030: cut characters and other bytes


def test_S025_a_name_cut_inside_a_character_keeps_its_neighbours() -> None:
    whole = "für-größe".encode()
    for end in range(1, len(whole) + 1):
        data = b"\x1e1\x1fRUNNING\x1f" + whole[:end] + b"\n\x1e2\x1fPENDING\x1fok\n"
        first, second = parse_squeue(data, fields=("id", "state", "name")).rows
        assert whole.decode().startswith(first.name.rstrip("\ufffd"))
        assert (first.state.word, second.name, second.state.word) == ("RUNNING", "ok", "PENDING")


def test_S030_latin_1_costs_one_character_and_no_job() -> None:
    data = b"1\x1fRUNNING\x1ff\xfcr\n2\x1fPENDING\x1fok\n"
    first, second = parse_squeue(data, fields=("id", "state", "name"), record_mark=b"\n").rows
    assert (first.name, second.name) == ("f\ufffdr", "ok")
    as_json = b'{"jobs": [{"job_id": 1, "job_state": ["RUNNING"], "name": "f\xfcr"},'
    as_json += b' {"job_id": 2, "job_state": ["PENDING"], "name": "a\tb\x01"}], "errors": []}'
    assert [job.name for job in parse_squeue_json(as_json).rows] == ["f\ufffdr", "a\tb\x01"]
    (record,) = accounting("1|FAILED|f?r\n", "JobID,State,JobName")
    assert record.name == "f?r"


# 027: suffixes behind brackets


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu[1-2]-ib", ["gpu1-ib", "gpu2-ib"]),
        ("login1,gpu[01-02,05]a,cpu9", ["login1", "gpu01a", "gpu02a", "gpu05a", "cpu9"]),
        ("rack[0-1]_blade[0-1]", ["rack0_blade0", "rack0_blade1", "rack1_blade0", "rack1_blade1"]),
        ("n[098-101]-eth0", ["n098-eth0", "n099-eth0", "n100-eth0", "n101-eth0"]),
        ("gpu[3]\tgpu[1-1]\nx", ["gpu3", "gpu1", "x"]),
        ("None assigned", []),
    ],
)
def test_S027_names_of_a_list(text: str, names: list[str]) -> None:
    assert list(expand_hosts(text)) == names
    (job,) = queue(f"1|{text}\n" if "\n" not in text else "1|x\n", "iN")
    assert (job.nodes is None) == (not names)


@pytest.mark.parametrize(
    "text", ["gpu[2-1]", "gpu[1-2", "gpu]", "bgl[000x133]", "gpu[]", "n[1-99999999]"]
)
def test_S027_a_broken_list_is_refused_and_no_host(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hosts(text)


# 052: names that forge fields of scontrol

_FORGED = """   JobState=COMPLETED Reason=None Dependency=(null)
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"""


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ["x JobState=COMPLETED", f"x\n{_FORGED}", "x Partition=[/]"])
def test_S052_a_name_forges_no_state(release: str, known: bool, name: str) -> None:
    data = capture(release, "scontrol_job_weird").decode()
    raw_id = data.partition(" ")[0].removeprefix("JobId=")
    old = data.partition("JobName=")[2].partition("\n")[0]
    forged = data.replace(old, name)
    names = {raw_id: name} if known else None
    (detail,) = parse_scontrol_jobs(forged.encode(), names=names).rows
    assert detail.job.state.word in ("RUNNING", "?")
    assert detail.job.partitions in (("gpu-large",), ())
    assert detail.user_id in (1001, None)
    if known:
        assert (detail.job.state.word, detail.job.name) == ("RUNNING", name)
        assert (detail.job.partitions, detail.user_id) == (("gpu-large",), 1001)


# 060: the words for nothing


@pytest.mark.parametrize("word", ["(null)", "N/A", "n/a", "none", "None", "", "Unknown"])
def test_S060_every_word_for_nothing_is_none(word: str) -> None:
    (job,) = queue(f"1|PENDING|{word}|{word}|{word}|{word}|{word}|{word}\n", "iTNrEqaS")
    assert (job.nodes, job.reason, job.dependency, job.qos, job.account) == (None,) * 5
    assert job.start is None
    (row,) = accounting(f"1|{word}|{word}|{word}\n", "JobID,NodeList,Reason,Account")
    assert (row.nodes, row.reason, row.account) == (None, None, None)
    nodes = parse_sinfo(
        f"gpu01|idle|{word}|{word}|{word}\n".encode(),
        fields=("name", "state", "mem_free", "cpu_load", "reason"),
        separator=b"|",
        record_mark=b"\n",
    ).rows
    assert (nodes[0].mem_free_mib, nodes[0].cpu_load, nodes[0].reason) == (None, None, None)


def test_S060_zero_is_a_value() -> None:
    assert parse_tres("cpu=0,gres/gpu=0") == Tres(cpus=0, gpus=0)


# 062: a node's reason over several lines

_NODE = """NodeName=gpu02 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=128 CPUTot=128 CPULoad=0.00
   Gres=gpu:h100:8(S:0-1)
   RealMemory=2000000 AllocMem=0 FreeMem=N/A Sockets=2 Boards=1
   State=DOWN+DRAIN+NOT_RESPONDING ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,gpu-long
   BootTime=None SlurmdStartTime=None
   LastBusyTime=Unknown ResumeAfterTime=None
   CfgTRES=cpu=128,mem=2000000M,billing=128,gres/gpu=8
   AllocTRES=

   Reason=xid 79 fallen off the bus [root@2031-05-05T10:00:00]
          see ticket 12
          State=IDLE NodeName=evil

NodeName=gpu03 Arch=x86_64 CoresPerSocket=64
   State=IDLE ThreadsPerCore=1
   Partitions=gpu
"""


def _nodes() -> tuple[Node, ...]:
    found = parse_scontrol_nodes(_NODE.encode())
    assert found.bad == 0
    return found.rows


def test_S062_who_and_when_stand_at_the_end_of_the_first_line() -> None:
    first, second = _nodes()
    assert first.reason == "xid 79 fallen off the bus\nsee ticket 12\nState=IDLE NodeName=evil"
    assert first.reason_user == "root"
    assert first.reason_at is not None
    assert first.reason_at.isoformat() == "2031-05-05T10:00:00+00:00"
    assert (second.name, second.reason) == ("gpu03", None)


def test_S062_the_reason_forges_no_field() -> None:
    first, _ = _nodes()
    assert (first.state.base, first.state.flags) == ("DOWN", ("DRAIN", "NOT_RESPONDING"))
    assert (first.mem_free_mib, first.cpu_load) == (None, None)
    assert first.partitions == ("gpu", "gpu-long")


# 065: kilobytes in AdminComment


def test_S065_an_admin_comment_costs_no_field() -> None:
    blob = "JS1:" + "H4sIAAAAAAAC/6tWykxRslIyVNJRKkmtKFGyUjI0NDSrBQB+/" * 80 + "=="
    rows = accounting(
        f"7101|{blob}|COMPLETED|0:0\n7101.batch||COMPLETED|0:0\n7102||RUNNING|0:0\n",
        "JobID,AdminComment,State,ExitCode",
    )
    assert [(row.id.text, row.state.word) for row in rows] == [
        ("7101", "COMPLETED"),
        ("7101.batch", "COMPLETED"),
        ("7102", "RUNNING"),
    ]


def test_S065_a_pipe_beside_it_makes_the_text_unsure_and_nothing_else() -> None:
    (row,) = accounting(
        "7101|COMPLETED|train|JS1:H4sI=|srun a|b\n", "JobID,State,JobName,AdminComment,SubmitLine"
    )
    assert (row.id.text, row.state.word, row.name_unsure) == ("7101", "COMPLETED", True)


# sacct -p and -P


@pytest.mark.parametrize("separator", ["|", "^", ";"])
@pytest.mark.parametrize("end", ["", "end"])
def test_S028_a_separator_behind_the_last_field_costs_nothing(separator: str, end: str) -> None:
    rows = [("JobID", "JobName", "State", "ExitCode"), ("7", "a b", "FAILED", "1:0")]
    rows.append(("7.batch", "batch", "FAILED", "1:0"))
    tail = separator if end else ""
    text = "".join(separator.join(row) + tail + "\n" for row in rows)
    found = accounting(text, "JobID,JobName,State,ExitCode", separator)
    assert [(row.id.text, row.name, row.state.word) for row in found] == [
        ("7", "a b", "FAILED"),
        ("7.batch", "batch", "FAILED"),
    ]
    assert not any(row.name_unsure for row in found)
