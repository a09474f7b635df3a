"""A batch script as numbered lines; ``#SBATCH`` lines stand out. Pure."""

from slurmtop.model.script import BatchScript, ScriptStatus
from slurmtop.model.text import visible
from slurmtop.ui.present.spans import Line, cut_line, wrap

_HEADS = {
    ScriptStatus.NONE: "No batch script",
    ScriptStatus.DENIED: "You may not read the batch script",
    ScriptStatus.FORGOTTEN: "The batch script is gone",
    ScriptStatus.FAILED: "The batch script could not be read",
}


def script_lines(script: BatchScript | None, width: int) -> tuple[Line, ...]:
    """The script, each line numbered, or the reason why there is none. Long lines scroll."""
    if script is None:
        return ((("asking Slurm for the batch script …", "busy"),),)
    if script.status is not ScriptStatus.READ:
        role = "wait" if script.status is ScriptStatus.NONE else "bad"
        head: Line = ((_HEADS[script.status], role),)
        why = wrap(visible(script.why), width)
        return (cut_line(head, width), *(((text, ""),) for text in why))
    texts = script.text.split("\n")
    if texts and not texts[-1]:
        texts.pop()
    digits = len(str(len(texts)))
    out = [
        ((f"{number:>{digits}}  ", "dim"), (visible(text.expandtabs(8)), _role(text, number)))
        for number, text in enumerate(texts, 1)
    ]
    if script.cut:
        out.append((("", "dim"), ("… the script is longer than what was read", "wait")))
    return tuple(out)


def _role(text: str, number: int) -> str:
    if text.startswith("#SBATCH"):
        return "mark"
    if text.startswith("#!") and number == 1:
        return "label"
    return "dim" if text.lstrip().startswith("#") else ""
