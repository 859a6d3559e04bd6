"""A store with a backup, an etcdutl that is a script, and a place for the restored data directory."""

import os
from pathlib import Path

from etcd_operator.archive.create import Options
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.programs import Etcdutl, find_tool
from etcd_operator.archive.restorable import Snapshot, find
from etcd_operator.archive.restore import NewMember, restore
from unit.archive.samples import FaultyStore, folder, keys_of, stored
from unit.archive.test_programs import program

KEYS = KeyRing([EncryptionKey(bytes(range(32)))])
MEMBER = NewMember(
    name="m1",
    initial_cluster={"m0": ("http://a:2380",), "m1": ("http://b:2380", "http://c:2380")},
    token="t1",
    revision_bump=7,
)
COPY = (
    'for word in "$@"; do case $word in --data-dir=*) to=${word#*=};; esac; done; echo "$@" > "$LOG"; '
    'mkdir -p "$to/member/snap" && cp "$3" "$to/member/snap/db"'
)


class Setting:
    """A store with a backup, an etcdutl and a place for the data directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = FaultyStore(folder(path / "store"))
        self.parent = path / "out"
        self.parent.mkdir()
        self.data_dir = self.parent / "data"
        self.keys = KeyRing()  # of the backup
        self.tool = self.install(COPY)

    def install(self, script: str, version: str = "3.6.16") -> Etcdutl:
        setting = f"PATH={os.environ['PATH']}; LOG={self.path / 'arguments'}"
        line = f"{setting}; case $1 in version) echo etcdutl version: {version};; *) {script};; esac"
        program(self.path / "bin" / "etcdutl", line)
        return find_tool(self.path / "bin")

    def backup(self, options: Options | None = None) -> Manifest:
        self.keys = keys_of(options or Options())
        return stored(self.store, "one", options=options)

    def plain(self, data: bytes) -> None:
        (self.path / "store" / "one").write_bytes(data)

    def restore(
        self, keys: KeyRing | None = None, *, sha256: str = "", member: NewMember = MEMBER
    ) -> Snapshot:
        source = find(self.store, "one", sha256=sha256)
        ring = self.keys if keys is None else keys
        return restore(source, self.data_dir, member, ring, self.tool)

    @property
    def database(self) -> bytes:
        return (self.data_dir / "member" / "snap" / "db").read_bytes()

    @property
    def arguments(self) -> list[str]:
        return (self.path / "arguments").read_text().split()

    def has_nothing(self) -> bool:
        return list(self.parent.iterdir()) == []
