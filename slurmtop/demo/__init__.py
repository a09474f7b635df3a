"""A simulated Slurm cluster behind the Runner protocol: to try slurmtop without one.

The cluster is called aurora; the person who looks is alice (uid 1001). It answers in the
forms of Slurm 24.11 and starts no process, opens no file and no socket of its own.
"""

from slurmtop.demo.clock import DemoClock
from slurmtop.demo.jobs import ME, USERS
from slurmtop.demo.nodes import CLUSTER
from slurmtop.demo.runner import DemoRunner
from slurmtop.demo.scenario import FILL, SCENARIOS
from slurmtop.demo.world import World
from slurmtop.model.ports import Clock, Runner

DEFAULT_SCENARIO = "busy"
DEMO_CLUSTER = CLUSTER
DEMO_USER = ME
DEMO_UID = USERS[ME][0]

__all__ = [
    "DEFAULT_SCENARIO",
    "DEMO_CLUSTER",
    "DEMO_UID",
    "DEMO_USER",
    "SCENARIOS",
    "DemoClock",
    "make_demo",
]


def make_demo(scenario: str, real_clock: Clock, speed: float = 60.0) -> tuple[Runner, Clock]:
    """A cluster in the state of ``scenario``, and the clock that its time is told by.

    ``scenario`` is a key of :data:`SCENARIOS` (``KeyError`` otherwise). ``speed`` is how many
    simulated seconds pass in one real second; 0 or less is a ``ValueError``.
    """
    fill = FILL[scenario]
    clock = DemoClock(real_clock, speed)
    world = World()
    fill(world)
    return DemoRunner(world, clock, outages=scenario == "outage"), clock
