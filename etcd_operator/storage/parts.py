"""What takes several requests: a stream that is sent in parts, an object in blocks, a list in pages."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")

# The smallest part that S3 accepts is 5 MiB, GCS wants multiples of 256 KiB, and 10,000 parts (S3) of 8 MiB
# are ten times the largest database that etcd supports.
PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes of a stream from `offset` on; `number` counts from 1."""

    number: int
    offset: int
    data: bytes = field(repr=False)
    is_last: bool

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + len(self.data)


def cut(chunks: Iterable[bytes], size: int) -> Iterator[Part]:
    """Parts of `size` bytes; only the last one is shorter, and empty only if the stream is.

    A part is handed out when the next byte has arrived, so that each knows whether it is the last one.
    """
    number, buffer = 1, bytearray()
    for piece in _pieces(chunks, size):
        if len(buffer) + len(piece) > size:
            taken = size - len(buffer)
            buffer += piece[:taken]
            yield Part(number=number, offset=(number - 1) * size, data=bytes(buffer), is_last=False)
            number, buffer = number + 1, bytearray(piece[taken:])
        else:
            buffer += piece
    yield Part(number=number, offset=(number - 1) * size, data=bytes(buffer), is_last=True)


def transfer(parts: Iterable[Part], send: Callable[[Part], Result]) -> list[Result]:
    """Send parts in their order, each while the source fills the next one; the results of `send`.

    Raises the first error of `parts` or `send`, after the part in flight has ended.
    """
    results: list[Result] = []
    with ThreadPoolExecutor(1, thread_name_prefix="transfer") as thread:
        sending: Future[Result] | None = None
        for part in parts:
            if sending is not None:
                results.append(sending.result())
            sending = thread.submit(send, part)
        if sending is not None:
            results.append(sending.result())
    return results


def _pieces(chunks: Iterable[bytes], size: int) -> Iterator[memoryview]:
    """The chunks in pieces of at most `size` bytes, without copies."""
    for chunk in chunks:
        whole = memoryview(chunk)
        for start in range(0, len(whole), size):
            yield whole[start : start + size]


class Body(io.BytesIO):
    """Bytes to be sent, perhaps by several attempts; calls `moved` for bytes that no attempt sent before.

    A store that takes a part again and again and refuses it makes no progress. HTTP libraries send a file
    in small blocks with a timeout for each, but bytes with one timeout for all.
    """

    def __init__(self, data: bytes, moved: Callable[[], None]) -> None:
        super().__init__(data)
        self._moved = moved
        self._sent = 0
        self._is_sending = False

    def rewind(self, *, sending: bool) -> None:
        """Start a new attempt. Reads count once they are for sending, not for a signature."""
        self.seek(0)
        self._is_sending = sending

    def begin_sending(self) -> None:
        """From now on reads are sent."""
        self._is_sending = True

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        data = super().read(size)
        if self._is_sending and self.tell() > self._sent:
            self._sent = self.tell()
            self._moved()
        return data


PAGE_OBJECTS = 1000

Page = tuple[Sequence[Any], str | None]
"""Objects, and the token of the next page; none, or an empty one, for the last page."""
