"""S3 and stores that are compatible with it, such as MinIO, Ceph and versitygw.

An object is put by one request if it is small, else by a multipart upload. Both are conditional
(`If-None-Match: *`) where the store implements it. A read right before them narrows the window for stores
that ignore the condition. Each object carries a random ID of its writer in its metadata: if a reply is lost,
this ID shows whether the object of that name is ours.

A bucket should have a lifecycle rule that aborts incomplete multipart uploads after a day: a process that is
killed cannot do it.
"""

import base64
import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import partial
from itertools import chain
from typing import Any

from etcd_operator.storage import errors
from etcd_operator.storage.errors import (
    AccessDenied,
    BucketMissing,
    NameTaken,
    ObjectMissing,
    StoreError,
    StoreFull,
    Transient,
)
from etcd_operator.storage.parts import PART_BYTES, Body, Part, cut, transfer
from etcd_operator.storage.protocol import Stored, check_name, check_prefix
from etcd_operator.storage.retries import Attempts
from etcd_operator.storage.s3_client import Options, connect
from etcd_operator.storage.s3_errors import BehindEnd, DigestRequired, Unsupported, expect, translated
from etcd_operator.storage.service import Service

_WRITER_ID = "etcd-operator-upload"
# What is left to do after a failure is worth a short while, whatever the time limit of the store.
_AFTERMATH_SECONDS = 10.0
_CHUNK = 256 * 1024
_PARTIAL = 206


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
        _Upload(self._client, self._bucket, key, self._url(key), self._attempts, extra).put(chunks)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """See `Store.read`."""
        get = partial(self._request, name, "get_object", Key=check_name(name))
        reader = _Reader(get, self._url(name), offset, self._attempts.stall)
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
            raise errors.refused(self._url(prefix), "it sends the same page of a list again")
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
            raise errors.bucket_missing(self._url(name)) from None
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


class _Reader:
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
                raise errors.replaced(self._subject) from None
            raise
        if rest and reply["ResponseMetadata"]["HTTPStatusCode"] != _PARTIAL:
            reply["Body"].close()
            raise errors.refused(self._subject, "it sends the beginning of an object when asked for the rest")
        self._version = {"IfMatch": expect(reply, "ETag", self._subject)}
        self._body = reply["Body"]


class _Upload:
    """One object that is being put under the name `key` of a bucket; `subject` is its URL in messages."""

    def __init__(
        self, client: Any, bucket: str, key: str, subject: str, attempts: Attempts, extra: Mapping[str, str]
    ) -> None:
        self._client = client
        self._target = {"Bucket": bucket, "Key": key}
        self._subject = subject
        self._attempts = attempts
        self._brief = Attempts(_AFTERMATH_SECONDS)
        self._writer_id = uuid.uuid4().hex
        self._with_digest = False
        self._extra = {**extra, "Metadata": {_WRITER_ID: self._writer_id}}

    def put(self, chunks: Iterable[bytes]) -> None:
        """Transfer the chunks and make the object visible; see `Store.put`."""
        self._refuse_taken()
        parts = cut(chunks, PART_BYTES)
        first = next(parts)
        if first.is_last:
            self._create("put_object", Body=Body(first.data, self._attempts.moved), **self._extra)
            return
        with self._multipart() as upload_id:
            done = transfer(chain([first], parts), partial(self._send, upload_id))
            self._create("complete_multipart_upload", UploadId=upload_id, MultipartUpload={"Parts": done})

    @contextmanager
    def _multipart(self) -> Iterator[str]:
        """A multipart upload, which is aborted unless the block succeeds."""
        reply = self._run("create_multipart_upload", **self._extra)
        upload_id = expect(reply, "UploadId", self._subject)
        try:
            yield upload_id
        except BaseException:
            self._abort(upload_id)
            raise

    def _send(self, upload_id: str, part: Part) -> dict[str, Any]:
        body = Body(part.data, self._attempts.moved)
        reply = self._run("upload_part", UploadId=upload_id, PartNumber=part.number, Body=body)
        return {"PartNumber": part.number, "ETag": expect(reply, "ETag", self._subject)}

    def _create(self, method: str, **parameters: Any) -> None:
        """The request that makes the object visible; perhaps an attempt did whose reply was lost."""
        try:
            self._create_if_absent(method, **parameters)
        except (AccessDenied, BucketMissing, StoreFull):
            raise
        except StoreError:
            if not self._is_ours():
                raise

    def _create_if_absent(self, method: str, **parameters: Any) -> None:
        self._refuse_taken()
        try:
            self._run(method, IfNoneMatch="*", **parameters)
        except Unsupported:
            self._run(method, **parameters)

    def _refuse_taken(self) -> None:
        """Raises `NameTaken`. Credentials that may only write cannot ask: then the condition decides."""
        try:
            self._run("head_object")
        except (ObjectMissing, AccessDenied):
            return
        raise errors.name_taken(self._subject)

    def _is_ours(self) -> bool:
        try:
            found = self._brief.run(partial(self._request, "head_object"))
        except StoreError:
            return False
        return bool(found["Metadata"].get(_WRITER_ID) == self._writer_id)

    def _abort(self, upload_id: str) -> None:
        """Discard the parts. If the store cannot be reached now, its lifecycle rules have to."""
        with suppress(StoreError):
            self._brief.run(partial(self._request, "abort_multipart_upload", UploadId=upload_id))

    def _run(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        return self._attempts.run(partial(self._request, method, **parameters))

    def _request(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        body = parameters.get("Body")
        if body is not None:
            body.rewind(sending=False)  # the signature reads it first
            parameters.update(self._digest(body))
        try:
            with translated(self._subject, self._attempts.stall):
                reply: Mapping[str, Any] = getattr(self._client, method)(**self._target, **parameters)
                return reply
        except DigestRequired:
            if self._with_digest:
                raise
            self._with_digest = True
            return self._request(method, **parameters)

    def _digest(self, body: Body) -> dict[str, str]:
        """MD5, which every store understands. Only on demand: the signature protects the bytes already."""
        if not self._with_digest:
            return {}
        digest = hashlib.md5(body.getvalue(), usedforsecurity=False).digest()
        return {"ContentMD5": base64.b64encode(digest).decode()}
