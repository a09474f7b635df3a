"""Training logs: lines, errors, progress."""
