"""A private Slurm cluster on one machine, for tests only."""
