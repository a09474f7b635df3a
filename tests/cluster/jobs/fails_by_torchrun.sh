#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
# The same by torchrun: two ranks on each of two nodes.
export MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 TRAINS="${TRAINS:?}"
export TORCH="${SLURMTOP_CLUSTER_DIR:?}/torch/bin" PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    exec "$TORCH/torchrun" --nnodes=2 --nproc-per-node=2 --rdzv-id="$SLURM_JOB_ID" \
        --rdzv-backend=c10d --rdzv-endpoint="$MASTER:$PORT" "$TRAINS"
'
