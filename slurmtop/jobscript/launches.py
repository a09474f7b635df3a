"""What a command line starts: srun, mpirun, torchrun, python, behind any wrappers.

``NCCL_DEBUG=INFO srun -n 4 numactl -N 0 torchrun --nproc-per-node 8 train.py`` is srun that
starts torchrun. Each wrapper is peeled off with the options that take a word.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slurmtop.jobscript.options import short_takes_next, takes_value, words_of
from slurmtop.jobscript.shell import Word
from slurmtop.model.script import SHELLS, Launcher

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
#: A variable that holds options and not a program, by its name: ``$SRUN_ARGS``.
_OPTIONS = re.compile(r"^\$.*(ARGS|OPT|FLAG)", re.IGNORECASE)
_PYTHON = re.compile(r"(python|pypy)[\d.]*$", re.ASCII)
_MPIRUN = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "mpirun_rsh", "orterun", "prterun"})
_AGENTS = frozenset({"torchrun", "torchrun_main", "accelerate", "deepspeed", "colossalai"})
_AGENT_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic",
    "accelerate.commands.launch",
    "deepspeed.launcher",
)
#: Programs that are work where they stand alone; any path (``./run.sh``) is, too.
_WORK = words_of(
    """
    julia Rscript matlab octave java node perl gmx gmx_mpi lmp namd2 namd3 vasp_std sleep
    make
    """
)
#: Programs that have another one start the work, which inherits nothing from the shell.
_ELSEWHERE = words_of("docker podman nerdctl kubectl ssh pdsh sudo su systemd-run machinectl ray")
_ENV_SIGNAL = re.compile(r"--(?:default|ignore|block)-signal")
#: Programs that come with a system and that nobody would call the work of a job.
_SYSTEM_PATHS = ("/bin/", "/usr/", "/sbin/", "/etc/", "/opt/slurm/")

#: Wrappers that become the command: the options that take a word, and how many words stand
#: between the options and the command.
_EXECS: Mapping[str, tuple[str, int]] = {
    "exec": ("-a", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nice": ("-n", 0),
    "ionice": ("-c -n", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "taskset": ("", 1),
    "chrt": ("", 1),
    "numactl": (
        "-N -m -C -i -p -l --cpunodebind --membind --physcpubind --interleave --preferred",
        0,
    ),
    "stdbuf": ("-i -o -e", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "catchsegv": ("", 0),
    "prlimit": ("", 0),
}
#: Wrappers that stay as the parent and get the signal as well. ``verb`` must follow where set.
_STAYS: Mapping[str, tuple[str, str, int]] = {
    "timeout": ("", "-s -k --signal --kill-after", 1),
    "unbuffer": ("", "", 0),
    "strace": ("", "-o -e -p -s", 0),
    "nsys": ("profile", "-o -t -s -c -w -f --output --trace --sample --capture-range", 0),
    "ncu": ("", "-o --set --section -k -c -s", 0),
    "conda": ("run", "-n -p --name --prefix", 0),
    "mamba": ("run", "-n -p --name --prefix", 0),
    "micromamba": ("run", "-n -p --name --prefix", 0),
    "uv": ("run", "--with --python -p --project --directory --extra --group --env-file", 0),
    "poetry": ("run", "", 0),
    "pixi": ("run", "-e --environment --manifest-path", 0),
    "pipenv": ("run", "", 0),
    "singularity": ("exec", "", 1),
    "apptainer": ("exec", "", 1),
}
_CONTAINER_VALUES = words_of(
    """
    -B --bind -H --home -W --workdir --pwd --cwd --env --env-file -o --overlay --network --net
    --dns --hostname -S --scratch --security --app --mount --add-caps --drop-caps --apply-cgroups
    --fakeroot-uid --pem-path --oom-score-adj --cpus --memory
    """
)
_MPI_VALUES = words_of(
    """
    -n -np -N -c -x -H -host --host -hostfile --hostfile -machinefile --machinefile -f -hosts
    -ppn -perhost --map-by -map-by --bind-to -bind-to --rank-by -npernode --npernode -wdir
    --wdir -wd -bootstrap -genvlist -envlist -l --prefix --output-filename -iface
    """
)
_MPI_PAIRS = frozenset({"-mca", "--mca", "-genv", "-env", "--gmca", "-gmca", "--prtemca"})
_MAX_WORDS = 4_000
_MAX_PEELED = 40
_MAX_TEXT = 16_384


@dataclass(slots=True)
class Found:
    """``chain`` is what starts what. ``shell_text`` is the string of a ``bash -c`` and the line
    where it begins: whoever asks reads it as a script; ``fixed`` where no variable is in it.
    ``evals`` is ``eval``: the same shell. ``doubt`` says why it may not start with the signals
    ignored that its shell ignores."""

    chain: list[Launcher] = field(default_factory=list)
    program: str = ""
    stays: list[str] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    execs: bool = False
    shell_text: tuple[str, int] | None = None
    fixed: bool = True
    evals: bool = False
    doubt: str = ""
    script: str | None = None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with the variables that the script itself gave a value put in, twice deep."""
    for _ in range(2):
        if "$" not in text or len(text) > _MAX_TEXT:
            break
        parts: list[str] = []
        done = size = 0
        for found in _VARIABLE.finditer(text):
            value = variables.get(found[1] or found[2], found[0])
            parts += (text[done : found.start()], value)
            size += len(value)
            done = found.end()
            if size > _MAX_TEXT:
                break
        text = "".join((*parts, text[done:]))
    return text[: 2 * _MAX_TEXT]


def find_launch(words: Sequence[Word], variables: Mapping[str, str]) -> Found:
    """What ``words`` start; an empty ``chain`` and no ``shell_text`` where that is no work."""
    found = Found()
    rest = list(words[:_MAX_WORDS])
    for _ in range(_MAX_PEELED):
        rest = _put_in(rest, variables)
        if not rest:
            break
        if _ASSIGNMENT.match(rest[0].text):
            rest = rest[1:]
            continue
        following = _peel(rest, found, variables)
        if following is None:
            break
        rest = following
    return found


def _put_in(rest: list[Word], variables: Mapping[str, str]) -> list[Word]:
    """``$LAUNCHER train.py`` with the words that the script gave to LAUNCHER."""
    if not rest or rest[0].literal or not rest[0].text.startswith("$"):
        return rest
    value = expand(rest[0].text, variables)
    if value == rest[0].text:
        return rest
    parts = [Word(part, rest[0].line, "$" not in part) for part in value.split()]
    return (parts + rest[1:])[:_MAX_WORDS]


def _peel(rest: list[Word], found: Found, variables: Mapping[str, str]) -> list[Word] | None:
    """Takes one program off the front; None where the command is told to its end."""
    name = rest[0].text.rsplit("/", 1)[-1]
    args = rest[1:]
    if name == "srun":
        found.chain.append(Launcher.SRUN)
        found.around, found.stays, found.doubt = [*found.around, *found.stays], [], ""
        return _after_srun(args, found, variables)
    if name in _MPIRUN:
        found.chain.append(Launcher.MPIRUN)
        found.doubt = "what mpirun starts on other nodes inherits nothing"
        return _after_mpirun(args)
    if name in _AGENTS or (not rest[0].literal and "torchrun" in name):
        found.chain.append(Launcher.TORCHRUN)
        found.program = _script_among(args)
        return None
    if _PYTHON.match(name):
        _python(args, found)
        return None
    if name == "eval":
        found.evals = True
        found.shell_text = (" ".join(word.text for word in args), rest[0].line)
        found.fixed = all(word.literal for word in args)
        return None
    if name in SHELLS:
        _shell(name, args, found)
        return None
    if name == "time" or rest[0].text == "/usr/bin/time":
        found.stays += ["time"] if "/" in rest[0].text else []
        return _skip(args, frozenset({"-f", "-o"}), 0)
    if name in _EXECS:
        if name == "exec" and not found.chain:
            found.execs = True
        values, between = _EXECS[name]
        if name == "env" and any(_ENV_SIGNAL.match(word.text) for word in args[:20]):
            found.doubt = "env sets signals for what it starts"
        if name == "taskset" and any(word.text in ("-c", "--cpu-list") for word in args[:2]):
            between = 1
        return _skip(args, words_of(values), between)
    if name in _STAYS:
        verb, values, between = _STAYS[name]
        taken = _CONTAINER_VALUES if between and verb else words_of(values)
        if verb:
            at = next((i for i, word in enumerate(args[:6]) if word.text == verb), None)
            if at is None:
                _other(rest[0], found)
                return None
            args = args[at + 1 :]
        found.stays.append(name)
        if name != "timeout":
            found.doubt = f"what {name} hands on is not known"
        return _skip(args, taken, between)
    _other(rest[0], found)
    return None


def _other(word: Word, found: Found) -> None:
    name = word.text.rsplit("/", 1)[-1]
    if name in _ELSEWHERE:
        found.doubt = f"{name} has it started elsewhere"
    if name == "sbatch":
        return
    path = "/" in word.text and not word.text.startswith(_SYSTEM_PATHS)
    if found.chain or found.stays or found.execs or path or name in _WORK:
        found.chain.append(Launcher.OTHER)
        found.program = name if word.literal else ""


def _skip(args: list[Word], values: frozenset[str], between: int) -> list[Word]:
    at = 0
    while at < len(args) and args[at].text.startswith("-") and args[at].text != "--":
        at += 2 if args[at].text in values else 1
    if at < len(args) and args[at].text == "--":
        at += 1
    return args[at + between :]


def _after_srun(args: list[Word], found: Found, variables: Mapping[str, str]) -> list[Word] | None:
    for _ in range(_MAX_WORDS):
        args = _put_in(args, variables)
        if not args:
            break
        text = args[0].text
        if text == "--":
            return args[1:]
        if text.startswith("--"):
            option, equals, _ = text[2:].partition("=")
            if option == "multi-prog":
                break
            args = args[2 if not equals and takes_value(option, srun=True) else 1 :]
        elif text.startswith("-") and len(text) > 1:
            args = args[2 if short_takes_next(text, srun=True) else 1 :]
        elif not args[0].literal and _OPTIONS.search(text) and len(args) > 1:
            args = args[1:]
        else:
            return args
    found.chain.append(Launcher.OTHER)
    return None


def _after_mpirun(args: list[Word]) -> list[Word]:
    at = 0
    while at < len(args) and args[at].text.startswith("-"):
        text = args[at].text
        at += 3 if text in _MPI_PAIRS else 2 if text in _MPI_VALUES else 1
    return args[at:]


def _python(args: list[Word], found: Found) -> None:
    at = 0
    while at < len(args):
        text = args[at].text
        if text in ("-W", "-X", "--check-hash-based-pycs"):
            at += 2
        elif text.startswith("-") and not text.startswith("--") and "c" in text[1:]:
            found.chain.append(Launcher.PYTHON)
            found.program = "python -c"
            return
        elif text.startswith("-") and not text.startswith("--") and text.endswith("m"):
            module = args[at + 1].text if at + 1 < len(args) else ""
            agent = module.startswith(_AGENT_MODULES)
            found.chain.append(Launcher.TORCHRUN if agent else Launcher.PYTHON)
            found.program = _script_among(args[at + 2 :]) if agent else module
            return
        elif text.startswith("-") and len(text) > 1:
            at += 1
        else:
            break
    script = args[at] if at < len(args) else None
    agent = script is not None and script.text.rstrip('")}`').endswith("torchrun")
    found.chain.append(Launcher.TORCHRUN if agent else Launcher.PYTHON)
    if agent:
        found.program = _script_among(args[at + 1 :])
    elif script is not None:
        found.program = script.text.rsplit("/", 1)[-1]


def _script_among(args: Sequence[Word]) -> str:
    for word in args:
        if word.text.endswith(".py"):
            return word.text.rsplit("/", 1)[-1]
    return ""


def _shell(name: str, args: list[Word], found: Found) -> None:
    """``bash -euo pipefail -c 'TEXT'`` or ``bash FILE``."""
    at = 0
    while at < len(args) and args[at].text[:1] in ("-", "+"):
        text = args[at].text
        if not text.startswith("--") and "c" in text[1:]:
            follow = at + 1
            while follow < len(args) and args[follow].text.startswith("-"):
                follow += 1
            if follow < len(args):
                found.shell_text = (args[follow].text, args[follow].line)
                found.fixed = args[follow].literal
                found.stays.append(name)
            return
        at += 2 if text.endswith("o") or text in ("--rcfile", "--init-file") else 1
    found.stays.append(name)
    found.chain.append(Launcher.OTHER)
    if at < len(args):
        found.script = args[at].text
        found.program = args[at].text.rsplit("/", 1)[-1]
