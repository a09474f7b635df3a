"""Reading a stream through others, so that its end reaches the first of them at once."""

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class closing(Generic[T]):
    """``async with closing(stream) as chunks``: it is closed on the way out, where it can be.

    A generator that is left half way lives on until somebody collects it: what it runs on a
    node would go on as long.
    """

    def __init__(self, stream: AsyncIterator[T]) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterator[T]:
        return self._stream

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()
