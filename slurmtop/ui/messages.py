"""What the app tells its screens. Past tense: it has happened."""

from textual.message import Message

from slurmtop.model.snapshot import SourceHealth
from slurmtop.store.jobs import JobEvent


class QueueChanged(Message, bubble=False):
    """The queue answered; ``app.book`` holds it. ``events`` is empty where nothing changed."""

    def __init__(self, events: tuple[JobEvent, ...]) -> None:
        super().__init__()
        self.events = events


class HealthChanged(Message, bubble=False):
    """The queue's source began, ended or failed a call."""

    def __init__(self, health: SourceHealth) -> None:
        super().__init__()
        self.health = health


class SuspectsChanged(Message, bubble=False):
    """A verdict said of a job that something is wrong with it, or no longer; see
    ``app.suspects``."""


class GpusChanged(Message, bubble=False):
    """Nodes had news of their GPUs; ``app.gpus.book`` holds them."""

    def __init__(self, hosts: frozenset[str]) -> None:
        super().__init__()
        self.hosts = hosts


class NodesChanged(Message, bubble=False):
    """There is news of the cluster's nodes; ``app.nodes`` holds it."""


class SecondPassed(Message, bubble=False):
    """One second of the injected clock went by: repaint what visibly ticks."""


class RefreshAsked(Message, bubble=False):
    """A person pressed refresh, at most every two seconds: ask again what is shown."""
