#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
# Prepared for USR1 in the training processes. The agent of torchrun has no handler and would
# die of it; it ignores the signal, and the processes that it starts set their own handler.
export MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1
export TORCH="${SLURMTOP_CLUSTER_DIR:?}/torch/bin" RANKS="${RANKS:?}" PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    trap "" USR1
    exec "$TORCH/torchrun" --nnodes=2 --nproc-per-node=1 --rdzv-id="$SLURM_JOB_ID" \
        --rdzv-backend=c10d --rdzv-endpoint="$MASTER:$PORT" "$RANKS"
' &
wait
