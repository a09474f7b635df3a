#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
# A training with a task of srun for each of four ranks, one of which fails.
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun --kill-on-bad-exit=0 "${SLURMTOP_CLUSTER_DIR:?}/torch/bin/python" "${TRAINS:?}"
