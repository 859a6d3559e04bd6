"""Reading one object of S3 as a stream that continues where a connection broke."""

from collections.abc import Callable, Mapping
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import NameTaken, ObjectMissing
from etcd_operator.storage.retries import Transient
from etcd_operator.storage.s3_errors import BehindEnd, expect, translated

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
