"""What Slurm's commands print, one file a format."""
