"""A restored data directory is whole or not there; the programs here are scripts, test_real has real ones."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from etcd_operator.backup import restore as module
from etcd_operator.backup.create import Options
from etcd_operator.backup.errors import (
    Damaged,
    NotABackup,
    ProgramFailed,
    ProgramMissing,
    RestoreError,
    WrongKey,
)
from etcd_operator.backup.keys import Key, KeyRing
from etcd_operator.backup.manifest import Manifest, name_of
from etcd_operator.backup.programs import Tool, find_tool
from etcd_operator.backup.restorable import Check, Snapshot, find
from etcd_operator.backup.restore import Member, is_filled, restore
from etcd_operator.storage.errors import Unreachable
from unit.backup.samples import FaultyStore, folder, snapshot, stored
from unit.backup.test_programs import program

KEYS = KeyRing([Key(bytes(range(32)))])
MEMBER = Member(
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
        self.tool = self.install(COPY)

    def install(self, script: str, version: str = "3.6.16") -> Tool:
        setting = f"PATH={os.environ['PATH']}; LOG={self.path / 'arguments'}"
        line = f"{setting}; case $1 in version) echo etcdutl version: {version};; *) {script};; esac"
        program(self.path / "bin" / "etcdutl", line)
        return find_tool(self.path / "bin")

    def backup(self, options: Options | None = None) -> Manifest:
        return stored(self.store, "one", options=options)

    def plain(self, data: bytes) -> None:
        (self.path / "store" / "one").write_bytes(data)

    def restore(self, keys: KeyRing = KEYS, *, sha256: str = "", member: Member = MEMBER) -> Snapshot:
        return restore(find(self.store, "one", sha256=sha256), self.data_dir, member, keys, self.tool)

    @property
    def database(self) -> bytes:
        return (self.data_dir / "member" / "snap" / "db").read_bytes()

    @property
    def arguments(self) -> list[str]:
        return (self.path / "arguments").read_text().split()

    def has_nothing(self) -> bool:
        return list(self.parent.iterdir()) == []


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


@pytest.mark.parametrize("options", [Options(), Options(key=KEYS.newest)], ids=["plain", "framed"])
def test_a_backup_becomes_a_data_directory(setting: Setting, options: Options) -> None:
    manifest = setting.backup(options)
    found = setting.restore(sha256=manifest.sha256)
    assert (found.check, found.revision, found.keys) == (Check.MANIFEST, 6, 5)
    assert setting.database == snapshot()
    assert [each.name for each in setting.parent.iterdir()] == ["data"]
    assert {
        "--name=m1",
        "--initial-cluster=m0=http://a:2380,m1=http://b:2380,m1=http://c:2380",
        "--initial-cluster-token=t1",
        "--initial-advertise-peer-urls=http://b:2380,http://c:2380",
        "--bump-revision=7",
        "--mark-compacted",
    } < set(setting.arguments)
    assert "--skip-hash-check" not in setting.arguments


def test_a_snapshot_of_anybody(setting: Setting) -> None:
    setting.plain(snapshot())
    found = setting.restore()
    assert (found.check, found.revision, found.keys, found.has_hash) == (Check.HASH, 6, 5, True)
    assert "--skip-hash-check" not in setting.arguments


def test_a_copy_of_a_database_has_no_hash(setting: Setting) -> None:
    setting.plain(snapshot()[:-32])
    assert setting.restore().check is Check.NONE
    assert "--skip-hash-check" in setting.arguments


@pytest.mark.parametrize(
    "data",
    [snapshot()[:-1], snapshot()[:-4096], b"", b"no database" * 1000, snapshot().replace(b"vvv", b"vVv", 1)],
    ids=["shorter", "truncated", "empty", "foreign", "changed"],
)
def test_a_damaged_snapshot_leaves_nothing(setting: Setting, data: bytes) -> None:
    setting.plain(data)
    with pytest.raises(Damaged):
        setting.restore()
    assert setting.has_nothing()


def test_a_framed_backup_needs_its_manifest(setting: Setting) -> None:
    setting.backup(Options(key=KEYS.newest))
    setting.store.delete(name_of("one"))
    with pytest.raises(NotABackup, match="compressed or encrypted backup without its manifest"):
        setting.restore()
    assert setting.has_nothing()


def test_a_damaged_backup_leaves_nothing(setting: Setting) -> None:
    setting.backup()
    setting.plain(snapshot().replace(b"vvv", b"vVv", 1))
    with pytest.raises(Damaged, match="does not match the SHA-256"):
        setting.restore()
    assert setting.has_nothing()


def test_another_backup_than_the_verified_one(setting: Setting) -> None:
    for has_manifest in (False, True):
        setting.store.delete("one")
        if has_manifest:
            setting.backup()
        else:
            setting.plain(snapshot())
        with pytest.raises(Damaged, match=f"not {'0' * 64}: it was replaced"):
            setting.restore(sha256="0" * 64)
    assert setting.has_nothing()


def test_a_wrong_key_leaves_nothing(setting: Setting) -> None:
    setting.backup(Options(key=KEYS.newest))
    with pytest.raises(WrongKey):
        setting.restore(KeyRing([Key(bytes(32))]))
    assert setting.has_nothing()


def test_a_store_that_fails_leaves_nothing(setting: Setting) -> None:
    setting.backup()

    def fail(method: str, name: str) -> None:
        if (method, name) == ("read", "one"):
            raise Unreachable("connection reset")

    setting.store.before = fail
    with pytest.raises(Unreachable):
        setting.restore()
    assert setting.has_nothing()


def test_an_object_that_is_deleted_meanwhile(setting: Setting) -> None:
    setting.plain(snapshot())
    source = find(setting.store, "one")
    setting.store.delete("one")
    with pytest.raises(Damaged, match="deleted while it was read"):
        restore(source, setting.data_dir, MEMBER, KEYS, setting.tool)
    with pytest.raises(NotABackup, match="there is no backup named one"):
        find(setting.store, "one")


def test_etcdutl_fails(setting: Setting) -> None:
    setting.backup()
    setting.tool = setting.install(f"{COPY}; echo Error: no luck >&2; exit 1")
    with pytest.raises(ProgramFailed, match=r"etcdutl 3\.6\.16 cannot restore the snapshot: Error: no luck"):
        setting.restore()
    assert setting.has_nothing()


def test_etcdutl_hangs(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.backup()
    monkeypatch.setattr(module, "time_limit", lambda _size: 0.5)
    setting.tool = setting.install("exec sleep 1000")
    with pytest.raises(ProgramFailed, match=r"made no progress for 0\.5 s"):
        setting.restore()
    assert setting.has_nothing()


@pytest.mark.parametrize(
    ("version", "needed"), [("3.5.35", "3.6"), ("3.5.9", "3.6")], ids=["older minor", "too old"]
)
def test_an_etcdutl_that_cannot_restore_it(setting: Setting, version: str, needed: str) -> None:
    with pytest.raises(ProgramMissing, match=rf"is {version}, .* etcd 3\.6\.2: .* etcdutl {needed} or newer"):
        setting.install(COPY, version).require("3.6.2")
    with pytest.raises(ProgramMissing, match=r"of an unknown version: .* etcdutl 3\.5\.10 or newer"):
        setting.install(COPY, "3.5.9").require("")
    setting.install(COPY, "3.7.3").require("3.6.2")


def test_no_etcdutl(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProgramMissing, match=f"no etcdutl in {setting.parent}: pass --etcd-bin DIR"):
        find_tool(setting.parent)
    monkeypatch.setenv("PATH", str(setting.parent))
    with pytest.raises(ProgramMissing, match="no etcdutl on the PATH"):
        find_tool(None)


def filled(path: Path) -> None:
    path.mkdir()
    (path / "member").touch()


@pytest.mark.parametrize("fill", [filled, Path.touch, lambda path: path.symlink_to("missing/file")])
def test_what_exists_is_not_touched(setting: Setting, fill: Callable[[Path], None]) -> None:
    setting.backup()
    fill(setting.data_dir)
    before = setting.data_dir.lstat()
    with pytest.raises(RestoreError):
        setting.restore()
    assert setting.data_dir.lstat() == before
    assert list(setting.parent.iterdir()) == [setting.data_dir]


def test_an_empty_folder_is_replaced(setting: Setting) -> None:
    setting.backup()
    setting.data_dir.mkdir()
    setting.restore()
    assert is_filled(setting.data_dir)


def test_a_data_directory_that_appears_meanwhile(setting: Setting) -> None:
    setting.backup()
    setting.tool = setting.install(f"{COPY}; mkdir {setting.data_dir}; echo 1 > {setting.data_dir}/file")
    with pytest.raises(RestoreError, match="exists already"):
        setting.restore()
    assert [each.name for each in setting.data_dir.iterdir()] == ["file"]


def test_a_mount_point_cannot_be_replaced(setting: Setting) -> None:
    setting.backup()
    setting.data_dir = Path("/proc")
    with pytest.raises(RestoreError, match="is a mount point"):
        setting.restore()


def test_a_folder_that_is_missing(setting: Setting) -> None:
    setting.backup()
    setting.data_dir = setting.parent / "missing" / "data"
    with pytest.raises(RestoreError, match=r"cannot restore to .*missing/data: No such file"):
        setting.restore()


def test_what_a_killed_restore_left_is_removed(setting: Setting) -> None:
    setting.backup()
    left = setting.parent / ".data.restoring"
    (left / "data" / "member").mkdir(parents=True)
    (left / "snapshot.db").write_bytes(b"half")
    setting.restore()
    assert setting.database == snapshot()
    assert [each.name for each in setting.parent.iterdir()] == ["data"]


def test_two_at_once(setting: Setting) -> None:
    setting.backup()
    left = setting.parent / ".data.restoring"
    left.mkdir()
    (left / "snapshot.db").write_bytes(b"half")
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(RestoreError, match="another process restores"):
        setting.restore()
    assert (left / "snapshot.db").read_bytes() == b"half"
    os.close(descriptor)


def test_the_folder_of_another_user(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.backup()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(RestoreError, match="not made by a restore of this user"):
        setting.restore()


def test_a_full_disk(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.backup()
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1 << 20))
    with pytest.raises(RestoreError, match=r"needs 65 MiB in .* has 1 MiB free"):
        setting.restore()
    assert setting.has_nothing()


def test_only_the_owner_can_read_what_is_restored(setting: Setting) -> None:
    setting.backup()
    setting.tool = setting.install(f'stat -c %a "$(dirname "$3")" > {setting.path}/mode; {COPY}')
    (setting.parent / ".data.restoring").mkdir(mode=0o777)
    setting.restore()
    assert (setting.path / "mode").read_text() == "700\n"


def test_progress_of_both_steps(setting: Setting) -> None:
    setting.backup()
    seen: list[object] = []
    size = len(snapshot())
    setting.tool = setting.install(f"{COPY}; until [ -e {setting.path}/seen ]; do sleep 0.05; done")

    def on_progress(done: int) -> None:
        seen.append(done)
        if "restoring" in seen and done == size:
            (setting.path / "seen").touch()

    source, tool = find(setting.store, "one"), setting.tool
    restore(source, setting.data_dir, MEMBER, KEYS, tool, on_stage=seen.append, on_progress=on_progress)
    assert seen[: seen.index("restoring")] == ["fetching", size]
    assert seen[-1] == size
