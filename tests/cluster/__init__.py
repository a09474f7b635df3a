"""A private Slurm cluster on one machine, for tests only (see ``python3 -m tests.cluster --help``)."""
