"""What a store reads by several requests: an object in blocks, a list in pages."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

BLOCK_BYTES = 4 * 1024 * 1024
PAGE_OBJECTS = 1000

Page = tuple[Sequence[Any], str | None]
"""Objects, and the token of the next page; none, or an empty one, for the last page."""


def blocks(fetch: Callable[[int, int], bytes], offset: int, size: int) -> Iterator[bytes]:
    """The bytes from `offset` to before `size`. fetch: those from one position to before another."""
    for begin in range(offset, size, BLOCK_BYTES):
        yield fetch(begin, min(begin + BLOCK_BYTES, size))


def paged(fetch: Callable[[str | None], Page]) -> Iterator[Any]:
    """The objects of all pages. fetch: the page with that token, None for the first one."""
    token = None
    while True:
        page, token = fetch(token)
        yield from page
        if not token:
            return
