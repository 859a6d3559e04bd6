"""Streams of blocks: how many bytes have passed, and reading ahead."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

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


_AHEAD = 4


def read_ahead(blocks: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same blocks and the same error at their end, read on a thread of its own, a few ahead.

    Receiving, hashing, compressing and writing release Python's lock, so two processors share the work.
    Who stops early must end what `blocks` waits for, such as a connection: the thread lasts until then.
    """
    reader = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
    try:
        coming = deque(reader.submit(next, blocks, None) for _ in range(_AHEAD))
        while (block := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, blocks, None))
            yield block
    finally:
        reader.shutdown(wait=False, cancel_futures=True)
