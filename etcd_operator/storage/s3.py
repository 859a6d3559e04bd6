"""S3 and stores that are compatible with it, such as MinIO, Ceph and versitygw.

A bucket should have a lifecycle rule that aborts incomplete multipart uploads after a day: a process that is
killed cannot do it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from functools import partial
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, NameTaken, ObjectMissing
from etcd_operator.storage.protocol import Stored, check_name, check_prefix
from etcd_operator.storage.retries import Transient
from etcd_operator.storage.s3_client import Options, connect
from etcd_operator.storage.s3_errors import BehindEnd, expect, translated
from etcd_operator.storage.s3_upload import Upload
from etcd_operator.storage.service import Service


class S3(Service):
    """The objects of one bucket. Implements `Store`."""

    def __init__(self, bucket: str, options: Options, *, stall: float) -> None:
        super().__init__("s3", bucket, translated, stall=stall)
        self._options = options
        self._client = connect(options, self._attempts)

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
            page = self._call(prefix, "list_objects_v2", **parameters)
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
            found = self._call(name, "head_object", Key=check_name(name))
        except ObjectMissing:
            self._check_bucket(name)
            return None
        modified = expect(found, "LastModified", self._url(name))
        size = expect(found, "ContentLength", self._url(name))
        return Stored(name=name, size=size, modified=modified.astimezone(UTC))

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        with suppress(ObjectMissing):
            self._call(name, "delete_object", Key=check_name(name))

    def _check_bucket(self, name: str) -> None:
        """Raises `BucketMissing`: HEAD does not distinguish a missing object from a missing bucket."""
        try:
            self._call(name, "head_bucket")
        except ObjectMissing:
            raise failures.bucket_missing(self._url(name)) from None
        except AccessDenied:  # a right of its own, which the user of one prefix may lack
            return

    def _call(self, name: str, method: str, **parameters: Any) -> Mapping[str, Any]:
        return self._attempts.run(partial(self._request, name, method, **parameters))

    def _request(self, name: str, method: str, **parameters: Any) -> Mapping[str, Any]:
        with translated(self._url(name), self._attempts.stall):
            reply: Mapping[str, Any] = getattr(self._client, method)(Bucket=self._bucket, **parameters)
            return reply


def _is_object(entry: Mapping[str, Any]) -> bool:
    """Consoles make empty objects that end with the separator, to show folders."""
    return not str(entry["Key"]).endswith("/")


def _stored(entry: Mapping[str, Any]) -> Stored:
    return Stored(name=entry["Key"], size=entry["Size"], modified=entry["LastModified"].astimezone(UTC))


_CHUNK = 256 * 1024
_PARTIAL = 206


class Reader:
    """The bytes of an object from `offset` on. `get` sends GetObject with further parameters."""

    def __init__(
        self, get: Callable[..., Mapping[str, Any]], subject: str, offset: int, stall: float
    ) -> None:
        self._get = get
        self._subject = subject
        self._offset = offset
        self._stall = stall
        self._version: dict[str, str] = {}
        self._body: Any = None

    def next(self) -> bytes:
        """The next bytes, b"" at the end. After `Transient` another call continues."""
        try:
            chunk = self._read()
        except Transient:
            self.close()
            raise
        self._offset += len(chunk)
        return chunk

    def close(self) -> None:
        """Give the connection up, if there is one."""
        if self._body is not None:
            self._body.close()
            self._body = None

    def _read(self) -> bytes:
        if self._body is None:
            try:
                self._open()
            except BehindEnd:
                return b""
        with translated(self._subject, self._stall):
            return bytes(self._body.read(_CHUNK))

    def _open(self) -> None:
        """Ask for the rest of the same version of the object."""
        rest = {"Range": f"bytes={self._offset}-"} if self._offset else {}
        try:
            reply = self._get(**rest, **self._version)
        except (NameTaken, ObjectMissing):  # a condition on the version that failed looks like a taken name
            if self._version:
                raise failures.replaced(self._subject) from None
            raise
        if rest and reply["ResponseMetadata"]["HTTPStatusCode"] != _PARTIAL:
            reply["Body"].close()
            raise failures.refused(
                self._subject, "it sends the beginning of an object when asked for the rest"
            )
        self._version = {"IfMatch": expect(reply, "ETag", self._subject)}
        self._body = reply["Body"]
