"""Specifications that are made by rule: an array's tasks, and what strangers hand in."""

from dataclasses import replace

from slurmtop.demo.jobs import Ending, Spec

_STRANGERS = (("bob", "sd-finetune"), ("dave", "fold-batch"), ("carol", "segment"))
_GPUS = (1, 2, 1, 4, 1, 8)


def scatter(number: int, span: int) -> int:
    """A number below ``span`` that looks random and is always the same for ``number``."""
    value = (number * 2_654_435_761 + 374_761_393) & 0xFFFFFFFF
    value ^= value >> 15
    value = (value * 2_246_822_519) & 0xFFFFFFFF
    value ^= value >> 13
    return value % span


def task_spec(spec: Spec, task: int) -> Spec:
    """One task of an array: how long it runs, and the few that fail."""
    fails = task % 23 == 5
    return replace(
        spec,
        array=None,
        run_s=420 if fails else 2_400 + scatter(task, 1_800),
        ending=Ending.FAILED if fails else Ending.COMPLETED,
        exit_code=1 if fails else 0,
    )


def strangers_spec(number: int) -> Spec:
    """The ``number``-th job that another person hands in while the demo runs."""
    user, name = _STRANGERS[number % len(_STRANGERS)]
    gpus = _GPUS[number % len(_GPUS)]
    run_s = 1_800 + 60 * scatter(number, 120)
    return Spec(
        name=f"{name}-{number}",
        user=user,
        gpus=gpus,
        cpus=12 * gpus,
        mem_mib=204_800 * gpus,
        limit_s=2 * (run_s - run_s % 1_800) + 1_800,
        run_s=run_s,
        story="epochs",
        workdir=f"/shared/{user}",
    )
