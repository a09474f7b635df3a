"""Trouble that a person is told of in one line, and the exit status each has."""

FINE = 0
CANNOT_STATUS = 1
PROBLEM_STATUS = 2
USAGE_STATUS = 64
#: As a shell counts them: 128 and the number of SIGINT, of SIGPIPE.
INTERRUPTED_STATUS = 130
PIPE_STATUS = 141
#: And the number of any other signal that ended it.
SIGNAL_STATUS = 128


class UsageError(Exception):
    """The command line cannot be understood; ``str()`` is one line for a person."""


class EndedBySignal(Exception):
    """A signal ended it; ``number`` says which. All children are ended."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by signal {number}")
        self.number = number


class CannotWork(Exception):
    """slurmtop cannot do its work: what failed, why, what to do, in one line."""
