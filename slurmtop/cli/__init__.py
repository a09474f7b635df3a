"""One file a subcommand. Wires real runners to rooms; nothing else does."""
