"""Putting one object into Google Cloud Storage by a resumable upload session.

The session is bound to "no object has this name" (`if_generation_match=0`). The object appears when the part
that names the total size has arrived, which is sent only after the source has ended. After a failure the
session is asked which bytes it has, or whether it is complete: a lost reply is not a failed upload.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from etcd_operator.storage import failures
from etcd_operator.storage.errors import ObjectMissing, StoreError
from etcd_operator.storage.gcs_errors import answered, translated
from etcd_operator.storage.parts import PART_BYTES, Body, Part, cut, transfer
from etcd_operator.storage.retries import Attempts

_CONTENT = "application/octet-stream"
_RANGE = re.compile(r"bytes=0-(\d+)$")
_MORE = 308  # the session waits for more bytes
_AFTERMATH_SECONDS = 10.0


class Upload:
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
            self._cancel()
            raise

    def _start(self) -> str:
        try:
            with translated(self._subject, self._attempts.stall):
                url = self._blob.create_resumable_upload_session(
                    _CONTENT, if_generation_match=0, checksum=None, retry=None, timeout=self._timeout
                )
                return str(url)
        except ObjectMissing:
            raise failures.bucket_missing(self._subject) from None

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
                raise failures.busy(self._subject, f"{_MORE} and stored nothing", self._attempts.stall)

    def _has(self, part: Part) -> bool:
        return self._is_complete if part.is_last else self._stored >= part.end

    def _exchange(self, body: Body | None, content_range: str, part: Part) -> None:
        """One request to the session; updates what is known of it."""
        self._is_in_doubt = True
        with translated(self._subject, self._attempts.stall):
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
            raise answered(reply.status_code, _text(reply), self._subject, self._attempts.stall)

    def _finish(self, stored: Mapping[str, Any], part: Part) -> None:
        if not part.is_last or int(stored.get("size", part.end)) != part.end:
            self._afterwards(partial(self._remove, int(stored.get("generation", 0))))
            raise StoreError(
                f"{self._subject} was stored with a wrong size. Check that it is removed, and try again."
            )
        self._is_complete = True

    def _remove(self, generation: int) -> None:
        """Remove what this session stored, and nothing that got the name later."""
        with translated(self._subject, self._attempts.stall):
            self._blob.delete(if_generation_match=generation, retry=None, timeout=self._timeout)

    def _cancel(self) -> None:
        """End the session. One that cannot be reached now ends by itself after a week."""
        self._afterwards(self._end)

    def _afterwards(self, request: Callable[[], None]) -> None:
        """Clean up if the store allows it; the upload has failed anyway."""
        with suppress(StoreError):
            Attempts(_AFTERMATH_SECONDS).run(request)

    def _end(self) -> None:
        with translated(self._subject, self._attempts.stall):
            reply = self._http.delete(self._session, timeout=self._timeout)
        if reply.status_code >= 500:
            raise failures.busy(self._subject, str(reply.status_code), self._attempts.stall)

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
