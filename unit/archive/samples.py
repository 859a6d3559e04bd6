"""Small databases of etcd, made without etcd, and stores that fail on purpose."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from etcd_operator.archive.catalog import State, entries
from etcd_operator.archive.create import Options, create
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.source import Source
from etcd_operator.etcd.values import Status
from etcd_operator.formats import hex_id
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.protocol import Store, Stored
from unit.archive.databases import Branch, Database, Leaf, revision

NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=UTC)


def source(version: str = "3.6.16", *, cluster_id: str = "c0ffee", revision: int = 0) -> Source:
    """The member that sends a snapshot."""
    status = replace(STATUS, version=version, cluster_id=cluster_id, member_id="1001", revision=revision)
    return Source(endpoint="etcd:2379", status=status, has_quorum=True)


def snapshot(keys: int = 5, *, value: int = 3000, fill: bytes = b"v", begin: int = 2) -> bytes:
    """A database with `keys` entries (at most 120), revisions from `begin` on, and etcd's hash behind it."""
    leaves = [Leaf([(revision(main), fill * value)]) for main in range(begin, begin + keys)]
    root = Branch([(leaf.elements[0][0], leaf) for leaf in leaves]) if leaves else Leaf()
    return Database(buckets={b"key": root}, stale=[Leaf()]).file()


def chunks(data: bytes, size: int = 32 * 1024) -> Iterator[bytes]:
    """The bytes in pieces, as etcd sends them."""
    return (data[at : at + size] for at in range(0, len(data), size))


def keys_of(options: Options) -> KeyRing:
    """The keys that a reader needs for what is stored so."""
    return KeyRing([options.key] if options.key is not None else ())


def states(store: Store) -> dict[str, State]:
    """What is stored, by name."""
    return {entry.name: entry.state for entry in entries(store, "")}


def flip(file: Path, at: int) -> None:
    """Change one bit."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def folder(path: Path) -> Directory:
    """A folder as a store."""
    path.mkdir(exist_ok=True)
    return Directory(path)


def stored(store: Store, name: str, data: bytes | None = None, options: Options | None = None) -> Manifest:
    """A backup of `data`, stored."""
    data = snapshot() if data is None else data
    return create(store, name, chunks(data), source(), time=NOW, options=options)


def counted(
    store: Store,
    name: str,
    revision: int,
    *,
    series: str = "",
    minutes: float = 0.0,
    cluster: int = 0xC0FFEE,
    key: EncryptionKey | None = None,
) -> Manifest:
    """A backup whose snapshot has this revision, taken `minutes` after `NOW`."""
    return create(
        store,
        name,
        chunks(snapshot(1, begin=revision)),
        source(cluster_id=hex_id(cluster)),
        time=NOW + timedelta(minutes=minutes),
        options=Options(series=series, key=key),
    )


class FaultyStore:
    """A store whose calls can be replaced: `before` and `after` get method and name, and may raise."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.before: Callable[[str, str], None] = lambda _method, _name: None
        self.after: Callable[[str, str], None] = lambda _method, _name: None

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        self.before("put", name)
        self.inner.put(name, chunks)
        self.after("put", name)

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        self.before("read", name)
        yield from self.inner.read(name, offset)
        self.after("read", name)

    def list(self, prefix: str) -> Iterator[Stored]:
        self.before("list", prefix)
        yield from self.inner.list(prefix)

    def stat(self, name: str) -> Stored | None:
        self.before("stat", name)
        return self.inner.stat(name)

    def delete(self, name: str) -> None:
        self.before("delete", name)
        self.inner.delete(name)


STATUS = Status(
    cluster_id="c1",
    member_id="1",
    version="3.6.16",
    leader="1",
    is_learner=False,
    raft_index=100,
    raft_applied_index=100,
    revision=50,
    db_size=4096,
    errors=(),
)
"""Of a voter that leads."""
