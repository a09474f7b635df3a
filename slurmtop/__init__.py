"""slurmtop: is this job making progress, and if not, who is to blame and what now?"""

__version__ = "0.1.0"
