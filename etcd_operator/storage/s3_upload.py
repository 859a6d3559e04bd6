"""Putting one object into S3: by one request if it is small, else by a multipart upload.

Both are conditional (`If-None-Match: *`) where the store implements it. A read right before them narrows the
window for stores that ignore the condition. Each object carries a random ID of its writer in its metadata: if
a reply is lost, this ID shows whether the object of that name is ours.
"""

import base64
import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import AccessDenied, BucketMissing, ObjectMissing, StoreError, StoreFull
from etcd_operator.storage.parts import PART_BYTES, Body, Part, cut, transfer
from etcd_operator.storage.retries import Attempts
from etcd_operator.storage.s3_errors import DigestRequired, Unsupported, expect, translated

_WRITER_ID = "etcd-operator-upload"
# What is left to do after a failure is worth a short while, whatever the time limit of the store.
_AFTERMATH_SECONDS = 10.0


class Upload:
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
        raise failures.name_taken(self._subject)

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
