"""Google Cloud Storage. `STORAGE_EMULATOR_HOST` names an emulator, as for all programs with Google's SDK."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC
from functools import cached_property, partial
from typing import Any, TypeVar

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, MissingSDK, NameTaken, ObjectMissing
from etcd_operator.storage.gcs_errors import translated
from etcd_operator.storage.gcs_upload import Upload
from etcd_operator.storage.names import check_name, check_prefix
from etcd_operator.storage.parts import PAGE_OBJECTS, Page, blocks, paged
from etcd_operator.storage.protocol import Stored
from etcd_operator.storage.retries import Attempts, quiet

Result = TypeVar("Result")


class GCS:
    """The objects of one bucket. Implements `Store`."""

    def __init__(self, bucket: str, *, stall: float) -> None:
        _require_sdk()
        self._name = bucket
        self._attempts = Attempts(stall)
        self._options = {
            "retry": None,
            "timeout": (self._attempts.connect_timeout, self._attempts.read_timeout),
        }

    def __repr__(self) -> str:
        return f"GCS({self._name!r})"

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`."""
        key = check_name(name)
        if self._exists(key):
            raise failures.name_taken(self._url(key))
        Upload(self._blob(key), self._http, self._url(key), self._attempts).put(chunks)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        blob = self._loaded(check_name(name))
        block = partial(self._block, name, blob.generation)
        yield from blocks(lambda begin, end: self._run(name, partial(block, begin, end)), offset, blob.size)

    def list(self, prefix: str) -> Iterator[Stored]:
        """See `Store.list`."""
        below = check_prefix(prefix)
        blobs = paged(lambda token: self._run(prefix, partial(self._page, below, token)))
        yield from (_stored(blob) for blob in blobs if not blob.name.endswith("/"))

    def stat(self, name: str) -> Stored | None:
        """See `Store.stat`."""
        try:
            return _stored(self._loaded(check_name(name)))
        except ObjectMissing:
            return None

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        blob = self._blob(check_name(name))
        with suppress(ObjectMissing):
            self._run(name, partial(blob.delete, **self._options))

    @cached_property
    def _client(self) -> Any:
        """Made with the first request: finding credentials may need the network."""
        from google.cloud import storage

        quiet("google", "urllib3", "requests")
        # Otherwise threads of the SDK ask for metadata of the bucket, with a right that we do not need.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        return self._run("", partial(storage.Client, project=None))

    @cached_property
    def _http(self) -> Any:
        """For upload sessions, whose URLs need no other credentials."""
        import requests

        return requests.Session()

    def _blob(self, key: str, generation: int | None = None) -> Any:
        return self._client.bucket(self._name).blob(key, generation=generation)

    def _loaded(self, key: str) -> Any:
        """The object with its size and generation; raises `ObjectMissing` or `BucketMissing`."""
        blob = self._blob(key)
        try:
            self._run(key, partial(blob.reload, **self._options))
        except ObjectMissing:
            self._check_bucket(key)
            raise
        return blob

    def _exists(self, key: str) -> bool:
        """Credentials that may only write cannot ask: then the condition of the upload decides."""
        try:
            return self.stat(key) is not None
        except AccessDenied:
            return False

    def _block(self, name: str, generation: int, offset: int, end: int) -> bytes:
        """The bytes of one generation of the object, from `offset` to before `end`.

        The number of the generation finds it also in a bucket with versions, where another one has the name
        now; the condition is for services that ignore the number.
        """
        options = {"raw_download": True, "checksum": None, "if_generation_match": generation, **self._options}
        blob = self._blob(name, generation)
        try:
            with translated(self._url(name), self._attempts.stall):
                block = bytes(blob.download_as_bytes(start=offset, end=end - 1, **options))
        except (ObjectMissing, NameTaken):  # a condition that failed looks like a taken name
            raise failures.replaced(self._url(name)) from None
        if len(block) != end - offset:
            raise failures.broken(self._url(name), "the answer is too short", self._attempts.stall)
        return block

    def _page(self, prefix: str, token: str | None) -> Page:
        """Some objects, and the token of the next ones."""
        found = self._client.list_blobs(
            self._name, prefix=prefix or None, page_token=token, page_size=PAGE_OBJECTS, **self._options
        )
        try:
            with translated(self._url(prefix), self._attempts.stall):
                return tuple(next(found.pages, ())), found.next_page_token
        except ObjectMissing:
            raise failures.bucket_missing(self._url(prefix)) from None

    def _check_bucket(self, name: str) -> None:
        """Raises `BucketMissing`: the answer does not distinguish a missing object from a missing bucket."""
        with suppress(AccessDenied):  # a right of its own, which the user of one prefix may lack
            self._run(name, partial(self._page, name, None))

    def _run(self, name: str, request: Callable[[], Result]) -> Result:
        def attempt() -> Result:
            with translated(self._url(name), self._attempts.stall):
                return request()

        return self._attempts.run(attempt)

    def _url(self, name: str) -> str:
        return f"gs://{self._name}/{name}"


def _require_sdk() -> None:
    try:
        import google.cloud.storage  # noqa: F401
    except ImportError as error:
        raise MissingSDK("gs:// needs the Python package google-cloud-storage. Install it.") from error


def _stored(blob: Any) -> Stored:
    return Stored(name=blob.name, size=blob.size, modified=blob.updated.astimezone(UTC))
