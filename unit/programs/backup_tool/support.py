"""Backups in a folder, a tool at work on it, and requests to it."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from etcd_operator.archive.create import Options, create
from etcd_operator.archive.keys import EncryptionKey
from etcd_operator.formats import hex_id
from etcd_operator.pods.http_client import Server
from etcd_operator.programs.backup_tool.inventory import Name
from etcd_operator.programs.backup_tool.process import Config, running
from etcd_operator.programs.backup_tool.server import ApiServer
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.directory import Directory
from unit.archive.samples import chunks, snapshot, source

FOLDER = "v1/default/c"
OWNER = "uid-of-this-cluster"
TOKEN = "the-token-of-the-test"
KEY = EncryptionKey.of_text(TOKEN)
NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=UTC)


def put(
    store: Directory,
    revision: int,
    *,
    cluster: int = 0xC0FFEE,
    minutes: float = 0.0,
    version: str = "3.6.16",
    folder: str = FOLDER,
    data: bytes | None = None,
    owner: str = OWNER,
    key: EncryptionKey | None = KEY,
    encryption: EncryptionKey | None = None,
) -> str:
    """A backup under the name that its revision gives it, taken `minutes` after `NOW`; its path."""
    path = f"{folder}/{Name(version, revision, encryption.id if encryption is not None else '')}"
    member = source(version, cluster_id=hex_id(cluster))
    time = NOW + timedelta(minutes=minutes)
    content = chunks(snapshot() if data is None else data)
    options = Options(owner=owner, manifest_key=key, key=encryption)
    create(store, path, content, member, time=time, options=options)
    return path


@dataclass(frozen=True)
class Answer:
    """A response, whole or as far as it came."""

    status: int
    headers: dict[str, str]
    body: bytes
    is_whole: bool = True

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def at(port: int, token: str = TOKEN) -> Server:
    """The tool on this machine."""
    return Server(address=("127.0.0.1", port), token=token)


def request(port: int, path: str, *, method: str = "GET", token: str | None = TOKEN) -> Answer:
    """Ask the tool on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        try:
            body, is_whole = response.read(), True
        except http.client.IncompleteRead as error:
            body, is_whole = error.partial, False
        return Answer(response.status, dict(response.headers), body, is_whole)
    finally:
        connection.close()


def newest(worker: Worker) -> int:
    """The revision of the newest backup; 0 if there is none."""
    found = worker.report().newest
    return found.revision if found is not None else 0


@contextmanager
def tool(
    root: Path,
    endpoint: str,
    *,
    interval: float = 3600.0,
    keep: int = 3,
    to: str = "",
    encryption_keys: Path | None = None,
    tls: Path | None = None,
) -> Iterator[tuple[Worker, ApiServer]]:
    """A whole tool in this process, with its real clock."""
    token = root.parent / "token"
    token.write_text(f"{TOKEN}\n")
    root.mkdir(exist_ok=True)
    config = Config(
        endpoint=endpoint,
        to=to or f"file://{root}/",
        folder=FOLDER,
        owner=OWNER,
        interval=interval,
        max_backups=keep,
        token_file=token,
        encryption_keys=encryption_keys,
        tls_dir=tls,
        scratch=root.parent,
    )
    with running(config) as parts:
        yield parts
