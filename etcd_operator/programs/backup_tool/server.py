"""The HTTP API of the backup tool.

    GET     /v1/status                    what is stored, and how the last try went
    GET     /v1/restorable?clusterID=ID   the newest backup that is whole, for a recovery
    GET     /v1/backup?name=NAME          the snapshot in this backup
    DELETE  /v1/backups                   remove all backups of this cluster, and take no more

All require `Authorization: Bearer TOKEN`: a backup has all keys of the cluster. The token is read at each
request, so that it can be changed in the Secret. With TLS for clients of etcd, this is served over TLS, too.
`GET /healthz`, whether the thread that takes backups lives, has a port of its own, and requires nothing.

Promises:
- a download streams; unless it has the bytes that its manifest names, the connection ends before the last of
  them, so that no client takes it for a whole one;
- a backup that the keys refuse is answered with 403;
- a client may take as long as it wants for a download, if it takes something again and again;
- at most `MOST_DOWNLOADS` downloads, more are answered with 503; for connections see `pods.http_server`;
- `stop` disconnects all clients and joins their threads.
"""

import hmac
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog

from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.verify import same
from etcd_operator.errors import OperatorError
from etcd_operator.pods.http_server import BYTES, JSON, Handler, ListeningServer, listening_socket
from etcd_operator.programs.backup_tool.inventory import ToolBackup, refusal
from etcd_operator.programs.backup_tool.restorable_backups import BackupChecker
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.protocol import Store

_BEARER = re.compile(r"[Bb]earer +(\S+) *")


@dataclass(frozen=True, kw_only=True)
class Api:
    """What the server serves; find, open_store and keys are safe from any thread."""

    worker: Worker
    checker: BackupChecker
    find: Callable[[str], ToolBackup | None]
    """The complete backup of a name, looked up in the store."""
    open_store: Callable[[], Store]
    keys: Callable[[], KeyRing]
    token_file: Path

    def allows(self, authorization: str) -> bool:
        """Whether a request has the token; nobody has it while the file cannot be read, or is empty."""
        found = _BEARER.fullmatch(authorization)
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return False
        return found is not None and bool(token) and hmac.compare_digest(found[1].encode(), token.encode())


MOST_DOWNLOADS = 4

_BLOCK = 1 << 18

log = structlog.get_logger()


class RequestRefused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiServer(ListeningServer):
    """Serves the API at `:port` of all addresses from `start` until `stop`. Raises OSError if it cannot."""

    def __init__(self, api: Api, *, port: int, tls: Path | None = None) -> None:
        super().__init__(listening_socket(port), _Handler, tls=tls)
        self.api = api
        self.downloads = threading.BoundedSemaphore(MOST_DOWNLOADS)


class ProbeServer(ListeningServer):
    """Serves /healthz at a port of its own, so that no client of the API keeps the kubelet from it."""

    def __init__(self, is_alive: Callable[[], bool], *, port: int) -> None:
        super().__init__(listening_socket(port), _ProbeHandler)
        self.is_alive = is_alive


class _ProbeHandler(Handler):
    server: ProbeServer

    def do_GET(self) -> None:
        """Whether the thread that takes backups lives, whatever is asked."""
        alive = self.server.is_alive()
        self.text(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE, "ok" if alive else "dead")


class _Handler(Handler):
    server: ApiServer

    def do_GET(self) -> None:
        """Answer one of the paths above."""
        self._answer()

    def do_DELETE(self) -> None:
        """Remove all backups."""
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        try:
            self._authorize()
            self._route(f"{self.command} {url.path}", url.query)
        except RequestRefused as refusal:
            self._text(refusal.status, str(refusal))
        except OperatorError as error:
            self._text(HTTPStatus.BAD_GATEWAY, " ".join(str(error).split()))

    def _route(self, what: str, query: str) -> None:
        api = self.server.api
        match what:
            case "GET /v1/status":
                self._document(api.worker.report())
            case "GET /v1/restorable":
                self._document(api.checker.report(_one(query, "clusterID")))
            case "GET /v1/backup":
                self._backup(_one(query, "name"))
            case "DELETE /v1/backups":
                api.worker.clean_up()
                self._document(api.worker.report())
            case _:
                raise RequestRefused(HTTPStatus.NOT_FOUND, "not found")

    def _authorize(self) -> None:
        if not self.server.api.allows(self.headers.get("Authorization", "")):
            raise RequestRefused(HTTPStatus.UNAUTHORIZED, "the token of this cluster's Secret is required")

    def _backup(self, name: str) -> None:
        found = self.server.api.find(name)
        if found is None:
            raise RequestRefused(HTTPStatus.NOT_FOUND, f"there is no backup {name}")
        if not self.server.downloads.acquire(blocking=False):
            raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "too many downloads: try again later")
        try:
            self._send(found)
        finally:
            self.server.downloads.release()

    def _send(self, backup: ToolBackup) -> None:
        """Send the snapshot. The last block waits until all bytes are checked."""
        api = self.server.api
        keys = api.keys()
        if why := refusal(backup.manifest.key_id, keys):
            raise RequestRefused(HTTPStatus.FORBIDDEN, f"{backup.name}: {why}")
        checked = same(api.open_store(), backup.path, backup.manifest, keys)
        held = next(checked, b"")  # the store is known to answer before the first header is sent
        self.head(HTTPStatus.OK, BYTES, backup.manifest.size)
        try:
            for chunk in checked:
                self._write(held)
                held = chunk
        except OperatorError as error:
            log.error("download_aborted", name=str(backup.name), error=str(error))
            return
        self._write(held)

    def _write(self, data: bytes) -> None:
        """In blocks: each that is taken counts as progress."""
        view = memoryview(data)
        for at in range(0, len(view), _BLOCK):
            self.wfile.write(view[at : at + _BLOCK])

    def _text(self, status: HTTPStatus, text: str) -> None:
        headers = {}
        if status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = "10"
        self.text(status, text, headers)

    def _document(self, value: msgspec.Struct) -> None:
        body = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
        self.respond(HTTPStatus.OK, JSON, body)


def _one(query: str, name: str) -> str:
    """The value of a parameter; empty without it."""
    return parse_qs(query, keep_blank_values=True).get(name, [""])[-1]
