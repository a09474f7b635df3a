#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
# A training of the lab: torchrun on each of four nodes, one rank each. TRAIN is train.py.
export MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 TRAIN="${TRAIN:?}"
export PYTHONPATH="${SLURMTOP_CLUSTER_DIR:?}/src"
export TORCH="${SLURMTOP_CLUSTER_DIR:?}/torch/bin" PORT=$((20000 + SLURM_JOB_ID % 10000))
srun bash -c '
    if [ "$FAULT" = rendezvous-short ] && [ "$SLURM_NODEID" = "$FAULT_RANK" ]; then
        # An image that is still being pulled, and never arrives.
        echo "$(hostname) $$ $SLURM_NODEID 0 $(date +%s.%N)" >"fault-$SLURM_JOB_ID"
        exec sleep 900
    fi
    # Launchers count their restarts each for itself. Where the store of the ranks is that of the
    # launchers, two counts that differ meet addresses of ranks that are gone.
    [ "${RESTARTS:-0}" = 0 ] || export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
    exec "$TORCH/torchrun" --nnodes="$SLURM_NNODES" --nproc-per-node=1 \
        --max-restarts="${RESTARTS:-0}" --rdzv-id="$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}" \
        --rdzv-backend=c10d --rdzv-endpoint="$MASTER:$PORT" "$TRAIN"
'
ended=$?
if [ "$FAULT" = requeue-appended ] && [ "$ended" != 0 ] && [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    echo "training ended with $ended, back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
fi
if [ "$FAULT" = idle-shell ]; then
    # Somebody wants to look at the results before the nodes go.
    echo "done, keeping the allocation"
    sleep 900
fi
exit "$ended"
