"""A large answer of a node is read beside everything else."""

import threading

from slurmtop.collect.nodes.reading import read_answer


async def test_a_large_answer_is_read_in_a_thread() -> None:
    def parse(data: bytes) -> tuple[int, bool]:
        return len(data), threading.current_thread() is threading.main_thread()

    assert await read_answer(parse, b"x" * 100) == (100, True)
    assert await read_answer(parse, b"x" * 1_000_000) == (1_000_000, False)
