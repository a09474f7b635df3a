"""``python -m slurmtop``."""

import sys

from slurmtop.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
