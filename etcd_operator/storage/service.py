"""What the stores of services have in common: requests that are repeated, with errors of this project."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from etcd_operator.storage import errors
from etcd_operator.storage.errors import AccessDenied, NameTaken, ObjectMissing
from etcd_operator.storage.parts import Page
from etcd_operator.storage.protocol import Stored, check_name, check_prefix
from etcd_operator.storage.retries import Attempts

Result = TypeVar("Result")
BLOCK_BYTES = 4 * 1024 * 1024
Translated = Callable[[str, float], AbstractContextManager[None]]


class Service:
    """The objects of one bucket or container.

    `translated` raises exceptions of the SDK as `StoreError` or `Transient`, given the URL of an object.
    """

    def __init__(self, scheme: str, bucket: str, translated: Translated, *, stall: float) -> None:
        self._scheme = scheme
        self._bucket = bucket
        self._translated = translated
        self._attempts = Attempts(stall)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bucket!r})"

    def _run(self, name: str, request: Callable[[], Result], attempts: Attempts | None = None) -> Result:
        def attempt() -> Result:
            with self._translated(self._url(name), self._attempts.stall):
                return request()

        return (attempts or self._attempts).run(attempt)

    def _url(self, name: str) -> str:
        return f"{self._scheme}://{self._bucket}/{name}"


class BlockService(Service, ABC):
    """A service whose objects are read in blocks of one version."""

    @abstractmethod
    def _look_up(self, key: str) -> tuple[Stored, Any]:
        """The object and its version; raises `ObjectMissing`."""

    @abstractmethod
    def _fetch(self, key: str, version: Any, begin: int, end: int) -> bytes:
        """The bytes from `begin` to before `end`, by one request whose condition is the version."""

    @abstractmethod
    def _page(self, prefix: str, token: str | None) -> Page:
        """Some objects, and the token of the next ones."""

    @abstractmethod
    def _stored(self, item: Any) -> Stored | None:
        """An object of a page; None for a folder, which consoles make as empty objects."""

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        found, version = self._look_up(check_name(name))
        for begin in range(offset, found.size, BLOCK_BYTES):
            end = min(begin + BLOCK_BYTES, found.size)
            yield self._run(name, partial(self._block, name, version, begin, end))

    def list(self, prefix: str) -> Iterator[Stored]:
        """See `Store.list`."""
        below, token = check_prefix(prefix), None
        while True:
            page, token = self._run(prefix, partial(self._page, below, token))
            yield from filter(None, map(self._stored, page))
            if not token:
                return

    def stat(self, name: str) -> Stored | None:
        """See `Store.stat`."""
        try:
            return self._look_up(check_name(name))[0]
        except ObjectMissing:
            return None

    def _refuse_taken(self, key: str) -> None:
        """Raises `NameTaken`. Credentials that may only write cannot ask: then the condition decides."""
        try:
            is_taken = self.stat(key) is not None
        except AccessDenied:
            return
        if is_taken:
            raise errors.name_taken(self._url(key))

    def _block(self, key: str, version: Any, begin: int, end: int) -> bytes:
        try:
            with self._translated(self._url(key), self._attempts.stall):
                block = self._fetch(key, version, begin, end)
        except (ObjectMissing, NameTaken):  # a condition that failed looks like a taken name
            raise errors.replaced(self._url(key)) from None
        if len(block) != end - begin:
            raise errors.broken(self._url(key), "the answer is too short", self._attempts.stall)
        return block
