"""Google Cloud Storage. `STORAGE_EMULATOR_HOST` names an emulator, as for all programs with Google's SDK.

An object is put by a resumable upload session, which is bound to "no object has this name"
(`if_generation_match=0`). The object appears when the part that names the total size has arrived, which is
sent only after the source has ended. After a failure the session is asked which bytes it has, or whether it
is complete: a lost reply is not a failed upload.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC
from functools import cached_property, partial
from itertools import chain
from typing import Any

from etcd_operator.storage import errors
from etcd_operator.storage.errors import AccessDenied, MissingSDK, ObjectMissing, StoreError, Transient
from etcd_operator.storage.parts import PAGE_OBJECTS, PART_BYTES, Body, Page, Part, cut, transfer
from etcd_operator.storage.protocol import Stored, check_name
from etcd_operator.storage.retries import Attempts, quiet, reason
from etcd_operator.storage.service import BlockService

_CONTENT = "application/octet-stream"
_RANGE = re.compile(r"bytes=0-(\d+)$")
_MORE = 308  # the session waits for more bytes
_AFTERMATH_SECONDS = 10.0
_FULL = ("quotaExceeded", "storageQuotaExceeded")


class GCS(BlockService):
    """The objects of one bucket. Implements `Store`."""

    def __init__(self, bucket: str, *, stall: float) -> None:
        try:
            import google.cloud.storage  # noqa: F401
        except ImportError as error:
            raise MissingSDK("gs:// needs the Python package google-cloud-storage. Install it.") from error
        super().__init__("gs", bucket, _translated, stall=stall)
        self._options = {
            "retry": None,
            "timeout": (self._attempts.connect_timeout, self._attempts.read_timeout),
        }

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """See `Store.put`."""
        key = check_name(name)
        self._refuse_taken(key)
        _Upload(self._blob(key), self._http, self._url(key), self._attempts).put(chunks)

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
            with _translated(self._url(prefix), self._attempts.stall):
                return tuple(next(found.pages, ())), found.next_page_token
        except ObjectMissing:
            raise errors.bucket_missing(self._url(prefix)) from None

    def _check_bucket(self, name: str) -> None:
        """Raises `BucketMissing`: the answer does not distinguish a missing object from a missing bucket."""
        with suppress(AccessDenied):  # a right of its own, which the user of one prefix may lack
            self._run(name, partial(self._page, name, None))

    def _stored(self, item: Any) -> Stored | None:
        return None if item.name.endswith("/") else _stored(item)


def _stored(blob: Any) -> Stored:
    return Stored(name=blob.name, size=blob.size, modified=blob.updated.astimezone(UTC))


class _Upload:
    """One object that is being put as `blob`; `subject` is its URL in messages."""

    def __init__(self, blob: Any, http: Any, subject: str, attempts: Attempts) -> None:
        self._blob = blob
        self._http = http
        self._subject = subject
        self._attempts = attempts
        self._session = ""
        self._stored = 0  # bytes that the session has
        self._is_complete = False
        self._is_in_doubt = False

    def put(self, chunks: Iterable[bytes]) -> None:
        """Transfer the chunks and make the object visible; see `Store.put`."""
        parts = cut(chunks, PART_BYTES)
        first = next(parts)
        self._session = self._attempts.run(self._start)
        try:
            transfer(chain([first], parts), self._send)
        except BaseException:
            self._afterwards(self._end)
            raise

    def _start(self) -> str:
        try:
            with _translated(self._subject, self._attempts.stall):
                url = self._blob.create_resumable_upload_session(
                    _CONTENT, if_generation_match=0, checksum=None, retry=None, timeout=self._timeout
                )
                return str(url)
        except ObjectMissing:
            raise errors.bucket_missing(self._subject) from None

    def _send(self, part: Part) -> None:
        """Returns when the session has all of the part; with the last one, the object exists."""
        body = Body(part.data, self._attempts.moved)
        self._attempts.run(partial(self._attempt, part, body))

    def _attempt(self, part: Part, body: Body) -> None:
        if self._is_in_doubt:
            self._exchange(None, f"bytes */{part.end if part.is_last else '*'}", part)
        while not self._has(part):
            before = self._stored
            body.rewind(sending=True)
            body.seek(self._stored - part.offset)
            self._exchange(body, _content_range(part, self._stored), part)
            if not self._has(part) and self._stored <= before:
                raise errors.busy(self._subject, f"{_MORE} and stored nothing", self._attempts.stall)

    def _has(self, part: Part) -> bool:
        return self._is_complete if part.is_last else self._stored >= part.end

    def _exchange(self, body: Body | None, content_range: str, part: Part) -> None:
        """One request to the session; updates what is known of it."""
        self._is_in_doubt = True
        with _translated(self._subject, self._attempts.stall):
            reply = self._http.put(
                self._session,
                data=body,
                headers={"Content-Range": content_range},
                timeout=self._timeout,
                allow_redirects=False,  # 308 means something else here
            )
        self._note(reply, part)
        self._is_in_doubt = False

    def _note(self, reply: Any, part: Part) -> None:
        if reply.status_code == _MORE:
            match = _RANGE.match(reply.headers.get("Range", ""))
            self._stored = int(match[1]) + 1 if match else 0
            if not part.offset <= self._stored <= part.end:
                raise StoreError(f"The upload session of {self._subject} lost bytes that it had. Try again.")
        elif reply.status_code in (200, 201):
            self._finish(reply.json(), part)
        elif reply.status_code in (404, 410, 499):
            raise StoreError(f"The upload session of {self._subject} is gone. Try again.")
        else:
            raise _answered(reply.status_code, _text(reply), self._subject, self._attempts.stall)

    def _finish(self, stored: Mapping[str, Any], part: Part) -> None:
        if not part.is_last or int(stored.get("size", part.end)) != part.end:
            self._afterwards(partial(self._remove, int(stored.get("generation", 0))))
            raise StoreError(
                f"{self._subject} was stored with a wrong size. Check that it is removed, and try again."
            )
        self._is_complete = True

    def _remove(self, generation: int) -> None:
        """Remove what this session stored, and nothing that got the name later."""
        with _translated(self._subject, self._attempts.stall):
            self._blob.delete(if_generation_match=generation, retry=None, timeout=self._timeout)

    def _afterwards(self, request: Callable[[], None]) -> None:
        """Clean up if the store allows it; the upload has failed anyway."""
        with suppress(StoreError):
            Attempts(_AFTERMATH_SECONDS).run(request)

    def _end(self) -> None:
        """End the session. One that cannot be reached now ends by itself after a week."""
        with _translated(self._subject, self._attempts.stall):
            reply = self._http.delete(self._session, timeout=self._timeout)
        if reply.status_code >= 500:
            raise errors.busy(self._subject, str(reply.status_code), self._attempts.stall)

    @property
    def _timeout(self) -> tuple[float, float]:
        return self._attempts.connect_timeout, self._attempts.read_timeout


def _content_range(part: Part, start: int) -> str:
    total = str(part.end) if part.is_last else "*"
    return f"bytes {start}-{part.end - 1}/{total}" if part.end > start else f"bytes */{total}"


def _text(reply: Any) -> str:
    """The message of an answer in JSON; others are not shown: a proxy may repeat the request."""
    try:
        return str(reply.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def _translated(subject: str, stall: float) -> Iterator[None]:
    """Exceptions of the SDK as `StoreError`, or as `Transient`; `subject` is the URL of the object.

    Causes are cut off: they contain the URLs of uploads, which need no other credentials.
    """
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except GoogleAPICallError as error:
        raise _answered(int(error.code or 0), str(error.message or ""), subject, stall) from None
    except (RequestException, TransportError, HTTPError, OSError) as error:
        raise _unanswered(error, subject, stall) from None
    except GoogleAuthError as error:
        raise AccessDenied(
            f"No usable credentials for {subject} were found ({type(error).__name__}). Mount the key of a "
            "service account and set GOOGLE_APPLICATION_CREDENTIALS, or use workload identity."
        ) from None


def _answered(status: int, text: str, subject: str, stall: float) -> StoreError | Transient:
    """What an error of the service means; `text` is its message."""
    answer = f"{status} {_message(text)}"
    if any(word in text for word in _FULL):
        return errors.full(subject, answer)
    if status == 412:
        return errors.name_taken(subject)
    return errors.of_status(status, subject, answer, stall)


def _message(text: str) -> str:
    """The message without the request that the SDK puts before it, which may have a signed URL."""
    return "" if "://" in text.rpartition(": ")[2] else text.rpartition(": ")[2]


def _unanswered(error: Exception, subject: str, stall: float) -> StoreError | Transient:
    from requests.exceptions import ConnectTimeout

    if errors.is_untrusted(error):
        return errors.untrusted(subject, "Set REQUESTS_CA_BUNDLE to the file of its CA.")
    text = repr(error)
    if isinstance(error, ConnectTimeout) or "NewConnectionError" in text or "NameResolutionError" in text:
        return errors.unreachable(subject, reason(error), stall)
    return errors.broken(subject, reason(error), stall)
