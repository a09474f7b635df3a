"""The process that parses logs, with 5 ms added to each of its reads: a cold file system."""

import sys
import time

CALL_S = 0.005

sys.path.append(sys.argv[1])

from slurmtop.collect import file_child, log_child, log_door  # noqa: E402


def slow(path: bytes, offset: int, count: int) -> bytes:
    time.sleep(CALL_S)
    return file_child.read_block(path, offset, count)


if __name__ == "__main__":
    setattr(log_door, "read_block", slow)  # noqa: B010 - its own name for the function
    log_child.main()
