"""A restored data directory is whole or not there; the programs here are scripts, test_real has real ones."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from etcd_operator.archive import restore as module
from etcd_operator.archive.create import Options
from etcd_operator.archive.database import DatabaseScan
from etcd_operator.archive.errors import Damaged, NotABackup, ProgramFailed, ProgramMissing, WrongKey
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import manifest_name
from etcd_operator.archive.programs import find_tool
from etcd_operator.archive.restorable import Check, find, of_manifest
from etcd_operator.archive.restore import restore
from etcd_operator.storage.errors import Unreachable
from unit.archive.restoring import COPY, KEYS, MEMBER, Setting
from unit.archive.samples import snapshot


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
        "--skip-hash-check",
    } < set(setting.arguments)


def test_a_snapshot_of_anybody(setting: Setting) -> None:
    setting.plain(snapshot())
    found = setting.restore()
    assert (found.check, found.revision, found.keys) == (Check.HASH, 6, 5)


def test_a_copy_of_a_database_has_no_hash(setting: Setting) -> None:
    setting.plain(snapshot()[:-32])
    assert setting.restore().check is Check.NONE


@pytest.mark.parametrize(
    "data",
    [gzip.compress(snapshot()), bz2.compress(snapshot()), lzma.compress(snapshot()), b"PK\x03\x04" * 9000],
    ids=["gzip", "bzip2", "xz", "zip"],
)
def test_a_snapshot_that_another_tool_has_packed_has_to_be_unpacked(setting: Setting, data: bytes) -> None:
    setting.plain(data)
    with pytest.raises(NotABackup, match=r"one is packed \(.*\), not by this operator: unpack it first"):
        setting.restore()
    assert setting.has_nothing()


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
    setting.store.delete(manifest_name("one"))
    with pytest.raises(NotABackup, match="compressed or encrypted backup without its manifest"):
        setting.restore(KeyRing())
    assert setting.has_nothing()


@pytest.mark.parametrize(
    ("is_known", "what"),
    [(False, "the hash that etcd appended"), (True, "the SHA-256 in its manifest")],
    ids=["unknown", "verified before"],
)
def test_a_damaged_backup_leaves_nothing(setting: Setting, is_known: bool, what: str) -> None:
    manifest = setting.backup()
    setting.plain(snapshot().replace(b"vvv", b"vVv", 1))
    with pytest.raises(Damaged, match=f"does not match {what}"):
        setting.restore(sha256=manifest.sha256 if is_known else "")
    assert setting.has_nothing()


def test_what_is_in_a_snapshot_that_was_verified_is_not_looked_at_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = setting.backup(Options(key=KEYS.newest))
    monkeypatch.setattr(DatabaseScan, "feed", lambda *_: pytest.fail("the database is read again"))
    assert setting.restore(sha256=manifest.sha256) == of_manifest(manifest)


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
        setting.restore(KeyRing([EncryptionKey(bytes(32))]))
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
        restore(source, setting.data_dir, MEMBER, setting.keys, setting.tool)
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
