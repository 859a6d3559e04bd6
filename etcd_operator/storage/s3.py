"""S3 and stores that are compatible with it, such as MinIO, Ceph and versitygw.

A bucket should have a lifecycle rule that aborts incomplete multipart uploads after a day: a process that is
killed cannot do it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, ObjectMissing
from etcd_operator.storage.names import check_name, check_prefix
from etcd_operator.storage.protocol import Stored
from etcd_operator.storage.retries import Attempts
from etcd_operator.storage.s3_client import Options, connect
from etcd_operator.storage.s3_errors import expect, translated
from etcd_operator.storage.s3_reader import Reader
from etcd_operator.storage.s3_upload import Upload


class S3:
    """The objects of one bucket. Implements `Store`."""

    def __init__(self, bucket: str, options: Options, *, stall: float) -> None:
        self._bucket = bucket
        self._options = options
        self._attempts = Attempts(stall)
        self._client = connect(options, self._attempts)

    def __repr__(self) -> str:
        return f"S3({self._bucket!r})"

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`."""
        key = check_name(name)
        extra = self._options.encryption
        Upload(self._client, self._bucket, key, self._url(key), self._attempts, extra).put(chunks)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        get = partial(self._request, name, "get_object", Key=check_name(name))
        reader = Reader(get, self._url(name), offset, self._attempts.stall)
        try:
            yield from iter(partial(self._attempts.run, reader.next), b"")
        finally:
            reader.close()

    def list(self, prefix: str) -> Iterator[Stored]:
        """See `Store.list`."""
        parameters = {"Prefix": check_prefix(prefix)}
        while True:
            page = self._run(prefix, "list_objects_v2", **parameters)
            yield from map(_stored, filter(_is_object, page.get("Contents", ())))
            if not page.get("IsTruncated"):
                return
            parameters["ContinuationToken"] = self._next(
                page, parameters.get("ContinuationToken", ""), prefix
            )

    def _next(self, page: Mapping[str, Any], before: str, prefix: str) -> str:
        """The token of the next page: with that of this page, the list would have no end."""
        token = str(expect(page, "NextContinuationToken", self._url(prefix)))
        if token == before:
            raise failures.refused(self._url(prefix), "it sends the same page of a list again")
        return token

    def stat(self, name: str) -> Stored | None:
        """See `Store.stat`."""
        try:
            found = self._run(name, "head_object", Key=check_name(name))
        except ObjectMissing:
            self._check_bucket(name)
            return None
        modified = expect(found, "LastModified", self._url(name))
        size = expect(found, "ContentLength", self._url(name))
        return Stored(name=name, size=size, modified=modified.astimezone(UTC))

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        with suppress(ObjectMissing):
            self._run(name, "delete_object", Key=check_name(name))

    def _check_bucket(self, name: str) -> None:
        """Raises `BucketMissing`: HEAD does not distinguish a missing object from a missing bucket."""
        try:
            self._run(name, "head_bucket")
        except ObjectMissing:
            raise failures.bucket_missing(self._url(name)) from None
        except AccessDenied:  # a right of its own, which the user of one prefix may lack
            return

    def _run(self, name: str, method: str, **parameters: Any) -> Mapping[str, Any]:
        return self._attempts.run(partial(self._request, name, method, **parameters))

    def _request(self, name: str, method: str, **parameters: Any) -> Mapping[str, Any]:
        with translated(self._url(name), self._attempts.stall):
            reply: Mapping[str, Any] = getattr(self._client, method)(Bucket=self._bucket, **parameters)
            return reply

    def _url(self, name: str) -> str:
        return f"s3://{self._bucket}/{name}"


def _is_object(entry: Mapping[str, Any]) -> bool:
    """Consoles make empty objects that end with the separator, to show folders."""
    return not str(entry["Key"]).endswith("/")


def _stored(entry: Mapping[str, Any]) -> Stored:
    return Stored(name=entry["Key"], size=entry["Size"], modified=entry["LastModified"].astimezone(UTC))
