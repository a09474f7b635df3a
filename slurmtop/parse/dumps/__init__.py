"""What is taken out of running processes and nodes: process lists, access, later stacks."""
