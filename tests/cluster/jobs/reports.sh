#!/bin/bash
# Says which of its parts got which signal, and lives on: the batch shell, and two steps.
me="${SLURM_ARRAY_TASK_ID:-job}"
for signal in USR1 USR2 HUP TERM INT; do
    trap "echo $me: shell got $signal" "$signal"
done
export LISTEN='
for signal in USR1 USR2 HUP TERM INT; do
    trap "echo $0: step $SLURM_STEP_ID got $signal" "$signal"
done
# Waits without a child: one more "sleep" a signal would outlive the step, and hold its node.
quiet="quiet-$SLURM_JOB_ID-$SLURM_STEP_ID"
mkfifo "$quiet" && exec 9<>"$quiet" && rm "$quiet"
echo "$0: step $SLURM_STEP_ID ready"
while :; do read -r -t 900 -u 9; done
'
for _ in 1 2; do
    srun --ntasks=1 --overlap bash -c "$LISTEN" "$me" &
done
while [ -n "$(jobs -p)" ]; do
    wait
done
