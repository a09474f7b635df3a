"""A reading as a few short lines, so that a whole script can be held against a table."""

from slurmtop.model.script import Launch, ScriptReading, Trap


def summary(reading: ScriptReading) -> list[str]:
    """``3 srun > torchrun train.py & wait``: launches, traps, and what else is told."""
    out = [launch_line(launch) for launch in reading.launches]
    out += [f"trap {trap_line(trap)}" for trap in reading.traps]
    if reading.requeues_itself is not None:
        out.append(f"requeues in {reading.requeues_itself}")
    out += [f"unsure: {sentence}" for sentence in reading.unsure]
    return out


def launch_line(launch: Launch) -> str:
    words = [str(launch.line), str(launch.outer)]
    if launch.inner is not launch.outer:
        words.append(f"> {launch.inner}")
    words.append(launch.program or "?")
    words += ["exec"] if launch.execs else []
    words += [f"under {name}" for name in launch.stays]
    words += [f"| {name}" for name in launch.piped]
    words += [f"[{trap_line(trap)}]" for trap in launch.traps]
    words += ["loop"] if launch.loops else []
    words += ["& wait" if launch.waited else "&"] if launch.background else []
    return " ".join(words)


def trap_line(trap: Trap) -> str:
    does = "default" if trap.resets else "ignored" if trap.ignores else ", ".join(trap.runs)
    return f"{trap.line} {'+'.join(trap.signals)}: {does}"
