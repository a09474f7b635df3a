"""Job actions as data: plan, confirm, execute, read back, log."""
