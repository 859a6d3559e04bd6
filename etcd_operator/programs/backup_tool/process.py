"""The process of the backup tool: the thread that takes backups, and the server."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.clock import Clock
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.credentials import read_folder
from etcd_operator.pods.http_server import ListeningServer
from etcd_operator.process.signals import set_on_signal
from etcd_operator.programs.backup_tool.inventory import Inventory, find
from etcd_operator.programs.backup_tool.restorable_backups import BackupChecker, Storing
from etcd_operator.programs.backup_tool.runner import Runner
from etcd_operator.programs.backup_tool.server import Api, ApiServer, ProbeServer
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.protocol import Store
from etcd_operator.storage.urls import STALL_SECONDS, open_store

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How the tool runs. to: the URL of the store; folder: of this cluster below it. interval: in seconds.

    owner, is_exclusive: see `Runner`. encryption_keys: see `KeyRing.read`; None for plain backups. tls_dir:
    the folder with the certificates to reach etcd and to serve (`pods.contract`); None without TLS.
    """

    endpoint: str
    to: str
    folder: str
    owner: str
    is_exclusive: bool = False
    interval: float
    max_backups: int
    token_file: Path
    encryption_keys: Path | None = None
    tls_dir: Path | None = None
    scratch: Path
    port: int = 0
    probe_port: int = 0


def place(to: str, folder: str) -> tuple[Callable[[], Store], str]:
    """What opens the store, and the folder in it. Raises `StoreError` for a URL that cannot be used."""
    _, prefix = open_store(to, stall=STALL_SECONDS)
    return lambda: open_store(to, stall=STALL_SECONDS)[0], f"{prefix}/{folder}" if prefix else folder


def _manifest_key(token: Path) -> EncryptionKey:
    """Who has the token can read all backups, so no other secret is needed. It may be replaced."""
    try:
        return EncryptionKey.of_text(token.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"the token cannot be read: {error}") from error


Listening = TypeVar("Listening", bound=ListeningServer)


def _listening(serve: Callable[[int], Listening], port: int) -> Listening:
    try:
        return serve(port)
    except OSError as error:
        raise OperatorError(f"cannot listen on port {port}: {error.strerror}") from error


@contextmanager
def running(config: Config, clock: Clock | None = None) -> Iterator[tuple[Worker, ApiServer]]:
    """Worker and server at work. Raises `StoreError` for the URL, `OperatorError` for a port."""
    clock = clock or Clock()
    opened, folder = place(config.to, config.folder)
    stopping, storing = threading.Event(), Storing()

    def keys() -> KeyRing:
        """Read at each use, because a key is added to the Secret to rotate them."""
        return KeyRing() if config.encryption_keys is None else KeyRing.read(config.encryption_keys)

    runner = Runner(
        open_store=opened,
        folder=folder,
        owner=config.owner,
        is_exclusive=config.is_exclusive,
        manifest_key=lambda: _manifest_key(config.token_file),
        keys=keys,
        endpoint=config.endpoint,
        credentials=lambda: read_folder(config.tls_dir) if config.tls_dir is not None else None,
        keep=config.max_backups,
        scratch=config.scratch,
        clock=clock,
        is_stopping=stopping.is_set,
        storing=storing,
    )
    worker = Worker(runner, interval=config.interval, clock=clock)
    thread = threading.Thread(target=worker.run, name="backups")

    def listed(cluster_id: str) -> Inventory:
        return runner.load(cluster_id or worker.cluster_id)

    checker = BackupChecker(load=listed, open_store=opened, keys=keys, storing=storing, clock=clock)
    api = Api(
        worker=worker,
        checker=checker,
        find=lambda name: find(opened(), folder, name, owner=runner.counted_owner),
        open_store=opened,
        keys=keys,
        token_file=config.token_file,
    )
    probes = _listening(lambda port: ProbeServer(thread.is_alive, port=port), config.probe_port)
    try:
        server = _listening(lambda port: ApiServer(api, port=port, tls=config.tls_dir), config.port)
    except OperatorError:
        probes.server_close()
        raise
    thread.start()
    server.start()
    probes.start()
    try:
        yield worker, server
    finally:
        stopping.set()
        worker.stop()
        server.stop()
        probes.stop()
        checker.stop()
        thread.join()


def serve(config: Config) -> int:
    """Run until SIGTERM or SIGINT; the exit code. Raises as `running`."""
    ended = threading.Event()
    set_on_signal(ended)
    with running(config):
        log.info("started", folder=config.folder, interval=config.interval, keep=config.max_backups)
        while not ended.wait(1.0):  # a signal handler runs only while this thread does
            pass
        log.info("stopping")
    return 0
