"""``python -m slurmtop``, and what the installed command calls."""

import os
import signal
import sys

#: As a shell counts them: 128 and the number of SIGINT.
_INTERRUPTED_STATUS = 130


def start() -> int:
    """Import the command and run it; its exit status.

    Ctrl-C in the first moments, while modules are imported, is silent as any later one.
    """
    # Ignored stays ignored: that is what a shell does for what it starts with `&`.
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if mine:
        signal.signal(signal.SIGINT, _leave)
    from slurmtop.cli.main import main

    try:
        if mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED_STATUS
    finally:
        # The work is done, its children are ended: the interpreter's own end stays silent, too.
        if mine:
            signal.signal(signal.SIGINT, _leave)


def _leave(_signal: int, _frame: object) -> None:
    # An exception here might come up inside the import machinery, which prints it.
    os._exit(_INTERRUPTED_STATUS)


if __name__ == "__main__":
    sys.exit(start())
