"""The Jobs screen: the queue, one row a job."""

from slurmtop.ui.bindings import bindings_for
from slurmtop.ui.screens.base import BaseScreen


class JobsScreen(BaseScreen):
    SCOPES = ("jobs",)
    BINDINGS = bindings_for("jobs")
