"""The command: takes the arguments, runs one subcommand, turns trouble into one line.

Nothing here imports textual; only the screen does, and only once it is opened.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from slurmtop.cli import plain_signs
from slurmtop.cli.errors import (
    CANNOT_STATUS,
    INTERRUPTED_STATUS,
    PIPE_STATUS,
    SIGNAL_STATUS,
    USAGE_STATUS,
    CannotWork,
    EndedBySignal,
    UsageError,
)
from slurmtop.cli.options import ACTIONS, Options, parse_arguments
from slurmtop.cli.terminal import has_terminal
from slurmtop.model.text import visible

#: What a write to standard output fails with; a file's own trouble names the file.
_OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def main(argv: Sequence[str] | None = None) -> int:
    """Run slurmtop and return its exit status. Never prints a traceback.

    0 fine; 1 could not do its work, an action was not done to every job, or the job is unknown
    everywhere; 2 ``why`` or ``triage`` found a problem; 64 usage; 130 interrupted; 143 and 129
    ended by SIGTERM and SIGHUP.
    ``SLURMTOP_TRACEBACK=1`` lets a fault of slurmtop itself show where it is.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        return _fail("standard output is closed: there is nowhere to print to", CANNOT_STATUS)
    _harden_output()
    try:
        status = _run_and_flush(arguments)
    except UsageError as error:
        return _fail(str(error), USAGE_STATUS)
    except CannotWork as error:
        return _fail(str(error), CANNOT_STATUS)
    except EndedBySignal as error:
        return SIGNAL_STATUS + error.number
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        _drop_output()
        return PIPE_STATUS
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
            _drop_output()
            return _fail(f"the output cannot be written: {error.strerror}", CANNOT_STATUS)
        if os.environ.get("SLURMTOP_TRACEBACK"):
            raise
        kind = type(error).__name__
        return _fail(
            f"a fault of slurmtop itself ({kind}: {error});"
            " set SLURMTOP_TRACEBACK=1 to see where, and report it",
            CANNOT_STATUS,
        )
    return status


def _run_and_flush(arguments: list[str]) -> int:
    """What cannot be printed fails here, and not when the interpreter ends."""
    try:
        status = _run(parse_arguments(arguments))
    except SystemExit as error:
        # argparse leaves so once it has printed the help.
        status = error.code if isinstance(error.code, int) else 0
    sys.stdout.flush()
    return status


def _run(options: Options) -> int:
    if options.command == "why":
        from slurmtop.cli import why

        return why.run(options)
    if options.command == "triage":
        from slurmtop.cli import triage

        return triage.run(options)
    if options.command == "explain":
        from slurmtop.cli import explain

        return explain.run(options)
    if options.command == "jobs":
        from slurmtop.cli import jobs

        return jobs.run(options)
    if options.command == "nodes":
        from slurmtop.cli import nodes

        return nodes.run(options)
    if options.command == "gpus":
        from slurmtop.cli import gpus

        return gpus.run(options)
    if options.command == "export":
        from slurmtop.cli import export

        return export.run(options)
    if options.command == "doctor":
        from slurmtop.cli import doctor

        return doctor.run(options)
    if options.command in ACTIONS:
        from slurmtop.cli import control

        return control.run(options)
    if options.command == "demo":
        from slurmtop.cli import demo

        return demo.run(options)
    if has_terminal():
        from slurmtop.cli import tui

        return tui.run(options)
    from slurmtop.cli import plain_report

    return plain_report.run(options)


def _fail(sentence: str, status: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(f"slurmtop: {visible(sentence)}", file=sys.stderr, flush=True)
    return status


def _harden_output() -> None:
    """A locale that cannot print a sign costs that sign, never the answer or its meaning."""
    plain_signs.register()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=plain_signs.ERRORS)


def _drop_output() -> None:
    """Keep the interpreter from complaining about the closed pipe when it exits."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


if __name__ == "__main__":
    sys.exit(main())
