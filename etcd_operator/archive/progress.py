"""How many bytes of a stream have passed, for those who show it."""

from collections.abc import Callable, Iterable, Iterator

OnProgress = Callable[[int], None]
"""Called with the number of bytes processed so far."""


def ignore_progress(_done: int) -> None:
    """The `OnProgress` that does nothing."""


def counted(chunks: Iterable[bytes], on_progress: OnProgress) -> Iterator[bytes]:
    """The same chunks; `on_progress` is called before each of them is passed on."""
    done = 0
    for chunk in chunks:
        done += len(chunk)
        on_progress(done)
        yield chunk
