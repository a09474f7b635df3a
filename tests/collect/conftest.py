"""The real cluster, for the tests of this folder that need it."""

from tests.cluster.fixtures import cluster as cluster
from tests.cluster.fixtures import faults as faults
