"""HTTP for the fake: paths and headers in, JSON out, one thread per connection.

Promises: HTTP/1.1 with keep-alive; a watch is a chunked stream of JSON lines; every request is logged with
what came of it before its answer is sent, so a client that has its answer finds it in the log.
"""

import contextlib
import select
import socket
import time
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from unit.fakes.apiserver import faults, patches
from unit.fakes.apiserver.discovery import discover
from unit.fakes.apiserver.kinds import Json, Target
from unit.fakes.apiserver.lists import list_objects
from unit.fakes.apiserver.objects import PatchFormat
from unit.fakes.apiserver.refusals import Refusal, bad_request
from unit.fakes.apiserver.watch import Stream

if TYPE_CHECKING:
    from unit.fakes.apiserver.server import Listener

_PATCH_FORMATS: dict[str, PatchFormat] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_TICK = 0.1


class Disconnected(Exception):
    """Close the connection without an answer."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: "Listener"

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError):  # the client, or stop(), has closed the connection
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing on the terminal: `ApiServer.log` has it all."""

    def send_response(self, code: int, message: str | None = None) -> None:
        """As the base class does it, but with the date of the fake's clock, if it has one."""
        date = self.server.api.date
        self.send_response_only(code, message)
        if date is not None:
            self.send_header("Date", format_datetime(date, usegmt=True))

    def _serve(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = self.server.api.objects.kinds.resolve(url.path)
        try:
            request = self._request(url.path, dict(parse_qsl(url.query)), raw, target)
            code, body = self._answer(request, target)
            if isinstance(body, Stream):
                self._stream(body, request)
            else:
                self._send(code, body, request)
        except Disconnected:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _request(self, path: str, query: dict[str, str], raw: bytes, target: Target | None) -> faults.Request:
        try:
            body = patches.decode(raw)
        except Refusal:
            body = None
        return faults.Request(
            method=self.command, path=path, query=query, body=body,
            content_type=self.headers.get("Content-Type", "").split(";")[0],
            plural=target.kind.plural if target else "", subresource=target.subresource if target else "",
            write=0 if self.command == "GET" else self.server.api.next_write(),
        )  # fmt: skip

    def _answer(self, request: faults.Request, target: Target | None) -> tuple[int, Json | Stream]:
        """Fault before, apply, fault after; the log entry is complete before anything is sent."""
        api = self.server.api
        applied = False
        try:
            self._obey(api.before(request))
            code, body, applied = self._outcome(request, target)
            self._obey(api.after(request))
        except Refusal as refusal:
            code, body = refusal.code, refusal.body()
        except Disconnected:
            api.record(faults.Exchange(request, 0, applied))
            raise
        api.record(faults.Exchange(request, code, applied))
        return code, body

    def _outcome(self, request: faults.Request, target: Target | None) -> tuple[int, Json | Stream, bool]:
        """The true answer, and whether a write was carried out."""
        try:
            return *self._apply(request, target), request.is_write
        except Refusal as refusal:
            return refusal.code, refusal.body(), False

    def _obey(self, fault: faults.Fault | None) -> None:
        match fault:
            case faults.Answer():
                causes = [{"reason": fault.cause}] if fault.cause else []
                details = {"retryAfterSeconds": fault.retry_after, "causes": causes}
                raise Refusal(fault.code, fault.reason, fault.message, **details)
            case faults.Cut():
                raise Disconnected
            case faults.Stall():
                while not fault.released.wait(_TICK):
                    if self.server.api.is_stopping or self._peer_is_gone():
                        raise Disconnected
            case None:
                pass

    def _apply(self, request: faults.Request, target: Target | None) -> tuple[int, Json | Stream]:
        if target is None:
            return discover(self.server.api.objects.kinds, request.path)
        if request.method != "GET":
            return self._write(request, target)
        api = self.server.api
        if target.name:
            return 200, api.objects.get(*target[:3])
        if request.is_watch:
            return 200, api.open_watch(target.kind, target.namespace, request)
        newest = api.stale_revision
        return 200, list_objects(api.objects.store, target.kind, target.namespace, request.query, newest)

    def _write(self, request: faults.Request, target: Target) -> tuple[int, Json]:
        objects, body = self.server.api.objects, request.body
        kind, namespace, name, subresource = target
        match request.method, bool(name):
            case "POST", False:
                return 201, objects.create(kind, namespace, body)
            case "PUT", True:
                code = 200 if objects.store.find(kind, namespace, name) else 201
                return code, objects.replace(kind, namespace, name, body, subresource=subresource)
            case "PATCH", True:
                form = _PATCH_FORMATS.get(request.content_type)
                if form is None or (form == "strategic" and kind.custom):
                    raise Refusal(
                        415, "UnsupportedMediaType", "the body of the request was in an unknown format"
                    )
                manager = request.query.get("fieldManager", "")
                code = 200 if objects.store.find(kind, namespace, name) else 201
                is_dry = request.query.get("dryRun") == "All"
                return code, objects.patch(
                    kind, namespace, name, body, form, subresource=subresource, manager=manager, is_dry=is_dry
                )
            case "DELETE", True:
                return 200, objects.delete(kind, namespace, name, **_delete_options(request))
            case _:
                raise Refusal(405, "MethodNotAllowed", "the server does not allow this method here")

    def _send(self, code: int, body: Json, request: faults.Request) -> None:
        # an unknown path is answered in plain text, as by a real server
        plain = body.get("plain")
        data = plain.encode() if plain else msgspec.json.encode(body)
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if plain else "application/json")
        self.send_header("Content-Length", str(len(data)))
        wait = (body.get("details") or {}).get("retryAfterSeconds")
        if code >= 400 and wait is not None:
            self.send_header("Retry-After", str(wait))
        self.end_headers()
        self._write_out(data)

    def _stream(self, stream: Stream, request: faults.Request) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._write_out(b"")
        ends = time.monotonic() + float(request.query.get("timeoutSeconds") or 3600)
        try:
            while stream.is_open and time.monotonic() < ends and not self._peer_is_gone():
                for event in stream.next(_TICK, lambda: self.server.api.stale_revision):
                    line = msgspec.json.encode(event) + b"\n"
                    self._write_out(b"%x\r\n%s\r\n" % (len(line), line))
            self._write_out(b"0\r\n\r\n")
        finally:
            stream.drop()

    def _write_out(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError as error:
            raise Disconnected from error

    def _peer_is_gone(self) -> bool:
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True


def _delete_options(request: faults.Request) -> dict[str, Any]:
    body = request.body if isinstance(request.body, dict) else {}
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy") or "Background"
    if propagation not in ("Background", "Foreground", "Orphan"):
        raise bad_request(f"unknown propagationPolicy {propagation}")
    return {
        "uid": preconditions.get("uid") or "",
        "resource_version": preconditions.get("resourceVersion") or "",
        "propagation": propagation,
        "grace": None if grace is None else int(grace),
    }
