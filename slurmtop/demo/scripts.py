"""The batch scripts of the simulated jobs."""

from slurmtop.demo.jobs import Prepared, Spec
from slurmtop.demo.text import padded_secs
from slurmtop.demo.values import tasks_per_node


def batch_script(spec: Spec) -> str:
    """What was handed to sbatch."""
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={spec.name}",
        f"#SBATCH --partition={spec.partition}",
        f"#SBATCH --nodes={spec.nodes}",
        f"#SBATCH --ntasks-per-node={tasks_per_node(spec)}",
        f"#SBATCH --mem={spec.mem_mib}",
        f"#SBATCH --time={padded_secs(spec.limit_s)}",
        f"#SBATCH --output={spec.stdout}",
    ]
    if spec.gres:
        lines.append(f"#SBATCH --gres={spec.gres}")
    if spec.stderr:
        lines.append(f"#SBATCH --error={spec.stderr}")
    if spec.array:
        last = spec.array[0] + spec.array[1] - 1
        lines.append(f"#SBATCH --array={spec.array[0]}-{last}%{spec.throttle}")
    if spec.depends_on:
        lines.append(f"#SBATCH --dependency=afterok:{spec.depends_on}")
    if spec.req_nodes:
        lines.append(f"#SBATCH --nodelist={','.join(spec.req_nodes)}")
    if spec.append:
        lines.append("#SBATCH --open-mode=append")
    lines.append("#SBATCH --requeue" if spec.requeue else "#SBATCH --no-requeue")
    if spec.steps and spec.prepared is not Prepared.NOTHING:
        to = "B:" if spec.prepared is Prepared.TRAP else ""
        lines.append(f"#SBATCH --signal={to}USR1@120")
    lines += ["", *_body(spec)]
    return "\n".join(lines) + "\n"


def _body(spec: Spec) -> list[str]:
    if not spec.steps:
        return ["exec ./run.sh"]
    head = "export NCCL_DEBUG=INFO"
    if spec.hang_s is not None:
        # So that a timeout is told and takes nothing down.
        return [
            head,
            "export TORCH_NCCL_ASYNC_ERROR_HANDLING=0",
            f"srun {spec.step_command}",
        ]
    if spec.prepared is Prepared.TRAP:
        return [
            head,
            "trap 'echo \"got USR1, saving a checkpoint\"; touch save-now' USR1",
            f"srun {spec.step_command} &",
            "step=$!",
            "# A trap ends one wait, not the step.",
            'while kill -0 "$step" 2>/dev/null; do',
            '    wait "$step"',
            "done",
        ]
    if spec.prepared is Prepared.RANKS:
        return [
            head,
            "# The launcher would die of USR1; the ranks set their own handler.",
            f"srun bash -c 'trap \"\" USR1; exec {spec.step_command}' &",
            "wait",
        ]
    if spec.retries:
        return [
            head,
            f"srun {spec.step_command} && exit 0",
            f'if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {spec.retries} ]; then',
            '    scontrol requeue "$SLURM_JOB_ID"',
            "    sleep 60",
            "fi",
            "exit 1",
        ]
    return [head, f"srun {spec.step_command}"]
