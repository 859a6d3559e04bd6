"""Google Cloud Storage as far as stores use it: objects with generations, and resumable upload sessions.

A session persists parts in whole multiples of 256 KiB, and knows what it has.
"""

import itertools
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from unit.storage.server import Request, Response

_UNIT = 256 * 1024
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)$")


@dataclass(kw_only=True)
class Object:
    data: bytes
    generation: int
    modified: str


@dataclass(kw_only=True)
class Session:
    name: str
    must_be_new: bool
    data: bytes = b""
    done: dict[str, Any] | None = None


@dataclass
class FakeGCS:
    """One bucket. `token` is part of the URL of each session."""

    bucket: str
    token: str
    address: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    persist: int | None = None  # a session persists at most that many bytes of a part
    is_eager: bool = False  # to ask for the state of a session completes it: an emulator does so
    page: int = 3

    def __post_init__(self) -> None:
        self._generations = itertools.count(1000)

    def reset(self) -> None:
        self.objects, self.sessions, self.persist, self.is_eager = {}, {}, None, False

    def unfinished(self) -> list[str]:
        return sorted(each.name for each in self.sessions.values() if each.done is None)

    def __call__(self, request: Request) -> Response:
        session = request.query.get("upload_id")
        if session is not None:
            return self._of_session(session, request)
        match = re.match(r"/(?:upload/|download/)?storage/v1/b/([^/]+)/o(?:/(.+))?$", request.path)
        if match is None or match[1] != self.bucket:
            return _error(404, "The specified bucket does not exist.")
        if request.method == "POST":
            return self._start(request)
        return self._of_object(match[2], request) if match[2] else self._list(request)

    def _start(self, request: Request) -> Response:
        name = json.loads(request.body or b"{}").get("name") or request.query["name"]
        new = request.query.get("ifGenerationMatch") == "0"
        if new and name in self.objects:
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        key = f"{self.token}-{len(self.sessions)}"
        self.sessions[key] = Session(name=name, must_be_new=new)
        path = f"upload/storage/v1/b/{self.bucket}/o?uploadType=resumable&upload_id={key}"
        return Response(status=200, headers={"Location": f"http://{self.address}/{path}"})

    def _of_session(self, key: str, request: Request) -> Response:
        session = self.sessions.get(key)
        if session is None:
            return _error(410, "gone")
        if request.method == "DELETE":
            del self.sessions[key]
            return Response(status=499)
        if session.done is not None:
            return _json(session.done)
        return self._append(session, request)

    def _append(self, session: Session, request: Request) -> Response:
        match = _RANGE.match(request.headers["content-range"])
        assert match is not None
        if match[1] is not None:
            assert int(match[1]) <= len(session.data), "a gap"
            assert int(match[2]) - int(match[1]) + 1 == len(request.body)
            kept = request.body if match[3] != "*" else request.body[: len(request.body) // _UNIT * _UNIT]
            kept = kept[: self.persist] if match[3] == "*" else kept
            session.data = session.data[: int(match[1])] + kept
        if match[3] == str(len(session.data)) or (self.is_eager and match[1] is None):
            return self._finish(session)
        last = len(session.data) - 1
        return Response(status=308, headers={"Range": f"bytes=0-{last}"} if last >= 0 else {})

    def _finish(self, session: Session) -> Response:
        if session.must_be_new and session.name in self.objects:
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        self.objects[session.name] = Object(
            data=session.data, generation=next(self._generations), modified=now
        )
        session.done = self._resource(session.name)
        return _json(session.done)

    def _of_object(self, name: str, request: Request) -> Response:
        found = self.objects.get(name)
        if found is None:
            return _error(404, f"No such object: {self.bucket}/{name}")
        if request.query.get("generation", str(found.generation)) != str(found.generation):
            return _error(404, f"No such object: {self.bucket}/{name}#{request.query['generation']}")
        if request.query.get("ifGenerationMatch", str(found.generation)) != str(found.generation):
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        if request.method == "DELETE":
            del self.objects[name]
            return Response(status=204)
        if request.query.get("alt") == "media":
            return _media(found.data, request)
        return _json(self._resource(name))

    def _list(self, request: Request) -> Response:
        prefix = request.query.get("prefix", "")
        after = request.query.get("pageToken", "")
        names = sorted(name for name in self.objects if name.startswith(prefix) and name > after)
        page: dict[str, Any] = {"items": [self._resource(name) for name in names[: self.page]]}
        if len(names) > self.page:
            page["nextPageToken"] = names[self.page - 1]
        return _json(page)

    def _resource(self, name: str) -> dict[str, Any]:
        found = self.objects[name]
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": self.bucket,
            "size": str(len(found.data)),
            "generation": str(found.generation),
            "updated": found.modified,
        }


def _media(data: bytes, request: Request) -> Response:
    match = re.match(r"bytes=(\d+)-(\d*)$", request.headers.get("range", ""))
    if match is None:
        return Response(status=200, body=data)
    start, end = int(match[1]), min(int(match[2] or len(data)), len(data) - 1)
    if start >= len(data):
        return _error(416, "range")
    headers = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
    return Response(status=206, headers=headers, body=data[start : end + 1])


def _json(value: dict[str, Any]) -> Response:
    return Response(status=200, headers={"Content-Type": "application/json"}, body=json.dumps(value).encode())


def _error(status: int, message: str) -> Response:
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    return Response(status=status, headers={"Content-Type": "application/json"}, body=body)
