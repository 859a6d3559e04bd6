"""A part as the body of requests, which reports that bytes were sent."""

import io
from collections.abc import Callable


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
