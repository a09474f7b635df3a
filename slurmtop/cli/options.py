"""The command line: one table of options, errors as one line, exit status 64 for usage."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from slurmtop import __version__
from slurmtop.cli.errors import UsageError
from slurmtop.config import NodeAccess
from slurmtop.model.text import visible

_EPILOG = (
    "Without a command it opens the screen; without a terminal it prints one plain report."
    " Exit status: 0 fine, 1 slurmtop could not do its work, an action was not done to every"
    " job, or nobody knows the job, 2 why or triage found a problem, 64 wrong usage."
)

#: Each verb that acts on jobs, and what it does.
ACTIONS = {
    "cancel": "end jobs, array tasks or one step",
    "requeue": "end jobs and put them into the queue again; of an array only its failed tasks",
    "hold": "keep waiting jobs from starting",
    "release": "let held jobs start again",
    "signal": "send a signal to what a job runs",
}
#: Those that can be done to one step of a job as well.
TAKE_STEPS = ("cancel", "signal")
#: Those before which what is known of a suspect is saved.
SAVE_FIRST = ("cancel", "requeue")
_JOB_FORMS = "4711, 4711_3, '4711_[1-5,7]', 4711+1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for. ``command`` is tui, demo, why, triage, explain, jobs, nodes, gpus,
    export, doctor, or one of :data:`ACTIONS`.

    None and False mean that the option was not given. ``job_ids``, ``yes``, ``without_log``,
    ``hold``, ``signal`` and ``to`` are those of the actions; ``hosts`` is that of gpus and doctor,
    ``textfile`` that of export, ``where`` are the words of doctor and of nodes, whose ``fit`` is;
    ``paths``, ``timeline`` and ``whole`` are those of triage, ``words`` that of explain;
    ``no_nodes``, ``no_stacks`` and ``look`` those of why and of triage of a job; ``save`` is that
    of triage, ``no_save`` that of cancel and requeue.
    """

    command: str = "tui"
    job: str = ""
    scenario: str | None = None
    speed: float = 20.0
    json: bool = False
    copy: bool = False
    query: str = ""
    read_only: bool = False
    all_users: bool = False
    cluster: str | None = None
    theme: str | None = None
    config: str | None = None
    record: str | None = None
    node_access: str | None = None
    replay: str | None = None
    dry_run: bool = False
    job_ids: tuple[str, ...] = ()
    yes: bool = False
    without_log: bool = False
    hold: bool = False
    signal: str = ""
    to: str = "steps"
    hosts: str = ""
    textfile: str | None = None
    where: tuple[str, ...] = ()
    fit: str = ""
    paths: tuple[str, ...] = ()
    timeline: bool = False
    whole: bool = False
    save: str | None = None
    no_save: bool = False
    no_nodes: bool = False
    no_stacks: bool = False
    look: bool = False
    words: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{visible(message)}; see {self.prog} --help")


def parse_arguments(arguments: Sequence[str]) -> Options:
    """Take the command line apart. :class:`UsageError` where it cannot be understood;
    ``SystemExit`` after ``--help`` and ``--version``."""
    parser = build_parser()
    _catch_bare_job(arguments)
    values = vars(parser.parse_args(list(arguments)))
    values["command"] = values.get("command") or "tui"
    for name in ("job_ids", "where", "paths", "words"):
        values[name] = tuple(values.get(name) or ())
    options = Options(**values)
    _check(options)
    return options


def build_parser() -> argparse.ArgumentParser:
    """The parser, for :func:`parse_arguments` and for the tests of the documents."""
    shared = _Parser(add_help=False)
    _add_shared(shared)
    parser = _Parser(
        prog="slurmtop",
        description=(
            "Is this Slurm job making progress; if not, which rank on which node is to blame;"
            " what now?"
        ),
        epilog=_EPILOG,
        parents=[shared],
    )
    parser.add_argument("--version", action="version", version=f"slurmtop {__version__}")
    _add_screen(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=_Parser
    )
    _add_demo(commands)
    why = commands.add_parser(
        "why",
        parents=[shared],
        help="why a job waits, how it does or how it ended, in four lines",
        description="Four lines: what, who, proof, do this now. Works for a job in any state.",
    )
    why.add_argument("job", metavar="JOB", help="4711, 4711_3 or 4711+1")
    form = why.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole verdict as JSON")
    form.add_argument("--copy", action="store_true", help="a block to paste into a chat")
    _add_look(why)
    _add_triage(commands, shared)
    jobs = commands.add_parser(
        "jobs", parents=[shared], help="the queue as a table or as JSON", description="The queue."
    )
    jobs.add_argument("--json", action="store_true", help="as JSON, with the age of the data")
    jobs.add_argument(
        "--filter", dest="query", metavar="QUERY", default="", help="as typed after / on the screen"
    )
    _add_all_users(jobs)
    _add_nodes(commands, shared)
    _add_looks(commands, shared)
    _add_actions(commands, shared)
    return parser


def _add_triage(commands: Any, shared: argparse.ArgumentParser) -> None:
    triage = commands.add_parser(
        "triage",
        parents=[shared],
        help="what happened, who is to blame and how we know: from logs and nodes",
        description=(
            "The verdict on a job, or on what one left behind: log files, folders of them, a"
            " bundle, - for standard input. Of a job that runs its nodes are looked at as well:"
            " processes, GPUs and, where something speaks for a hang, stacks of its ranks."
        ),
    )
    triage.add_argument(
        "paths",
        metavar="PATH|JOB",
        nargs="+",
        help="files, folders, a bundle, -; a job id is a job (a file of that name: ./4711)",
    )
    form = triage.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole verdict as JSON")
    form.add_argument(
        "--timeline", action="store_true", help="what was said when, all files on one clock"
    )
    triage.add_argument(
        "--whole", action="store_true", help="long files from end to end, not only both ends"
    )
    triage.add_argument(
        "--save",
        metavar="DIR",
        help="keep the verdict and all it rests on, secrets masked: a new folder, or NAME.tar.gz",
    )
    _add_look(triage)
    explain = commands.add_parser(
        "explain",
        parents=[shared],
        help="a class, state, reason, exit code or Xid: what it means, what to do",
        description=(
            "What a word means, what it is mistaken for, and the first thing to do: a class of"
            " fault, a Slurm state or reason, an exit code or signal, an Xid."
        ),
    )
    explain.add_argument(
        "words", metavar="WORD", nargs="+", help="gpu-oom, NODE_FAIL, Priority, 137, SIGBUS, xid 79"
    )
    explain.add_argument("--json", action="store_true", help="as JSON")


def _add_look(parser: argparse.ArgumentParser) -> None:
    """How the nodes of a job that runs are looked at."""
    parser.add_argument(
        "--no-nodes", action="store_true", help="of a running job: Slurm and logs alone"
    )
    parser.add_argument(
        "--no-stacks", action="store_true", help="of a running job: read no stacks (py-spy)"
    )
    parser.add_argument(
        "--look",
        action="store_true",
        help="of a running job: two whole looks at its nodes even where its log grows",
    )


def _add_nodes(commands: Any, shared: argparse.ArgumentParser) -> None:
    nodes = commands.add_parser(
        "nodes",
        parents=[shared],
        help="the nodes as a table or as JSON, and where a job would fit",
        description="The nodes: state and reason, GPUs used, free and lost, own jobs on them.",
    )
    nodes.add_argument(
        "where",
        metavar="FILTER",
        nargs="*",
        help="as typed after / on the Nodes screen: idle, part:gpu, free:>=4",
    )
    nodes.add_argument("--json", action="store_true", help="as JSON, with the age of the data")
    nodes.add_argument(
        "--fit",
        metavar="WISH",
        default="",
        help="where would it fit: 4x8, or '4x8 h100 gpu-large' (nodes x GPUs, type, partition)",
    )
    _add_all_users(nodes)


def _add_looks(commands: Any, shared: argparse.ArgumentParser) -> None:
    """What looks at nodes."""
    gpus = commands.add_parser(
        "gpus",
        parents=[shared],
        help="all GPUs of a job, on all its nodes, with the rank on each",
        description="One look at every GPU of a job; without JOB of all own running jobs.",
    )
    gpus.add_argument("job", metavar="JOB", nargs="?", default="", help="4711, 4711_3 or 4711+1")
    gpus.add_argument("--json", action="store_true", help="every value, null where not known")
    gpus.add_argument(
        "--hosts", metavar="NODES", default="", help="these nodes only: gpu01,gpu[03-04]"
    )
    export = commands.add_parser(
        "export",
        parents=[shared],
        help="jobs and GPUs as Prometheus text",
        description="Own jobs and their GPUs, once, as Prometheus text to standard output.",
    )
    export.add_argument(
        "--textfile",
        metavar="FILE",
        help="replace FILE at once, for node_exporter's textfile collector (mode 0644)",
    )
    _add_all_users(export, "count everybody's jobs in the queue as well")
    doctor = commands.add_parser(
        "doctor",
        parents=[shared],
        help="what slurmtop can reach from here, as whom, and what opens the rest",
        description=(
            "Tries every source once: Slurm, logs, this terminal, and the ways onto one node of"
            " an own running job, or onto the nodes that are named."
        ),
    )
    doctor.add_argument("where", metavar="JOB|NODE", nargs="*", help="an own job, or nodes")
    doctor.add_argument(
        "--hosts", metavar="NODES", default="", help="nodes, also where a name is a number"
    )
    doctor.add_argument("--json", action="store_true", help="one object a source")


def _add_actions(commands: Any, shared: argparse.ArgumentParser) -> None:
    for verb, text in ACTIONS.items():
        one = commands.add_parser(
            verb,
            parents=[shared],
            help=text,
            description=f"{text[0].upper()}{text[1:]}. Shows the exact command and asks first.",
        )
        one.add_argument(
            "job_ids",
            metavar="JOB",
            nargs="+",
            help=_JOB_FORMS + (", or a step: 4711.0" if verb in TAKE_STEPS else ""),
        )
        one.add_argument("--yes", action="store_true", help="do not ask; warnings are still told")
        one.add_argument("--json", action="store_true", help="what became of each job, as JSON")
        _add_dry_run(one)
        _add_read_only(one, "refuse to do anything")
        one.add_argument(
            "--without-log",
            action="store_true",
            help="with --yes: go on even where the log of actions cannot be written",
        )
        if verb in SAVE_FIRST:
            one.add_argument(
                "--no-save",
                action="store_true",
                help="do not save first what is known of a job that hangs or failed",
            )
        if verb == "requeue":
            one.add_argument("--hold", action="store_true", help="and hold them there")
        if verb == "signal":
            one.add_argument(
                "--signal", metavar="NAME", required=True, help="USR1, TERM, INT, CONT, …"
            )
            one.add_argument(
                "--to",
                metavar="WHOM",
                default="steps",
                help="steps (default), batch, everything, ranks, or the number of one step",
            )


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the exact commands and run none of them",
    )


def _add_read_only(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--read-only", action="store_true", default=argparse.SUPPRESS, help=text)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    quiet: dict[str, Any] = {"default": argparse.SUPPRESS}
    parser.add_argument("--cluster", metavar="NAME", help="another cluster than this one", **quiet)
    parser.add_argument("--config", metavar="FILE", help="settings to use", **quiet)
    parser.add_argument(
        "--record", metavar="DIR", help="keep every answer, to replay it later", **quiet
    )
    parser.add_argument(
        "--replay", metavar="DIR", help="answer from a recording, ask nobody", **quiet
    )
    parser.add_argument(
        "--node-access",
        choices=[way.value for way in NodeAccess],
        help="how nodes are looked into (default auto)",
        **quiet,
    )


def _add_all_users(
    parser: argparse.ArgumentParser, text: str = "everybody's jobs, not only one's own"
) -> None:
    parser.add_argument("--all-users", action="store_true", default=argparse.SUPPRESS, help=text)


def _add_screen(parser: argparse.ArgumentParser) -> None:
    _add_all_users(parser)
    _add_read_only(parser, "take away every key that changes something")
    _add_dry_run(parser)
    parser.add_argument(
        "--theme", metavar="NAME", default=argparse.SUPPRESS, help="colours of the screen"
    )


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="the whole screen on a simulated cluster",
        description="A simulated cluster: look around and try the keys, nothing is real.",
    )
    demo.add_argument("scenario", nargs="?", metavar="SCENARIO", help="what is going on there")
    demo.add_argument(
        "--speed", type=_speed, default=20.0, metavar="N", help="N times as fast (default 20)"
    )
    _add_screen(demo)
    demo.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="settings to use")


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 10_000:
        raise argparse.ArgumentTypeError("a number from 0.01 to 10000 is wanted")
    return value


def _catch_bare_job(arguments: Sequence[str]) -> None:
    first = arguments[0] if arguments else ""
    if first[:1].isdigit() and first.isascii():
        raise UsageError(f"no command {visible(first)!r}; did you mean: slurmtop why {first}")


def _check(options: Options) -> None:
    if options.record is not None and options.replay is not None:
        raise UsageError("--record and --replay exclude each other; see slurmtop --help")
    for name, text in (
        ("--record", options.record),
        ("--replay", options.replay),
        ("--config", options.config),
        ("--textfile", options.textfile),
        ("--save", options.save),
    ):
        if text is not None and (not text or "\0" in text):
            raise UsageError(f"{name} wants a path; see slurmtop --help")
    if options.theme is not None and not options.theme.strip():
        raise UsageError("--theme wants a name; see slurmtop --help")
