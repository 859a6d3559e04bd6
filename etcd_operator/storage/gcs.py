"""Google Cloud Storage. `STORAGE_EMULATOR_HOST` names an emulator, as for all programs with Google's SDK."""

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC
from functools import cached_property, partial
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, MissingSDK, ObjectMissing
from etcd_operator.storage.gcs_errors import translated
from etcd_operator.storage.gcs_upload import Upload
from etcd_operator.storage.parts import PAGE_OBJECTS, Page
from etcd_operator.storage.protocol import Stored, check_name
from etcd_operator.storage.retries import quiet
from etcd_operator.storage.service import BlockService


class GCS(BlockService):
    """The objects of one bucket. Implements `Store`."""

    def __init__(self, bucket: str, *, stall: float) -> None:
        _require_sdk()
        super().__init__("gs", bucket, translated, stall=stall)
        self._options = {
            "retry": None,
            "timeout": (self._attempts.connect_timeout, self._attempts.read_timeout),
        }

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`."""
        key = check_name(name)
        self._refuse_taken(key)
        Upload(self._blob(key), self._http, self._url(key), self._attempts).put(chunks)

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
        return self._client.bucket(self._bucket).blob(key, generation=generation)

    def _look_up(self, key: str) -> tuple[Stored, Any]:
        blob = self._blob(key)
        try:
            self._run(key, partial(blob.reload, **self._options))
        except ObjectMissing:
            self._check_bucket(key)
            raise
        return _stored(blob), blob.generation

    def _fetch(self, key: str, version: Any, begin: int, end: int) -> bytes:
        # The number of the generation finds it also in a bucket with versions, where another one has the name
        # now; the condition is for services that ignore the number.
        options = {"raw_download": True, "checksum": None, "if_generation_match": version, **self._options}
        return bytes(self._blob(key, version).download_as_bytes(start=begin, end=end - 1, **options))

    def _page(self, prefix: str, token: str | None) -> Page:
        found = self._client.list_blobs(
            self._bucket, prefix=prefix or None, page_token=token, page_size=PAGE_OBJECTS, **self._options
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

    def _stored(self, item: Any) -> Stored | None:
        return None if item.name.endswith("/") else _stored(item)


def _require_sdk() -> None:
    try:
        import google.cloud.storage  # noqa: F401
    except ImportError as error:
        raise MissingSDK("gs:// needs the Python package google-cloud-storage. Install it.") from error


def _stored(blob: Any) -> Stored:
    return Stored(name=blob.name, size=blob.size, modified=blob.updated.astimezone(UTC))
