#!/bin/bash
#SBATCH -N1
#SBATCH hetjob
#SBATCH -N1
# Says which part got which signal, and lives on.
trap 'echo job: shell got USR1' USR1
for part in 0 1; do
    srun --het-group=$part bash -c '
        trap "echo job: part $0 got USR1" USR1
        # Without a child, as in reports.sh.
        quiet="quiet-$SLURM_JOB_ID-$0"
        mkfifo "$quiet" && exec 9<>"$quiet" && rm "$quiet"
        echo "job: part $0 ready"
        while :; do read -r -t 900 -u 9; done
    ' $part &
done
while [ -n "$(jobs -p)" ]; do
    wait
done
