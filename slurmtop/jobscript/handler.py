"""What the action of a trap does: the commands that it runs, and whether the job lives on."""

from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.jobscript.shell import Effort, Shell, ShellCommand, parse_shell
from slurmtop.jobscript.signals import signal_word

_RUNS_KEPT = 12
_COMMANDS_READ = 500
_MAX_DEPTH = 4
#: Of ``kill``: the script itself, or its process group.
_OWN = frozenset({"$$", "${$}", "$BASHPID", "0", "-$$", "-0", "-1", "$PPID", "$SLURM_TASK_PID"})
_ENDING = frozenset({"TERM", "KILL", "INT", "QUIT", "HUP", "ABRT"})
_OWN_END = "the script"
_KILLS = frozenset({"kill", "pkill", "killall", "skill", "scancel"})


@dataclass(frozen=True, slots=True)
class Handler:
    """``runs`` as in Trap. ``ends`` says in words how it ends the script or the work, "" where
    nothing in it does; ``surely`` where nothing stands before that. ``waits`` is a ``wait`` for
    what the script has started."""

    runs: tuple[str, ...] = ()
    ends: str = ""
    waits: bool = False
    surely: bool = False
    commands: tuple[ShellCommand, ...] = ()


NO_HANDLER = Handler()


def read_handler(action: str, shell: Shell, effort: Effort) -> Handler:
    """Reads ``action``; of a function of the script the commands inside it, too."""
    inside = parse_shell(action, effort) if action.strip() else Shell()
    queue: list[ShellCommand] = list(inside.commands)
    seen: list[ShellCommand] = []
    opened: set[str] = set()
    while queue and len(seen) < _COMMANDS_READ:
        command = queue.pop(0)
        name = command.name
        if name in shell.functions:
            if name not in opened and len(opened) < _MAX_DEPTH * 4:
                opened.add(name)
                queue = shell.group(name)[:_COMMANDS_READ] + queue
            continue
        seen.append(command)
    ends = next((words for words in map(_ends, seen) if words), "")
    if not ends and (queue or not inside.complete):
        ends = "runs more than was read"
    return Handler(
        runs=tuple(_shown(command) for command in seen[:_RUNS_KEPT]),
        ends=ends,
        waits=_waits(seen, shell),
        surely=any(_OWN_END in _ends(one) and _sure(one, shell) for one in seen),
        commands=tuple(seen),
    )


def _sure(command: ShellCommand, shell: Shell) -> bool:
    place = command.place
    return place.shell == 0 and place.certain and place.function not in shell.redefined


def _shown(command: ShellCommand) -> str:
    name = command.name
    if name.rsplit("/", 1)[-1] == "scontrol" and len(command.words) > 1:
        name = f"scontrol {command.words[1].text}"
    return name[:40]


def _waits(commands: Sequence[ShellCommand], shell: Shell) -> bool:
    """A ``wait`` for something that the handler starts itself is not one for the work."""
    own = any(command.place.background for command in commands)
    for command in commands:
        if command.name == "wait" and _sure(command, shell):
            return not own
    return False


def _ends(command: ShellCommand) -> str:
    """``ends the script``: how one command ends the script, or what it has started."""
    texts = [word.text for word in command.words]
    while len(texts) > 1 and texts[0] in ("builtin", "command"):
        texts = texts[1:]
    name = texts[0].rsplit("/", 1)[-1]
    if name == "exit" and command.place.shell == 0:
        return "ends the script"
    if name == "exec" and len(texts) > 1 and command.place.shell == 0:
        return "puts another program in the place of the script"
    if name in _KILLS:
        return _kill(name, texts[1:])
    return ""


def _kill(name: str, args: Sequence[str]) -> str:
    signal, targets = _targets(name, args)
    if signal == "0":
        return ""
    if name == "kill" and _OWN.intersection(targets) and signal not in ("CONT", "CHLD"):
        return "ends the script with a signal to itself"
    if signal in _ENDING or signal.startswith("$"):
        return "cancels the job" if name == "scancel" else "ends what the script has started"
    return ""


def _targets(name: str, args: Sequence[str]) -> tuple[str, list[str]]:
    """The signal of a ``kill``, "0" for one that only looks, and what it is sent to."""
    signal = "KILL" if name == "scancel" else "TERM"
    targets: list[str] = []
    at = 0
    while at < len(args):
        text = args[at]
        option, equals, value = text.partition("=")
        if text in ("-l", "-L", "-q") and name == "kill":
            return "0", []
        if option in ("-s", "-n", "--signal"):
            at += 0 if equals else 1
            signal = _signal(value if equals else args[at] if at < len(args) else "")
        elif text == "--":
            return signal, [*targets, *args[at + 1 :]]
        elif text.startswith("-") and at == 0 and name != "scancel":
            signal = _signal(text[1:])
        else:
            targets.append(text)
        at += 1
    return signal, targets


def _signal(text: str) -> str:
    return "0" if text == "0" else signal_word(text) or (text if text.startswith("$") else "TERM")
