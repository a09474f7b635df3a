"""The batch scripts of the simulated jobs."""

from slurmtop.demo.jobs import Spec
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
    lines += ["#SBATCH --signal=B:USR1@120", ""]
    if spec.steps:
        lines += [
            "export NCCL_DEBUG=INFO",
            "trap 'echo \"got USR1, saving a checkpoint\"; wait' USR1",
            f"srun {spec.step_command} &",
            "wait",
        ]
    else:
        lines.append("exec ./run.sh")
    return "\n".join(lines) + "\n"
