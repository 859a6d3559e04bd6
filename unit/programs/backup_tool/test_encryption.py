"""Backups with keys: what is stored, what is refused, and that a change of the keys leaves no gap."""

from pathlib import Path

import pytest

from etcd_operator.archive.errors import BadKey
from etcd_operator.archive.fetch import fetch
from etcd_operator.archive.keys import EncryptionKey, KeyRing
from etcd_operator.archive.manifest import manifest_name
from etcd_operator.formats import hex_id
from etcd_operator.pods import client
from etcd_operator.programs.backup_tool.inventory import load
from etcd_operator.programs.backup_tool.seed import SeedError, from_store
from etcd_operator.storage.directory import Directory
from unit.archive.samples import folder, snapshot
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.programs.backup_tool.support import FOLDER, NOW, at, put, request, tool
from unit.programs.backup_tool.test_restorable import VERSION, Checker, fetching, revision
from unit.programs.backup_tool.test_runner import THIS, Bed, grow, revisions
from unit.waiting import eventually

FIRST, SECOND, OTHERS = (EncryptionKey(bytes([number]) * 32) for number in (1, 2, 3))


@pytest.fixture
def bed(tmp_path: Path, endpoint: str) -> Bed:
    made = Bed(tmp_path, endpoint)
    made.keys = KeyRing([FIRST])
    return made


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    return folder(tmp_path / "backups")


# What is stored


def test_a_backup_is_encrypted_and_named_by_its_key(bed: Bed, etcd: FakeEtcdCluster, tmp_path: Path) -> None:
    (stored,) = bed.runner().turn().inventory.backups
    assert str(stored.name) == f"3.6.16_0000000000000006_{FIRST.id}_etcd.backup"
    assert snapshot(5)[:4096] not in b"".join(bed.store.read(stored.path))
    assert (stored.is_authentic, stored.manifest.key_id) == (True, FIRST.id)
    assert stored.report().sha256 == stored.manifest.sha256 != stored.manifest.stored_sha256
    fetch(bed.store, stored.path, tmp_path / "one.db", bed.keys)
    assert (tmp_path / "one.db").read_bytes() == snapshot(5)
    assert not bed.runner().turn().is_new


@pytest.mark.parametrize("is_exclusive", [False, True])
def test_a_cluster_without_new_writes_gets_a_backup_when_its_keys_change(
    bed: Bed, etcd: FakeEtcdCluster, *, is_exclusive: bool
) -> None:
    """Each form is stored once; the newest key encrypts."""
    runner, taken = bed.runner(keep=9, is_exclusive=is_exclusive), list[bool]()
    for keys in ((), (FIRST,), (FIRST, SECOND), (SECOND,), (OTHERS,), (FIRST,), ()):
        bed.keys = KeyRing(keys)
        taken.append(runner.turn().is_new)
    assert taken == [True, True, True, False, True, False, False]
    assert len(bed.files) == 8


def test_what_was_stored_plain_before_is_displaced(bed: Bed, etcd: FakeEtcdCluster) -> None:
    keys, bed.keys = bed.keys, KeyRing()
    grow(etcd, bed.runner(keep=2), 7, 8)
    bed.keys = keys
    turn = bed.runner(keep=2).turn()
    assert [(each.name.revision, each.refusal != "") for each in turn.inventory.backups] == [
        (8, False),
        (8, True),
    ]
    grow(etcd, bed.runner(keep=2), 9)
    assert {each.manifest.encryption for each in bed.runner().load().backups} == {"AES-256-GCM"}


@pytest.mark.parametrize("is_exclusive", [False, True])
@pytest.mark.parametrize(("key", "encryption"), [(None, None), (None, OTHERS)])
def test_what_somebody_without_the_keys_stored_is_never_the_newest(
    bed: Bed,
    etcd: FakeEtcdCluster,
    key: EncryptionKey | None,
    encryption: EncryptionKey | None,
    *,
    is_exclusive: bool,
) -> None:
    runner = bed.runner(keep=2, is_exclusive=is_exclusive)
    grow(etcd, runner, 7)
    for planted in (20, 30, 40):
        put(bed.store, planted, cluster=THIS, key=key, encryption=encryption)
    grow(etcd, runner, 8)
    found = runner.load(hex_id(THIS))
    assert revisions(found) == ([8, 7] if is_exclusive else [8, 7, 40, 30, 20])
    assert is_exclusive or (found.unknown is not None and found.unknown.refusal)


def test_the_manifest_of_an_encrypted_backup_cannot_be_put_beside_another_name(
    bed: Bed, etcd: FakeEtcdCluster
) -> None:
    """Also where whoever can write there is trusted without keys."""
    grow(etcd, bed.runner(), 7)
    (own,) = bed.runner().load().backups
    path = own.path.replace("0000000007", "0000000009")
    for name, copy in ((own.path, path), (manifest_name(own.path), manifest_name(path))):
        bed.store.put(copy, bed.store.read(name))
    for is_exclusive in (False, True):
        found = bed.runner(is_exclusive=is_exclusive).load()
        assert [(each.name.revision, each.is_authentic) for each in found.backups] == [(7, True), (9, False)]


# What a recovery is offered


def test_a_recovery_is_offered_the_newest_that_is_encrypted(store: Directory) -> None:
    put(store, 5, encryption=FIRST)
    put(store, 6, minutes=1)
    put(store, 7, minutes=2, encryption=OTHERS)
    found = Checker(store, KeyRing([FIRST])).checked()
    assert found.newest is not None
    assert (found.newest.revision, found.newest.refusal, found.newest.is_authentic) == (5, "", True)


@pytest.mark.parametrize(
    ("keys", "encryption", "text"),
    [
        ((FIRST,), None, "not encrypted"),
        ((FIRST,), OTHERS, f"encrypted with the key {OTHERS.id}, which is not in the Secret"),
        ((), FIRST, f"encrypted with the key {FIRST.id}, which is not in the Secret"),
    ],
)
def test_what_the_keys_refuse_is_named_if_there_is_nothing_else(
    store: Directory, keys: tuple[EncryptionKey, ...], encryption: EncryptionKey | None, text: str
) -> None:
    put(store, 6, encryption=encryption)
    found = Checker(store, KeyRing(keys)).checked()
    assert (revision(found), found.damaged) == (6, ())
    assert found.newest is not None
    assert not found.newest.is_authentic
    assert text in found.newest.refusal


# What is served


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys" / "key-1"
    file.parent.mkdir()
    file.write_bytes(FIRST.secret)
    return file


def test_the_tool_serves_the_snapshot_and_refuses_a_plain_backup(
    store: Directory, key_file: Path, tmp_path: Path, endpoint: str
) -> None:
    plain = put(store, 4, cluster=THIS)
    with tool(tmp_path / "backups", endpoint, encryption_keys=key_file.parent) as (worker, server):
        eventually(lambda: worker.report().since_success is not None)
        fetched = fetching(server.port).fetch(tmp_path / "one.db", etcd_version=VERSION)
        named = {"etcd_version": VERSION, "name": fetched.name, "sha256": fetched.sha256}
        fetching(server.port, keys=KeyRing([FIRST])).fetch(tmp_path / "two.db", **named)
        answer = request(server.port, f"/v1/backup?name={plain.rpartition('/')[2]}")
        assert client.restorable(at(server.port), "").is_listed
    assert (tmp_path / "one.db").read_bytes() == (tmp_path / "two.db").read_bytes() == snapshot(5)
    assert (answer.status, b"not encrypted" in answer.body) == (403, True)


def test_a_key_that_cannot_be_used_stores_nothing_and_is_reported(
    key_file: Path, tmp_path: Path, endpoint: str
) -> None:
    key_file.write_text("a password")
    with tool(tmp_path / "backups", endpoint, encryption_keys=key_file.parent) as (worker, _):
        eventually(lambda: worker.report().failure is not None)
        failure = worker.report().failure
    assert failure is not None
    assert failure.reason == BadKey.__name__
    assert not list((tmp_path / "backups").rglob("*.backup"))


def test_a_new_cluster_with_keys_takes_no_plain_backup_of_a_tool(tmp_path: Path, endpoint: str) -> None:
    with tool(tmp_path / "backups", endpoint) as (worker, server):
        eventually(lambda: worker.report().count == 1)
        with pytest.raises(SeedError, match="not encrypted"):
            fetching(server.port, keys=KeyRing([FIRST])).fetch(tmp_path / "one.db", etcd_version=VERSION)


def test_a_tool_that_refuses_its_newest_backup_gives_a_new_cluster_nothing(
    store: Directory, tmp_path: Path
) -> None:
    put(store, 4, encryption=FIRST)
    with (
        tool(tmp_path / "backups", "127.0.0.1:1") as (_, server),
        pytest.raises(SeedError, match="encrypted with the key"),
    ):
        fetching(server.port).fetch(tmp_path / "one.db", etcd_version=VERSION)


# What a new cluster begins with, from a volume or a bucket


def begin(store: Directory, file: Path, *keys: EncryptionKey) -> int:
    """The revision that a new cluster with these keys begins with."""
    ring = KeyRing(keys)
    found = load(store, FOLDER, now=NOW, keys=ring)
    return from_store(store, found, file, ring, etcd_version=VERSION).revision


def test_a_new_cluster_begins_with_an_encrypted_backup(store: Directory, tmp_path: Path) -> None:
    put(store, 5)
    put(store, 6, minutes=1, encryption=FIRST)
    assert begin(store, tmp_path / "one.db", FIRST, SECOND) == 6
    assert (tmp_path / "one.db").read_bytes() == snapshot()


def test_a_copied_manifest_is_passed_over(store: Directory, tmp_path: Path) -> None:
    own = put(store, 5, encryption=FIRST)
    path = own.replace("0000000005", "0000000009")
    for name, copy in ((own, path), (manifest_name(own), manifest_name(path))):
        store.put(copy, store.read(name))
    assert begin(store, tmp_path / "one.db", FIRST) == 5


@pytest.mark.parametrize(
    ("keys", "encryption"), [((FIRST,), None), ((FIRST,), OTHERS), ((), FIRST), ((SECOND,), FIRST)]
)
def test_a_new_cluster_begins_with_nothing_older_than_what_is_refused(
    store: Directory, tmp_path: Path, keys: tuple[EncryptionKey, ...], encryption: EncryptionKey | None
) -> None:
    """It may be the newest data, or planted: a person decides, and nothing is lost before."""
    put(store, 5, encryption=keys[0] if keys else None)
    put(store, 2, cluster=0xBBBB, minutes=1, encryption=encryption)
    with pytest.raises(SeedError, match="is not restored: it is"):
        begin(store, tmp_path / "one.db", *keys)
    assert not (tmp_path / "one.db").exists()


def test_nothing_that_is_refused_is_taken_where_the_rest_is_damaged(store: Directory, tmp_path: Path) -> None:
    path = put(store, 6, minutes=1, encryption=FIRST)
    put(store, 5)
    store.delete(path)
    store.put(path, [b"x" * load(store, FOLDER, now=NOW).backups[0].manifest.stored_size])
    with pytest.raises(SeedError, match="not encrypted"):
        begin(store, tmp_path / "one.db", FIRST)
