"""A folder as a store: what only filesystems do. What all stores do is in test_contract.py."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import AccessDenied, InvalidURL, NameTaken, StoreError, StoreFull
from etcd_operator.storage.partial import LEFTOVER_SECONDS


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def names(store: Directory, prefix: str = "") -> list[str]:
    return sorted(stored.name for stored in store.list(prefix))


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_nothing_is_left_beside_an_object(store: Directory, tmp_path: Path) -> None:
    store.put("a/b/c.db", [b"one", b"", b"two"])
    assert files(tmp_path) == ["a/b/c.db"]
    assert (tmp_path / "a/b/c.db").read_bytes() == b"onetwo"
    assert (tmp_path / "a/b/c.db").stat().st_mode & 0o777 == 0o600


def test_a_symbolic_link_does_not_lead_out_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.db").write_bytes(b"x")
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    (tmp_path / "root/a.db").symlink_to(tmp_path / "outside/a.db")
    store = Directory(tmp_path / "root")
    with pytest.raises(InvalidURL, match="leads out of"):
        store.put("link/b.db", [b"x"])
    with pytest.raises(InvalidURL, match="leads out of"):
        store.delete("link/a.db")
    assert names(store) == []
    assert store.stat("a.db") is None
    assert files(tmp_path / "outside") == ["a.db"]


def test_a_root_that_is_itself_a_link_is_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Directory(tmp_path / "link").put("a/b.db", [b"x"])
    assert names(Directory(tmp_path / "link")) == ["a/b.db"]


KILLED = """
import os, sys
from pathlib import Path
from etcd_operator.storage.directory import Directory
def chunks():
    yield b"x" * 10
    os.kill(os.getpid(), 9)
Directory(Path(sys.argv[1])).put("a/b.db", chunks())
"""


def test_what_a_killed_process_leaves_is_never_listed_and_removed_later(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -9
    (left,) = files(tmp_path)
    store = Directory(tmp_path)
    assert names(store) == []
    store.put("a/soon.db", [b"x"])
    assert files(tmp_path) == [left, "a/soon.db"]
    age(tmp_path / left)
    store.put("a/later.db", [b"x"])
    assert files(tmp_path) == ["a/later.db", "a/soon.db"]


def age(path: Path) -> None:
    then = path.stat().st_mtime - LEFTOVER_SECONDS - 1
    os.utime(path, (then, then))


def test_a_writer_that_is_slow_for_hours_keeps_its_file(store: Directory, tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"x"
        (unfinished,) = files(tmp_path)
        age(tmp_path / unfinished)
        Directory(tmp_path).put("other.db", [b"y"])

    store.put("a.db", chunks())
    assert names(store) == ["a.db", "other.db"]


def test_a_disk_that_turns_out_full_when_the_file_is_made_durable(
    store: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", raises(errno.EDQUOT))
    with pytest.raises(StoreFull):
        store.put("a.db", [b"x"])
    assert files(tmp_path) == []


def raises(number: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EROFS, AccessDenied), (errno.EACCES, AccessDenied), (errno.EIO, StoreError)]
)
def test_a_failure_to_open_is_translated(
    store: Directory, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StoreError]
) -> None:
    monkeypatch.setattr(os, "open", raises(number))
    with pytest.raises(StoreError) as caught:
        store.put("a.db", [b"x"])
    assert type(caught.value) is kind
    assert os.strerror(number) in str(caught.value)


def test_a_short_write_is_continued(
    store: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    store.put("a.db", [b"0123456789"])
    assert (tmp_path / "a.db").read_bytes() == b"0123456789"


def test_without_hard_links_a_rename_that_replaces_nothing_publishes(
    store: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", raises(errno.EOPNOTSUPP))
    store.put("a.db", [b"x"])
    assert files(tmp_path) == ["a.db"]

    def chunks() -> Iterator[bytes]:
        yield b"y"
        (tmp_path / "b.db").write_bytes(b"other")

    with pytest.raises(NameTaken):
        store.put("b.db", chunks())
    assert files(tmp_path) == ["a.db", "b.db"]
    assert (tmp_path / "b.db").read_bytes() == b"other"


def test_a_link_whose_reply_was_lost_is_a_success(
    store: Directory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def repeated(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    store.put("a.db", [b"x"])
    assert files(tmp_path) == ["a.db"]


def test_a_file_in_the_way_of_a_folder_is_reported(store: Directory) -> None:
    store.put("a", [b"x"])
    with pytest.raises(StoreError, match="a"):
        store.put("a/b", [b"x"])
    assert store.stat("a/b") is None
    assert list(store.list("a")) == []
    assert names(store) == ["a"]
