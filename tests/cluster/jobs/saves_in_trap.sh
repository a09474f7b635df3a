#!/bin/bash
# Prepared for USR1 in the batch shell: bash runs a trap at once only while it waits.
save() {
    echo "by shell $$" >> "saved-$SLURM_JOB_ID"
}
trap save USR1
srun sleep 900 &
step=$!
echo ready
# A trap ends one wait, not the step.
while kill -0 "$step" 2>/dev/null; do
    wait "$step"
done
