"""Getting onto the nodes of a job, and asking there: ssh, srun, GPUs, processes."""
