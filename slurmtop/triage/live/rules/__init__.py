"""One module a family of hangs. Each has ``find(world) -> Iterable[LiveFinding]``."""
