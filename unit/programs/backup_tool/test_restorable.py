"""What a recovery is offered, and how a seed fetches it: from a tool at work, and from the store."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.archive.keys import KeyRing
from etcd_operator.archive.source import Source
from etcd_operator.formats import hex_id
from etcd_operator.pods import client
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.reports import RestorableBackups
from etcd_operator.programs.backup_tool import restorable_backups
from etcd_operator.programs.backup_tool.inventory import Inventory, find, load
from etcd_operator.programs.backup_tool.restorable_backups import VALID_SECONDS, BackupChecker, Storing
from etcd_operator.programs.backup_tool.seed import PATIENCE, FromTool, SeedError, from_store
from etcd_operator.programs.backup_tool.server import ApiServer
from etcd_operator.programs.backup_tool.worker import Worker
from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import StoreError
from unit.archive.samples import STATUS, FaultyStore, flip, folder, snapshot
from unit.fakes.clock import FakeClock
from unit.programs.backup_tool.support import FOLDER, NOW, TOKEN, at, put, tool
from unit.waiting import eventually

OLD, NEW = 0xAAAA, 0xBBBB
VERSION = "3.6.16"
NO_KEYS = KeyRing()
SOURCE = Source(endpoint="m0", status=STATUS, has_quorum=True)


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    return folder(tmp_path / "backups")


def damage(store: Directory, path: str) -> None:
    """Change one byte, not the size."""
    file = Path(store._root) / path
    flip(file, file.stat().st_size // 2)


class Checker(BackupChecker):
    """On a folder."""

    def __init__(self, store: Directory, keys: KeyRing = NO_KEYS) -> None:
        self.clock, self.storing = FakeClock(), Storing()
        self.listing = threading.Event()
        self.listing.set()

        def listed(running: str) -> Inventory:
            assert self.listing.wait(20)
            return load(store, FOLDER, now=NOW, running=running, keys=keys)

        super().__init__(
            load=listed,
            open_store=lambda: store,
            keys=lambda: keys,
            storing=self.storing,
            clock=self.clock,
        )

    def checked(self, running: str = "") -> RestorableBackups:
        """The report once everything is read."""
        eventually(lambda: self.report(running).is_checked)
        return self.report(running)


def revision(found: RestorableBackups) -> int:
    return found.newest.revision if found.newest is not None else 0


def test_the_newest_backup_is_offered_once_it_is_read(store: Directory) -> None:
    put(store, 5)
    put(store, 6, minutes=1)
    found = Checker(store).checked()
    assert found.newest == found.candidate
    assert found.newest is not None
    assert (found.newest.revision, found.newest.cluster_id) == (6, hex_id(0xC0FFEE))
    assert found.newest.sha256 == hashlib.sha256(snapshot()).hexdigest()
    assert found.damaged == ()


def test_a_damaged_backup_is_passed_over_and_named(store: Directory) -> None:
    put(store, 5)
    damage(store, put(store, 6, minutes=1))
    found = Checker(store).checked()
    assert (revision(found), found.damaged) == (5, ("3.6.16_0000000000000006_etcd.backup",))
    assert found.candidate is not None
    assert found.candidate.revision == 6


def test_nothing_is_offered_where_nothing_is_stored(store: Directory) -> None:
    found = Checker(store).checked()
    assert (found.newest, found.candidate, found.damaged) == (None, None, ())


def test_the_etcd_cluster_that_is_asked_for_comes_first(store: Directory) -> None:
    put(store, 9, cluster=OLD, minutes=5)
    put(store, 3, cluster=NEW)
    checker = Checker(store)
    assert revision(checker.checked(hex_id(NEW))) == 3
    assert revision(checker.checked(hex_id(OLD))) == 9
    assert revision(checker.checked()) == 9


def test_what_was_checked_before_a_backup_was_stored_is_not_reported(store: Directory) -> None:
    put(store, 5)
    checker = Checker(store)
    assert revision(checker.checked()) == 5
    checker.listing.clear()
    with checker.storing.of(lambda: SOURCE):
        checker._start("")
        put(store, 6, minutes=1)
    checker.listing.set()
    assert revision(checker.checked()) == 6


def test_a_request_does_not_wait_until_all_manifests_are_read(
    store: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some hundred of them take longer than the operator waits for an answer."""
    monkeypatch.setattr(restorable_backups, "PATIENCE", 0.01)
    put(store, 5)
    checker = Checker(store)
    checker.listing.clear()
    assert checker.report() == RestorableBackups()
    checker.listing.set()
    assert revision(checker.checked()) == 5


def test_the_newest_is_named_while_it_is_read(store: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restorable_backups, "PATIENCE", 0.01)
    put(store, 5)
    checker, reading = Checker(store), threading.Event()

    def opened() -> Directory:
        assert reading.wait(20)
        return store

    checker._open_store = opened
    eventually(lambda: checker.report().is_listed)
    found = checker.report()
    assert (found.is_checked, found.candidate is not None, found.newest) == (False, True, None)
    reading.set()
    assert revision(checker.checked()) == 5


def test_everything_is_read_again_after_a_while(store: Directory) -> None:
    checker, path = Checker(store), put(store, 5)
    assert revision(checker.checked()) == 5
    damage(store, path)
    assert revision(checker.report()) == 5
    checker.clock.advance(VALID_SECONDS)
    assert checker.checked().newest is None


def test_a_store_that_fails_is_reported_and_asked_again(store: Directory) -> None:
    put(store, 5)
    checker = Checker(store)
    gone = threading.Event()

    def failing() -> Directory:
        if not gone.is_set():
            gone.set()
            raise StoreError("the disk is gone")
        return store

    checker._open_store = failing

    def fails() -> bool:
        try:
            checker.report()
        except StoreError as error:
            return "the disk is gone" in str(error)
        return False

    eventually(fails)
    assert revision(checker.checked()) == 5
    checker.stop()


def test_stopping_before_anything_was_asked_does_nothing(store: Directory) -> None:
    threads = threading.enumerate()
    checker = Checker(store)
    checker.stop()
    assert (threading.enumerate(), checker._found) == (threads, None)


def test_a_backup_is_found_by_its_name_without_the_others(store: Directory) -> None:
    path, others = put(store, 5), [put(store, 6), put(store, 5, version="3.6.160")]
    counted, read = FaultyStore(store), list[str]()
    counted.before = lambda method, name: read.append(name) if method == "read" else None
    found = find(counted, FOLDER, path.rpartition("/")[2])
    assert found is not None
    assert (found.path, len(read)) == (path, 1)
    store.delete(path)
    assert find(store, FOLDER, path.rpartition("/")[2]) is None
    assert find(store, FOLDER, "other") is None
    assert others


# over HTTP


@pytest.fixture
def parts(store: Directory, tmp_path: Path, endpoint: str) -> Iterator[tuple[Worker, ApiServer]]:
    """A tool with a backup at revision 6 of the etcd that runs."""
    with tool(tmp_path / "backups", endpoint) as running:
        eventually(lambda: running[0].report().count == 1)
        yield running


@pytest.fixture
def port(parts: tuple[Worker, ApiServer]) -> int:
    return parts[1].port


def fetching(
    port: int, token: str = TOKEN, clock: FakeClock | None = None, keys: KeyRing = NO_KEYS
) -> FromTool:
    clock = clock or FakeClock()
    return FromTool(server=at(port, token), keys=keys, clock=clock, wait=clock.advance)


def test_a_seed_fetches_the_newest_and_one_by_name(port: int, tmp_path: Path) -> None:
    fetched = fetching(port).fetch(tmp_path / "one.db", etcd_version=VERSION)
    assert (fetched.revision, (tmp_path / "one.db").read_bytes()) == (6, snapshot(5))
    named = {"etcd_version": VERSION, "name": fetched.name, "sha256": fetched.sha256}
    (tmp_path / "two.db").write_bytes(b"left by a process that was killed")
    assert fetching(port).fetch(tmp_path / "two.db", **named).name == fetched.name
    assert (tmp_path / "two.db").read_bytes() == snapshot(5)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"etcd_version": VERSION, "name": "3.6.16_0000000000000001_etcd.backup", "sha256": "ab"}, "404"),
        (
            {"etcd_version": VERSION, "name": "3.6.16_0000000000000006_etcd.backup", "sha256": "ab"},
            "replaced",
        ),
        ({"etcd_version": "3.5.35"}, "3.6 or 3.7"),
    ],
)
def test_a_seed_fetches_nothing_else_than_it_should(
    port: int, tmp_path: Path, wanted: dict[str, str], text: str
) -> None:
    with pytest.raises(SeedError, match=text):
        fetching(port).fetch(tmp_path / "one.db", **{"etcd_version": VERSION, **wanted})
    assert not (tmp_path / "one.db").exists()


def test_a_seed_with_another_token_ends(port: int, tmp_path: Path) -> None:
    with pytest.raises(SeedError, match="refuses the token"):
        fetching(port, "other").fetch(tmp_path / "one.db", etcd_version=VERSION)


def test_a_tool_that_is_not_there_is_asked_for_a_while(tmp_path: Path) -> None:
    clock = FakeClock()
    with pytest.raises(SeedError, match="does not answer"):
        fetching(1, clock=clock).fetch(tmp_path / "one.db", etcd_version=VERSION)
    assert clock.monotonic() >= PATIENCE
    with pytest.raises(SeedError, match="does not answer"):
        fetching(1).fetch(tmp_path / "one.db", etcd_version=VERSION, name="x", sha256="ab")


def test_a_download_that_is_cut_off_is_not_taken_for_a_whole_one(
    store: Directory, port: int, tmp_path: Path
) -> None:
    fetched = fetching(port).fetch(tmp_path / "one.db", etcd_version=VERSION)
    damage(store, f"{FOLDER}/{fetched.name}")
    named = {"etcd_version": VERSION, "name": fetched.name, "sha256": fetched.sha256}
    with pytest.raises(SeedError, match="does not answer"):
        fetching(port).fetch(tmp_path / "two.db", **named)
    assert not (tmp_path / "two.db").exists()


def test_a_tool_without_backups_reports_so(store: Directory, port: int, tmp_path: Path) -> None:
    for path in (tmp_path / "backups" / FOLDER).iterdir():
        path.unlink()
    with pytest.raises(SeedError, match="there is no backup"):
        fetching(port).fetch(tmp_path / "one.db", etcd_version=VERSION)
    with pytest.raises(NoReport):
        client.restorable(at(1), "")


# from the store


def test_the_newest_whole_backup_is_fetched_from_a_folder(store: Directory, tmp_path: Path) -> None:
    put(store, 5)
    damage(store, put(store, 6, minutes=1))
    target = tmp_path / "one.db"
    target.write_bytes(b"of an earlier try")
    fetched = from_store(store, load(store, FOLDER, now=NOW), target, NO_KEYS, etcd_version=VERSION)
    assert (fetched.revision, fetched.damaged) == (5, ("3.6.16_0000000000000006_etcd.backup",))
    assert target.read_bytes() == snapshot()


def test_where_nothing_is_whole_that_is_the_reason(store: Directory, tmp_path: Path) -> None:
    with pytest.raises(SeedError, match="there is no backup"):
        from_store(store, load(store, FOLDER, now=NOW), tmp_path / "one.db", NO_KEYS, etcd_version=VERSION)
    damage(store, put(store, 6))
    with pytest.raises(SeedError, match="no backup is intact"):
        from_store(store, load(store, FOLDER, now=NOW), tmp_path / "one.db", NO_KEYS, etcd_version=VERSION)


def test_a_backup_of_a_later_etcd_is_not_passed_over_for_an_older_one(
    store: Directory, tmp_path: Path
) -> None:
    put(store, 5)
    put(store, 6, minutes=1, version="3.7.3")
    with pytest.raises(SeedError, match=r"set spec\.version"):
        from_store(store, load(store, FOLDER, now=NOW), tmp_path / "one.db", NO_KEYS, etcd_version=VERSION)
