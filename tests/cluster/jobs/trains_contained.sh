#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:h100:2
# The same training in containers: each rank in pid, mount and user namespaces of its own, with a
# /tmp that nobody else sees.
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
srun unshare --user --map-root-user --pid --fork --mount --mount-proc sh -c '
    mount -t tmpfs private /tmp && exec "$0" "$1"
' "${SLURMTOP_CLUSTER_DIR:?}/torch/bin/python" "${TRAINS:?}"
