"""Four faults and two healthy runs of the lab, scored as the whole of it is."""

from collections.abc import Iterator

import pytest

from tests.cluster.fixtures import Cluster
from tests.lab.job import Timing
from tests.lab.plan import Planned, small
from tests.lab.running import run_one
from tests.lab.score import score
from tests.lab.session import Sitting, sitting
from tests.lab.truth import TRUTH

pytestmark = pytest.mark.cluster
#: A hang is as plain after some seconds as after twenty.
SOON = Timing(after_s=10, middle_s=10, random=False)


@pytest.fixture(scope="module")
def here(cluster: Cluster) -> Iterator[Sitting]:
    with sitting(cluster, sealed=False) as found:
        yield found


@pytest.mark.parametrize("planned", small(), ids=lambda one: one.case)
def test_run(here: Sitting, planned: Planned) -> None:
    row = run_one(here.cluster, here.faults, planned, here.folder, timing=SOON)
    assert row.void is None, row.void
    (look,) = row.looks
    judged = score(row, look)
    told = (look.verdict or {}).get("summary"), look.told
    # How fast it is depends on who else is at work on this machine: `make lab` judges that.
    assert set(judged.wrong) <= {"first answer late", "verdict late"}, (judged.wrong, told)
    assert judged.bundle is (True if TRUTH[planned.case].state == "hung" else None)
    assert look.left == ()
    assert row.left == ()
