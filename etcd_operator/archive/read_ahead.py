"""Reads a stream on a thread of its own, a few blocks ahead of what is done with them.

Receiving, hashing, compressing and writing release Python's lock, so two processors share the work.
"""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

_AHEAD = 4


def read_ahead(blocks: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same blocks, none of them None, and the same error at their end.

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
