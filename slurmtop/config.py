"""Settings: typed, frozen, read from YAML files whose errors name the line."""

from dataclasses import dataclass

DEFAULT_THEME = "slurmtop-dark"
DEFAULT_QUEUE_INTERVAL_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a person or a site may set. ``keymap`` maps the id of a key row to its keys."""

    theme: str = DEFAULT_THEME
    queue_interval_s: float = DEFAULT_QUEUE_INTERVAL_S
    read_only: bool = False
    all_users: bool = False
    keymap: tuple[tuple[str, tuple[str, ...]], ...] = ()
