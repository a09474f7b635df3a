#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:h100:2
# The same training with a task of srun for each rank, and no agent.
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun "${SLURMTOP_CLUSTER_DIR:?}/torch/bin/python" "${TRAINS:?}"
